/* The self-test of devices, on the device there is and on the same one made to compute wrongly. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cl/base/base.h"
#include "helper_device.h"
#include "helper_share.h"
#include "opencl/internal.h"
#include "opencl/opening.h"

/* ---- a layer that puts a line of OpenCL C in front of every program ---- */

enum { SOURCES_MAX = 8 };

static const char *fault; /* the line */

static cl_program CL_API_CALL create_faulty(cl_context context, cl_uint count, const char **texts,
                                            const size_t *lengths, cl_int *code)
{
    const char *more[SOURCES_MAX + 1] = {fault};
    assert_true(count <= SOURCES_MAX && !lengths);
    memcpy(more + 1, texts, count * sizeof *texts);
    return helper_opencl.clCreateProgramWithSource(context, count + 1, more, NULL, code);
}

static const struct opencl *faulty(const char *line)
{
    static struct opencl layer;
    layer = helper_opencl;
    layer.clCreateProgramWithSource = create_faulty;
    fault = line;
    return &layer;
}

/* ---- a cache of the test's own ---- */

static char directory[64];

/* Calls visit(path) for each file of the cache whose name begins so. Returns how many there are. */
static int each_file(const char *kind, void (*visit)(const char *path))
{
    int count = 0;
    DIR *files = opendir(directory);
    for (struct dirent *entry; files && (entry = readdir(files)) != NULL;) {
        char path[512];
        if (strncmp(entry->d_name, kind, strlen(kind)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        count++;
        if (visit)
            visit(path);
    }
    if (files)
        closedir(files);
    return count;
}

/* Renames the key in the file, as if it were another file's. */
static void change_name(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    while (fgetc(file) != '_')
        assert_false(feof(file));
    int digit = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    fputc(digit ^ 1, file);
    assert_int_equal(fclose(file), 0);
}

/* Only the first test counts the compiler's work on the self-test. */
static int set_up_fast(void **state)
{
    return device_set_up(state);
}

static int set_up_cache(void **state)
{
    set_up_fast(state);
    strcpy(directory, "/tmp/healcl_test_XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    setenv("HEALCL_CACHE_DIR", directory, 1);
    return 0;
}

static int tear_down_cache(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) == 0 ? device_tear_down(state) : -1;
}

/* ---------------------------------------------------------------- tests */

/* How many spans of a trace have that name; all lie within the self-test's, the first one. */
static size_t count_spans(const struct trace *trace, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++) {
        assert_true(trace->spans[i].start >= trace->spans[0].start);
        assert_true(trace->spans[i].end > 0 && trace->spans[i].end <= trace->spans[0].end);
        count += strcmp(trace->spans[i].name, name) == 0;
    }
    return count;
}

static void passes(void **state)
{
    (void)state;
    static const struct healcl_device_options any;
    struct healcl_device *device = NULL;
    struct trace *trace = trace_create(TRACE_SPANS_MAX);
    OK(device_open_for_run(&helper_opencl, &any, &(struct device_opening){.trace = trace}, &device,
                           &error));
    assert_true(device->programs->self_test_nanoseconds > 0);
    assert_int_equal(count_spans(trace, "self-test"), 1);
    assert_int_equal(count_spans(trace, "self_test"), 1); /* built */
    assert_int_equal(count_spans(trace, "launch self_test"), 1);
    trace_free(trace);
    assert_int_equal(device->bytes_live, 0);
    assert_int_equal(device->bytes_peak, 0);
    OK(self_test_run(device, &error));
    healcl_device_close(device);
    /* Odd work-groups. */
    setenv("HEALCL_TUNING", "local_size=16", 1);
    OK(helper_open_tested(&helper_opencl, &device, &error));
    healcl_device_close(device);
}

/* Puts function `wrong` in the place of a built-in one. */
#define INSTEAD_OF(name, functions) functions "\n#undef " name "\n#define " name " wrong\n"
#define OVERLOADED "__attribute__((overloadable)) wrong"

#define LOOPS_END(rounds) "#undef ROUNDS\n#define ROUNDS " #rounds "\n"

static void finds_faults(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message; /* the text after "fails its self-test: " */
    } faults[] = {
        {INSTEAD_OF("mul_hi",
                    "ulong " OVERLOADED "(ulong a, ulong b) { return mul_hi(a, b) + (b == 63); }"
                    "long " OVERLOADED "(long a, long b) { return mul_hi(a, b); }"),
         "mul_hi(0x0, 0x3f) is 0x1, not 0x0"},
        {INSTEAD_OF("clz", "ulong wrong(ulong x) { return clz(x) - (x == 3); }"),
         "clz(0x3) is 0x3d, not 0x3e"},
        {INSTEAD_OF("atomic_min",
                    "uint wrong(volatile global uint *p, uint x) { return atomic_max(p, x); }"),
         "atomic_min of 512 work-items is 0xffffffff, not 0x1"},
        {INSTEAD_OF("atomic_inc", "uint wrong(volatile global uint *p) { return *p = 1; }"),
         "atomic_inc of 512 work-items is 0x1, not 0x200"},
        {INSTEAD_OF("atomic_cmpxchg", "uint wrong(volatile global uint *p, uint from, uint to)"
                                      "{ return *p = from; }"),
         "atomic_cmpxchg of 512 work-items is 0, not one of 1 to 512"},
        {"#define char uchar\n", "load_int8(0xffffffffffffffff) is 0xff, not 0xffffffffffffffff"},
        {LOOPS_END(100), "a loop of 70000 rounds ends after 100"},
        {LOOPS_END((mixed += rounds == 5, 70000)), "70000 rounds of a loop give 0x"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct healcl_device *device = NULL;
        const struct opencl *layer = faulty(faults[i].line);
        assert_int_equal(helper_open_tested(layer, &device, &error), HEALCL_DEVICE);
        assert_null(device);
        assert_int_equal(strncmp(error.message, "device ", 7), 0);
        const char *found = strstr(error.message, " fails its self-test: ");
        if (!found)
            fail_msg("%s\n%s", error.message, error.detail ? error.detail : "");
        found += strlen(" fails its self-test: ");
        if (strncmp(found, faults[i].message, strlen(faults[i].message)) != 0)
            fail_msg("%s, not %s", found, faults[i].message);
        healcl_error_clear(&error);
    }
}

static void runs_once(void **state)
{
    (void)state;
    char reason[SELF_TEST_REASON_SIZE];
    struct healcl_device *device = NULL;
    bool overlap = false;
    uint64_t builds = 0;
    for (int i = 0; i < 2; i++) {
        OK(helper_open_tested(&helper_opencl, &device, &error));
        assert_true((device->programs->self_test_nanoseconds > 0) == (i == 0));
        assert_true(i == 0 || device->info.launches_overlap == overlap);
        overlap = device->info.launches_overlap;
        assert_int_equal(self_test_read_cached(&device->info, reason), SELF_TEST_PASSED);
        assert_string_equal(reason, "");
        /* And up to three to find out what a CPU's binaries cost. */
        const unsigned least = 1 + tuning_has_vectors(&device->tuning);
        const unsigned tries = device->info.type & CL_DEVICE_TYPE_CPU ? 3 : 0;
        assert_in_range(helper.count[CALL_clBuildProgram], least + (tries > 0), least + tries);
        assert_true(i == 0 || helper.count[CALL_clBuildProgram] == builds);
        builds = helper.count[CALL_clBuildProgram];
        healcl_device_close(device);
    }
    /* Another device's cached result does not apply to this one. */
    assert_int_equal(each_file("selftest_", change_name), 1);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_int_equal(self_test_read_cached(&device->info, reason), SELF_TEST_NOT_RUN);
    assert_int_equal(each_file("selftest_", change_name), 1);
    assert_int_equal(self_test_read_cached(&device->info, reason), SELF_TEST_PASSED);
    healcl_device_close(device);
    /* Under a layer it counts as another device. */
    setenv("OPENCL_LAYERS", "/none", 1);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_int_equal(self_test_read_cached(&device->info, reason), SELF_TEST_NOT_RUN);
    healcl_device_close(device);
    unsetenv("OPENCL_LAYERS");
}

/* The limit of loops is found once, and kernels are chosen for it. */
static void notes_where_loops_end(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    OK(helper_open_tested(faulty(LOOPS_END(65000)), &device, &error));
    assert_int_equal(device->info.loop_limit, 65000);
    bool is_cpu = device->info.type & CL_DEVICE_TYPE_CPU;
    assert_true(!is_cpu || device->tuning.elements_per_item == 1);
    healcl_device_close(device);
    helper_reset();
    OK(helper_open_tested(&helper_opencl, &device, &error));
    assert_int_equal(helper.count[CALL_clBuildProgram], 0);
    assert_int_equal(device->info.loop_limit, 65000);
    assert_true(!is_cpu || device->tuning.elements_per_item == 1);
    OK(self_test_run(device, &error));
    assert_int_equal(device->info.loop_limit, 0);
    assert_true(!is_cpu || device->tuning.elements_per_item > 1);
    healcl_device_close(device);
}

/* Launches do not overlap if that costs time: on a machine of any speed, those in order then take
 * less, or too long to look at others. */
enum { SLOWLY_US = 20000 };

static cl_int CL_API_CALL await_slowly(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                       const size_t *offset, const size_t *global,
                                       const size_t *local, cl_uint count, const cl_event *list,
                                       cl_event *event)
{
    if (count > 0)
        (void)usleep(SLOWLY_US);
    return helper_opencl.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                count, list, event);
}

