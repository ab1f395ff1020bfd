/* Derived transcripts: a change that changes nothing makes the same plan, also of a derived one;
 * limits hold for what a change writes. */
#include "plan/derive.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_script.h"
#include "plan/memory.h"
#include "plan/transcript.h"

static enum healcl_status write_segments(struct rewrite *rewrite, struct healcl_error *error)
{
    for (size_t s = 0; s < rewrite->from->segment_count; s++) {
        const struct segment *segment = &rewrite->from->segments[s];
        TRY(rewrite_segment(rewrite, segment, error));
        for (size_t i = 0; i < segment->step_count; i++)
            TRY(rewrite_same(rewrite, &rewrite->from->steps[segment->first_step + i], error));
    }
    return HEALCL_OK;
}

static enum healcl_status change_nothing(struct rewrite *rewrite, const void *how,
                                         struct healcl_error *error)
{
    assert_string_equal(how, "how");
    return write_segments(rewrite, error);
}

/* of: the other plan's storage by id of the one's, as far as it has been met. */
static void expect_same_tensor(const struct tensor *a, const struct tensor *b,
                               const struct storage **of)
{
    assert_int_equal(!a, !b);
    if (!a)
        return;
    if (!of[a->storage->id])
        of[a->storage->id] = b->storage;
    assert_ptr_equal(of[a->storage->id], b->storage);
    assert_int_equal(a->storage->dtype, b->storage->dtype);
    assert_int_equal(a->storage->elements, b->storage->elements);
    assert_memory_equal(&a->layout, &b->layout, sizeof a->layout);
}

static void expect_same_segments(const struct plan *a, const struct plan *b)
{
    assert_int_equal(a->segment_count, b->segment_count);
    for (size_t i = 0; i < a->segment_count; i++) {
        const struct segment *one = &a->segments[i], *other = &b->segments[i];
        assert_string_equal(one->name, other->name);
        assert_int_equal(one->first_step, other->first_step);
        assert_int_equal(one->step_count, other->step_count);
        assert_memory_equal(one->counts, other->counts,
                            operation_count(a->table) * sizeof *one->counts);
        assert_int_equal(one->operations, other->operations);
        assert_int_equal(one->frees, other->frees);
        assert_int_equal(one->results, other->results);
        assert_int_equal(one->bytes_up, other->bytes_up);
        assert_int_equal(one->bytes_down, other->bytes_down);
    }
}

static void expect_same_plan(const struct plan *a, const struct plan *b)
{
    const struct storage **of = calloc(a->storage_count, sizeof *of);
    assert_non_null(of);
    expect_same_segments(a, b);
    assert_int_equal(a->step_count, b->step_count);
    assert_true(a->memory_limit == b->memory_limit && a->table == b->table);
    assert_true(a->tensors == b->tensors && a->entries == b->entries);
    assert_true(a->operations == b->operations && a->frees == b->frees);
    assert_int_equal(a->constants.count, b->constants.count);
    assert_int_equal(a->uploads, b->uploads);
    assert_int_equal(a->results, b->results);
    assert_int_equal(a->expected, b->expected);
    assert_int_equal(a->bytes_up, b->bytes_up);
    assert_int_equal(a->bytes_down, b->bytes_down);
    assert_int_equal(a->pass_changes, b->pass_changes);
    assert_true(b->bytes_peak <= a->bytes_peak); /* storages begin where they are first used */
    for (size_t i = 0; i < a->step_count; i++) {
        const struct step *one = &a->steps[i], *other = &b->steps[i];
        assert_int_equal(one->kind, other->kind);
        assert_memory_equal(one->value, other->value, sizeof one->value);
        assert_int_equal(one->residues, other->residues);
        assert_int_equal(one->nonnegative, other->nonnegative);
        assert_int_equal(one->zeros, other->zeros);
        assert_int_equal(step_origin(one, NO_INPUT)->entry, step_origin(other, NO_INPUT)->entry);
        for (int j = 0; j < STEP_OPERANDS; j++)
            expect_same_tensor(step_operand(one, j), step_operand(other, j), of);
    }
    free(of);
}

/* Of a plan that stays as it is before passes any number may be made, and nothing is planned again.
 */
