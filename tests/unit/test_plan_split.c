/*
 * Transcripts that are split for ranks: all parts together, in one process, each in a thread of its
 * own on the host reference, or with a device of its own, give what the whole gives; or the axis is
 * refused, with the entry.
 * Over the bundled transcripts, each input and axis, and over scripts that show how results join.
 */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/layout.h"
#include "helper_one_device.h"
#include "helper_random_script.h"
#include "helper_script.h"
#include "helper_share.h"
#include "plan/split.h"
#include "run/loaded_transcript.h"

enum { RANKS_MOST = 4, FILE_MOST = 200 << 10, SCRIPTS = 150 };

static const char *transcripts = TRANSCRIPTS;

static size_t splits, on_devices, refusals, exchanges; /* so far */

/* ---------------------------------------------------------------- ranks as threads */

struct ranks {
    pthread_mutex_t mutex;
    pthread_cond_t turn;
    uint32_t count, waiting, generation;
    bool failed; /* one of them: nobody waits for it */
    void *data[RANKS_MOST];
    uint64_t bytes;
};

struct rank {
    struct ranks *ranks;
    uint32_t number;
    struct healcl_device *device; /* NULL: the host reference */
    struct healcl_transcript *part;
    struct healcl_session *session;
    enum healcl_status status;
    struct healcl_error error;
};

static bool meet(struct ranks *ranks)
{
    pthread_mutex_lock(&ranks->mutex);
    const uint32_t generation = ranks->generation;
    if (++ranks->waiting == ranks->count) {
        ranks->waiting = 0;
        ranks->generation++;
        pthread_cond_broadcast(&ranks->turn);
    }
    while (generation == ranks->generation && !ranks->failed)
        pthread_cond_wait(&ranks->turn, &ranks->mutex);
    const bool failed = ranks->failed;
    pthread_mutex_unlock(&ranks->mutex);
    return !failed;
}

static void give_up(struct ranks *ranks)
{
    pthread_mutex_lock(&ranks->mutex);
    ranks->failed = true;
    pthread_cond_broadcast(&ranks->turn);
    pthread_mutex_unlock(&ranks->mutex);
}

static enum healcl_status exchange(void *context, const struct healcl_exchange *of, void *data,
                                   struct healcl_error *failure)
{
    struct rank *rank = context;
    struct ranks *ranks = rank->ranks;
    const size_t bytes = of->elements * (of->dtype == HEALCL_INT64 ? 8 : 4);
    (void)failure;
    ranks->data[rank->number] = data;
    if (!meet(ranks))
        return HEALCL_CANCELLED;
    if (rank->number == 0) {
        const size_t half = of->elements / 2; /* pieces begin anywhere */
        for (uint32_t i = 1; i < ranks->count; i++) {
            char *others = ranks->data[i];
            healcl_exchange_add(of, 0, half, data, others);
            healcl_exchange_add(of, half, of->elements - half, data,
                                others + half * (bytes / of->elements));
        }
        ranks->bytes += bytes;
    }
    if (!meet(ranks))
        return HEALCL_CANCELLED;
    if (rank->number > 0)
        memcpy(data, ranks->data[0], bytes);
    return meet(ranks) ? HEALCL_OK : HEALCL_CANCELLED;
}

static void *run_rank(void *context)
{
    struct rank *rank = context;
    const struct healcl_session_options options = {.exchange = exchange, .exchange_context = rank};
    rank->status =
        healcl_session_open(rank->part, rank->device, &options, &rank->session, &rank->error);
    if (rank->status == HEALCL_OK)
        rank->status = healcl_session_run(rank->session, &rank->error);
    if (rank->status != HEALCL_OK)
        give_up(rank->ranks);
    return NULL;
}

/* ---------------------------------------------------------------- joining */

static size_t item(const struct healcl_tensor_info *info)
{
    return info->dtype == HEALCL_INT64 ? 8 : info->dtype == HEALCL_INT32 ? 4 : 1;
}

