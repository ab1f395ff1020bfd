#include "core/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/registry.h"

/* is_written: the temporary file has been renamed; otherwise it is removed. */
static void new_file_release(struct new_file *file, bool is_written)
{
    if (file->temporary && !is_written)
        (void)unlink(file->temporary);
    if (file->temporary)
        temporary_forget(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct new_file){.stream = NULL};
}

static enum healcl_status cannot_write(const struct new_file *file, int code,
                                       struct healcl_error *error)
{
    if (code == ENOMEM)
        return ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot write '%.480s': %s", file->path, strerror(code));
}

enum healcl_status new_file_check(const char *path, struct healcl_error *error)
{
    char input[INPUT_NAME_SIZE];
    if (input_at(path, input))
        FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot write '%.400s': it is the input '%.400s'", path,
                 input);
    return HEALCL_OK;
}

static bool is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

static bool is_other_than_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

/* The name of the file that path refers to, with links resolved, because links are kept. The caller
 * frees it with free(). */
static char *resolve(const char *path)
{
    char *name = is_link(path) && !is_other_than_file(path) ? realpath(path, NULL) : NULL;
    return name ? name : strdup(path);
}

/* The descriptor 3 of "/dev/fd/3", which exists even without /proc; else -1. */
static int descriptor_of(const char *path)
{
    int descriptor;
    char more;
    return sscanf(path, "/dev/fd/%9d%c", &descriptor, &more) == 1 ? descriptor : -1;
}

/* Creates a file in the same folder, because a rename works only within one file system. Its name
 * begins with as much of the file's name as leaves room for the suffix. Returns a descriptor, or -1
 * with errno. */
static int create_temporary(struct new_file *file)
{
    enum { TRIES = 100, MARK_SIZE = 48 };
    const char *slash = strrchr(file->path, '/'), *base = slash ? slash + 1 : file->path;
    const size_t kept = (size_t)(base - file->path) + strnlen(base, NAME_MAX - MARK_SIZE);
    const size_t size = kept + MARK_SIZE;
    char *name = malloc(size);
    int descriptor = -1;
    errno = name ? EEXIST : ENOMEM;
    for (int i = 0; i < TRIES && descriptor < 0 && errno == EEXIST; i++) {
        snprintf(name, size, "%.*s.tmp-%ld-%d", (int)kept, file->path, (long)getpid(), i);
        descriptor = temporary_create(name, file->is_cached ? 0600 : 0666);
    }
    if (descriptor >= 0)
        file->temporary = name;
    else
        free(name);
    return descriptor;
}

/* A file must not replace a pipe or a device, except in a cache. */
static int open_descriptor(struct new_file *file)
{
    if (file->is_cached)
        return create_temporary(file);
    const bool is_nameless = is_link(file->path) && access(file->path, F_OK) == 0; /* /dev/stdout */
    const int given = descriptor_of(file->path);
    if (given >= 0)
        return fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (is_nameless || is_other_than_file(file->path))
        return open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return create_temporary(file);
}

static enum healcl_status open_as(struct new_file *file, const char *path, bool is_cached,
                                  struct healcl_error *error)
{
    *file =
        (struct new_file){.path = is_cached ? strdup(path) : resolve(path), .is_cached = is_cached};
    NEED_MEMORY(file->path, error);
    enum healcl_status status = is_cached ? HEALCL_OK : new_file_check(file->path, error);
    if (status != HEALCL_OK) {
        new_file_release(file, false);
        return status;
    }
    const int descriptor = open_descriptor(file);
    file->stream = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file->stream)
        return HEALCL_OK;
    const int code = errno;
    if (descriptor >= 0)
        close(descriptor);
    status = cannot_write(file, code, error);
    new_file_release(file, false);
    return status;
}

enum healcl_status new_file_open(struct new_file *file, const char *path,
                                 struct healcl_error *error)
{
    return open_as(file, path, false, error);
}

enum healcl_status new_file_open_cached(struct new_file *file, const char *path,
                                        struct healcl_error *error)
{
    return open_as(file, path, true, error);
}

enum healcl_status new_file_commit(struct new_file *file, struct healcl_error *error)
{
    int code = 0;
    bool has_failed = ferror(file->stream);
    enum healcl_status status = file->is_cached ? HEALCL_OK : new_file_check(file->path, error);
    errno = 0;
    if (has_failed)
        putc('\n', file->stream); /* repeats an earlier failed write, to get its errno */
    if (fflush(file->stream) != 0 || has_failed)
        code = errno ? errno : EIO;
    if (code == 0 && file->temporary && !file->is_cached && fsync(fileno(file->stream)) != 0)
        code = errno;
    if (fclose(file->stream) != 0 && code == 0)
        code = errno;
    if (code == 0 && status == HEALCL_OK && file->temporary &&
        rename(file->temporary, file->path) != 0)
        code = errno;
    if (status == HEALCL_OK && code != 0)
        status = cannot_write(file, code, error);
    new_file_release(file, status == HEALCL_OK);
    return status;
}

void new_file_discard(struct new_file *file)
{
    if (!file->stream)
        return;
    fclose(file->stream);
    new_file_release(file, false);
}
