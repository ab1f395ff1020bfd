/*
 * How often transforms of GPUs go through a row in global memory, and which lines of it their
 * work-items touch together: by kernels that stand in for those of cl/ntt/registers.cl, or note
 * what these do.
 */
#include "helper_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/trace.h"
#include "helper_script.h"
#include "helper_share.h"

static struct healcl_device *device;

/* Builds without the options of cl/ntt/registers.cl but for types, so that kernels which do not
 * know them are of one program whatever these are. */
static cl_int CL_API_CALL build_without_sizes(cl_program program, cl_uint count,
                                              const cl_device_id *devices, const char *options,
                                              void(CL_CALLBACK *notify)(cl_program, void *),
                                              void *data)
{
    static const char *const sizes[] = {"LOG2_",     "STAGES=",  "LOAD_FIRST=", "STORE_FIRST=",
                                        "LIMIT=",    "PIECES=",  "COLUMNS",     "TOGETHER",
                                        "FROM_PASS", "FOR_PASS", "IN_ORDER",    "OUT_ORDER"};
    char kept[1024] = "";
    for (const char *define = options; define; define = strstr(define + 1, " -D ")) {
        const char *end = strstr(define + 1, " -D ");
        bool is_size = false;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            is_size |= strncmp(define, " -D ", 4) == 0 &&
                       strncmp(define + 4, sizes[i], strlen(sizes[i])) == 0;
        if (!is_size)
            strncat(kept, define, end ? (size_t)(end - define) : strlen(define));
    }
    return helper_loader()->clBuildProgram(program, count, devices, kept, notify, data);
}

/* As a GPU, with a program in place of ntt/registers. */
static void open_gpu(const char *source, bool knows_sizes)
{
    static struct opencl cl;
    cl = *helper_loader();
    unsetenv("HEALCL_VARIANT");
    setenv("HEALCL_AS", "gpu", 1);
    OK(helper_open_tested(&cl, &device, &error));
    if (!knows_sizes)
        cl.clBuildProgram = build_without_sizes;
    give_program(device, "ntt/registers", source);
    device->tuning.transform_local_size = 256;
}

static void close_gpu(void)
{
    healcl_device_close(device);
    device = NULL;
    unsetenv("HEALCL_AS");
}

/* ---------------------------------------------------------------- calls */

/* A call on tensors [l,n,r,1], or [l,r,1,n] with is_last. */
struct transform {
    bool inverse, is_last, permutes, in_int32;
    int64_t l, n, r;
};

enum { Q = 65537 };

static int64_t reversed(int64_t i, int64_t n)
{
    int64_t result = 0;
    for (int64_t m = n; m > 1; m /= 2, i /= 2)
        result = 2 * result + i % 2;
    return result;
}

static void script_transform(struct script *script, const struct transform *transform)
{
    const char *type = transform->in_int32 ? "int32" : "int64";
    enum dtype dtype = transform->in_int32 ? DTYPE_INT32 : DTYPE_INT64;
    char shape[128], row[64];
    const int64_t q = Q, one = 1, n = transform->n, axis = transform->is_last ? -1 : -3;
    int64_t l = transform->l, r = transform->r, *perm = malloc((size_t)n * sizeof *perm);
    assert_non_null(perm);
    for (int64_t i = 0; i < n; i++)
        perm[i] = reversed(i, n);
    snprintf(row, sizeof row, "(1,%" PRId64 ") :%s", n, type);
    if (transform->is_last)
        snprintf(shape, sizeof shape, "(%" PRId64 ",%" PRId64 ",1,%" PRId64 ") :%s", l, r, n, type);
    else
        snprintf(shape, sizeof shape, "(%" PRId64 ",%" PRId64 ",%" PRId64 ",1) :%s", l, n, r, type);
    script_call(script, "a", "zeros", shape);
    script_call(script, "out", "zeros", shape);
    script_upload(script, "q", dtype, 1, &one, &q);
    script_upload(script, "perm", dtype, 1, &n, perm);
    script_call(script, "psi", "zeros", row);
    script_upload(script, "n_inv", dtype, 1, &one, &one);
    char arguments[128];
    if (transform->inverse)
        snprintf(arguments, sizeof arguments, "a %d perm none q none none psi n_inv out 0",
                 (int)axis);
    else
        snprintf(arguments, sizeof arguments, "a %d perm none q none none psi out 0 %d", (int)axis,
                 !transform->permutes);
    script_call(script, "out", transform->inverse ? "intt" : "ntt", arguments);
    free(perm);
}

/* ---------------------------------------------------------------- passes */

#define PARAMETERS                                                                       \
    "(SPACE(space), uint first_row, uint end_row, global OUT *out, global const IN *in," \
    " global const struct modulus *q, global const void *twiddles, global const uint *perm"

static int launches_of(const struct transform *transform)
{
    struct script script = {0};
    struct script_results results = {0};
    struct trace *trace = trace_create(1000);
    assert_non_null(trace);
    script_transform(&script, transform);
    script_plan(&script);
    struct executor *executor;
    OK(device_executor_create(device, script.plan, &executor, &error));
    OK(device_set_profiling(device, true, &error));
    OK(device_trace_begin(device, trace, &error));
    OK(script_run(&script, executor, &results, &error));
    executor->class->destroy(executor);
    device_trace_end(device);
    int launches = 0;
    for (size_t i = 0; i < trace->count; i++)
        launches += trace->spans[i].category && strcmp(trace->spans[i].category, "kernel") == 0 &&
                    strstr(trace->spans[i].name, "ntt_") != NULL;
    trace_free(trace);
    script_results_release(&results);
    script_release(&script);
    return launches;
}

