/* Lists devices, finds which of them can be used, and which one a selector names. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CL/cl_ext.h>

#include "core/numbers.h"
#include "opencl/internal.h"
#include "opencl/opening.h"

/* Kinds of devices. Without a selector, kinds of a higher rank are preferred. */
static const struct kind {
    cl_device_type type; /* 0: anything else */
    const char *name, *selector;
    int rank;
} kinds[] = {
    {CL_DEVICE_TYPE_CPU, "cpu", "cpu", 1},
    {CL_DEVICE_TYPE_GPU, "gpu", "gpu", 3},
    {CL_DEVICE_TYPE_ACCELERATOR, "accelerator", "acc", 2},
    {0, "other", NULL, 0},
};

/* The kind of a device. A simulator may report all kinds: it counts as a CPU if it reports this
 * kind, since it runs on the host. */
static const struct kind *device_kind(cl_device_type type)
{
    const struct kind *kind = kinds;
    while (kind->type && !(type & kind->type))
        kind++;
    return kind;
}

const char *device_type_name(cl_device_type type)
{
    return device_kind(type)->name;
}

/* ---------------------------------------------------------------- queries */

enum { TEXT_MAX = 2048, EXTENSIONS_MAX = 1 << 14, DIMENSIONS_MAX = 64 };

/* Copies a text from a driver into a field of `size` bytes, cut to fit, without the blanks that
 * some drivers put around it. */
static void copy_text(char *field, size_t size, const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strnlen(text, size - 1);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    memcpy(field, text, length);
    field[length] = 0;
}

/* Asks for a text about a platform, such as its name. Leaves the field as it is if the driver
 * fails. */
static cl_int platform_text(const struct opencl *cl, cl_platform_id platform, cl_platform_info what,
                            char *field, size_t size)
{
    char text[TEXT_MAX] = "";
    cl_int code = cl->clGetPlatformInfo(platform, what, sizeof text - 1, text, NULL);
    if (code == CL_SUCCESS)
        copy_text(field, size, text);
    return code;
}

/* A row asks the driver for one field of struct device_info. */
struct query {
    cl_device_info what;
    enum { QUERY_NUMBER, QUERY_TEXT } kind;
    size_t offset, size; /* of the field */
};

#define FIELD(name) offsetof(struct device_info, name), sizeof(((struct device_info *)0)->name)

static const struct query queries[] = {
    {CL_DEVICE_NAME, QUERY_TEXT, FIELD(name)},
    {CL_DEVICE_VENDOR, QUERY_TEXT, FIELD(vendor)},
    {CL_DRIVER_VERSION, QUERY_TEXT, FIELD(driver)},
    {CL_DEVICE_VERSION, QUERY_TEXT, FIELD(version)},
    {CL_DEVICE_OPENCL_C_VERSION, QUERY_TEXT, FIELD(c_version)},
    {CL_DEVICE_TYPE, QUERY_NUMBER, FIELD(type)},
    {CL_DEVICE_QUEUE_PROPERTIES, QUERY_NUMBER, FIELD(queue_properties)},
    {CL_DEVICE_MAX_COMPUTE_UNITS, QUERY_NUMBER, FIELD(compute_units)},
    {CL_DEVICE_MAX_CLOCK_FREQUENCY, QUERY_NUMBER, FIELD(clock_mhz)},
    {CL_DEVICE_GLOBAL_MEM_SIZE, QUERY_NUMBER, FIELD(global_memory_bytes)},
    {CL_DEVICE_MAX_MEM_ALLOC_SIZE, QUERY_NUMBER, FIELD(max_allocation_bytes)},
    {CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, QUERY_NUMBER, FIELD(cache_bytes)},
    {CL_DEVICE_LOCAL_MEM_SIZE, QUERY_NUMBER, FIELD(local_memory_bytes)},
    {CL_DEVICE_MAX_WORK_GROUP_SIZE, QUERY_NUMBER, FIELD(max_work_group_size)},
    {CL_DEVICE_MAX_PARAMETER_SIZE, QUERY_NUMBER, FIELD(max_parameter_bytes)},
    {CL_DEVICE_MEM_BASE_ADDR_ALIGN, QUERY_NUMBER, FIELD(base_alignment_bits)},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, QUERY_NUMBER, FIELD(double_width)},
    {CL_DEVICE_AVAILABLE, QUERY_NUMBER, FIELD(available)},
    {CL_DEVICE_COMPILER_AVAILABLE, QUERY_NUMBER, FIELD(compiler_available)},
    {CL_DEVICE_ENDIAN_LITTLE, QUERY_NUMBER, FIELD(little_endian)},
    {CL_DEVICE_HOST_UNIFIED_MEMORY, QUERY_NUMBER, FIELD(unified_memory)},
};