static void notes_what_overlapping_costs(void **state)
{
    (void)state;
    struct opencl slow = helper_opencl;
    struct healcl_device *device = NULL;
    slow.clEnqueueNDRangeKernel = await_slowly;
    OK(helper_open_tested(&slow, &device, &error));
    assert_false(device->info.launches_overlap);
    assert_false(device->commands_overlap);
    struct device_info found = device->info;
    found.launches_overlap = true;
    self_test_take_findings(&found);
    assert_false(found.launches_overlap);
    healcl_device_close(device);
}

/* ---- a layer that flips a bit of what a launch has used ---- */

enum {
    CASES = 512,
#define ANSWER(name, families, operands, on_device, on_host) +1
    ANSWERS = 0
#include "cl/base/self_test_answers.cl"
#undef ANSWER
};

/* The buffers of the self-test's kernels: bytes with a meaning. A buffer that is only read has
 * one as long as another launch reads it. */
static const struct flipped_buffer {
    const char *kernel;
    cl_uint argument;
    size_t bytes;
    bool is_input;
} flipped_buffers[] = {
    {"self_test", 0, CASES * 3 * sizeof(cl_ulong), true},
    {"self_test", 1, CASES *ANSWERS * sizeof(cl_ulong), false},
    {"self_test", 2, CASES, false},
    {"self_test", 3, CASES * sizeof(cl_int), false},
    {"self_test", 4, sizeof(struct self_test_counters), false},
};

