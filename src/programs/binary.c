/*
 * Program binaries on disk: what clGetProgramInfo gave. cache.c keeps a damaged file from a driver,
 * which may not survive it. Where a binary cannot be read or loaded, the source is built.
 *
 * A binary has a price. Drivers with a cache of their own build a known source fast; others build
 * for seconds every time. And some compile every kernel of a program once more for its binary, with
 * PoCL 3.1 for any local size: 80 ms for a small kernel, 1.7 s for a transform. So a file first
 * only notes how long its source has taken so far, and a binary is got once that is a second for
 * each of the program's kernels.
 *
 * With PoCL that comes late, as it should: PoCL's own cache makes 17 ms of a source's 90. Where
 * that cache alone is lost before each run, six runs of the encrypted digits take 7.9, 7.4, 10.3,
 * 8.2, 3.1 and 3.1 s of processor time. They then have two binaries of seven, which the third run
 * and the fourth have paid for. The other programs have too many kernels for what they spend, and
 * only clBuildProgram counts: PoCL compiles for as long again at first launches. With all binaries
 * there a run takes 0.54 s. device_keep_binaries, for `healcl compile --cache`, gets them at once,
 * in 15 s.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "programs/internal.h"

/* Part of every key: to be raised where the same sources and options come to mean another binary.
 */
#define BINARY_ABI "healcl binary 2"

/* What a file begins with; behind it is the binary, or nothing yet. */
struct binary_note {
    uint64_t spent_nanoseconds; /* on building the source, in all runs */
};

void binary_name(const struct device_info *info, size_t text_count, const char *const *texts,
                 const char *options, char name[BINARY_NAME_SIZE])
{
    char key[CACHE_KEY_SIZE];
    cache_key(info, BINARY_ABI, options, text_count, texts, key);
    snprintf(name, BINARY_NAME_SIZE, "binary_%s", key);
}

/* ---------------------------------------------------------------- loading */

/* What a file holds, freed with free(), or NULL. */
static unsigned char *read_file(const struct healcl_device *device, const char *name,
                                struct binary_note *note, size_t *binary_bytes)
{
    size_t bytes = 0;
    unsigned char *data = cache_read(device->programs->cache_directory, name, &bytes);
    if (!data || bytes < sizeof *note) {
        free(data);
        return NULL;
    }
    memcpy(note, data, sizeof *note);
    *binary_bytes = bytes - sizeof *note;
    return data;
}

cl_program binary_load(struct healcl_device *device, const char *name, const char *options)
{
    const struct opencl *cl = device->cl;
    struct binary_note note;
    size_t bytes = 0;
    unsigned char *data = read_file(device, name, &note, &bytes);
    if (!data || bytes == 0) {
        free(data);
        return NULL;
    }
    cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
    const unsigned char *binaries[] = {data + sizeof note};
    cl_program program = cl->clCreateProgramWithBinary(device->context, 1, &device->info.device_id,
                                                       &bytes, binaries, &loaded, &code);
    free(data);
    if (code != CL_SUCCESS)
        return NULL;
    if (loaded == CL_SUCCESS)
        code = cl->clBuildProgram(program, 1, &device->info.device_id, options, NULL, NULL);
    if (loaded == CL_SUCCESS && code == CL_SUCCESS)
        return program;
    (void)cl->clReleaseProgram(program);
    return NULL;
}

/* ---------------------------------------------------------------- saving */

static bool write_file(const struct healcl_device *device, const char *name,
                       uint64_t spent_nanoseconds, const unsigned char *binary, size_t bytes)
{
    const struct binary_note note = {spent_nanoseconds};
    const struct cache_part parts[] = {{&note, sizeof note}, {binary, bytes}};
    return cache_write(device->programs->cache_directory, name, 2, parts);
}

uint64_t binary_note_build(const struct healcl_device *device, const char *name,
                           uint64_t nanoseconds)
{
    struct binary_note note;
    size_t bytes = 0;
    uint64_t spent = nanoseconds;
    unsigned char *data = read_file(device, name, &note, &bytes);
    /* A binary that was there and did not load is none. */
    if (data && bytes == 0 && note.spent_nanoseconds < UINT64_MAX - nanoseconds)
        spent += note.spent_nanoseconds;
    free(data);
    (void)write_file(device, name, spent, (const unsigned char *)"", 0);
    return spent;
}

void binary_remove(const struct healcl_device *device, const char *name)
{
    char *path = cache_path(device->programs->cache_directory, name);
    if (path)
        (void)unlink(path);
    free(path);
}

enum healcl_status binary_get(const struct healcl_device *device, cl_program program,
                              unsigned char **binary, size_t *bytes, struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    *binary = NULL;
    *bytes = 0;
    TRY_CL(error, "clGetProgramInfo",
           cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL));
    if (*bytes == 0)
        FAIL(error, HEALCL_DEVICE, "the driver gives no binary of it");
    unsigned char *data = calloc(1, *bytes);
    if (!data)
        NO_MEMORY(error);
    cl_int code = cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
    if (code != CL_SUCCESS) {
        free(data);
        return opencl_error(error, code, "clGetProgramInfo", __FILE__, __LINE__);
    }
    *binary = data;
    return HEALCL_OK;
}

enum healcl_status binary_save(const struct healcl_device *device, const char *name,
                               uint64_t spent_nanoseconds, cl_program program, size_t *bytes,
                               struct healcl_error *error)
{
    unsigned char *binary;
    TRY(binary_get(device, program, &binary, bytes, error));
    bool written = write_file(device, name, spent_nanoseconds, binary, *bytes);
    const int code = errno;
    free(binary);
    if (!written) {
        errno = code;
        FAIL_FILE(error, "cannot write '%.400s/%s': %s", device->programs->cache_directory, name,
                  strerror(code));
    }
    return HEALCL_OK;
}
