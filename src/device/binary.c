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
#include <errno.h>
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

/* ---------------------------------------------------------------- names */

/* "<a><b>" in new memory, or NULL. */
static char *join(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 1;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%s%s", a, b);
    return text;
}

char *binary_directory(void)
{
    const char *own = getenv("HEALCL_CACHE_DIR");
    if (own)
        return *own ? strdup(own) : NULL;
    const char *cache = getenv("XDG_CACHE_HOME");
    if (cache && *cache == '/')
        return join(cache, "/healcl");
    const char *home = getenv("HOME");
    return home && *home == '/' ? join(home, "/.cache/healcl") : NULL;
}

/* Hashes of hashes: no text can pass for the end of the one before it. */
static XXH128_hash_t add_text(XXH128_hash_t hash, const char *text)
{
    struct {
        XXH128_canonical_t before, text;
    } both;
    XXH128_canonicalFromHash(&both.before, hash);
    XXH128_canonicalFromHash(&both.text, XXH3_128bits(text, strlen(text)));
    return XXH3_128bits(&both, sizeof both);
}

void binary_key(const struct device_info *info, size_t text_count, const char *const *texts,
                const char *options, char key[BINARY_KEY_SIZE])
{
    const char *names[] = {BINARY_ABI, info->platform, info->platform_version, info->vendor,
                           info->name, info->version,  info->driver,           options};
    XXH128_hash_t hash = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hash = add_text(hash, names[i]);
    for (size_t i = 0; i < text_count; i++)
        hash = add_text(hash, texts[i]);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    for (size_t i = 0; i < sizeof canonical.digest; i++)
        snprintf(key + 2 * i, 3, "%02x", canonical.digest[i]);
}

/* "<directory>/<key>" */
static char *binary_path(const struct healcl_device *device, const char *key)
{
    char name[BINARY_KEY_SIZE + 1];
    snprintf(name, sizeof name, "/%s", key);
    return join(device->cache_directory, name);
}

/* ---------------------------------------------------------------- loading */

static FILE *open_header(const struct healcl_device *device, const char *key,
                         struct binary_header *header)
{
    char *path = binary_path(device, key);
    FILE *file = path ? fopen(path, "rb") : NULL;
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

/* mkdir -p */
static bool make_directory(const char *directory)
{
    if (mkdir(directory, 0700) == 0 || errno == EEXIST)
        return true;
    char *path = strdup(directory);
    if (!path)
        return false;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    free(path);
    return made;
}

static bool write_all(int descriptor, const void *data, size_t bytes)
{
    for (const char *next = data; bytes > 0;) {
        ssize_t written = write(descriptor, next, bytes);
        if (written <= 0)
            return false;
        next += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* Other processes see the whole file or none: it is written under another name. */
static void write_file(const struct healcl_device *device, const char *key,
                       uint64_t spent_nanoseconds, const unsigned char *binary, size_t bytes)
{
    struct binary_header header = {.spent_nanoseconds = spent_nanoseconds, .bytes = bytes};
    memcpy(header.magic, binary_magic, sizeof header.magic);
    XXH128_canonicalFromHash(&header.checksum, XXH3_128bits(binary, bytes));
    char *path = binary_path(device, key);
    char *temporary = path ? join(path, ".XXXXXX") : NULL;
    int descriptor = temporary && make_directory(device->cache_directory) ? mkstemp(temporary) : -1;
    if (descriptor >= 0) {
        bool written =
            write_all(descriptor, &header, sizeof header) && write_all(descriptor, binary, bytes);
        written = close(descriptor) == 0 && written;
        if (!written || rename(temporary, path) != 0)
            (void)unlink(temporary);
    }
    free(temporary);
    free(path);
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