/* Asks the driver for the field of info that a row describes. Returns OpenCL's code. */
static cl_int query(const struct opencl *cl, struct device_info *info, const struct query *row)
{
    char *field = (char *)info + row->offset;
    char text[TEXT_MAX] = "";
    cl_int code;
    if (row->kind == QUERY_TEXT) {
        code = cl->clGetDeviceInfo(info->device_id, row->what, sizeof text - 1, text, NULL);
        copy_text(field, row->size, text);
    } else {
        code = cl->clGetDeviceInfo(info->device_id, row->what, row->size, field, NULL);
    }
    /* OpenCL 1.0 lacks these: then the field stays 0 or "". */
    const bool is_optional = row->what == CL_DEVICE_OPENCL_C_VERSION ||
                             row->what == CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE ||
                             row->what == CL_DEVICE_HOST_UNIFIED_MEMORY;
    return is_optional && code == CL_INVALID_VALUE ? CL_SUCCESS : code;
}

/* Sets info->architecture, by which files of tunings select devices. AMD's devices have it as their
 * name, "gfx90a:sramecc+:xnack-". NVIDIA's report it by an extension, as the two numbers of
 * "sm_90". Other devices get their name. */
static cl_int query_architecture(const struct opencl *cl, struct device_info *info)
{
    char extensions[EXTENSIONS_MAX] = "";
    cl_uint major = 0, minor = 0;
    snprintf(info->architecture, sizeof info->architecture, "%.*s", (int)strcspn(info->name, ":"),
             info->name);
    cl_int code = cl->clGetDeviceInfo(info->device_id, CL_DEVICE_EXTENSIONS, sizeof extensions - 1,
                                      extensions, NULL);
    if (code != CL_SUCCESS || !strstr(extensions, "cl_nv_device_attribute_query"))
        return code == CL_INVALID_VALUE ? CL_SUCCESS : code; /* the list may be too long */
    code = cl->clGetDeviceInfo(info->device_id, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, sizeof major,
                               &major, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetDeviceInfo(info->device_id, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV,
                                   sizeof minor, &minor, NULL);
    snprintf(info->architecture, sizeof info->architecture, "sm_%u%u", major, minor);
    return code;
}

/* Fills info with all that the driver reports about the device. Returns the code of the first query
 * that fails, after which the rest is unknown. */
static cl_int query_device(const struct opencl *cl, struct device_info *info)
{
    size_t item_sizes[DIMENSIONS_MAX]; /* the most work-items of a group in each dimension */
    cl_int code = CL_SUCCESS;
    for (size_t i = 0; code == CL_SUCCESS && i < sizeof queries / sizeof *queries; i++)
        code = query(cl, info, &queries[i]);
    if (code == CL_SUCCESS)
        code = cl->clGetDeviceInfo(info->device_id, CL_DEVICE_MAX_WORK_ITEM_SIZES,
                                   sizeof item_sizes, item_sizes, NULL);
    if (code == CL_SUCCESS)
        code = query_architecture(cl, info);
    /* Work-groups have one dimension here. Its limit may be lower than the limit for a whole
     * group. */
    if (code == CL_SUCCESS && item_sizes[0] < info->max_work_group_size)
        info->max_work_group_size = item_sizes[0];
    info->out_of_order = info->queue_properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return code;
}

/* ---------------------------------------------------------------- the list */

/* Adds a platform that cannot list its devices, with the call that failed and its code. Other
 * platforms stay usable, so this is not an error. common: what is known about the platform. */
static enum healcl_status add_fault(const struct device_info *common, const char *call, cl_int code,
                                    struct device_listing *listing, struct healcl_error *error)
{
    struct platform_fault *faults =
        realloc(listing->faults, (listing->fault_count + 1) * sizeof *faults);
    NEED_MEMORY(faults, error);
    listing->faults = faults;
    struct platform_fault *fault = &faults[listing->fault_count++];
    *fault = (struct platform_fault){
        .platform_index = common->platform_index, .call = call, .code = code};
    memcpy(fault->platform, common->platform, sizeof fault->platform);
    return HEALCL_OK;
}

/* Adds all devices of a platform to the list, each with what its driver reports. A device that
 * fails a query is listed too, with the fault. common: the fields that all of them share. */
static enum healcl_status add_devices(const struct opencl *cl, const struct device_info *common,
                                      const cl_device_id *ids, cl_uint count,
                                      struct device_listing *listing, struct healcl_error *error)
{
    struct device_info *devices =
        realloc(listing->devices, (listing->count + count) * sizeof *devices);
    NEED_MEMORY(devices, error);
    listing->devices = devices;
    for (cl_uint i = 0; i < count; i++) {
        struct device_info *info = &devices[listing->count++];
        *info = *common;
        info->device_index = i;
        info->device_id = ids[i];
        info->fault = query_device(cl, info);
    }
    return HEALCL_OK;
}

/* Adds the devices of one platform, or the reason why it does not list them. clGetDeviceIDs is
 * called twice: for the number of devices, then for their ids. A platform without devices is only
 * remembered by its name. */
static enum healcl_status list_platform(const struct opencl *cl, cl_platform_id platform,
                                        uint32_t platform_index, struct device_listing *listing,
                                        struct healcl_error *error)
{
    struct device_info common = {.platform_index = platform_index, .platform_id = platform};
    cl_uint count = 0;
    cl_device_id *ids = NULL;
    cl_int code =
        platform_text(cl, platform, CL_PLATFORM_NAME, common.platform, sizeof common.platform);
    if (code == CL_SUCCESS)
        code = platform_text(cl, platform, CL_PLATFORM_VERSION, common.platform_version,
                             sizeof common.platform_version);
    if (code != CL_SUCCESS)
        return add_fault(&common, "clGetPlatformInfo", code, listing, error);
    waiting_driver(common.platform);
    code = WAIT_CL(cl, clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && count == 0)) {
        if (!*listing->empty_platform)
            memcpy(listing->empty_platform, common.platform, sizeof listing->empty_platform);
        return HEALCL_OK;
    }
    if (code == CL_SUCCESS) {
        ids = calloc(count, sizeof *ids);
        NEED_MEMORY(ids, error);
        code = WAIT_CL(cl, clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, count, ids, NULL);
    }
    enum healcl_status status = code == CL_SUCCESS
                                    ? add_devices(cl, &common, ids, count, listing, error)
                                    : add_fault(&common, "clGetDeviceIDs", code, listing, error);
    free(ids);
    return status;
}

