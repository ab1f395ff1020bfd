/*
 * Steps that a device cannot run, on the host: each operation, families, all; programs that do not
 * build; wrong answers of the self-test. Results are right and counts exact, in transcripts, in
 * sessions, by call, and in bodies of vendors' operations. Runs again with the styles of other
 * devices.
 */
#include "helper_device.h"
#include "opencl/internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "helper_folder.h"
#include "helper_script.h"
#include "helper_share.h"
#include "kernels/variant.h"
#include "run/loaded_transcript.h"

static const char *const transcripts[] = {
    TRANSCRIPTS "/aliasing.json",      TRANSCRIPTS "/digits.json",
    TRANSCRIPTS "/digits_full_q.json", TRANSCRIPTS "/gather.json",
    TRANSCRIPTS "/intt.json",          TRANSCRIPTS "/memory.json",
    TRANSCRIPTS "/modular.json",       TRANSCRIPTS "/modular_int32.json",
    TRANSCRIPTS "/ntt.json",           TRANSCRIPTS "/pad_repeat.json",
    TRANSCRIPTS "/plain.json",         TRANSCRIPTS "/sums.json",
};

enum { FILES = sizeof transcripts / sizeof *transcripts };

static struct healcl_transcript *open_file(const char *path)
{
    struct healcl_transcript *transcript = NULL;
    OK(healcl_transcript_open(path, NULL, &transcript, &error));
    return transcript;
}

/* Opens a device that cannot run what a list says. */
static struct healcl_device *open_without(const struct opencl *cl, const char *lacks)
{
    struct healcl_device *device = NULL;
    if (lacks)
        setenv("HEALCL_LACKS", lacks, 1);
    OK(device_open(cl, NULL, &device, &error));
    unsetenv("HEALCL_LACKS");
    return device;
}

static void fallback_is_refused_where_not_wanted(void **state)
{
    (void)state;
    struct healcl_device *device = open_without(&helper_opencl, "modmul,ntt");
    struct healcl_transcript *transcript = open_file(TRANSCRIPTS "/ntt.json");
    struct healcl_report *report = NULL;
    struct executor *executor = NULL;
    device->options.no_fallback = true;
    assert_int_equal(healcl_run(transcript, device, NULL, &report, &error), HEALCL_DEVICE);
    assert_non_null(strstr(error.message, "(ntt): the device lacks kernels for it: "
                                          "HEALCL_LACKS names it"));
    assert_null(report);
    healcl_error_clear(&error);
    /* Measuring and proving code makes its own executors. */
    device->options.no_fallback = false;
    struct script_results results = {0};
    const struct result_sink sink = script_sink(&results);
    OK(device_executor_create(device, transcript->plan, &executor, &error));
    enum healcl_status status = HEALCL_OK;
    for (size_t i = 0; i < transcript->plan->segment_count && status == HEALCL_OK; i++)
        status =
            executor->class->run_segment(executor, &transcript->plan->segments[i], &sink, &error);
    assert_int_equal(status, HEALCL_DEVICE);
    executor->class->destroy(executor);
    script_results_release(&results);
    healcl_transcript_close(transcript);
    healcl_device_close(device);
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"nix", "ntt,", "ntt,,abs", "al", "modmul_ttt,ntt", ","};
    static const char *const right[] = {"all", "sum", "ntt,transform", "permute"};
    struct healcl_transcript *transcript = open_file(TRANSCRIPTS "/nothing.json");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct healcl_device *device = open_without(&helper_opencl, wrong[i]);
        struct healcl_report *report = NULL;
        assert_int_equal(healcl_run(transcript, device, NULL, &report, &error), HEALCL_USAGE);
        assert_non_null(strstr(error.message, "HEALCL_LACKS names '"));
        healcl_device_close(device);
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        struct healcl_device *device = open_without(&helper_opencl, right[i]);
        struct healcl_report *report = NULL;
        OK(healcl_run(transcript, device, NULL, &report, &error));
        assert_int_equal(report->fallbacks, 0);
        healcl_report_free(report);
        healcl_device_close(device);
    }
    healcl_transcript_close(transcript);
}

/* ---------------------------------------------------------------- programs that do not build */

