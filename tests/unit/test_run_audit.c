/* Audited sessions: a device that is right, and one whose launches lie, on views, in place, on what
 * is added to, and on steps that passes make. */
#include "helper_device.h"

#include <string.h>

#include "helper_script.h"
#include "run/loaded_transcript.h"

enum { ROWS = 40, MODULI = 3, ELEMENTS = ROWS * MODULI };

static const int64_t moduli[MODULI] = {97, 193, 1000003};

/* ---------------------------------------------------------------- a device that lies */

static struct opencl lying;
static cl_mem lying_outputs[2]; /* the last buffers given as arguments 1 and 2 */
static int64_t lies_from, launch_count;
static bool lies;

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size,
                                       const void *value)
{
    if ((index == 1 || index == 2) && size == sizeof(cl_mem) && value)
        memcpy(&lying_outputs[index - 1], value, size);
    return opencl_loader.clSetKernelArg(kernel, index, size, value);
}

/* After each launch, all elements of an output change. */
static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint count, const cl_event *list, cl_event *event)
{
    cl_int code = opencl_loader.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                       local, count, list, event);
    int64_t elements[4 * ELEMENTS];
    size_t bytes = 0;
    if (code != CL_SUCCESS || !lies || launch_count++ < lies_from)
        return code;
    assert_int_equal(opencl_loader.clFinish(queue), CL_SUCCESS);
    assert_int_equal(clGetMemObjectInfo(lying_outputs[0], CL_MEM_SIZE, sizeof bytes, &bytes, NULL),
                     CL_SUCCESS);
    bytes = bytes < sizeof elements ? bytes : sizeof elements;
    assert_int_equal(opencl_loader.clEnqueueReadBuffer(queue, lying_outputs[0], CL_TRUE, 0, bytes,
                                                       elements, 0, NULL, NULL),
                     CL_SUCCESS);
    for (size_t i = 0; i < bytes / sizeof *elements; i++)
        elements[i] ^= 1;
    assert_int_equal(opencl_loader.clEnqueueWriteBuffer(queue, lying_outputs[0], CL_TRUE, 0, bytes,
                                                        elements, 0, NULL, NULL),
                     CL_SUCCESS);
    return code;
}

static struct healcl_device *device;

static int open_device(void **state)
{
    (void)state;
    setenv("HEALCL_CACHE_DIR", "", 1);
    lying = *helper_loader();
    lying.clSetKernelArg = set_argument;
    lying.clEnqueueNDRangeKernel = launch;
    return device_open(&lying, "", &device, &error) == HEALCL_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    healcl_device_close(device);
    healcl_error_clear(&error);
    return 0;
}

/* ---------------------------------------------------------------- transcripts */

static struct healcl_transcript *open_script(struct script *script)
{
    struct healcl_transcript *transcript = NULL;
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, NULL, &transcript,
                                     &error));
    return transcript;
}

static void put_inputs(struct script *script)
{
    int64_t values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (int64_t)i * i % 97;
    script_upload(script, "q", DTYPE_INT64, 1, (int64_t[]){MODULI}, moduli);
    script_upload(script, "a", DTYPE_INT64, 2, (int64_t[]){ROWS, MODULI}, values);
    script_upload(script, "b", DTYPE_INT64, 2, (int64_t[]){ROWS, MODULI}, values);
}

static void put_plain(struct script *script)
{
    put_inputs(script);
    script_call(script, "out", "empty", "(40,3) :int64");
    script_call(script, "out", "_modmul_ttt", "a b q out");
    script_download(script, "out");
}

static void put_in_place(struct script *script)
{
    put_inputs(script);
    script_call(script, "a", "_modmul_ttt", "a b q a");
    script_download(script, "a");
}

static void put_views(struct script *script)
{
    put_inputs(script);
    script_call(script, "x", "get_slice", "a [1:39:2]");
    script_call(script, "y", "get_slice", "b [0:38:2]");
    script_call(script, "z", "get_slice", "a [0:38:2]");
    script_call(script, "z", "_modsum_ttt", "x y q z");
    script_download(script, "a");
}

/* Twice: the second sum is added to the first one. */
static void put_sums(struct script *script)
{
    int64_t values[2 * ELEMENTS];
    for (int i = 0; i < 2 * ELEMENTS; i++)
        values[i] = (int64_t)i * 7 % 97;
    script_upload(script, "q", DTYPE_INT64, 1, (int64_t[]){MODULI}, moduli);
    script_upload(script, "a", DTYPE_INT64, 4, (int64_t[]){1, 2, MODULI, ROWS}, values);
    script_upload(script, "b", DTYPE_INT64, 3, (int64_t[]){2, MODULI, ROWS}, values);
    script_upload(script, "out", DTYPE_INT64, 3, (int64_t[]){1, MODULI, ROWS}, values);
    script_call(script, "out", "modmul_axis_sum", "a b q none none none out 0 -1");
    script_download(script, "out");
}

/* Passes make one step of both. */
static void put_chain(struct script *script)
{
    put_inputs(script);
    script_call(script, "a", "_modsum_ttt", "a b q a");
    script_call(script, "a", "_modmul_ttt", "a b q a");
    script_download(script, "a");
}

/* ---------------------------------------------------------------- tests */

