/*
 * Memory that runs out while a plan is made: allocations fail in turn, each alone, and together
 * with all that come after it; of those that the same calls have led to the first one. It ends with
 * HEALCL_NO_MEMORY and one line, and leaves nothing; what was there before is as it was. Memory of
 * an arena (core/arena.h) is counted too, which rarely allocates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_memory.h"
#include "helper_queue_calls.h"
#include "helper_script.h"
#include "helper_share.h"
#include "run/loaded_transcript.h"
#include "vendor/vendor.h"

/* ---------------------------------------------------------------- sweeps */

static size_t failed; /* allocations so far, alone and with others */

typedef enum healcl_status attempt(void *context);

/* *count: how many allocations there were. */
static enum healcl_status try_with(attempt *tries, void *context, enum memory_way way, size_t at,
                                   size_t *count)
{
    memory_begin(way, at);
    const enum healcl_status status = tries(context);
    *count = memory_end();
    return status;
}

static void sweep(const char *name, attempt *tries, void *context)
{
    size_t first_count, count;
    OK(try_with(tries, context, MEMORY_IS_NOTED, 0, &count));
    const size_t *firsts = memory_firsts(&first_count);
    for (enum memory_way way = MEMORY_FAILS_ONCE; way <= MEMORY_FAILS_ON; way++)
        for (size_t i = 0; i < first_count; i++) {
            const enum healcl_status status = try_with(tries, context, way, firsts[i], &count);
            if (count < firsts[i]) /* what an earlier attempt has allocated was there */
                OK(status);
            else if (status != HEALCL_NO_MEMORY || !strstr(error.message, "out of memory"))
                fail_msg("%s: allocation %zu: status %d: %s", name, firsts[i], status,
                         error.message);
            healcl_error_clear(&error);
        }
    OK(try_with(tries, context, MEMORY_WORKS, 0, &count));
    failed += first_count;
}

/* ---------------------------------------------------------------- what is tried */

static const char *const files[] = {"plain",      "names",         "segments", "sums",
                                    "recognizer", "digits_full_q", "gather",   "pad_repeat",
                                    "layout",     "modular",       "intt",     "high_rank",
                                    "payloads",   "aliasing",      "random_1", "empty_shapes"};

static void path_of(const char *file, char path[512])
{
    snprintf(path, 512, TRANSCRIPTS "/%s.json", file);
}

static enum healcl_status open_file(void *path)
{
    struct healcl_transcript *transcript = NULL;
    const enum healcl_status status = healcl_transcript_open(path, NULL, &transcript, &error);
    healcl_transcript_close(transcript);
    return status;
}

static enum healcl_status widen(void *context)
{
    struct healcl_transcript *wide = NULL;
    const enum healcl_status status =
        healcl_transcript_widen(context, (size_t[]){0}, 1, 3, &wide, &error);
    healcl_transcript_close(wide);
    return status;
}

static enum healcl_status split(void *context)
{
    struct healcl_transcript *part = NULL;
    struct healcl_split split = {.rank = 1, .ranks = 2};
    TRY(healcl_transcript_choose_split(context, &split, &error));
    const enum healcl_status status = healcl_transcript_split(context, &split, &part, &error);
    size_t inputs, results;
    (void)healcl_transcript_inputs(part, &inputs);
    (void)healcl_transcript_results(part, &results);
    assert_int_equal(healcl_transcript_input_part(part, inputs).period, 0);
    assert_int_equal(healcl_transcript_result_part(part, results).period, 0);
    healcl_transcript_close(part);
    return status;
}

/* Plans are made, and made into others. */
static void transcripts_are_planned(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        path_of(files[i], path);
        sweep(files[i], open_file, path);
    }
}

static void plans_are_derived(void **state)
{
    (void)state;
    struct healcl_transcript *transcript = NULL;
    char path[512];
    path_of("sentiment", path);
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        OK(is_plain ? transcript_open_plain(path, NULL, &transcript, &error)
                    : healcl_transcript_open(path, NULL, &transcript, &error));
        sweep("widen", widen, transcript);
        sweep("split", split, transcript);
        healcl_transcript_close(transcript);
    }
}