static const char *broken;         /* programs with this do not build */
static const char *wanted, *given; /* of a text, the one instead of the other */

static cl_program CL_API_CALL create_broken(cl_context context, cl_uint count, const char **texts,
                                            const size_t *lengths, cl_int *code)
{
    enum { TEXTS_MAX = 8 };
    const char *more[TEXTS_MAX + 1] = {""};
    char *changed = NULL;
    assert_true(count <= TEXTS_MAX && !lengths);
    for (cl_uint i = 0; i < count; i++) {
        const char *at = wanted ? strstr(texts[i], wanted) : NULL;
        more[i + 1] = texts[i];
        if (broken && strstr(texts[i], broken))
            more[0] = "#error broken\n";
        if (!at)
            continue;
        changed = malloc(strlen(texts[i]) + strlen(given) + 1);
        assert_non_null(changed);
        sprintf(changed, "%.*s%s%s", (int)(at - texts[i]), texts[i], given, at + strlen(wanted));
        more[i + 1] = changed;
    }
    cl_program program =
        helper_opencl.clCreateProgramWithSource(context, count + 1, more, NULL, code);
    free(changed);
    return program;
}

static const struct opencl *broken_layer(const char *text)
{
    static struct opencl layer;
    layer = helper_opencl;
    layer.clCreateProgramWithSource = create_broken;
    broken = text;
    wanted = NULL;
    return &layer;
}

/* A run whose programs do not build with a text in them. Returns how many steps the host ran. */
static uint64_t run_broken(const char *path, const char *text, const char *reason)
{
    struct healcl_device *device = open_without(broken_layer(text), NULL);
    struct healcl_transcript *transcript = open_file(path);
    struct healcl_report *report = NULL;
    const struct healcl_run_options options = {.repeat = 3, .profile = true};
    OK(healcl_run(transcript, device, &options, &report, &error));
    assert_int_equal(report->verdict, HEALCL_VERIFIED);
    uint64_t steps = report->fallbacks, built = helper.count[CALL_clBuildProgram];
    bool told = steps == 0;
    for (size_t s = 0; s < report->segment_count; s++)
        for (size_t i = 0; i < report->segments[s].profile_count; i++) {
            const char *why = report->segments[s].profiles[i].fallback_reason;
            told |= why && strstr(why, reason);
        }
    assert_true(told);
    healcl_report_free(report);
    /* Nothing that has failed is tried again. */
    OK(healcl_run(transcript, device, NULL, &report, &error));
    assert_int_equal(report->fallbacks, steps);
    assert_int_equal(helper.count[CALL_clBuildProgram], built);
    healcl_report_free(report);
    device->options.no_fallback = true;
    if (steps > 0) {
        assert_int_equal(healcl_run(transcript, device, NULL, &report, &error), HEALCL_DEVICE);
        assert_non_null(strstr(error.message, reason));
        healcl_error_clear(&error);
    }
    healcl_transcript_close(transcript);
    healcl_device_close(device);
    return steps;
}