static void expect_right(void (*put)(struct script *))
{
    struct script script = {0};
    put(&script);
    struct healcl_transcript *transcript = open_script(&script);
    struct healcl_session *session = NULL;
    const struct healcl_session_options options = {.audit_share = 1, .audit_seed = 3};
    lies = false;
    OK(healcl_session_open(transcript, device, &options, &session, &error));
    struct healcl_audit_facts facts = healcl_session_audit(session);
    assert_true(facts.kernel_count > 0 && facts.steps > 0 && facts.steps_audited == 0);
    for (int i = 0; i < 300 && facts.steps_audited < facts.steps; i++) {
        OK(healcl_session_run(session, &error));
        facts = healcl_session_audit(session);
    }
    assert_true(facts.audits > 0 && facts.elements > 0 && facts.nanoseconds > 0);
    assert_int_equal(facts.steps_audited, facts.steps);
    assert_null(facts.difference);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}

static void expect_found(void (*put)(struct script *), const char *kind, const char *operation)
{
    struct script script = {0};
    put(&script);
    struct healcl_transcript *transcript = open_script(&script);
    struct healcl_session *session = NULL;
    const struct healcl_session_options options = {.audit_share = 1};
    int64_t got[ELEMENTS];
    lies = false;
    OK(healcl_session_open(transcript, device, &options, &session, &error));
    OK(healcl_session_run(session, &error)); /* tables are made */
    lies = true;
    launch_count = lies_from = 0;
    enum healcl_status status = HEALCL_OK;
    for (int i = 0; i < 300 && status == HEALCL_OK; i++)
        status = healcl_session_run(session, &error);
    assert_int_equal(status, HEALCL_DIFFERENT);
    const struct healcl_audit_difference *difference = healcl_session_audit(session).difference;
    assert_non_null(difference);
    assert_string_equal(difference->operation, operation);
    assert_int_equal(strncmp(difference->kernel, kind, strlen(kind)), 0);
    assert_int_equal(difference->actual, difference->expected ^ 1);
    assert_true(difference->different > 0 && difference->different <= difference->compared);
    assert_non_null(strstr(error.message, ": audit: step "));
    assert_non_null(strstr(error.message, operation));
    healcl_error_clear(&error);
    /* No result of it counts, and the next run begins again. */
    const size_t bytes = healcl_transcript_results(transcript, &(size_t){0})[0].bytes;
    assert_int_equal(healcl_session_read(session, 0, got, bytes, &error), HEALCL_USAGE);
    lies = false;
    OK(healcl_session_run(session, &error));
    assert_null(healcl_session_audit(session).difference);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}

#define BOTH(name, put, kind, operation)    \
    static void name(void **state)          \
    {                                       \
        (void)state;                        \
        expect_right(put);                  \
        expect_found(put, kind, operation); \
    }

BOTH(audits_plain_steps, put_plain, "modmul, ", "_modmul_ttt")
BOTH(audits_in_place, put_in_place, "modmul, ", "_modmul_ttt")
BOTH(audits_views, put_views, "modsum, ", "_modsum_ttt")
BOTH(audits_what_is_added_to, put_sums, "sum of products, ", "modmul_axis_sum")
BOTH(audits_steps_of_passes, put_chain, "chain, ", "_modmul_ttt")

static void refuses_what_is_none(void **state)
{
    (void)state;
    struct script script = {0};
    put_plain(&script);
    struct healcl_transcript *transcript = open_script(&script);
    struct healcl_session *session = NULL;
    const double shares[] = {-0.1, 1.5};
    for (size_t i = 0; i < 2; i++) {
        const struct healcl_session_options options = {.audit_share = shares[i]};
        assert_int_equal(healcl_session_open(transcript, device, &options, &session, &error),
                         HEALCL_USAGE);
    }
    const struct healcl_session_options options = {.audit_share = 0.5};
    assert_int_equal(healcl_session_open(transcript, NULL, &options, &session, &error),
                     HEALCL_USAGE);
    assert_string_equal(error.message,
                        "an audit of the host reference would compare it with itself");
    healcl_error_clear(&error);
    OK(healcl_session_open(transcript, device, NULL, &session, &error));
    lies = false;
    OK(healcl_session_run(session, &error));
    assert_int_equal(healcl_session_audit(session).kernel_count, 0);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* Sanitizers see what that does to lists that are empty. */
static void has_nothing_to_audit(void **state)
{
    (void)state;
    struct script script = {0};
    put_inputs(&script);
    script_download(&script, "a");
    struct healcl_transcript *transcript = open_script(&script);
    struct healcl_session *session = NULL;
    const struct healcl_session_options options = {.audit_share = 1};
    lies = false;
    OK(healcl_session_open(transcript, device, &options, &session, &error));
    OK(healcl_session_run(session, &error));
    const struct healcl_audit_facts facts = healcl_session_audit(session);
    assert_true(facts.steps == 0 && facts.kernel_count == 0 && facts.run_nanoseconds > 0);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(audits_plain_steps),     cmocka_unit_test(audits_in_place),
        cmocka_unit_test(audits_views),           cmocka_unit_test(audits_what_is_added_to),
        cmocka_unit_test(audits_steps_of_passes), cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(has_nothing_to_audit),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
