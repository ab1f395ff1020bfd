/*
 * Fuzzes what is kept between runs: marks of the self-test, tunings, choices among kernels, rates,
 * arguments of kernels, and binaries, which a driver gets as they are. The first byte says which of
 * them is read, and whether the file has its seal, which a fuzzer would not find: then the rest is
 * what is behind it, else the whole file.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "bench/measure.h"
#include "core/file.h"
#include "programs/internal.h"
#include "programs/self_test.h"
#include "programs/tuning_kept.h"

/* The file in hand. */
static struct {
    const uint8_t *data;
    size_t size;
    bool is_sealed;
} kept;

/* The first line, as src/programs/cache.c tells of it; its length. */
static size_t seal(const char *name, char line[256])
{
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(kept.data, kept.size));
    int length = snprintf(line, 256, "healcl kept 1 %.120s ", name);
    for (size_t i = 0; i < sizeof hash.digest; i++)
        length += snprintf(line + length, 3, "%02x", hash.digest[i]);
    line[length++] = '\n';
    return (size_t)length;
}

/* In the place of the files that there are, one in memory: the linker wraps the function. */
enum healcl_status __wrap_file_open_regular(const char *path, int *file,
                                            struct healcl_error *error);

enum healcl_status __wrap_file_open_regular(const char *path, int *file, struct healcl_error *error)
{
    static int memory = -1;
    char line[256];
    (void)error;
    if (memory < 0)
        memory = memfd_create("kept", MFD_CLOEXEC);
    const char *name = strrchr(path, '/');
    size_t length = kept.is_sealed && name ? seal(name + 1, line) : 0;
    EXPECT(name && memory >= 0 && ftruncate(memory, 0) == 0);
    EXPECT(pwrite(memory, line, length, 0) == (ssize_t)length);
    EXPECT(pwrite(memory, kept.data, kept.size, (off_t)length) == (ssize_t)kept.size);
    EXPECT(lseek(memory, 0, SEEK_SET) == 0);
    *file = dup(memory);
    EXPECT(*file >= 0);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- a driver */

static int driven; /* to be released */

static cl_program CL_API_CALL create(cl_context context, cl_uint count, const cl_device_id *devices,
                                     const size_t *lengths, const unsigned char **binaries,
                                     cl_int *loaded, cl_int *code)
{
    (void)context, (void)devices;
    EXPECT(count == 1 && lengths[0] > 0);
    unsigned char sum = 0;
    for (size_t i = 0; i < lengths[0]; i++)
        sum = (unsigned char)(sum + binaries[0][i]);
    *code = sum % 4 == 0 ? CL_INVALID_VALUE : CL_SUCCESS;
    *loaded = sum % 4 == 1 ? CL_INVALID_BINARY : CL_SUCCESS;
    driven += *code == CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_program)&driven : NULL;
}

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices,
                                const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                void *context)
{
    (void)program, (void)count, (void)devices, (void)options, (void)notify, (void)context;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release(cl_program program)
{
    EXPECT(program && driven > 0);
    driven--;
    return CL_SUCCESS;
}

/* It tells nothing of arguments, so that what is kept of them counts. */
static cl_int CL_API_CALL tell_nothing(cl_kernel kernel, cl_kernel_info what, size_t size,
                                       void *value, size_t *wanted)
{
    (void)kernel, (void)what, (void)size, (void)value, (void)wanted;
    return CL_INVALID_VALUE;
}

static const struct opencl driver = {.clCreateProgramWithBinary = create,
                                     .clBuildProgram = build,
                                     .clReleaseProgram = release,
                                     .clGetKernelInfo = tell_nothing};

/* ---------------------------------------------------------------- readers */

static struct device_programs programs = {.cache_directory = (char[]){"kept"}};
static struct healcl_device device = {
    .cl = &driver,
    .programs = &programs,
    .info = {.type = CL_DEVICE_TYPE_CPU, .name = "a device", .max_work_group_size = 64}};

static void read_mark(void)
{
    char reason[SELF_TEST_REASON_SIZE];
    struct device_info info = device.info;
    enum self_test_outcome outcome = self_test_read_kept(&info, reason);
    EXPECT(strlen(reason) < sizeof reason && (outcome == SELF_TEST_FAILED || !*reason));
    self_test_take_findings(&info);
    EXPECT(info.multiply < MULTIPLY_COUNT &&
           strlen(info.family_failure) < sizeof info.family_failure);
}

static void read_tuning(void)
{
    struct device_tuning tuning = tuning_default(&device.info);
    (void)tuning_read_kept(&tuning, &device.info);
    EXPECT(tuning.local_size >= 1 && tuning.multiply < MULTIPLY_COUNT);
}

static void read_choices(void)
{
    struct kernel_choices choices;
    kernel_choices_read_kept(&choices, &device.info);
    EXPECT(choices.count <= KERNEL_CHOICES_MAX);
}

static void read_rates(void)
{
    const struct device_tuning tuning = tuning_default(&device.info);
    uint64_t rates[6];
    if (rates_read_kept(&device.info, &tuning, 6, rates))
        for (int i = 0; i < 6; i++)
            EXPECT(rates[i] > 0);
}

static void read_binary(void)
{
    cl_program program = binary_load(&device, "binary_name", "");
    if (program)
        (void)release(program);
    EXPECT(driven == 0);
}

/* Of a kernel that takes memory, a long and memory. */
static void read_arguments(void)
{
    struct healcl_error error = {.detail = NULL};
    struct program program = {.binary_name = "binary_name"};
    struct kernel kernel = {.program = &program, .name = (char[]){"kernel"}};
    static const struct buffer memory;
    static struct launch launch = {.kernel = "kernel", .argument_count = 3};
    launch.manifest.file = "m.json";
    launch.arguments[0].buffer = launch.arguments[2].buffer = &memory;
    expect_told(kernel_check_arguments(&device, &kernel, &launch, &error), &error);
    healcl_error_clear(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(void) = {read_mark,  read_tuning, read_choices,
                                            read_rates, read_binary, read_arguments};
    setenv("HEALCL_CACHE_DIR", "kept", 1);
    if (size == 0)
        return 0;
    kept.data = data + 1;
    kept.size = size - 1;
    kept.is_sealed = data[0] & 0x80;
    readers[data[0] % (sizeof readers / sizeof *readers)]();
    return 0;
}