enum { FLIPPED_BUFFERS = sizeof flipped_buffers / sizeof *flipped_buffers };

static struct {
    cl_kernel kernels[FLIPPED_BUFFERS]; /* the latest of the name */
    cl_mem memory[FLIPPED_BUFFERS];
    int launches[FLIPPED_BUFFERS];
    uint64_t random;
    /* The target of a bit flip: a buffer, after so many launches of its kernel; FLIPPED_BUFFERS for
     * none. */
    int buffer, launch;
    size_t byte, bit;
    bool flipped;
} flip;

static uint64_t next_random(void)
{
    flip.random ^= flip.random << 13;
    flip.random ^= flip.random >> 7;
    flip.random ^= flip.random << 17;
    return flip.random;
}

static cl_kernel CL_API_CALL create_known_kernel(cl_program program, const char *name, cl_int *code)
{
    cl_kernel kernel = helper_opencl.clCreateKernel(program, name, code);
    for (int i = 0; i < FLIPPED_BUFFERS; i++)
        if (strcmp(flipped_buffers[i].kernel, name) == 0)
            flip.kernels[i] = kernel;
    return kernel;
}

static cl_int CL_API_CALL set_known_argument(cl_kernel kernel, cl_uint index, size_t size,
                                             const void *value)
{
    for (int i = 0; i < FLIPPED_BUFFERS; i++)
        if (flip.kernels[i] == kernel && flipped_buffers[i].argument == index)
            memcpy(&flip.memory[i], value, sizeof(cl_mem));
    return helper_opencl.clSetKernelArg(kernel, index, size, value);
}

/* Flips a bit of a buffer that the last launch of a kernel used. */
static void flip_bit(cl_command_queue queue, int buffer)
{
    unsigned char byte = 0;
    flip.byte = (size_t)(next_random() % flipped_buffers[buffer].bytes);
    flip.bit = (size_t)(next_random() % 8);
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(queue, flip.memory[buffer], CL_TRUE, flip.byte, 1, &byte,
                                         0, NULL, NULL),
                     CL_SUCCESS);
    byte ^= (unsigned char)(1U << flip.bit);
    assert_int_equal(clEnqueueWriteBuffer(queue, flip.memory[buffer], CL_TRUE, flip.byte, 1, &byte,
                                          0, NULL, NULL),
                     CL_SUCCESS);
    flip.flipped = true;
}

