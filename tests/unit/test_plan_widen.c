/* Plans of several requests: which steps do all at once, and which one after the other; what of
 * transfers and payloads; what is refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_script.h"
#include "plan/axes.h"
#include "plan/memory.h"
#include "run/loaded_transcript.h"

enum { BATCH = 3, ELEMENTS = 4 };

static struct healcl_error error;

#define OK(expression) assert_int_equal(expression, HEALCL_OK)

static struct healcl_transcript *open_lines(struct script *script, const char *lines)
{
    const struct healcl_plan_options options = {.passes = "none"};
    struct healcl_transcript *transcript = NULL;
    script_lines(script, lines);
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, &options,
                                     &transcript, &error));
    script_spoil(transcript->plan);
    transcript->is_before_passes =
        true; /* without passes it is: what is derived is derived of this */
    return transcript;
}

/* ---------------------------------------------------------------- steps */

/* "abs[3,4]@8/12": what a step makes, or ends, where that begins, and by how much what is behind
 * its first index lies behind that in its first input. */
static int tell(const struct step *step, char *text, size_t size)
{
    const struct tensor *tensor = step->out ? step->out : step->in[0];
    int at = snprintf(text, size, " %s[", step_traits[step->kind].id);
    for (uint32_t i = 0; i < tensor->layout.rank; i++)
        at += snprintf(text + at, size - (size_t)at, "%s%" PRId64, i ? "," : "",
                       tensor->layout.shape[i]);
    at += snprintf(text + at, size - (size_t)at, "]");
    if (tensor->layout.offset > 0)
        at += snprintf(text + at, size - (size_t)at, "@%" PRId64, tensor->layout.offset);
    if (step->out && step->in[0])
        at += snprintf(text + at, size - (size_t)at, "/%" PRId64, step->in[0]->layout.stride[0]);
    return at;
}

/* All that a step has is the plan's, and axes that go together are as long. */
static void expect_fit(const struct plan *plan, const struct step *step)
{
    int64_t sizes[AXIS_LETTERS] = {0};
    struct step_axes axes;
    step_axes(step, &axes);
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step->operands[i];
        if (!tensor)
            continue;
        assert_ptr_equal(plan->storages[tensor->storage->id], tensor->storage);
        assert_true(tensor->storage->scalars ||
                    layout_last(&tensor->layout) < tensor->storage->elements);
        for (uint32_t axis = 0; axis < tensor->layout.rank; axis++) {
            int64_t *size = &sizes[(int)axes.names[i][axis]];
            if (axes.names[i][axis] != '*' && *size != 0)
                assert_int_equal(tensor->layout.shape[axis], *size);
            *size = tensor->layout.shape[axis];
        }
    }
}

struct widen_case {
    const char *lines, *expected; /* ends with the most bytes at one time */
    size_t inputs[3], count;
};

static bool expect_steps(const struct widen_case *of)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_lines(&script, of->lines), *wide = NULL;
    char text[1024];
    int at = 0;
    if (healcl_transcript_widen(transcript, of->inputs, of->count, BATCH, &wide, &error) ==
        HEALCL_OK) {
        for (size_t i = 0; i < wide->plan->step_count; i++) {
            expect_fit(wide->plan, &wide->plan->steps[i]);
            at += tell(&wide->plan->steps[i], text + at, sizeof text - (size_t)at);
        }
        snprintf(text + at, sizeof text - (size_t)at, " %" PRIu64, wide->plan->bytes_peak);
    } else
        snprintf(text, sizeof text, " %s, cause %d", error.message, (int)error.cause);
    healcl_error_clear(&error);
    healcl_transcript_close(wide);
    healcl_transcript_close(transcript);
    script_release(&script);
    if (strcmp(text + 1, of->expected) == 0)
        return true;
    print_error("%s:\n%s, not\n%s\n", of->lines, text + 1, of->expected);
    return false;
}

static void expect_all(const struct widen_case *cases, size_t count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++)
        all &= expect_steps(&cases[i]);
    assert_true(all);
}