static void expect_same_of_plain(const char *path, const struct plan *wanted)
{
    struct healcl_transcript *plain = NULL, *children[2] = {NULL}, *grandchild = NULL;
    struct healcl_error error = {0};
    assert_int_equal(transcript_open_plain(path, NULL, &plain, &error), HEALCL_OK);
    assert_int_equal(plain->plan->pass_changes, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            transcript_derive(plain, change_nothing, "how", sizeof "how", &children[i], &error),
            HEALCL_OK);
    assert_int_equal(
        transcript_derive(children[0], change_nothing, "how", sizeof "how", &grandchild, &error),
        HEALCL_OK);
    if (wanted->uploads > 0)
        assert_ptr_equal(plain->input_steps[0]->origins, children[0]->input_steps[0]->origins);
    healcl_transcript_close(plain);
    healcl_transcript_close(children[0]);
    expect_same_plan(wanted, children[1]->plan);
    expect_same_plan(wanted, grandchild->plan);
    healcl_transcript_close(children[1]);
    healcl_transcript_close(grandchild);
}

/* Storages are there from the first step that has them to the one that ends them. */
static uint64_t peak_of(const struct plan *plan)
{
    uint64_t live = 0, peak = 0;
    bool *is_known = calloc(plan->storage_count, sizeof *is_known);
    assert_non_null(is_known);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        for (int j = 0; j < STEP_OPERANDS; j++) {
            const struct tensor *tensor = step_operand(step, j);
            if (!tensor || tensor->storage->scalars || is_known[tensor->storage->id])
                continue;
            live += storage_bytes(tensor->storage);
            is_known[tensor->storage->id] = true;
        }
        const uint64_t most = live + (step->kind == STEP_RELEASE ? 0 : step_scratch_bytes(step));
        peak = most > peak ? most : peak;
        if (step->kind == STEP_RELEASE)
            live -= storage_bytes(step->in[0]->storage);
    }
    free(is_known);
    return peak;
}

/* Plans that stay, and one that another takes all from. */
static void expect_rewritten(const char *path)
{
    const struct healcl_limits limits = {.passes = NULL};
    struct healcl_error error = {0};
    struct script script;
    assert_int_equal(script_open(&script, path, &error), HEALCL_OK);
    struct plan *children[2] = {NULL}, *last = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            plan_rewrite(script.plan, true, &limits, change_nothing, "how", &children[i], &error),
            HEALCL_OK);
        expect_same_plan(script.plan, children[i]);
        assert_int_equal(children[i]->bytes_peak, peak_of(children[i]));
        assert_ptr_not_equal(children[i]->arena, script.plan->arena);
        assert_memory_equal(children[i]->constants.values, script.plan->constants.values,
                            script.plan->constants.count * sizeof(int64_t));
        assert_int_equal(children[i]->storages[0]->id, 0);
        assert_ptr_equal(children[i]->storages[0], script.plan->constants.storage);
    }
    plan_free(children[0]);
    assert_int_equal(plan_rewrite(children[1], true, &limits, change_nothing, "how", &last, &error),
                     HEALCL_OK);
    plan_free(children[1]);
    expect_same_plan(script.plan, last);
    plan_free(last);
    struct plan *from = script.plan;
    script.plan = NULL;
    assert_int_equal(plan_rewrite(from, false, &limits, change_nothing, "how", &last, &error),
                     HEALCL_OK);
    assert_int_equal(last->bytes_peak, peak_of(last));
    plan_free(last);
    script_release(&script);
}

static void expect_same(const char *path)
{
    struct healcl_transcript *parent = NULL, *child = NULL, *grandchild = NULL;
    struct healcl_error error = {0};
    if (healcl_transcript_open(path, NULL, &parent, &error) != HEALCL_OK)
        fail_msg("%s: %s", path, error.message);
    assert_int_equal(transcript_derive(parent, change_nothing, "how", sizeof "how", &child, &error),
                     HEALCL_OK);
    expect_same_plan(parent->plan, child->plan);
    assert_int_equal(
        transcript_derive(child, change_nothing, "how", sizeof "how", &grandchild, &error),
        HEALCL_OK);
    struct plan *of_parent = parent->plan;
    expect_same_plan(of_parent, grandchild->plan);
    expect_same_of_plain(path, of_parent);
    healcl_transcript_close(child);
    healcl_transcript_close(parent); /* both are still needed */
    size_t count;
    assert_true(healcl_transcript_inputs(grandchild, &count) || count == 0);
    healcl_transcript_close(grandchild);
}

static void nothing_changes(void **state)
{
    (void)state;
    DIR *folder = opendir(TRANSCRIPTS);
    size_t files = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, TRANSCRIPTS "/%s", entry->d_name);
        expect_same(path);
        expect_rewritten(path);
        files++;
    }
    closedir(folder);
    assert_true(files > 20);
}

