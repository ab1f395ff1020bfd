#include "transcript/source.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/registry.h"
#include "transcript/unpack.h"

static enum healcl_status map_file(struct source *source, int file, const char *path,
                                   struct healcl_error *error)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(errno));
    if (about.st_size == 0)
        return HEALCL_OK;
    if ((uintmax_t)about.st_size > SIZE_MAX)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(EFBIG));

    size_t length = (size_t)about.st_size;
    void *text = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    if (text == MAP_FAILED && errno == ENOMEM)
        FAIL(error, HEALCL_NO_MEMORY, "its %zu bytes cannot be mapped: %s", length,
             strerror(errno));
    if (text == MAP_FAILED)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(errno));
    /* Only advice: a system that does not take it reads the file all the same. */
    (void)madvise(text, length, MADV_SEQUENTIAL);
    mapping_note(text, length, path);
    *source = (struct source){.text = text, .length = length, .mapped = true};
    return HEALCL_OK;
}

/* Maps an open file, which is closed here, unpacked if need be. path: for messages. */
static enum healcl_status open_file(struct source *source, int file, const char *path,
                                    struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    enum packing packing = packing_of(file);
    if (packing != PACKING_NONE) {
        int unpacked = -1;
        status = unpack(file, packing, &unpacked, error);
        close(file);
        file = unpacked;
    }
    if (status == HEALCL_OK)
        status = map_file(source, file, path, error);
    if (file >= 0)
        close(file);
    return status;
}

enum healcl_status source_open(struct source *source, const char *path, struct healcl_error *error)
{
    *source = (struct source){.text = NULL};
    int file;
    TRY(file_open_regular(path, &file, error));
    return open_file(source, file, path, error);
}

enum healcl_status source_open_memory(struct source *source, const void *data, size_t length,
                                      struct healcl_error *error)
{
    *source = (struct source){.text = data, .length = length};
    if (packing_of_bytes(data, length) == PACKING_NONE)
        return HEALCL_OK;
    *source = (struct source){.text = NULL};
    FILE *packed = tmpfile();
    if (!packed)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "no temporary file: %s", strerror(errno));
    int file = -1;
    if (fwrite(data, 1, length, packed) == length && fflush(packed) == 0)
        file = dup(fileno(packed));
    int code = errno;
    fclose(packed);
    if (file < 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "a temporary file of %zu bytes: %s", length,
                 strerror(code));
    return open_file(source, file, "(memory)", error);
}

void source_close(struct source *source)
{
    if (source->mapped) {
        mapping_forget(source->text);
        (void)munmap((void *)(uintptr_t)source->text, source->length);
    }
    *source = (struct source){.text = NULL};
}

void source_forget(const struct source *source, const char *begin, size_t length)
{
    /* In memory that is no mapped file the pages would come back as zeros. */
    if (!source->mapped)
        return;
    long page_size = sysconf(_SC_PAGESIZE);
    if (page_size <= 0)
        return;
    uintptr_t page = (uintptr_t)page_size;
    uintptr_t first = (uintptr_t)begin;
    uintptr_t end = first + length;
    /* The last page of the mapping goes too, though the file may end within it. */
    uintptr_t file_end = (uintptr_t)source->text + source->length;
    end = end == file_end ? end : end / page * page;
    first = (first + page - 1) / page * page;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_DONTNEED);
}