static void steps_do_all_at_once(void **state)
{
    static const struct widen_case cases[] = {
        /* Only tensors that depend on an input are widened. */
        {"a (4); b (4); c = empty (4) :int64; _modsum_ttc a b 7 c; get c; get b; free a; free "
         "c",
         "upload[4] upload[4] modsum[4]/1 download[4] download[4] release[4] release[4] 96",
         {0},
         0},
        {"a (4); b (4); c = empty (4) :int64; _modsum_ttc a b 7 c; get c; get b; free a; free "
         "c",
         "upload[3,4] upload[4] modsum[3,4]/4 download[3,4] download[4] release[4] release[4] "
         "224",
         {0},
         1},
        {"a (4); b (4); c = empty (4) :int64; _modsum_ttc a b 7 c; get c; get b; free a; free "
         "c",
         "upload[4] upload[3,4] modsum[3,4]/0 download[3,4] download[3,4] release[4] "
         "release[4] 224",
         {1},
         1},
        {"a (4); b (4); c = empty (4) :int64; _modsum_ttc a b 7 c; get c; get b; free a; free "
         "c",
         "upload[3,4] upload[3,4] modsum[3,4]/4 download[3,4] download[3,4] release[4] "
         "release[4] 288",
         {1, 0},
         2},
        {"b (2); d = empty (2) :int64; a (4); c = zeros (2) :int64; v = get_slice a [0:2]; "
         "abs d d; abs c d; abs v c; get b",
         "upload[2] upload[3,4] fill[3,2] abs[3,2]/2 abs[3,2]/2 abs[3,2]/4 download[2] 208",
         {1},
         1},
        /* Tensors that all requests share are copied before they write to them. */
        {"a (4); b (4); _modsum_ttc a b 7 b; get b",
         "upload[3,4] upload[4] copy[3,4]/0 release[3,4] modsum[3,4]/4 download[3,4] 224",
         {0},
         1},
        {"a (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)",
         "entry 0 (host_to_device): its rank is too high to add an axis of requests, cause 5",
         {0},
         1},
        {"a (2); v = reshape a (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2); get v",
         "entry 2 (device_to_host): its rank is too high to add an axis of requests, cause 5",
         {0},
         1},
    };
    (void)state;
    expect_all(cases, sizeof cases / sizeof *cases);
}

/* ---------------------------------------------------------------- payloads */

/* Callers supply the data of inputs that come with requests; each request has the expected result
 * of one. */