/* Manifests are read, and a transcript is planned that has an operation of theirs with a body. */

static enum healcl_status load(void *folder)
{
    struct healcl_operations *loaded = NULL;
    const enum healcl_status status = healcl_operations_load(folder, &loaded, &error);
    healcl_operations_free(loaded);
    return status;
}

struct text {
    struct script script;
    struct healcl_plan_options options;
};

static enum healcl_status open_text(void *context)
{
    const struct text *text = context;
    struct healcl_transcript *transcript = NULL;
    const enum healcl_status status = healcl_transcript_open_memory(
        text->script.writer.bytes, text->script.writer.length, &text->options, &transcript, &error);
    healcl_transcript_close(transcript);
    return status;
}

static void operations_are_planned(void **state)
{
    (void)state;
    struct text text = {.options = {.passes = "all"}};
    struct script *script = &text.script;
    struct healcl_operations *loaded = NULL;
    const int64_t values[2 * 8] = {0, 5, 2, 7, 4, 1, 6, 3, 97, 193};
    sweep("manifests", load, EXTENSIONS);
    OK(healcl_operations_load(EXTENSIONS, &loaded, &error));
    text.options.operations = loaded;
    script->operations = loaded->table;
    script_upload(script, "a", DTYPE_INT64, 2, (int64_t[]){2, 8}, values);
    script_upload(script, "index", DTYPE_INT64, 1, (int64_t[]){8}, values);
    script_upload(script, "q", DTYPE_INT64, 1, (int64_t[]){2}, values + 8);
    script_call(script, "b", "empty", "(2,8) :int64");
    script_call(script, NULL, "automorphism", "a index index q b");
    script_download(script, "b");
    script_finish(script);
    sweep("a manifest's operation", open_text, &text);
    script_release(script);
    healcl_operations_free(loaded);
}

/* A call that fails leaves nothing, no storage either, and the next one is right. */

struct calls {
    struct healcl_queue *queue;
    struct healcl_tensor *a;
    size_t free_storages; /* after each attempt; 0: none was there */
};

static enum healcl_status multiply(void *context)
{
    struct calls *calls = context;
    struct healcl_tensor *made = NULL, *column = NULL;
    enum healcl_status status = healcl_tensor_create(calls->queue, HEALCL_INT64, 1,
                                                     (const int64_t[]){4}, NULL, &made, &error);
    if (status == HEALCL_OK)
        status = CALL(calls->queue, "modmul", NULL, TENSOR(calls->a), TENSOR(calls->a), INT(97),
                      TENSOR(made));
    if (status == HEALCL_OK)
        status = CALL(calls->queue, "unsqueeze", &column, TENSOR(made), INT(1));
    int64_t values[4] = {0};
    if (status == HEALCL_OK)
        status = healcl_tensor_read(made, values, sizeof values, &error);
    if (status == HEALCL_OK)
        assert_memory_equal(values, ((const int64_t[]){4, 9, 16, 25}), sizeof values);
    healcl_tensor_release(column);
    healcl_tensor_release(made);
    /* The wait reports what failed in a release. */
    const enum healcl_status waited =
        healcl_queue_wait(calls->queue, status == HEALCL_OK ? &error : NULL);
    if (calls->free_storages == 0)
        calls->free_storages = calls->queue->eager.storages->free_count;
    assert_int_equal(calls->queue->eager.storages->free_count, calls->free_storages);
    return status == HEALCL_OK ? waited : status;
}

static void calls_go_on(void **state)
{
    (void)state;
    struct calls calls = {.queue = open_queue(NULL)};
    calls.a = create_tensor(calls.queue, 1, (const int64_t[]){4}, (const int64_t[]){2, 3, 4, 5});
    sweep("calls", multiply, &calls);
    healcl_tensor_release(calls.a);
    healcl_queue_close(calls.queue);
    printf("%zu allocations have failed\n", failed);
    assert_true(failed > 200);
}

int main(void)
{
    memory_note_each(share_is_all());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transcripts_are_planned),
        cmocka_unit_test(plans_are_derived),
        cmocka_unit_test(operations_are_planned),
        cmocka_unit_test(calls_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