static cl_int CL_API_CALL launch_and_flip(cl_command_queue queue, cl_kernel kernel,
                                          cl_uint dimensions, const size_t *offset,
                                          const size_t *global, const size_t *local, cl_uint count,
                                          const cl_event *list, cl_event *event)
{
    cl_int code = helper_opencl.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                       local, count, list, event);
    for (int i = 0; i < FLIPPED_BUFFERS; i++) {
        if (flip.kernels[i] != kernel)
            continue;
        flip.launches[i]++;
        if (i == flip.buffer && flip.launches[i] == flip.launch && !flip.flipped)
            flip_bit(queue, i);
    }
    return code;
}

static enum healcl_status test_with_flip(struct healcl_device *device, int buffer, int launch)
{
    memset(flip.launches, 0, sizeof flip.launches);
    flip.buffer = buffer;
    flip.launch = launch;
    flip.flipped = false;
    healcl_error_clear(&error);
    return self_test_run(device, &error);
}

/* How often times are taken is the machine's to say: the first launches and the last ones that
 * there are in any case. */
static void notices_flipped_bits(void **state)
{
    (void)state;
    struct opencl layer = helper_opencl;
    struct healcl_device *device = NULL;
    int launches[FLIPPED_BUFFERS], flips = 0, unnoticed = 0;
    layer.clCreateKernel = create_known_kernel;
    layer.clSetKernelArg = set_known_argument;
    layer.clEnqueueNDRangeKernel = launch_and_flip;
    memset(&flip, 0, sizeof flip);
    flip.random = 0x9e3779b97f4a7c15;
    OK(device_open(&layer, NULL, &device, &error));
    OK(test_with_flip(device, FLIPPED_BUFFERS, 0));
    memcpy(launches, flip.launches, sizeof launches);
    assert_true(launches[0] > 0);
    for (int buffer = 0; buffer < FLIPPED_BUFFERS; buffer++)
        for (int launch = 1; launch <= launches[buffer]; launch++) {
            if (!share_takes("flips", (uint64_t)(buffer * 1000 + launch), launch < 4 ? 1 : 32))
                continue;
            enum healcl_status status = test_with_flip(device, buffer, launch);
            /* The last launch that reads it may have been earlier this time. */
            if (!flip.flipped ||
                (flipped_buffers[buffer].is_input && flip.launches[buffer] == launch))
                continue;
            flips++;
            if (status == HEALCL_DEVICE || device->info.failed_families != 0)
                continue;
            unnoticed++;
            print_error("%s: bit %zu of byte %zu of argument %u after launch %d of %d\n",
                        flipped_buffers[buffer].kernel, flip.bit, flip.byte,
                        flipped_buffers[buffer].argument, launch, flip.launches[buffer]);
        }
    print_message("%d bits flipped\n", flips);
    assert_int_equal(unnoticed, 0);
    assert_true(flips > 0);
    OK(test_with_flip(device, FLIPPED_BUFFERS, 0));
    healcl_device_close(device);
}

/* A failure is cached for `healcl devices`, but the test runs again. */
static void keeps_failures(void **state)
{
    (void)state;
    char reason[SELF_TEST_REASON_SIZE];
    struct healcl_device *device = NULL;
    const struct opencl *layer = faulty("#define char uchar\n");
    assert_int_equal(helper_open_tested(layer, &device, &error), HEALCL_DEVICE);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_int_equal(self_test_read_cached(&device->info, reason), SELF_TEST_FAILED);
    assert_string_equal(reason, error.message);
    healcl_device_close(device);
    OK(helper_open_tested(&helper_opencl, &device, &error));
    assert_int_equal(self_test_read_cached(&device->info, reason), SELF_TEST_PASSED);
    healcl_device_close(device);
}

/* ---- binaries ---- */

static void forget_outcomes(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -f %s/selftest_*", directory);
    assert_int_equal(system(command), 0);
}

static bool has_vectors; /* the device that was opened last */

static void open_and_close(const struct opencl *cl, enum healcl_status expected)
{
    struct healcl_device *device = NULL;
    helper_reset();
    healcl_error_clear(&error);
    if (expected == HEALCL_OK)
        OK(helper_open_tested(cl, &device, &error));
    else
        assert_int_equal(helper_open_tested(cl, &device, &error), expected);
    has_vectors = device && tuning_has_vectors(&device->tuning);
    healcl_device_close(device);
}