static void failed_builds_fall_back(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text;
    } rows[] = {
        {TRANSCRIPTS "/gather.json", "cl/gather/gather.cl"},
        {TRANSCRIPTS "/digits.json", "cl/digits/digits.cl"},
        {TRANSCRIPTS "/digits_full_q.json", "cl/digits/digits.cl"},
        {TRANSCRIPTS "/digits_full_q.json", "cl/core.cl"}, /* derives tables for others */
        {TRANSCRIPTS "/ntt.json", "cl/core.cl"},
        {TRANSCRIPTS "/sums.json", "cl/core.cl"},
        {TRANSCRIPTS "/modular.json", "cl/core.cl"},
        {TRANSCRIPTS "/aliasing.json", "cl/"}, /* nothing builds */
        {TRANSCRIPTS "/memory.json", "cl/"},
        {TRANSCRIPTS "/sums.json", "cl/"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(run_broken(rows[i].path, rows[i].text, "does not build on ") > 0);
    (void)run_broken(TRANSCRIPTS "/ntt.json", "cl/ntt/", "does not build on ");
    (void)run_broken(TRANSCRIPTS "/sums.json", "cl/vectors.cl", "does not build on ");
    assert_int_equal(run_broken(TRANSCRIPTS "/ntt.json", "no such text", ""), 0);
}

static cl_kernel CL_API_CALL create_no_kernel(cl_program program, const char *name, cl_int *code)
{
    if (strcmp(name, "gather") != 0 && strcmp(name, "gather_rows") != 0)
        return helper_opencl.clCreateKernel(program, name, code);
    *code = CL_INVALID_KERNEL_NAME;
    return NULL;
}

static void missing_kernels_fall_back(void **state)
{
    (void)state;
    struct opencl layer = helper_opencl;
    layer.clCreateKernel = create_no_kernel;
    struct healcl_device *device = open_without(&layer, NULL);
    struct healcl_transcript *transcript = open_file(TRANSCRIPTS "/gather.json");
    struct healcl_report *report = NULL;
    OK(healcl_run(transcript, device, NULL, &report, &error));
    assert_int_equal(report->verdict, HEALCL_VERIFIED);
    assert_true(report->fallbacks > 0);
    healcl_report_free(report);
    healcl_transcript_close(transcript);
    healcl_device_close(device);
}

/* ---------------------------------------------------------------- the self-test */

static void families_that_fail_fall_back(void **state)
{
    (void)state;
    static const struct {
        const char *wanted, *given;
        enum kernel_family family;
    } rows[] = {
        {"operands[b % 6 / 3]", "operands[b % 6 / 4]", FAMILY_copy},
        {"signed_as((long)(a ^ b)", "signed_as((long)(a & b)", FAMILY_elementwise},
        {"wide_reduce(sum, m)", "wide_reduce(sum, m) + 1", FAMILY_sum},
        {"multiply_twiddle(b, w, q)", "multiply_twiddle(a, w, q)", FAMILY_transform},
        {">> (b & 31)) & 0x1f", ">> (b & 31)) & 0xf", FAMILY_digits},
        {"operands[(long)(b & 1)]", "operands[0]", FAMILY_gather},
    };
    char cache[] = "/tmp/healcl_test_XXXXXX", command[64];
    assert_non_null(mkdtemp(cache));
    setenv("HEALCL_CACHE_DIR", cache, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct opencl *layer = broken_layer(NULL);
        wanted = rows[i].wanted;
        given = rows[i].given;
        for (int kept = 0; kept < 2; kept++) {
            struct healcl_device *device = NULL;
            if (kept == 0) {
                OK(device_open(layer, NULL, &device, &error));
                OK(self_test_run(device, &error));
                healcl_device_close(device);
            }
            snprintf(command, sizeof command, "rm -f %s/selftest_*", cache);
            if (kept == 0)
                assert_int_equal(system(command), 0);
            helper_reset();
            OK(helper_open_tested(layer, &device, &error));
            assert_int_equal(helper.count[CALL_clBuildProgram] > 0, kept == 0);
            assert_int_equal(device->info.failed_families, 1u << rows[i].family);
            assert_non_null(strstr(device->info.family_failure, ", not 0x"));
            uint64_t steps = 0;
            for (size_t j = 0; j < FILES && kept == 1; j++) {
                if (!share_takes("transcripts", j, FILES / 2))
                    continue;
                struct healcl_transcript *transcript = open_file(transcripts[j]);
                struct healcl_report *report = NULL;
                OK(healcl_run(transcript, device, NULL, &report, &error));
                assert_int_equal(report->verdict, HEALCL_VERIFIED);
                steps += report->fallbacks;
                healcl_report_free(report);
                healcl_transcript_close(transcript);
            }
            assert_true(steps > 0 ? kept == 1 : kept == 0 || !share_is_all());
            healcl_device_close(device);
        }
        helper_reset();
    }
    snprintf(command, sizeof command, "rm -r %s", cache);
    assert_int_equal(system(command), 0);
}

/* ---------------------------------------------------------------- sessions, calls, errors */

/* A session's cached data are restored; a request after the first one is like the first. */
static void sessions_fall_back(void **state)
{
    (void)state;
    struct healcl_device *device = open_without(&helper_opencl, "all");
    for (size_t i = 0; i < FILES; i++) {
        struct healcl_transcript *transcript = open_file(transcripts[i]);
        struct healcl_session *session = NULL;
        uint64_t first = 0, different = 0;
        OK(healcl_session_open(transcript, device, NULL, &session, &error));
        for (int run = 0; run < 3; run++) {
            OK(healcl_session_run(session, &error));
            uint64_t steps = healcl_session_facts(session).fallbacks;
            assert_true(steps > 0 && (run == 0 || steps == first));
            first = steps;
            for (size_t r = 0; r < transcript->plan->results; r++)
                if (transcript->result_steps[r]->payload) {
                    OK(healcl_session_compare(session, r, &different, &error));
                    assert_int_equal(different, 0);
                }
        }
        healcl_session_close(session);
        healcl_transcript_close(transcript);
    }
    healcl_device_close(device);
}

#define TENSOR(tensor) healcl_tensor_argument(tensor)
#define INT(value) healcl_int_argument(value)

/* Calls on the host and on the device in turn, on the same tensors, moduli among them that change
 * behind what was derived from them. */
static void calls_fall_back(void **state)
{
    (void)state;
    struct healcl_device *device = open_without(&helper_opencl, "modsum,set_const_val");
    struct healcl_queue *queue = NULL;
    struct healcl_tensor *a = NULL, *q = NULL;
    const int64_t shape[1] = {4}, values[4] = {100, -7, INT64_MAX, 12};
    int64_t got[4];
    assert_int_equal(healcl_queue_fallbacks(NULL), 0);
    OK(healcl_queue_open(device, NULL, &queue, &error));
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, values, &a, &error));
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, NULL, &q, &error));
    assert_int_equal(healcl_queue_fallbacks(queue), 0);
    for (int64_t modulus = 11; modulus < 17; modulus++) {
        OK(healcl_call(queue, "set_const_val", 2,
                       (struct healcl_argument[]){TENSOR(q), INT(modulus)}, NULL, &error));
        OK(healcl_call(queue, "modmul", 4,
                       (struct healcl_argument[]){TENSOR(a), INT(3), TENSOR(q), TENSOR(a)}, NULL,
                       &error));
        OK(healcl_call(queue, "modsum", 4,
                       (struct healcl_argument[]){TENSOR(a), TENSOR(a), TENSOR(q), TENSOR(a)}, NULL,
                       &error));
    }
    OK(healcl_tensor_read(a, got, sizeof got, &error));
    assert_int_equal(healcl_queue_fallbacks(queue), 12);
    for (int i = 0; i < 4; i++) {
        __extension__ typedef __int128 wide;
        int64_t x = values[i];
        for (int64_t modulus = 11; modulus < 17; modulus++) {
            x = (int64_t)((wide)x * 3 % modulus);
            x = 2 * x % modulus;
        }
        assert_int_equal(got[i], x);
    }
    /* An error of the device comes before a later one of the host. */
    OK(healcl_call(queue, "set_const_val", 2, (struct healcl_argument[]){TENSOR(q), INT(-5)}, NULL,
                   &error));
    OK(healcl_call(queue, "modmul", 4,
                   (struct healcl_argument[]){TENSOR(a), INT(3), TENSOR(q), TENSOR(a)}, NULL,
                   &error));
    assert_int_equal(
        healcl_call(queue, "modsum", 4,
                    (struct healcl_argument[]){TENSOR(a), TENSOR(a), TENSOR(q), TENSOR(a)}, NULL,
                    &error),
        HEALCL_REFUSED);
    assert_non_null(strstr(error.message, "(modmul): argument 'p': -5 at "));
    /* And it is one again. */
    assert_int_equal(
        healcl_call(queue, "modsum", 4,
                    (struct healcl_argument[]){TENSOR(a), TENSOR(a), TENSOR(q), TENSOR(a)}, NULL,
                    &error),
        HEALCL_REFUSED);
    assert_non_null(strstr(error.message, "(modsum): argument 'p': -5 at "));
    OK(healcl_call(queue, "modmul", 4,
                   (struct healcl_argument[]){TENSOR(a), INT(3), TENSOR(q), TENSOR(a)}, NULL,
                   &error));
    assert_int_equal(healcl_queue_wait(queue, &error), HEALCL_REFUSED);
    healcl_tensor_release(a);
    healcl_tensor_release(q);
    healcl_queue_close(queue);
    healcl_device_close(device);
}