/* Lists the devices of all platforms. The system may have no platform, which some loaders report as
 * an error code: then the list is empty. */
static enum healcl_status list_platforms(const struct opencl *cl, struct device_listing *listing,
                                         struct healcl_error *error)
{
    *listing = (struct device_listing){.devices = NULL};
    if (cl == &opencl_loader)
        TRY(opencl_load(error));
    cl_uint count = 0;
    cl_int code = WAIT_CL(cl, clGetPlatformIDs, 0, NULL, &count);
    if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0))
        return HEALCL_OK;
    TRY_CL(error, "clGetPlatformIDs", code);
    cl_platform_id *platforms = calloc(count, sizeof *platforms);
    NEED_MEMORY(platforms, error);
    enum healcl_status status = HEALCL_OK;
    code = WAIT_CL(cl, clGetPlatformIDs, count, platforms, NULL);
    if (code != CL_SUCCESS)
        status = opencl_error(error, code, "clGetPlatformIDs", __FILE__, __LINE__);
    for (cl_uint i = 0; status == HEALCL_OK && i < count; i++)
        status = list_platform(cl, platforms[i], i, listing, error);
    free(platforms);
    return status;
}

/* Lists devices, then adds what earlier self-tests have found about each of them. Only the first
 * part needs the lock: some drivers crash if two threads list devices at once. */
enum healcl_status device_list_all(const struct opencl *cl, struct device_listing *listing,
                                   struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = list_platforms(cl, listing, error);
    opening_end();
    for (size_t i = 0; i < listing->count; i++)
        self_test_take_findings(&listing->devices[i]);
    return status;
}