/* One where a work-group has room for a row in registers, or for as many as a line of the caches
 * has of those that lie between each other, or for all of these; else two. */
static void passes(void **state)
{
    (void)state;
    static const char source[] =
        "KERNEL ntt_pass" PARAMETERS ") {}\n"
        "KERNEL intt_pass" PARAMETERS ", global const struct twiddle *n_inv) {}\n";
    static const int64_t memories[] = {32768, 49152, 65536}, rows[] = {1, 2, 4, 8, 16, 32};
    open_gpu(source, false);
    int checked = 0;
    uint64_t number = 0;
    for (size_t memory = 0; memory < 3; memory++)
        for (int log2_n = 0; log2_n <= 17; log2_n++)
            for (size_t r = 0; r < 6; r++)
                for (int is_last = 0; is_last < 2; is_last++) {
                    int64_t n = (int64_t)1 << log2_n;
                    if ((is_last && rows[r] > 1) || (log2_n > 13 && rows[r] > 8))
                        continue;
                    if (!share_takes("passes", number++, 2))
                        continue;
                    struct transform transform = {
                        (log2_n + (int)r) % 2, is_last, true, r == 2 || r == 4, 1, n, rows[r]};
                    device->info.local_memory_bytes = (uint64_t)memories[memory];
                    int64_t line = transform.in_int32 ? 16 : 8;
                    int64_t together = is_last ? 1 : rows[r] < line ? rows[r] : line;
                    int expected = together * n <= 512 * 8 ? 1 : 2;
                    int launches = launches_of(&transform);
                    if (launches != expected)
                        fail_msg("%d launches, not %d, of n = %d, %d rows%s, %d bytes", launches,
                                 expected, (int)n, (int)rows[r], is_last ? " one by one" : "",
                                 (int)memories[memory]);
                    checked++;
                }
    print_message("%d transforms\n", checked);
    close_gpu();
}

/* ---------------------------------------------------------------- lines */

extern const char healcl_cl_ntt_registers[];

/* Instead of reading or writing an element of a tensor, the kernels note in it who would do so in
 * which turn, the i-th of each work-item. */
static const char notes[] = "static inline uint note(global const long *at, uint i)\n"
                            "{\n"
                            "    uint turn = i * LOCAL_SIZE + (uint)get_local_id(0);\n"
                            "    *(global long *)at = 1 + ((long)get_group_id(0) << 32 | turn);\n"
                            "    return 0;\n"
                            "}\n"
                            "#define LOAD(name, at) note(name + (at), i)\n"
                            "#define STORE(name, at, x) note(name + (at), i)\n";

enum { WAVE = 64, LINE_ELEMENTS = 8 };

static int compare_access(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(int64_t));
}

/* Lines that waves touch at once, over the least that can be. */
static double excess(const int64_t *noted, int64_t count)
{
    int64_t lines = 0, least = 0, of_wave = 0;
    int64_t(*accesses)[2] = malloc((size_t)count * sizeof *accesses);
    assert_non_null(accesses);
    for (int64_t i = 0; i < count; i++) {
        assert_true(noted[i] > 0);
        accesses[i][0] = (noted[i] - 1) / WAVE;
        accesses[i][1] = i / LINE_ELEMENTS;
    }
    qsort(accesses, (size_t)count, sizeof *accesses, compare_access);
    for (int64_t i = 0; i < count; i++) {
        bool is_new = i == 0 || accesses[i][0] != accesses[i - 1][0];
        lines += is_new || accesses[i][1] != accesses[i - 1][1];
        of_wave = is_new ? 1 : of_wave + 1;
        least += of_wave % LINE_ELEMENTS == 1;
    }
    free(accesses);
    return (double)lines / (double)least;
}

/* Rows are adjacent or interleaved, permuted or not, in one pass or in two. */
static void lines(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 2, 4, 32}, lengths[] = {4, 16, 64, 512, 2048, 8192};
    static char source[1 << 16];
    size_t length = strlen(notes) + strlen(healcl_cl_ntt_registers);
    assert_true(length < sizeof source);
    memcpy(source, notes, strlen(notes));
    strcpy(source + strlen(notes), healcl_cl_ntt_registers);
    open_gpu(source, true);
    device->info.local_memory_bytes = 4096 * sizeof(int64_t);
    device->tuning.transform_tile = 4096;
    int checked = 0;
    uint64_t number = 0;
    for (int how = 0; how < 3; how++) /* forward, permuted or not, and inverse */
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                if (lengths[n] * rows[r] > 65536 || !share_takes("lines", number++, 3))
                    continue;
                struct transform transform = {how == 2, n % 2,      how != 0, false,
                                              4,        lengths[n], rows[r]};
                struct script script = {0};
                struct script_results results = {0};
                script_transform(&script, &transform);
                script_download(&script, "a");
                script_download(&script, "out");
                script_plan(&script);
                OK(script_run_on(&script, device, &results, &error));
                int64_t count = 4 * lengths[n] * rows[r];
                assert_int_equal(results.count, 2 * count);
                for (int i = 0; i < 2; i++) {
                    double found = excess(results.values + i * count, count);
                    if (found > 1.25)
                        fail_msg("%s of n = %d, r = %d, %s, way %d: %.2f times as many lines",
                                 i ? "writes" : "reads", (int)lengths[n], (int)rows[r],
                                 transform.is_last ? "axis -1" : "axis -3", how, found);
                    checked++;
                }
                script_results_release(&results);
                script_release(&script);
            }
    print_message("%d tensors\n", checked);
    close_gpu();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(passes),
        DEVICE_TEST(lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
