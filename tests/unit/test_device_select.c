/* Which devices are found, which can be used, which one a selector names; on made-up platforms. */
#include <string.h>

#include "helper_device.h"

/* ---------------------------------------------------------------- selection from a list */

static struct device_info make_device(uint32_t platform, uint32_t device, const char *platform_name,
                                      const char *name, cl_device_type type)
{
    const uint16_t one = 1;
    struct device_info info = {
        .platform_index = platform,
        .device_index = device,
        .version = "OpenCL 1.2 test",
        .type = type,
        .compute_units = 2,
        .clock_mhz = 1000,
        .available = true,
        .compiler_available = true,
        .little_endian = *(const unsigned char *)&one == 1,
    };
    strcpy(info.platform, platform_name);
    strcpy(info.name, name);
    return info;
}

enum { LIST_COUNT = 5 };

static void make_list(struct device_info list[LIST_COUNT])
{
    list[0] = make_device(0, 0, "Portable", "small CPU", CL_DEVICE_TYPE_CPU);
    list[1] = make_device(0, 1, "Portable", "large CPU", CL_DEVICE_TYPE_CPU);
    list[2] = make_device(1, 0, "Vendor", "Board", CL_DEVICE_TYPE_ACCELERATOR);
    list[3] = make_device(1, 1, "Vendor", "Graphics", CL_DEVICE_TYPE_GPU);
    list[4] = make_device(1, 2, "Vendor", "Graphics old", CL_DEVICE_TYPE_GPU);
    list[1].compute_units = 64;
    list[4].compute_units = 1;
    strcpy(list[0].platform_version, "OpenCL 3.0 PoCL 3.1 RELOC");
    strcpy(list[2].platform_version, "OpenCL 1.2");
}

