/*
 * Program binaries on disk. A file is a header and what clGetProgramInfo gave; the header's
 * checksum keeps a damaged file from a driver, which may not survive it. Nothing here is an error:
 * where a binary cannot be read or kept, the source is built.
 *
 * A binary has a price. Drivers with a cache of their own build a known source fast, and some
 * compile a program's every kernel once more for its binary: with PoCL 3.1 a source costs 90 ms,
 * 17 ms once it is known, its binary 1 ms, but getting that one 80 ms for each kernel. Others build
 * for seconds every time. So a file first only notes how long its source has taken so far, and a
 * binary is got once that is twelve times what its kernels may cost: after some runs on a driver
 * that builds for seconds, and not in one of the first hundred, whose user would notice, with PoCL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "device/internal.h"

/* Part of every key: to be raised where the same sources and options come to mean another binary.
 */
#define BINARY_ABI "healcl binary 1"

struct binary_header {
    char magic[16];
    uint64_t spent_nanoseconds; /* on building the source, in all runs */
    uint64_t bytes;             /* behind the header; 0: no binary yet */
    XXH128_canonical_t checksum;
};

static const char binary_magic[16] = BINARY_ABI;

void binary_key(const struct device_info *info, size_t text_count, const char *const *texts,
                const char *options, char key[CACHE_KEY_SIZE])
{
    cache_key(info, BINARY_ABI, options, text_count, texts, key);
}

/* ---------------------------------------------------------------- loading */

static FILE *open_header(const struct healcl_device *device, const char *key,
                         struct binary_header *header)
{
    char *path = cache_path(device->cache_directory, key);
    FILE *file = path ? cache_open(path) : NULL;
    free(path);
    if (!file)
        return NULL;
    if (fread(header, sizeof *header, 1, file) == 1 &&
        memcmp(header->magic, binary_magic, sizeof binary_magic) == 0)
        return file;
    fclose(file);
    return NULL;
}

/* The binary behind a header, or NULL. */
static unsigned char *read_binary(FILE *file, const struct binary_header *header)
{
    struct stat information;
    if (header->bytes == 0 || fstat(fileno(file), &information) != 0 ||
        (uint64_t)information.st_size - sizeof *header != header->bytes)
        return NULL;
    size_t bytes = (size_t)header->bytes;
    unsigned char *binary = malloc(bytes);
    if (!binary)
        return NULL;
    XXH128_canonical_t checksum;
    bool good = fread(binary, 1, bytes, file) == bytes;
    XXH128_canonicalFromHash(&checksum, XXH3_128bits(binary, good ? bytes : 0));
    if (good && memcmp(&checksum, &header->checksum, sizeof checksum) == 0)
        return binary;
    free(binary);
    return NULL;
}

static unsigned char *find_binary(const struct healcl_device *device, const char *key,
                                  size_t *bytes)
{
    struct binary_header header;
    FILE *file = open_header(device, key, &header);
    if (!file)
        return NULL;
    unsigned char *binary = read_binary(file, &header);
    *bytes = (size_t)header.bytes;
    fclose(file);
    return binary;
}

cl_program binary_load(struct healcl_device *device, const char *key, const char *options)
{
    const struct opencl *cl = device->cl;
    size_t bytes = 0;
    unsigned char *binary = find_binary(device, key, &bytes);
    if (!binary)
        return NULL;
    cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
    const unsigned char *binaries[] = {binary};
    cl_program program = cl->clCreateProgramWithBinary(device->context, 1, &device->info.device_id,
                                                       &bytes, binaries, &loaded, &code);
    free(binary);
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

static void write_file(const struct healcl_device *device, const char *key,
                       uint64_t spent_nanoseconds, const unsigned char *binary, size_t bytes)
{
    struct binary_header header = {.spent_nanoseconds = spent_nanoseconds, .bytes = bytes};
    memcpy(header.magic, binary_magic, sizeof header.magic);
    XXH128_canonicalFromHash(&header.checksum, XXH3_128bits(binary, bytes));
    const struct cache_part parts[] = {{&header, sizeof header}, {binary, bytes}};
    (void)cache_write(device->cache_directory, key, 2, parts);
}

uint64_t binary_note_build(const struct healcl_device *device, const char *key,
                           uint64_t nanoseconds)
{
    struct binary_header header;
    uint64_t spent = nanoseconds;
    FILE *file = open_header(device, key, &header);
    if (file) {
        /* A binary that was there and did not load is none. */
        if (header.bytes == 0 && header.spent_nanoseconds < UINT64_MAX - nanoseconds)
            spent += header.spent_nanoseconds;
        fclose(file);
    }
    write_file(device, key, spent, (const unsigned char *)"", 0);
    return spent;
}

void binary_remove(const struct healcl_device *device, const char *key)
{
    char *path = cache_path(device->cache_directory, key);
    if (path)
        (void)unlink(path);
    free(path);
}

void binary_save(struct healcl_device *device, const char *key, uint64_t spent_nanoseconds,
                 cl_program program)
{
    const struct opencl *cl = device->cl;
    size_t bytes = 0;
    if (cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0)
        return;
    unsigned char *binary = malloc(bytes);
    unsigned char *binaries[] = {binary};
    if (binary && cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binaries, binaries,
                                       NULL) == CL_SUCCESS)
        write_file(device, key, spent_nanoseconds, binary, bytes);
    free(binary);
}