void device_listing_release(struct device_listing *listing)
{
    free(listing->devices);
    free(listing->faults);
    *listing = (struct device_listing){.devices = NULL};
}

/* Whether a folder exists and files can be created in it, or whether it can be created. Tries that
 * in the nearest parent that exists: access() would claim that root can write to /proc. */
static bool can_use_folder(const char *folder)
{
    char path[4096], trial[sizeof path + 16];
    struct stat info;
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = path; slash && stat(path, &info) != 0;) {
        slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
    snprintf(trial, sizeof trial, "%s/healcl-XXXXXX", path);
    return mkdtemp(trial) && rmdir(trial) == 0;
}

enum { MISSING_SIZE = 400 };

/* Writes what a platform without a device may lack: "; HOME is not set: ...", or "". PoCL lists no
 * device if it cannot write its cache. It looks for the cache's folder in these three variables, in
 * this order. */
static void find_missing(char text[MISSING_SIZE])
{
    const char hint[] = "set POCL_CACHE_DIR to a folder for PoCL's cache";
    const char *variable = "HOME";
    if (getenv("POCL_CACHE_DIR"))
        variable = "POCL_CACHE_DIR";
    else if (getenv("XDG_CACHE_HOME"))
        variable = "XDG_CACHE_HOME";
    const char *folder = getenv(variable);
    snprintf(text, MISSING_SIZE, "%s", opencl_missing());
    if (*text)
        return;
    if (!folder)
        snprintf(text, MISSING_SIZE, "; %s is not set: %s", variable, hint);
    else if (!can_use_folder(folder))
        snprintf(text, MISSING_SIZE, "; %s is '%.200s', which cannot be written to: %s", variable,
                 folder, hint);
}

/* Explains an empty list: a platform failed, or the system lacks what a platform needs. Any device
 * at all makes the list good, since a broken platform must not make other platforms unusable. */
enum healcl_status device_listing_check(const struct device_listing *listing,
                                        struct healcl_error *error)
{
    char missing[MISSING_SIZE] = "";
    if (listing->count > 0)
        return HEALCL_OK;
    if (listing->fault_count > 0) {
        const struct platform_fault *fault = &listing->faults[0];
        (void)opencl_error(error, fault->code, fault->call, __FILE__, __LINE__);
        error_prefix(error, "platform %u %s: ", fault->platform_index, fault->platform);
        return HEALCL_DEVICE;
    }
    if (*listing->empty_platform)
        find_missing(missing);
    if (*missing)
        FAIL(error, HEALCL_DEVICE, "platform %s has no device%s", listing->empty_platform, missing);
    return HEALCL_OK;
}

/* Lists devices for a caller who needs just the array, which is then the caller's. An empty list
 * with a faulty platform is an error. packaged: programs come from a package, so devices without a
 * compiler can be used. */
enum healcl_status device_list(const struct opencl *cl, bool packaged, struct device_info **list,
                               size_t *count, struct healcl_error *error)
{
    struct device_listing listing;
    *list = NULL;
    *count = 0;
    enum healcl_status status = device_list_all(cl, &listing, error);
    THEN(status, device_listing_check(&listing, error));
    if (status == HEALCL_OK) {
        *list = listing.devices;
        *count = listing.count;
        listing.devices = NULL; /* they are the caller's now: do not free them */
        for (size_t i = 0; i < *count; i++)
            (*list)[i].packaged = packaged;
    }
    device_listing_release(&listing);
    return status;
}

/* ---------------------------------------------------------------- predicates */

/* Whether a compiler made for GPUs compiles for the host, as Mesa's llvmpipe does: its devices have
 * no doubles, or their loops end early. They are tuned as GPUs. */
bool device_emulates_gpu(const struct device_info *info)
{
    return device_kind(info->type)->type == CL_DEVICE_TYPE_CPU &&
           (info->double_width == 0 || info->loop_limit > 0);
}

/* Whether text contains part, regardless of case. */
static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; *text; text++)
        if (strncasecmp(text, part, length) == 0)
            return true;
    return false;
}

/* Whether a device is an emulator, a simulator or a software renderer. Tuned defaults and selection
 * treat these differently from hardware. */