/* Compares a rank's result with its part of the whole one. Returns how many elements it has. */
static uint64_t expect_part(const struct healcl_tensor_info *whole, const char *expected,
                            const struct healcl_tensor_info *info, const char *got,
                            const struct healcl_part *part)
{
    struct layout layout = layout_of_shape(info->rank, info->shape), view;
    view = layout_of_shape(whole->rank, whole->shape);
    const uint32_t axis = part->axis;
    for (struct walk walk = {.left = -1}; walk.left != 0;) {
        if (walk.left < 0)
            walk_init(&walk, 1, (const struct layout *[]){&layout});
        if (walk.left == 0)
            break;
        int64_t place = 0;
        for (uint32_t i = 0; i < info->rank; i++) {
            int64_t index = walk.index[i];
            if (part->period > 0 && i == axis)
                index = index / part->size * part->period + part->start + index % part->size;
            place += index * view.stride[i];
        }
        if (memcmp(expected + (size_t)place * item(info),
                   got + (size_t)walk.position[0] * item(info), item(info)) != 0)
            fail_msg("result of entry %zu: element %" PRId64 " differs", info->entry, place);
        walk_next(&walk);
    }
    return info->bytes;
}

struct case_ {
    const struct healcl_transcript *whole;
    struct healcl_session *session; /* of the whole, which has run */
    enum healcl_status status;      /* that its run has ended with */
};

static void expect_result(const struct case_ *of, const struct rank *ranks, uint32_t count,
                          size_t result)
{
    size_t n;
    const struct healcl_tensor_info *whole = &healcl_transcript_results(of->whole, &n)[result];
    const void *expected, *got;
    uint64_t bytes = 0, whole_bytes = whole->bytes;
    OK(healcl_session_map(of->session, result, &expected, &error));
    for (uint32_t r = 0; r < count; r++) {
        const struct healcl_part part = healcl_transcript_result_part(ranks[r].part, result);
        OK(healcl_session_map(ranks[r].session, result, &got, &error));
        const struct healcl_tensor_info *info =
            &healcl_transcript_results(ranks[r].part, &n)[result];
        bytes += expect_part(whole, expected, info, got, &part);
        if (part.period == 0)
            whole_bytes = count * whole->bytes;
        uint64_t different = 1;
        if (!info->has_data)
            continue;
        uint64_t of_whole;
        OK(healcl_session_compare(of->session, result, &of_whole, &error));
        OK(healcl_session_compare(ranks[r].session, result, &different, &error));
        if (of_whole == 0)
            assert_int_equal(different, 0);
    }
    assert_int_equal(bytes, whole_bytes);
}

/* Runs all parts of a split, which has not been refused. */
static void run_parts(const struct case_ *of, struct rank *ranks, uint32_t count)
{
    struct ranks all = {
        .mutex = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER, .count = count};
    pthread_t threads[RANKS_MOST];
    bool ran = true;
    size_t results;
    for (uint32_t r = 0; r < count; r++) {
        ranks[r].ranks = &all;
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < count; r++) {
        pthread_join(threads[r], NULL);
        ran &= ranks[r].status == HEALCL_OK;
        if (of->status == HEALCL_OK && ranks[r].status != HEALCL_OK &&
            ranks[r].status != HEALCL_CANCELLED)
            fail_msg("rank %u: %s", (unsigned)r, ranks[r].error.message);
    }
    assert_int_equal(ran, of->status == HEALCL_OK);
    if (ran)
        assert_int_equal(all.bytes, healcl_transcript_split_facts(ranks[0].part).exchange_bytes);
    (void)healcl_transcript_results(of->whole, &results);
    for (size_t i = 0; ran && i < results; i++)
        expect_result(of, ranks, count, i);
}

static struct healcl_device *handles[RANKS_MOST]; /* one for each rank */

/* Returns whether the axis was split, and not refused. */
static bool expect_split_on(const struct case_ *of, size_t input, uint32_t axis, uint32_t count,
                            bool on)
{
    struct rank ranks[RANKS_MOST] = {{.number = 0}};
    bool is_split = true;
    for (uint32_t r = 0; r < count && is_split; r++) {
        const struct healcl_split split = {input, axis, r, count};
        ranks[r].number = r;
        ranks[r].device = on ? handles[r] : NULL;
        const enum healcl_status status =
            healcl_transcript_split(of->whole, &split, &ranks[r].part, &error);
        is_split = status == HEALCL_OK;
        if (!is_split) {
            assert_int_equal(r, 0); /* all or none */
            assert_memory_equal(error.message, "entry ", strlen("entry "));
            if (getenv("HEALCL_TEST_TELL"))
                printf("  %s\n", error.message);
            healcl_error_clear(&error);
        }
    }
    if (is_split)
        run_parts(of, ranks, count);
    exchanges += healcl_transcript_split_facts(ranks[0].part).exchanges;
    for (uint32_t r = 0; r < count; r++) {
        healcl_session_close(ranks[r].session);
        healcl_transcript_close(ranks[r].part);
        healcl_error_clear(&ranks[r].error);
    }
    return is_split;
}