/* Failures leave no binary that another run would load. */
static void keeps_no_binary_of_a_failure(void **state)
{
    (void)state;
    setenv("HEALCL_KEEP_BINARIES", "1", 1);
    open_and_close(faulty("#define char uchar\n"), HEALCL_DEVICE);
    assert_int_equal(each_file("binary_", NULL), 0);
    /* Nor where the device is used nevertheless, as by `healcl check`. */
    struct healcl_device *device = NULL;
    OK(device_open(faulty("#define char uchar\n"), NULL, &device, &error));
    assert_int_equal(self_test_run(device, &error), HEALCL_DEVICE);
    assert_int_equal(self_test_run(device, &error), HEALCL_DEVICE);
    healcl_device_close(device);
    assert_int_equal(each_file("binary_", NULL), 0);
    open_and_close(&helper_opencl, HEALCL_OK);
    assert_int_equal(helper.count[CALL_clCreateProgramWithBinary], 0);
    assert_int_equal(each_file("binary_", NULL), 1 + has_vectors);
    unsetenv("HEALCL_KEEP_BINARIES");
}

static cl_int CL_API_CALL info_of_gpu(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *needed)
{
    cl_int code = helper_opencl.clGetDeviceInfo(device, what, size, value, needed);
    if (what == CL_DEVICE_TYPE && value)
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
    return code;
}

static void keeps_binaries_of_gpus_alone(void **state)
{
    (void)state;
    struct opencl layer = helper_opencl;
    open_and_close(&layer, HEALCL_OK);
    assert_int_equal(each_file("binary_", NULL), 0);
    forget_outcomes();
    layer.clGetDeviceInfo = info_of_gpu;
    open_and_close(&layer, HEALCL_OK);
    assert_int_equal(each_file("binary_", NULL), 1 + has_vectors);
}

/* A driver that makes something else of its binaries. */
static cl_program CL_API_CALL load_faulty(cl_context context, cl_uint count,
                                          const cl_device_id *devices, const size_t *lengths,
                                          const unsigned char **binaries, cl_int *codes,
                                          cl_int *code)
{
    cl_program program = helper_opencl.clCreateProgramWithBinary(context, count, devices, lengths,
                                                                 binaries, codes, code);
    helper_opencl.clReleaseProgram(program);
    const char *text = "kernel void self_test(global ulong *cases, global ulong *answers,"
                       " global char *bytes, global int *words, global uint *counters,"
                       " uint loops) { }\n";
    return helper_opencl.clCreateProgramWithSource(context, 1, &text, NULL, code);
}

/* It is built again, and the binary is ignored. */
static void drops_a_binary_that_fails(void **state)
{
    (void)state;
    struct opencl layer = helper_opencl;
    layer.clGetDeviceInfo = info_of_gpu; /* whose binaries are cached */
    open_and_close(&layer, HEALCL_OK);
    forget_outcomes();
    layer.clCreateProgramWithBinary = load_faulty;
    open_and_close(&layer, HEALCL_OK);
    assert_int_equal(helper.count[CALL_clCreateProgramWithBinary], 1);
    assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 2); /* and the faulty one */
}

int main(void)
{
    unsetenv("HEALCL_AS"); /* shapes are those of the device itself */
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(passes),
        cmocka_unit_test_setup_teardown(finds_faults, set_up_fast, device_tear_down),
        cmocka_unit_test_setup_teardown(runs_once, set_up_cache, tear_down_cache),
        cmocka_unit_test_setup_teardown(notes_where_loops_end, set_up_cache, tear_down_cache),
        cmocka_unit_test_setup_teardown(notes_what_overlapping_costs, set_up_cache,
                                        tear_down_cache),
        cmocka_unit_test_setup_teardown(notices_flipped_bits, set_up_fast, device_tear_down),
        cmocka_unit_test_setup_teardown(keeps_failures, set_up_cache, tear_down_cache),
        cmocka_unit_test_setup_teardown(keeps_binaries_of_gpus_alone, set_up_cache,
                                        tear_down_cache),
        cmocka_unit_test_setup_teardown(keeps_no_binary_of_a_failure, set_up_cache,
                                        tear_down_cache),
        cmocka_unit_test_setup_teardown(drops_a_binary_that_fails, set_up_cache, tear_down_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