bool device_is_emulator(const struct device_info *info)
{
    /* Words in names of such devices or their platforms, in any case. They cover Intel's FPGAs and
     * Xilinx's hw_emu, simulators, and renderers of Mesa and Google. */
    static const char *const words[] = {"emulat",    "oclgrind", "simulator",
                                        "gpgpu-sim", "llvmpipe", "softpipe",
                                        "swrast",    "lavapipe", "swiftshader"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (contains(info->name, words[i]) || contains(info->platform, words[i]))
            return true;
    return false;
}

/* The reason why a device cannot be used, as the end of a sentence, or NULL. Buffers are copied
 * without conversion, so the byte order must be the host's. */
const char *device_unusable(const struct device_info *info)
{
    if (info->fault != CL_SUCCESS)
        return "it does not answer queries";
    if (!info->available)
        return "it is not available";
    if (!info->compiler_available && !info->packaged)
        return "it has no compiler, so it needs a package from healcl compile";
    if ((info->little_endian != CL_FALSE) != host_is_little_endian())
        return "its byte order is not that of the host";
    return NULL;
}

/* Fails with the reason why a device cannot be used. If a query failed, the error has the name of
 * the call and OpenCL's code. */
enum healcl_status device_check_usable(const struct device_info *info, struct healcl_error *error)
{
    const char *reason = device_unusable(info), *separator = *info->name ? " " : "";
    if (!reason)
        return HEALCL_OK;
    enum healcl_status status =
        info->fault == CL_SUCCESS
            ? ERROR(error, HEALCL_USAGE, "%s", reason)
            : opencl_error(error, info->fault, "clGetDeviceInfo", __FILE__, __LINE__);
    error_prefix(error, "device %u:%u%s%s cannot be used: ", info->platform_index,
                 info->device_index, separator, info->name);
    return status;
}

/* ---------------------------------------------------------------- selection */

/* Parses a selector of two indices, "0:1": a platform and its device. */
static bool parse_indices(const char *selector, unsigned long *platform, unsigned long *device)
{
    if (!isdigit((unsigned char)*selector))
        return false;
    char *end = NULL;
    *platform = strtoul(selector, &end, 10);
    if (*end != ':' || !isdigit((unsigned char)end[1]))
        return false;
    *device = strtoul(end + 1, &end, 10);
    return *end == 0;
}

/* What follows "OpenCL 3.0 " in a platform's version: "PoCL 3.1 ...". The usual name of a platform
 * may occur only there. */
static const char *platform_release(const struct device_info *info)
{
    const char *blank = strchr(info->platform_version, ' ');
    blank = blank ? strchr(blank + 1, ' ') : NULL;
    return blank ? blank + 1 : "";
}

/* How well a selector matches a device; more is better. A match with the platform's name counts
 * more than one with the device's: "intel" is part of a processor's name with any driver, but
 * should select Intel's platform. MATCH_PERHAPS: the device could not report its name. */
enum match { MATCH_NONE, MATCH_PERHAPS, MATCH_NAME, MATCH_WHOLE };

/* How well a selector matches a device. Tries, in this order: two indices, a kind such as "gpu", a
 * part of the platform's name, a part of the device's name. Without a selector every device
 * matches. */
static enum match match_of(const struct device_info *info, const char *selector)
{
    if (!selector)
        return MATCH_WHOLE;
    unsigned long platform, device;
    if (parse_indices(selector, &platform, &device))
        return info->platform_index == platform && info->device_index == device ? MATCH_WHOLE
                                                                                : MATCH_NONE;
    if (info->fault != CL_SUCCESS && info->type == 0)
        return MATCH_PERHAPS;
    for (const struct kind *kind = kinds; kind->type; kind++)
        if (strcasecmp(selector, kind->name) == 0 || strcasecmp(selector, kind->selector) == 0)
            return device_kind(info->type) == kind ? MATCH_WHOLE : MATCH_NONE;
    if (contains(info->platform, selector) || contains(platform_release(info), selector))
        return MATCH_WHOLE;
    return contains(info->name, selector) ? MATCH_NAME : MATCH_NONE;
}

/* Whether device a is preferred to b if both match a selector equally well. Hardware comes before
 * emulators, then the rank of the kind decides, then the estimated speed. */
static bool is_better(const struct device_info *a, const struct device_info *b)
{
    if (device_is_emulator(a) != device_is_emulator(b))
        return device_is_emulator(b);
    const int rank_a = device_kind(a->type)->rank, rank_b = device_kind(b->type)->rank;
    if (rank_a != rank_b)
        return rank_a > rank_b;
    return (uint64_t)a->compute_units * a->clock_mhz > (uint64_t)b->compute_units * b->clock_mhz;
}

enum { DEVICES_TEXT_SIZE = 400 };

/* Lists devices for a message: "there is 0:0 name" or "there are 0:0 name, 1:0 name (it has no
 * compiler)". Long lists end with "...". */
static const char *devices_text(const struct device_info *list, size_t count,
                                char text[DEVICES_TEXT_SIZE])
{
    size_t length = (size_t)snprintf(text, DEVICES_TEXT_SIZE, "there %s", count > 1 ? "are" : "is");
    for (size_t i = 0; i < count && length < DEVICES_TEXT_SIZE; i++) {
        const char *obstacle = device_unusable(&list[i]);
        length += (size_t)snprintf(text + length, DEVICES_TEXT_SIZE - length, "%s %u:%u %s%s%s%s",
                                   i > 0 ? "," : "", list[i].platform_index, list[i].device_index,
                                   list[i].name, obstacle ? " (" : "", obstacle ? obstacle : "",
                                   obstacle ? ")" : "");
    }
    if (length >= DEVICES_TEXT_SIZE)
        strcpy(text + DEVICES_TEXT_SIZE - sizeof "...", "...");
    return text;
}

/* The device that best matches a selector, or NULL. usable: selects among usable devices, where
 * is_better decides between equal matches; otherwise among unusable ones, where the first wins. */
static const struct device_info *find_best(const struct device_info *list, size_t count,
                                           const char *selector, bool usable)
{
    const struct device_info *best = NULL;
    enum match best_match = MATCH_NONE;
    for (const struct device_info *info = list; info < list + count; info++) {
        const enum match match = match_of(info, selector);
        const bool is_usable = device_unusable(info) == NULL;
        if (match == MATCH_NONE || is_usable != usable)
            continue;
        if (match > best_match || (usable && match == best_match && is_better(info, best))) {
            best = info;
            best_match = match;
        }
    }
    return best;
}

/* The caller's selector, or that of HEALCL_DEVICE, or NULL if neither is set. */
static const char *effective_selector(const char *selector)
{
    if (!selector || !*selector)
        selector = getenv("HEALCL_DEVICE");
    return selector && *selector ? selector : NULL;
}

bool device_is_named(const char *selector)
{
    return effective_selector(selector) != NULL;
}

/* Whether the caller, or HEALCL_DEVICE, asks for the host reference in place of a device. */
bool device_is_reference(const char *selector)
{
    selector = effective_selector(selector);
    return selector && strcmp(selector, "reference") == 0;
}

/* Finds the device that a selector names. If a device matches but cannot be used, the error says
 * why; if nothing matches, it lists the devices. */
enum healcl_status device_select(const struct device_info *list, size_t count, const char *selector,
                                 size_t *index, struct healcl_error *error)
{
    const char *origin = selector && *selector ? "" : " (from HEALCL_DEVICE)"; /* for messages */
    selector = effective_selector(selector);
    if (device_is_reference(selector))
        FAIL(error, HEALCL_USAGE,
             "'reference'%s names the host reference, but this needs an OpenCL device", origin);
    if (count == 0)
        FAIL(error, HEALCL_DEVICE,
             "no OpenCL platform with a device is installed (package pocl-opencl-icd provides one "
             "for CPUs)");
    const struct device_info *best = find_best(list, count, selector, true); /* usable */
    if (best) {
        *index = (size_t)(best - list);
        return HEALCL_OK;
    }
    char text[DEVICES_TEXT_SIZE];
    const struct device_info *unusable = find_best(list, count, selector, false);
    if (!unusable)
        FAIL(error, HEALCL_USAGE, "no device matches '%.80s'%s; %s", selector, origin,
             devices_text(list, count, text));
    if (!selector && unusable->fault == CL_SUCCESS)
        FAIL(error, HEALCL_USAGE, "no device can be used; %s", devices_text(list, count, text));
    enum healcl_status status = device_check_usable(unusable, error);
    if (match_of(unusable, selector) == MATCH_PERHAPS)
        error_prefix(error, "no device that answers matches '%.80s'%s; ", selector, origin);
    return status;
}