static bool expect_split(const struct case_ *of, size_t input, uint32_t axis, uint32_t count)
{
    return expect_split_on(of, input, axis, count, false);
}

/* ---------------------------------------------------------------- transcripts */

static void expect_splits(const char *name, struct healcl_transcript *whole)
{
    struct case_ of = {.whole = whole};
    size_t inputs, before = splits;
    const struct healcl_tensor_info *input = healcl_transcript_inputs(whole, &inputs);
    OK(healcl_session_open(whole, NULL, NULL, &of.session, &error));
    of.status = healcl_session_run(of.session, &error);
    healcl_error_clear(&error);
    for (size_t i = 0; i < inputs; i++)
        for (uint32_t axis = 0; axis < input[i].rank; axis++)
            for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks++) {
                if (ranks > 1 && !share_takes("splits", i * 64 + axis * 4 + ranks, 3))
                    continue;
                if (getenv("HEALCL_TEST_TELL"))
                    printf("%s: input %zu axis %u ranks %u\n", name, i, axis, ranks);
                const bool is_split = expect_split(&of, i, axis, ranks);
                if (is_split && share_takes("splits on devices", i * 64 + axis * 4 + ranks, 8))
                    on_devices += expect_split_on(&of, i, axis, ranks, true);
                splits += is_split;
                refusals += !is_split;
            }
    printf("%s: %zu splits\n", name, splits - before);
    healcl_session_close(of.session);
}

static void bundled_transcripts_split(void **state)
{
    (void)state;
    DIR *folder = opendir(transcripts);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        struct stat facts;
        struct healcl_transcript *whole = NULL;
        snprintf(path, sizeof path, "%s/%s", transcripts, entry->d_name);
        if (!strstr(entry->d_name, ".json") || stat(path, &facts) != 0 ||
            (facts.st_size > FILE_MOST && !share_is_all()))
            continue;
        if (healcl_transcript_open(path, NULL, &whole, &error) == HEALCL_OK)
            expect_splits(entry->d_name, whole);
        healcl_error_clear(&error);
        healcl_transcript_close(whole);
    }
    closedir(folder);
    printf("%zu splits, %zu of them on devices too, %zu exchanges, %zu refused\n", splits,
           on_devices, exchanges, refusals);
    assert_true(splits > 50 && exchanges > 0 && refusals > 30);
}

static void random_scripts_split(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SCRIPTS; seed++) {
        struct script script = {0};
        struct healcl_transcript *whole = NULL;
        char name[32];
        if (seed >= SCRIPTS_CHOSEN && !share_takes("random scripts", seed, 15))
            continue;
        snprintf(name, sizeof name, "random script %d", (int)seed);
        script_random(&script, seed);
        script_finish(&script);
        OK(healcl_transcript_open_memory(script.writer.bytes, script.writer.length, NULL, &whole,
                                         &error));
        expect_splits(name, whole);
        healcl_transcript_close(whole);
        script_release(&script);
    }
}

/* ---------------------------------------------------------------- sums */

static void upload(struct script *script, const char *name, enum dtype dtype, uint32_t rank,
                   const int64_t *shape)
{
    int64_t values[1024];
    const struct layout layout = layout_of_shape(rank, shape);
    static uint64_t seed = 7;
    assert_true(layout_elements(&layout) <= 1024);
    for (int64_t i = 0; i < layout_elements(&layout); i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        values[i] = (int64_t)(dtype == DTYPE_INT64 ? seed : seed >> 33) * (i % 3 ? 1 : -1);
    }
    script_upload(script, name, dtype, rank, shape, values);
}

/* Sums add to tensors that are neither reduced nor 0, are added to twice, or are slices. */
static void add_sums(struct script *script, enum dtype dtype, const int64_t moduli[2])
{
    script_upload(script, "q", dtype, 1, (int64_t[]){2}, moduli);
    upload(script, "a", dtype, 4, (int64_t[]){3, 5, 2, 4});
    upload(script, "b", dtype, 3, (int64_t[]){5, 2, 4});
    upload(script, "o", dtype, 3, (int64_t[]){3, 2, 4});
    upload(script, "w", dtype, 4, (int64_t[]){3, 2, 3, 4});
    upload(script, "c", dtype, 4, (int64_t[]){3, 5, 4, 2});
    script_call(script, NULL, "modmul_axis_sum", "a b q o -1");
    script_call(script, NULL, "modmul_axis_sum", "a b q o -1");
    script_call(script, "slice", "get_slice", "w [:,:,1,:]");
    script_call(script, NULL, "modmul_axis_sum", "a b q slice -1");
    script_free(script, "b");
    script_download(script, "w");
    script_download(script, "o");
    script_call(script, "s", "empty", dtype == DTYPE_INT64 ? "(3,4,2) :int64" : "(3,4,2) :int32");
    script_call(script, NULL, "axis_modsum", "c 1 q s");
    script_free(script, "q");
    script_call(script, NULL, "_modsum_ttc", "s s 97 s");
    script_download(script, "s");
}