static void selectors(void **state)
{
    (void)state;
    struct device_info list[LIST_COUNT];
    make_list(list);
    static const struct {
        const char *selector;
        size_t index;
    } cases[] = {
        {"0:0", 0}, {"1:2", 4},   {"cpu", 1},      {"CPU", 1},         {"gpu", 3},
        {"acc", 2}, {"board", 2}, {"portable", 1}, {"small", 0},       {"graphics", 3},
        {"OLD", 4}, {"", 3},      {NULL, 3},       {"accelerator", 2}, {"pocl", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t index = LIST_COUNT;
        OK(device_select(list, LIST_COUNT, cases[i].selector, &index, &error));
        assert_int_equal(index, cases[i].index);
    }
}

/* On a processor of Vendor's, every driver's device may be called after it. */
static void platforms_go_before_names(void **state)
{
    (void)state;
    struct device_info list[LIST_COUNT];
    make_list(list);
    list[1] = make_device(0, 1, "Portable", "CPU of Vendor", CL_DEVICE_TYPE_GPU);
    list[1].compute_units = 64;
    size_t index = LIST_COUNT;
    OK(device_select(list, LIST_COUNT, "vendor", &index, &error));
    assert_int_equal(index, 3);
    OK(device_select(list, 2, "vendor", &index, &error)); /* there is no such platform */
    assert_int_equal(index, 1);
    list[2].available = list[3].available = list[4].available = false;
    OK(device_select(list, LIST_COUNT, "vendor", &index, &error));
    assert_int_equal(index, 1);
}

/* A simulator that claims to be everything neither is a GPU nor goes before one, or before a CPU
 * that is faster. */
static void simulators_are_cpus(void **state)
{
    (void)state;
    struct device_info list[LIST_COUNT];
    make_list(list);
    cl_device_type all = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR;
    list[0] = make_device(0, 0, "Simulator", "simulator", all);
    assert_string_equal(device_type_name(all), "cpu");
    size_t index = LIST_COUNT;
    OK(device_select(list, LIST_COUNT, NULL, &index, &error));
    assert_int_equal(index, 3);
    OK(device_select(list, 2, NULL, &index, &error));
    assert_int_equal(index, 1);
    OK(device_select(list, 1, "cpu", &index, &error));
    assert_int_equal(device_select(list, 1, "gpu", &index, &error), HEALCL_USAGE);
}

/* Nobody who names no device wants hardware that is not there. */
static void emulators_go_last(void **state)
{
    (void)state;
    static const struct {
        const char *platform, *name;
        cl_device_type type;
        bool emulator;
    } cases[] = {
        {"Intel(R) FPGA Emulation Platform for OpenCL(TM)", "Intel(R) FPGA Emulation Device",
         CL_DEVICE_TYPE_ACCELERATOR, true},
        {"Oclgrind", "Oclgrind Simulator", CL_DEVICE_TYPE_GPU, true},
        {"rusticl", "llvmpipe (LLVM 15.0.6, 256 bits)", CL_DEVICE_TYPE_GPU, true},
        {"Clover", "softpipe", CL_DEVICE_TYPE_GPU, true},
        {"clvk", "SwiftShader Device (LLVM 10.0.0)", CL_DEVICE_TYPE_GPU, true},
        {"Intel(R) OpenCL", "AMD EPYC", CL_DEVICE_TYPE_CPU, false},
        {"Portable Computing Language", "pthread-AMD EPYC", CL_DEVICE_TYPE_CPU, false},
        {"rusticl", "AMD Radeon RX 7900 XTX (radeonsi)", CL_DEVICE_TYPE_GPU, false},
        {"NVIDIA CUDA", "NVIDIA H100", CL_DEVICE_TYPE_GPU, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct device_info list[] = {
            make_device(0, 0, cases[i].platform, cases[i].name, cases[i].type),
            make_device(1, 0, "Portable", "plain", CL_DEVICE_TYPE_CPU)};
        list[0].compute_units = 64;
        assert_int_equal(device_is_emulator(&list[0]), cases[i].emulator);
        size_t index = 2;
        OK(device_select(list, 2, NULL, &index, &error));
        assert_int_equal(index, cases[i].emulator);
        OK(device_select(list, 1, NULL, &index, &error)); /* there is nothing else */
        OK(device_select(list, 2, cases[i].name, &index, &error));
        assert_int_equal(index, 0);
        list[1].available = false;
        OK(device_select(list, 2, NULL, &index, &error));
        assert_int_equal(index, 0);
    }
}

static void environment_selects(void **state)
{
    (void)state;
    struct device_info list[LIST_COUNT];
    make_list(list);
    size_t index = LIST_COUNT;
    setenv("HEALCL_DEVICE", "acc", 1);
    OK(device_select(list, LIST_COUNT, NULL, &index, &error));
    assert_int_equal(index, 2);
    OK(device_select(list, LIST_COUNT, "cpu", &index, &error));
    assert_int_equal(index, 1);
    setenv("HEALCL_DEVICE", "", 1);
    OK(device_select(list, LIST_COUNT, NULL, &index, &error));
    assert_int_equal(index, 3);
    setenv("HEALCL_DEVICE", "none such", 1);
    assert_int_equal(device_select(list, 1, NULL, &index, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "no device matches 'none such' (from HEALCL_DEVICE); there "
                                       "is 0:0 small CPU");
    /* Every platform's version begins with that. */
    assert_int_equal(device_select(list, LIST_COUNT, "opencl", &index, &error), HEALCL_USAGE);
}

static void refused_selectors(void **state)
{
    (void)state;
    struct device_info list[LIST_COUNT];
    make_list(list);
    list[0].compiler_available = false;
    size_t index = 0;
    assert_int_equal(device_select(list, 2, "xyz", &index, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "no device matches 'xyz'; there are 0:0 small CPU (it has "
                                       "no compiler, so it needs a package from healcl "
                                       "compile), 0:1 large CPU");
    assert_int_equal(device_select(list, 2, "2:0", &index, &error), HEALCL_USAGE);
    assert_int_equal(device_select(list, 2, "0:", &index, &error), HEALCL_USAGE);
    assert_int_equal(device_select(list, 2, "0:0x", &index, &error), HEALCL_USAGE);
    assert_int_equal(device_select(list, 2, "gpu", &index, &error), HEALCL_USAGE);
    assert_int_equal(device_select(list, 2, "small", &index, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "device 0:0 small CPU cannot be used: it has no "
                                       "compiler, so it needs a package from healcl compile");
    assert_int_equal(device_select(list, 1, NULL, &index, &error), HEALCL_USAGE);
    assert_string_equal(
        error.message,
        "no device can be used; there is 0:0 small CPU (it has no compiler, so it needs a "
        "package from healcl compile)");
    list[0].packaged = list[1].packaged = true;
    OK(device_select(list, 2, "small", &index, &error));
    assert_int_equal(index, 0);
    assert_int_equal(device_select(NULL, 0, "cpu", &index, &error), HEALCL_DEVICE);
    assert_string_equal(error.message, "no OpenCL platform with a device is installed (package "
                                       "pocl-opencl-icd provides one for CPUs)");
    assert_int_equal(device_select(NULL, 0, NULL, &index, NULL), HEALCL_DEVICE);
}

static void long_lists_are_cut(void **state)
{
    (void)state;
    enum { MANY = 40 };
    static struct device_info list[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        list[i] = make_device(i, 0, "P", "a device with quite a long name", CL_DEVICE_TYPE_CPU);
    size_t index = 0;
    assert_int_equal(device_select(list, MANY, "xyz", &index, &error), HEALCL_USAGE);
    size_t length = strlen(error.message);
    assert_true(length > 300 && length < 500);
    assert_string_equal(error.message + length - 3, "...");
}

static void unusable_devices(void **state)
{
    (void)state;
    struct device_info good = make_device(0, 0, "P", "D", CL_DEVICE_TYPE_GPU);
    assert_null(device_unusable(&good));
    struct device_info info = good;
    strcpy(info.version, "OpenCL 1.0 board"); /* which may do all that is needed */
    assert_null(device_unusable(&info));
    info.available = false;
    assert_string_equal(device_unusable(&info), "it is not available");
    info = good;
    info.little_endian = !good.little_endian;
    assert_string_equal(device_unusable(&info), "its byte order is not that of the host");
    info = good;
    info.fault = CL_INVALID_VALUE;
    assert_string_equal(device_unusable(&info), "it does not answer queries");
}

static void type_names(void **state)
{
    (void)state;
    assert_string_equal(device_type_name(CL_DEVICE_TYPE_CPU), "cpu");
    assert_string_equal(device_type_name(CL_DEVICE_TYPE_GPU), "gpu");
    assert_string_equal(device_type_name(CL_DEVICE_TYPE_ACCELERATOR), "accelerator");
    assert_string_equal(device_type_name(CL_DEVICE_TYPE_CUSTOM), "other");
    assert_string_equal(device_type_name(CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT), "gpu");
}

/* ---------------------------------------------------------------- made-up platforms */

/* Platform i is the address of platforms[i], its only device that of devices[i]. */
struct made_up {
    cl_int platforms_code; /* of clGetPlatformIDs */
    cl_uint count;
    cl_int devices_code[2]; /* of clGetDeviceIDs */
    bool is_old[2];         /* device i is of OpenCL 1.0 */
    cl_device_info fails;   /* a query of device 0 */
};

static struct made_up made_up;
static char platforms[2], devices[2];

static cl_int CL_API_CALL made_up_platforms(cl_uint entries, cl_platform_id *ids, cl_uint *count)
{
    if (made_up.platforms_code != CL_SUCCESS)
        return made_up.platforms_code;
    for (cl_uint i = 0; ids && i < entries && i < made_up.count; i++)
        ids[i] = (cl_platform_id)(void *)&platforms[i];
    if (count)
        *count = made_up.count;
    return CL_SUCCESS;
}

static cl_int give_text(const char *text, size_t size, void *value, size_t *needed)
{
    if (value && size < strlen(text) + 1)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, text, strlen(text) + 1);
    if (needed)
        *needed = strlen(text) + 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL made_up_platform(cl_platform_id id, cl_platform_info what, size_t size,
                                           void *value, size_t *needed)
{
    (void)id;
    (void)what;
    return give_text("Made up", size, value, needed);
}

static cl_int CL_API_CALL made_up_devices(cl_platform_id id, cl_device_type type, cl_uint entries,
                                          cl_device_id *ids, cl_uint *count)
{
    (void)type;
    ptrdiff_t i = (char *)(void *)id - platforms;
    if (made_up.devices_code[i] != CL_SUCCESS)
        return made_up.devices_code[i];
    if (ids && entries > 0)
        ids[0] = (cl_device_id)(void *)&devices[i];
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL made_up_device(cl_device_id id, cl_device_info what, size_t size,
                                         void *value, size_t *needed)
{
    ptrdiff_t i = (char *)(void *)id - devices;
    if (i == 0 && what == made_up.fails && what != 0)
        return CL_OUT_OF_RESOURCES;
    static const size_t sizes[] = {64, 64, 64};
    switch (what) {
    case CL_DEVICE_NAME: return give_text("  padded name \n", size, value, needed);
    case CL_DEVICE_VENDOR:
    case CL_DRIVER_VERSION:
    case CL_DEVICE_VERSION: return give_text("OpenCL 1.2 x", size, value, needed);
    case CL_DEVICE_OPENCL_C_VERSION:
        return made_up.is_old[i] ? CL_INVALID_VALUE
                                 : give_text("OpenCL C 1.2 x", size, value, needed);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        memset(value, 1, size);
        return made_up.is_old[i] ? CL_INVALID_VALUE : CL_SUCCESS;
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        if (value)
            memcpy(value, sizes, sizeof sizes);
        if (needed)
            *needed = sizeof sizes;
        return CL_SUCCESS;
    default: memset(value, 1, size); return CL_SUCCESS;
    }
}

static const struct opencl made_up_opencl = {
    .clGetPlatformIDs = made_up_platforms,
    .clGetPlatformInfo = made_up_platform,
    .clGetDeviceIDs = made_up_devices,
    .clGetDeviceInfo = made_up_device,
};

static void set_made_up(cl_uint count)
{
    made_up = (struct made_up){
        .count = count,
        .is_old = {true, false},
    };
}

static void no_platform(void **state)
{
    (void)state;
    struct device_info *list = NULL;
    size_t count = 7;
    set_made_up(0);
    OK(device_list(&made_up_opencl, false, &list, &count, &error));
    assert_int_equal(count, 0);
    made_up.platforms_code = -1001;
    OK(device_list(&made_up_opencl, false, &list, &count, &error));
    assert_int_equal(count, 0);
    struct healcl_device *device = NULL;
    assert_int_equal(device_open(&made_up_opencl, NULL, &device, &error), HEALCL_DEVICE);
    assert_null(device);
    made_up.platforms_code = CL_OUT_OF_HOST_MEMORY;
    assert_int_equal(device_list(&made_up_opencl, false, &list, &count, &error), HEALCL_DEVICE);
    assert_string_equal(error.message, "clGetPlatformIDs failed: CL_OUT_OF_HOST_MEMORY (-6)");
    assert_int_equal(error.opencl_code, CL_OUT_OF_HOST_MEMORY);
}

static void platform_without_devices(void **state)
{
    (void)state;
    struct device_info *list = NULL;
    size_t count = 7;
    set_made_up(1);
    made_up.devices_code[0] = CL_DEVICE_NOT_FOUND;
    OK(device_list(&made_up_opencl, false, &list, &count, &error));
    assert_int_equal(count, 0);
    free(list);
}

static void broken_platform(void **state)
{
    (void)state;
    struct device_info *list = NULL;
    size_t count = 0;
    set_made_up(2);
    made_up.devices_code[0] = CL_OUT_OF_RESOURCES;
    OK(device_list(&made_up_opencl, false, &list, &count, &error));
    assert_int_equal(count, 1);
    assert_int_equal(list[0].platform_index, 1);
    free(list);
    struct device_listing listing;
    OK(device_list_all(&made_up_opencl, &listing, &error));
    assert_int_equal(listing.count, 1);
    assert_int_equal(listing.fault_count, 1);
    assert_int_equal(listing.faults[0].platform_index, 0);
    assert_string_equal(listing.faults[0].platform, "Made up");
    assert_int_equal(listing.faults[0].code, CL_OUT_OF_RESOURCES);
    OK(device_listing_check(&listing, &error));
    device_listing_release(&listing);
    /* One that has none is not broken. */
    made_up.devices_code[1] = CL_DEVICE_NOT_FOUND;
    OK(device_list_all(&made_up_opencl, &listing, &error));
    assert_int_equal(listing.fault_count, 1);
    device_listing_release(&listing);
    assert_int_equal(device_list(&made_up_opencl, false, &list, &count, &error), HEALCL_DEVICE);
    assert_string_equal(error.message,
                        "platform 0 Made up: clGetDeviceIDs failed: CL_OUT_OF_RESOURCES (-5)");
    assert_null(list);
}

static void broken_device(void **state)
{
    (void)state;
    struct device_info *list = NULL;
    size_t count = 0, index = 0;
    set_made_up(2);
    made_up.fails = CL_DEVICE_GLOBAL_MEM_SIZE;
    OK(device_list(&made_up_opencl, false, &list, &count, &error));
    assert_int_equal(count, 2);
    assert_int_equal(list[0].fault, CL_OUT_OF_RESOURCES);
    assert_string_equal(device_unusable(&list[0]), "it does not answer queries");
    OK(device_select(list, count, NULL, &index, &error));
    assert_int_equal(index, 1);
    free(list);
}

/* It is the device that has failed, and not the choice of it: by whatever name, unless another is
 * meant. */
static void broken_device_is_chosen(void **state)
{
    (void)state;
    const struct {
        cl_device_info fails;
        const char *selector;
        enum healcl_status status;
    } cases[] = {
        {CL_DEVICE_GLOBAL_MEM_SIZE, "0:0", HEALCL_DEVICE},
        {CL_DEVICE_GLOBAL_MEM_SIZE, "padded", HEALCL_DEVICE},
        {CL_DEVICE_GLOBAL_MEM_SIZE, NULL, HEALCL_DEVICE},
        {CL_DEVICE_GLOBAL_MEM_SIZE, "other", HEALCL_USAGE},
        {CL_DEVICE_NAME, "padded", HEALCL_DEVICE},
        {CL_DEVICE_NAME, "cpu", HEALCL_DEVICE},
        {CL_DEVICE_NAME, "0:1", HEALCL_USAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct device_info *list = NULL;
        size_t count = 0, index = 0;
        char expected[192];
        set_made_up(1);
        made_up.fails = cases[i].fails;
        OK(device_list(&made_up_opencl, false, &list, &count, &error));
        assert_int_equal(device_select(list, count, cases[i].selector, &index, &error),
                         cases[i].status);
        const bool is_nameless = cases[i].fails == CL_DEVICE_NAME;
        snprintf(expected, sizeof expected,
                 "%s%s%sdevice 0:0 %scannot be used: clGetDeviceInfo failed: CL_OUT_OF_RESOURCES "
                 "(-5)",
                 is_nameless ? "no device that answers matches '" : "",
                 is_nameless ? cases[i].selector : "", is_nameless ? "'; " : "",
                 is_nameless ? "" : "padded name ");
        if (cases[i].status == HEALCL_DEVICE)
            assert_string_equal(error.message, expected);
        healcl_error_clear(&error);
        free(list);
    }
}

static void properties(void **state)
{
    (void)state;
    struct device_info *list = NULL;
    size_t count = 0;
    set_made_up(2);
    OK(device_list(&made_up_opencl, false, &list, &count, &error));
    assert_int_equal(count, 2);
    assert_string_equal(list[0].name, "padded name");
    assert_string_equal(list[0].platform, "Made up");
    assert_int_equal(list[0].fault, CL_SUCCESS);
    assert_string_equal(list[0].c_version, "");
    assert_string_equal(list[1].c_version, "OpenCL C 1.2 x");
    assert_int_equal(list[0].max_work_group_size, 64);
    free(list);
}

static void installed_devices(void **state)
{
    (void)state;
    struct device_info *list = NULL;
    size_t count = 0;
    OK(device_list(&opencl_loader, false, &list, &count, &error));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list[i].fault, CL_SUCCESS);
        assert_true(list[i].name[0] && list[i].platform[0] && list[i].max_allocation_bytes > 0);
    }
    free(list);
}

static void code_names(void **state)
{
    (void)state;
    assert_string_equal(opencl_error_name(CL_SUCCESS), "CL_SUCCESS");
    assert_string_equal(opencl_error_name(CL_INVALID_KERNEL_ARGS), "CL_INVALID_KERNEL_ARGS");
    assert_string_equal(opencl_error_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_string_equal(opencl_error_name(-9999), "unknown OpenCL error");
    assert_int_equal(opencl_error(NULL, -5, "clFlush", __FILE__, __LINE__), HEALCL_DEVICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(selectors),
        DEVICE_TEST(platforms_go_before_names),
        DEVICE_TEST(simulators_are_cpus),
        DEVICE_TEST(emulators_go_last),
        DEVICE_TEST(environment_selects),
        DEVICE_TEST(refused_selectors),
        DEVICE_TEST(long_lists_are_cut),
        DEVICE_TEST(unusable_devices),
        DEVICE_TEST(type_names),
        DEVICE_TEST(no_platform),
        DEVICE_TEST(platform_without_devices),
        DEVICE_TEST(broken_platform),
        DEVICE_TEST(broken_device),
        DEVICE_TEST(broken_device_is_chosen),
        DEVICE_TEST(properties),
        DEVICE_TEST(installed_devices),
        DEVICE_TEST(code_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