static void payloads_are_of_one_request(void **state)
{
    const struct layout layout = layout_of_shape(1, (int64_t[]){ELEMENTS});
    const int64_t values[ELEMENTS] = {1, 2, 3, 4};
    struct healcl_transcript *transcript = NULL, *wide = NULL;
    struct script script = {0};
    (void)state;
    script_lines(&script, "a (4); b (4); c = empty (4) :int64; abs a c");
    writer_download(&script.writer, "c", DTYPE_INT64, &layout, values);
    writer_download(&script.writer, "b", DTYPE_INT64, &layout, values);
    transcript = open_lines(&script, "");
    OK(healcl_transcript_widen(transcript, (const size_t[]){0}, 1, BATCH, &wide, &error));
    const struct payload *input = wide->input_steps[0]->payload;
    assert_true(!input->data && input->dtype == DTYPE_INT64 && input->copies == 0);
    assert_true(input->layout.rank == 2 && input->layout.shape[0] == BATCH &&
                input->layout.shape[1] == ELEMENTS && input->layout.stride[0] == ELEMENTS);
    assert_ptr_equal(wide->input_steps[1]->payload->data,
                     transcript->input_steps[1]->payload->data);
    const struct payload *result = wide->result_steps[0]->payload;
    assert_int_equal(result->copies, BATCH);
    assert_ptr_equal(result->data, transcript->result_steps[0]->payload->data);
    assert_true(layout_same_shape(&result->layout, &layout));
    assert_int_equal(wide->result_steps[1]->payload->copies, 0);
    assert_int_equal(wide->plan->expected, 2);
    healcl_transcript_close(wide);
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* ---------------------------------------------------------------- errors */

static void expect_refused(const struct healcl_transcript *transcript, const size_t *inputs,
                           size_t count, int64_t batch, enum healcl_status status,
                           const char *message)
{
    struct healcl_transcript *wide = NULL;
    assert_int_equal(healcl_transcript_widen(transcript, inputs, count, batch, &wide, &error),
                     status);
    assert_string_equal(error.message, message);
    if (strncmp(message, "entry", strlen("entry")) == 0)
        assert_int_equal(error.cause, HEALCL_CAUSE_LIMIT);
    assert_null(wide);
    healcl_error_clear(&error);
}

static void batches_are_refused(void **state)
{
    static const size_t last[] = {1}, none[] = {0, 2}, first[] = {2, 0};
    struct script script = {0};
    struct healcl_transcript *transcript = open_lines(&script, "a (4); b (4)"), *wide = NULL;
    (void)state;
    expect_refused(transcript, last, 1, 0, HEALCL_USAGE, "a batch has at least 1 request, not 0");
    expect_refused(transcript, last, 1, -1, HEALCL_USAGE, "a batch has at least 1 request, not -1");
    expect_refused(transcript, last, 1, 65537, HEALCL_REFUSED,
                   "a batch of 65537 requests is more than 65536");
    expect_refused(transcript, none, 2, 2, HEALCL_USAGE,
                   "there is no input 2: the number of inputs is 2");
    expect_refused(transcript, first, 2, 2, HEALCL_USAGE,
                   "there is no input 2: the number of inputs is 2");
    expect_refused(transcript, NULL, 1, 2, HEALCL_USAGE, "inputs is NULL");
    expect_refused(NULL, last, 1, 2, HEALCL_USAGE, "transcript is NULL");
    assert_int_equal(healcl_transcript_widen(transcript, last, 1, 2, NULL, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "wide is NULL");
    for (int64_t batch = 1; batch <= 65536; batch += 65535) {
        OK(healcl_transcript_widen(transcript, last, 1, batch, &wide, &error));
        assert_int_equal(wide->plan->steps[1].out->storage->elements, batch * ELEMENTS);
        healcl_transcript_close(wide);
    }
    OK(healcl_transcript_widen(transcript, NULL, 0, 2, &wide, &error));
    healcl_transcript_close(wide);
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* Up to what can be counted in bytes; then the limit of memory says no. */
static void elements_are_counted(void **state)
{
    static const int64_t most = INT64_MAX / 8 / BATCH;
    static const size_t first[] = {0};
    char text[256], message[256];
    (void)state;
    for (int more = 0; more <= 1; more++) {
        struct script script = {0};
        snprintf(text, sizeof text,
                 "a (1); b = empty (%" PRId64 ") :int64; v = get_slice b [0:1]; abs a v",
                 most + more);
        struct healcl_transcript *transcript = open_lines(&script, text);
        snprintf(message, sizeof message,
                 more ? "entry 1 (empty): 3 times %" PRId64 " elements are too many"
                      : "entry 1 (empty): %" PRId64
                        " bytes beside 24 in use are above the limit of "
                        "9223372036854775807",
                 more ? most + 1 : most * 8 * BATCH);
        expect_refused(transcript, first, 1, BATCH, HEALCL_REFUSED, message);
        healcl_transcript_close(transcript);
        script_release(&script);
    }
}

/* Limits for three requests: their total beside what is already there, and each step's work
 * alone. */
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct healcl_plan_options options = {.memory_limit = cases[i].memory,
                                                    .work_limit = cases[i].work};
        struct healcl_transcript *parent = NULL, *wide = NULL;
        struct script script = {0};
        script_lines(&script, cases[i].lines);
        script_finish(&script);
        assert_int_equal(healcl_transcript_open_memory(script.writer.bytes, script.writer.length,
                                                       &options, &parent, &error),
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
        cmocka_unit_test(steps_do_all_at_once),        cmocka_unit_test(limits_hold_for_batches),
        cmocka_unit_test(payloads_are_of_one_request), cmocka_unit_test(batches_are_refused),
        cmocka_unit_test(elements_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