static void expect_sums(enum dtype dtype, const int64_t moduli[2], bool on)
{
    struct script script = {0};
    struct case_ of = {0};
    struct healcl_transcript *whole = NULL;
    add_sums(&script, dtype, moduli);
    script_finish(&script);
    OK(healcl_transcript_open_memory(script.writer.bytes, script.writer.length, NULL, &whole,
                                     &error));
    of.whole = whole;
    OK(healcl_session_open(whole, NULL, NULL, &of.session, &error));
    OK(healcl_session_run(of.session, &error));
    for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks++) {
        const size_t before = exchanges;
        /* a's summed axis: o, and the slice */
        assert_true(expect_split_on(&of, 1, 1, ranks, on));
        assert_int_equal(exchanges - before, ranks > 1 ? 2 : 0);
        assert_true(expect_split_on(&of, 2, 0, ranks, on)); /* b's */
        assert_true(expect_split_on(&of, 5, 1, ranks, on)); /* c's: what follows wants the sum */
        assert_int_equal(exchanges - before, ranks > 1 ? 5 : 0);
        assert_int_equal(expect_split_on(&of, 1, 0, ranks, on), ranks <= 3); /* carried */
    }
    healcl_session_close(of.session);
    healcl_transcript_close(whole);
    script_release(&script);
}

static void sums_join(void **state)
{
    (void)state;
    for (int on = 0; on <= 1; on++) {
        expect_sums(DTYPE_INT64, (const int64_t[]){INT64_MAX, INT64_C(4611686018427387847)}, on);
        expect_sums(DTYPE_INT32, (const int64_t[]){INT32_MAX, 97}, on);
    }
}

/* ---------------------------------------------------------------- errors */

static struct healcl_transcript *open_sums(struct script *script)
{
    struct healcl_transcript *whole = NULL;
    add_sums(script, DTYPE_INT64, (const int64_t[]){97, 101});
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, NULL, &whole,
                                     &error));
    return whole;
}

static void expect_refused(const struct healcl_transcript *whole, struct healcl_split split,
                           enum healcl_status status, const char *message)
{
    struct healcl_transcript *part = NULL;
    assert_int_equal(healcl_transcript_split(whole, &split, &part, &error), status);
    assert_string_equal(error.message, message);
    assert_null(part);
}

