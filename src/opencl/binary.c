/*
 * Binaries of programs, as returned by clGetProgramInfo. If a cached one cannot be read or loaded,
 * the program is built from source.
 *
 * Getting a binary may be slow: some drivers compile every kernel of the program again. PoCL 3.1
 * does so for any local size: 80 ms for a small kernel, 1.7 s for a transform. A CPU's binaries are
 * therefore only cached in two cases. Either the self-test has found this to be fast, as with
 * Intel's driver (0.1 ms), or HEALCL_KEEP_BINARIES or `healcl compile --cache` asks for it.
 * Binaries of other devices are always cached. With PoCL's binaries, a run of the encrypted digits
 * takes 0.54 s of processor time on an empty cache of PoCL, and 7.9 s without.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/file.h"
#include "opencl/internal.h"

/* Creates a program from a binary and builds it. The caller releases *program. After an error it is
 * unchanged. */
static enum healcl_status binary_create(const struct healcl_device *device,
                                        const unsigned char *data, size_t bytes,
                                        const char *options, cl_program *program,
                                        struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    cl_int call_code = CL_SUCCESS, binary_code = CL_SUCCESS;
    cl_program id = cl->clCreateProgramWithBinary(device->context, 1, &device->info.device_id,
                                                  &bytes, &data, &binary_code, &call_code);
    TRY_CL(error, "clCreateProgramWithBinary", call_code);
    const char *function = "clCreateProgramWithBinary";
    cl_int code = binary_code;
    if (code == CL_SUCCESS) {
        function = "clBuildProgram";
        code = WAIT_CL(cl, clBuildProgram, id, 1, &device->info.device_id, options, NULL, NULL);
    }
    if (code != CL_SUCCESS)
        (void)cl->clReleaseProgram(id);
    TRY_CL(error, function, code);
    *program = id;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- in the cache */

/* Loads a program's binary from the cache of earlier runs. Returns false if none is cached, or the
 * driver rejects it. The caller then builds the program from source. */
bool binary_load(struct healcl_device *device, struct device_program *program, const char *options)
{
    size_t bytes = 0;
    unsigned char *data = cache_read(program->binary_name, &bytes);
    program->loaded = data && bytes > 0 &&
                      binary_create(device, data, bytes, options, &program->id, NULL) == HEALCL_OK;
    free(data);
    return program->loaded;
}

/* Returns the binary of a built program in new memory, which the caller frees. Some drivers compile
 * all kernels of the program again for this. */
enum healcl_status binary_get(const struct healcl_device *device, cl_program id,
                              unsigned char **binary, size_t *bytes, struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    *binary = NULL;
    *bytes = 0;
    TRY_CALL(error, cl, clGetProgramInfo, id, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL);
    if (*bytes == 0)
        FAIL(error, HEALCL_DEVICE, "the driver does not return its binary");
    unsigned char *data = calloc(1, *bytes);
    NEED_MEMORY(data, error);
    cl_int code = cl->clGetProgramInfo(id, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
    if (code != CL_SUCCESS) {
        free(data);
        return opencl_error(error, code, "clGetProgramInfo", __FILE__, __LINE__);
    }
    *binary = data;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- what they cost */

/* Measures whether getting the binary of a small program takes less than a 64th of building it.
 * Drivers that compile kernels again for a binary take far longer. */
static bool is_binary_cheap(const struct healcl_device *device)
{
    enum { CHEAP_FRACTION = 64 };
    const struct opencl *cl = device->cl;
    char text[128];
    const char *source = text; /* unique by the time in it: no driver's cache can have it */
    unsigned char *binary = NULL;
    size_t bytes = 0;
    cl_int code = CL_SUCCESS;
    snprintf(text, sizeof text, "kernel void add(global long *a) { a[get_global_id(0)] += %llu; }",
             (unsigned long long)monotonic_nanoseconds());
    cl_program id = cl->clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS)
        return false;
    const uint64_t build_start = monotonic_nanoseconds();
    code = WAIT_CL(cl, clBuildProgram, id, 1, &device->info.device_id, "", NULL, NULL);
    const uint64_t build_end = monotonic_nanoseconds();
    const bool is_cheap =
        code == CL_SUCCESS && binary_get(device, id, &binary, &bytes, NULL) == HEALCL_OK &&
        monotonic_nanoseconds() - build_end < (build_end - build_start) / CHEAP_FRACTION;
    free(binary);
    (void)cl->clReleaseProgram(id);
    return is_cheap;
}

/* Measures up to three times, and one good result is enough. On a busy machine another process may
 * run while one binary is read. */
bool binaries_are_cheap(const struct healcl_device *device)
{
    bool are_cheap = false;
    for (int attempt = 0; attempt < 3 && !are_cheap; attempt++)
        are_cheap = is_binary_cheap(device);
    return are_cheap;
}

/* Decides whether this handle caches binaries of programs that it builds. A CPU's driver may
 * compile everything again to return one, so a CPU's binaries are cached only if the self-test
 * found them cheap, or the user asks for it. */
void binaries_decide(struct healcl_device *device)
{
    const char *forced = getenv("HEALCL_KEEP_BINARIES");
    const bool is_worth_it = (forced && *forced) || device->info.binaries_are_cheap ||
                             !(device->info.type & CL_DEVICE_TYPE_CPU);
    char directory[CACHE_PATH_SIZE];
    device->programs->keeps_binaries =
        is_worth_it && !device->programs->package && cache_directory(directory);
}

/* ---------------------------------------------------------------- in a package */

/* In a package, one image may hold the kernels of all programs, as an FPGA's does. If another
 * program has loaded the image already, takes a reference to its cl_program. Otherwise, or if that
 * fails, returns false: the caller then loads the image. */
static bool share_image(const struct healcl_device *device, struct device_program *program)
{
    const struct device_program *loaded = device->shared->programs;
    while (loaded && !loaded->symbol_prefix)
        loaded = loaded->next;
    if (!loaded || device->cl->clRetainProgram(loaded->id) != CL_SUCCESS)
        return false;
    program->id = loaded->id;
    return true;
}

/* Loads a program from the handle's package: from the image shared by several programs, or from the
 * program's own binary. A package's program with a symbol prefix belongs to the image. */
enum healcl_status binary_load_packaged(struct healcl_device *device,
                                        struct device_program *program, struct healcl_error *error)
{
    const struct package *package = device->programs->package;
    const char *symbol_prefix = package_entry(package, "programs", program->key);
    const struct package_member *member =
        package_member(package, symbol_prefix ? PACKAGE_IMAGE : program->binary_name);
    if (!member)
        FAIL_FOR(error, HEALCL_DEVICE, UNSUPPORTED,
                 "program '%s' with options '%s' is not in " PATH_FORMAT
                 ": make another with healcl compile",
                 program->name, program->all_options, package->path);
    enum healcl_status status = HEALCL_OK;
    if (!symbol_prefix || !share_image(device, program))
        status = binary_create(device, member->data, member->bytes, "", &program->id, error);
    if (status != HEALCL_OK) {
        error_prefix(error, "program '%s' of " PATH_FORMAT ": ", program->name, package->path);
        if (error && !is_out_of_memory(error->opencl_code))
            error->cause = HEALCL_CAUSE_UNSUPPORTED;
        return status;
    }
    program->symbol_prefix = symbol_prefix;
    program->loaded = true;
    return HEALCL_OK;
}