/* Twice the storage of what is filled. */
static enum healcl_status change_size(struct rewrite *rewrite, const void *how,
                                      struct healcl_error *error)
{
    struct storage *storage;
    (void)how;
    for (size_t i = 0; i < rewrite->from->step_count; i++)
        if (rewrite->from->steps[i].kind == STEP_FILL) {
            const struct storage *of = rewrite->from->steps[i].out->storage;
            TRY(rewrite_storage(rewrite, of, 2 * of->elements, &storage, error));
        }
    return write_segments(rewrite, error);
}

static void limits_hold(void **state)
{
    static const char text[] =
        "[{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"zeros\",\"args\":[{\"arg_type\":\"SHAPE\","
        "\"value\":[{\"arg_type\":\"INT\",\"value\":4}]},{\"arg_type\":\"TENSOR_TYPE\","
        "\"value\":\"int64\"}],\"out\":{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":1}}}"
        "}"
        "]";
    struct healcl_limits limits = {.memory_bytes = 63};
    struct healcl_transcript *parent = NULL, *child = NULL;
    struct healcl_error error = {0};
    (void)state;
    assert_int_equal(healcl_transcript_open_memory(text, sizeof text - 1, &limits, &parent, &error),
                     HEALCL_OK);
    assert_int_equal(transcript_derive(parent, change_size, "", 0, &child, &error), HEALCL_REFUSED);
    assert_int_equal(error.cause, HEALCL_CAUSE_LIMIT);
    assert_string_equal(error.message,
                        "entry 0 (zeros): 64 bytes beside 0 in use are above the limit of 63");
    healcl_transcript_close(parent);
    limits.memory_bytes = 64;
    assert_int_equal(healcl_transcript_open_memory(text, sizeof text - 1, &limits, &parent, &error),
                     HEALCL_OK);
    assert_int_equal(transcript_derive(parent, change_size, "", 0, &child, &error), HEALCL_OK);
    assert_int_equal(child->plan->bytes_peak, 64);
    healcl_transcript_close(child);
    healcl_transcript_close(parent);
}

/* Of three requests: what they take together, beside what is there, and each step's work alone. */
static void limits_hold_for_batches(void **state)
{
    static const struct {
        const char *lines;
        uint64_t memory, work;
        const char *expected; /* "": no error */
        int argument;
    } cases[] = {
        {"a (4); b (4); abs a a", 127, 0,
         "entry 1 (host_to_device): 32 bytes beside 96 in use are above the limit of 127", -1},
        {"a (4); b (4); abs a a", 128, 0, "", -1},
        {"a (4); b (4); abs a a; free a; c (8)", 128, 0, "", -1},
        {"a (4); b (4); abs a a; free b; c (5)", 135, 0,
         "entry 4 (host_to_device): 40 bytes beside 96 in use are above the limit of 135", -1},
        {"a (4); b = zeros (4) :int64; c = zeros (4) :int64; abs a b; free a", 0, 12, "", -1},
        {"a (4); b = zeros (4) :int64; c = zeros (4) :int64; abs a b", 0, 11,
         "entry 0 (host_to_device): argument 'tensor': 12 elements to visit, above the limit of "
         "11",
         -1},
        {"a (1,4); y = expand a 0 4; b = empty (4,4) :int64; abs y b", 0, 47,
         "entry 3 (abs): argument 'a': 48 elements to visit, above the limit of 47", 0},
        {"a (1,4); y = expand a 0 4; b = empty (4,4) :int64; abs y b; set_const_val b 0", 0, 48, "",
         -1},
        {"a (1,4); b (4,4); y = expand a 0 4; c = empty (4,4) :int64; _modsum_ttc y b 7 c", 0, 47,
         "entry 4 (_modsum_ttc): argument 'a': 48 elements to visit, above the limit of 47", 0},
    };
    struct healcl_error error = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct healcl_limits limits = {.memory_bytes = cases[i].memory,
                                             .work = cases[i].work};
        struct healcl_transcript *parent = NULL, *wide = NULL;
        struct script script = {0};
        script_lines(&script, cases[i].lines);
        script_finish(&script);
        assert_int_equal(healcl_transcript_open_memory(script.writer.bytes, script.writer.length,
                                                       &limits, &parent, &error),
                         HEALCL_OK);
        const bool fits =
            healcl_transcript_widen(parent, (const size_t[]){0}, 1, 3, &wide, &error) == HEALCL_OK;
        assert_string_equal(fits ? "" : error.message, cases[i].expected);
        assert_int_equal(fits ? -1 : error.argument, cases[i].argument);
        assert_int_equal(error.cause, fits ? HEALCL_CAUSE_NONE : HEALCL_CAUSE_LIMIT);
        healcl_error_clear(&error);
        healcl_transcript_close(wide);
        healcl_transcript_close(parent);
        script_release(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changes),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(limits_hold_for_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