static void splits_are_refused(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *whole = open_sums(&script), *part = NULL, *again = NULL;
    struct healcl_session *session = NULL;
    struct healcl_report *report = NULL;
    expect_refused(whole, (struct healcl_split){6, 0, 0, 2}, HEALCL_USAGE,
                   "there is no input 6: the number of inputs is 6");
    expect_refused(whole, (struct healcl_split){1, 4, 0, 2}, HEALCL_USAGE,
                   "entry 1 (host_to_device): there is no axis 4; the rank is 4");
    expect_refused(whole, (struct healcl_split){1, 1, 2, 2}, HEALCL_USAGE,
                   "there is no rank 2 among 2");
    expect_refused(whole, (struct healcl_split){1, 1, 0, 0}, HEALCL_USAGE,
                   "there is no rank 0 among 0");
    expect_refused(whole, (struct healcl_split){1, 1, 0, 6}, HEALCL_USAGE,
                   "entry 1 (host_to_device): axis 1 has size 5, too small for 6 ranks");
    expect_refused(whole, (struct healcl_split){4, 2, 0, 2}, HEALCL_REFUSED,
                   "entry 9 (modmul_axis_sum): takes a part of the split axis");
    const struct healcl_split split = {1, 1, 0, 2};
    OK(healcl_transcript_split(whole, &split, &part, &error));
    assert_int_equal(healcl_transcript_split(part, &split, &again, &error), HEALCL_USAGE);
    assert_string_equal(error.message,
                        "a part of a split transcript cannot be split or widened again");
    assert_int_equal(healcl_session_open(part, NULL, NULL, &session, &error), HEALCL_USAGE);
    assert_string_equal(error.message,
                        "a part of a transcript needs a function that exchanges sums");
    assert_int_equal(healcl_run(part, NULL, NULL, &report, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "a part that exchanges sums needs a session");
    healcl_transcript_close(part);
    healcl_transcript_close(whole);
    script_release(&script);
}

enum { INPUTS_TRIED = 32 };

/* Chooses among many inputs, of which only number one is not sliced. */
static void expect_of_many(const int64_t *sizes, size_t count, size_t one, bool is_chosen)
{
    struct script script = {0};
    struct healcl_split split = {.ranks = 2};
    for (size_t i = 0; i < count; i++) {
        char text[128];
        snprintf(text, sizeof text, "t%zu (%d); v = get_slice t%zu [0:%d]; abs v v", i,
                 (int)sizes[i], i, i == one ? (int)sizes[i] : 1);
        script_lines(&script, text);
    }
    script_plan(&script);
    assert_int_equal(plan_choose_split(script.plan,
                                       &(const struct healcl_plan_options){.work_limit = 0}, &split,
                                       &error),
                     is_chosen ? HEALCL_OK : HEALCL_REFUSED);
    if (is_chosen)
        assert_int_equal(split.input, one);
    healcl_error_clear(&error);
    script_release(&script);
}

static void of_many_the_largest(void **state)
{
    enum { COUNT = INPUTS_TRIED + 8 };
    int64_t sizes[COUNT], equal[COUNT];
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = 3 + (int64_t)(i * 17 % COUNT); /* each size once */
        equal[i] = 5;
    }
    for (size_t one = 0; one < COUNT; one++) {
        expect_of_many(sizes, COUNT, one, sizes[one] >= 3 + COUNT - INPUTS_TRIED);
        expect_of_many(equal, COUNT, one, one < INPUTS_TRIED);
    }
    for (size_t count = INPUTS_TRIED - 1; count <= INPUTS_TRIED; count++)
        expect_of_many(equal, count, count - 1, true);
}

/* A batch of requests expects its results one by one, which no part can have. */
static void batches_that_expect_results_are_refused(void **state)
{
    const struct layout layout = layout_of_shape(1, (int64_t[]){4});
    const int64_t values[] = {1, 2, 3, 4};
    (void)state;
    for (int64_t batch = 1; batch <= 2; batch++)
        for (int expects = 0; expects <= 1; expects++) {
            const struct healcl_split split = {.input = 0, .axis = 1, .rank = 0, .ranks = 2};
            const struct healcl_split other = {.input = 1, .axis = 0, .rank = 1, .ranks = 2};
            struct healcl_transcript *one = NULL, *wide = NULL, *part = NULL;
            struct script script = {0};
            script_lines(&script, "a (4); b (4)");
            writer_download(&script.writer, "a", DTYPE_INT64, &layout, expects ? values : NULL);
            script_finish(&script);
            assert_int_equal(healcl_transcript_open_memory(
                                 script.writer.bytes, script.writer.length, NULL, &one, &error),
                             HEALCL_OK);
            assert_int_equal(
                healcl_transcript_widen(one, (const size_t[]){0}, 1, batch, &wide, &error),
                HEALCL_OK);
            assert_int_equal(healcl_transcript_split(wide, &split, &part, &error),
                             expects ? HEALCL_USAGE : HEALCL_OK);
            if (expects)
                assert_string_equal(error.message,
                                    "a widened transcript that expects results cannot be split");
            healcl_error_clear(&error);
            healcl_transcript_close(part);
            part = NULL;
            /* A whole result may be expected. */
            assert_int_equal(healcl_transcript_split(wide, &other, &part, &error), HEALCL_OK);
            healcl_transcript_close(part);
            healcl_transcript_close(wide);
            healcl_transcript_close(one);
            script_release(&script);
        }
}

static int open_handles(void **state)
{
    if (open_device(state) != 0)
        return -1;
    for (uint32_t r = 0; r < RANKS_MOST; r++)
        if (device_open_beside(device, &handles[r], &error) != HEALCL_OK)
            return -1;
    return 0;
}

static int close_handles(void **state)
{
    for (uint32_t r = 0; r < RANKS_MOST; r++)
        healcl_device_close(handles[r]);
    return close_device(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bundled_transcripts_split),
        cmocka_unit_test(random_scripts_split),
        cmocka_unit_test(sums_join),
        cmocka_unit_test(splits_are_refused),
        cmocka_unit_test(of_many_the_largest),
        cmocka_unit_test(batches_that_expect_results_are_refused),
    };
    return cmocka_run_group_tests(tests, open_handles, close_handles);
}