/* ---------------------------------------------------------------- vendors' operations */

static const char manifest[] =
    "{\"healcl\": 1, \"operations\": [{\"name\": \"twice\", \"parameters\": [\n"
    " {\"name\": \"a\", \"kind\": \"tensor\", \"dtype\": \"int64\"},\n"
    " {\"name\": \"out\", \"kind\": \"out\", \"dtype\": \"int64\"}],\n"
    " \"rules\": [\"size(a) == size(out)\"],\n"
    " \"kernels\": [{\"source\": \"twice.cl\", \"kernel\": \"twice\", \"global\": \"size(a)\",\n"
    "  \"local\": 1, \"arguments\": [\"out\", \"a\"]}],\n"
    " \"body\": [{\"name\": \"modsum\", \"args\": [\"a\", \"a\", 97, \"out\"]}]}]}\n";

static const char twice[] =
    "KERNEL twice(global long *out, long out_at, global const long *a, long a_at)\n"
    "{ long i = get_global_id(0); out[out_at + i] = 2 * a[a_at + i] % 97; }\n";

/* Bodies replace a kernel that does not exist, does not build, or is not wanted. */
static void bodies_stand_for_kernels(void **state)
{
    (void)state;
    char folder[] = "/tmp/healcl_vendor_XXXXXX", command[64];
    struct healcl_operations *loaded = NULL;
    assert_non_null(mkdtemp(folder));
    write_file(folder, "m.json", manifest);
    write_file(folder, "twice.cl", twice);
    OK(healcl_operations_load(folder, &loaded, &error));
    const struct healcl_plan_options options = {.operations = loaded};
    static const struct {
        const char *lacks, *broken;
        uint64_t steps; /* of three calls on transposed views, that are copied for the kernel */
    } rows[] = {{NULL, NULL, 0},
                {"twice", NULL, 3},
                {"all", NULL, 3},
                {"modsum", NULL, 0},
                {NULL, "twice(global", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct healcl_device *device = open_without(broken_layer(rows[i].broken), rows[i].lacks);
        struct healcl_queue *queue = NULL;
        struct healcl_tensor *a = NULL, *out = NULL, *view = NULL;
        const int64_t values[6] = {1, 2, 3, 40, 50, 96};
        int64_t got[6];
        OK(healcl_queue_open(device, &options, &queue, &error));
        OK(healcl_tensor_create(queue, HEALCL_INT64, 2, (int64_t[]){2, 3}, values, &a, &error));
        OK(healcl_tensor_create(queue, HEALCL_INT64, 2, (int64_t[]){3, 2}, values, &out, &error));
        OK(healcl_call(queue, "moveaxis", 3, (struct healcl_argument[]){TENSOR(a), INT(0), INT(1)},
                       &view, &error));
        uint64_t before = healcl_queue_fallbacks(queue);
        for (int call = 0; call < 3; call++)
            OK(healcl_call(queue, "twice", 2, (struct healcl_argument[]){TENSOR(view), TENSOR(out)},
                           NULL, &error));
        OK(healcl_tensor_read(out, got, sizeof got, &error));
        for (int j = 0; j < 6; j++)
            assert_int_equal(got[j], 2 * values[j % 2 * 3 + j / 2] % 97);
        assert_int_equal(healcl_queue_fallbacks(queue) - before, rows[i].steps);
        healcl_tensor_release(view);
        healcl_tensor_release(out);
        healcl_tensor_release(a);
        healcl_queue_close(queue);
        healcl_device_close(device);
    }
    healcl_operations_free(loaded);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* The environment's style stays. */
static int set_up(void **state)
{
    (void)state;
    unsetenv("HEALCL_DEVICE");
    setenv("HEALCL_CACHE_DIR", "", 1);
    broken = wanted = NULL;
    helper_reset();
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, device_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fallback_is_refused_where_not_wanted),
        TEST(unknown_names_are_refused),
        TEST(failed_builds_fall_back),
        TEST(missing_kernels_fall_back),
        TEST(families_that_fail_fall_back),
        TEST(sessions_fall_back),
        TEST(calls_fall_back),
        TEST(bodies_stand_for_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
