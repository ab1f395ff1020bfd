#include "run/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/registry.h"

enum {
    PLACE_SIZE = 48, /* of ".tmp-PID-TRY" */
    TRIES = 100,
};

static void remove_temporary(struct new_file *file)
{
    if (!file->temporary)
        return;
    unlink(file->temporary);
    temporary_forget(file->temporary);
}

static void release(struct new_file *file)
{
    free(file->path);
    free(file->temporary);
    *file = (struct new_file){.stream = NULL};
}

static enum healcl_status cannot_write(const struct new_file *file, int code,
                                       struct healcl_error *error)
{
    return ERROR(error, HEALCL_USAGE, "cannot write '%.480s': %s", file->path, strerror(code));
}

/* A name beside the file's that nothing has yet: a rename works only within one file system. */
static int open_temporary(struct new_file *file)
{
    size_t size = strlen(file->path) + PLACE_SIZE;
    for (int i = 0; i < TRIES; i++) {
        snprintf(file->temporary, size, "%s.tmp-%ld-%d", file->path, (long)getpid(), i);
        int descriptor = temporary_create(file->temporary, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
    }
    return -1;
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

/* The name of the file that path is, or is a link to: the link is to stay. Freed with free(). */
static char *resolve(const char *path)
{
    char *name = is_link(path) && !is_other_than_file(path) ? realpath(path, NULL) : NULL;
    return name ? name : strdup(path);
}

static int open_descriptor(struct new_file *file)
{
    bool is_nameless = is_link(file->path) && access(file->path, F_OK) == 0; /* /dev/fd/1 */
    if (!is_nameless && !is_other_than_file(file->path))
        return open_temporary(file);
    /* A pipe or a device must not be replaced by a file. */
    free(file->temporary);
    file->temporary = NULL;
    return open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

enum healcl_status new_file_open(struct new_file *file, const char *path,
                                 struct healcl_error *error)
{
    *file = (struct new_file){.path = resolve(path)};
    file->temporary = file->path ? malloc(strlen(file->path) + PLACE_SIZE) : NULL;
    if (!file->temporary) {
        release(file);
        NO_MEMORY(error);
    }
    int descriptor = open_descriptor(file);
    int code = errno;
    if (descriptor >= 0) {
        file->stream = fdopen(descriptor, "w");
        if (file->stream)
            return HEALCL_OK;
        code = errno;
        close(descriptor);
        remove_temporary(file);
    }
    enum healcl_status status = cannot_write(file, code, error);
    release(file);
    return status;
}

enum healcl_status new_file_commit(struct new_file *file, struct healcl_error *error)
{
    int code = 0;
    bool has_failed = ferror(file->stream);
    errno = 0;
    if (has_failed)
        putc('\n', file->stream); /* what went wrong before is said by doing so again */
    if (fflush(file->stream) != 0 || has_failed)
        code = errno ? errno : EIO;
    if (fclose(file->stream) != 0 && code == 0)
        code = errno;
    if (code == 0 && file->temporary && rename(file->temporary, file->path) != 0)
        code = errno;
    enum healcl_status status = HEALCL_OK;
    if (code != 0) {
        remove_temporary(file);
        status = cannot_write(file, code, error);
    } else if (file->temporary) {
        temporary_forget(file->temporary);
    }
    release(file);
    return status;
}

void new_file_discard(struct new_file *file)
{
    if (!file->stream)
        return;
    fclose(file->stream);
    remove_temporary(file);
    release(file);
}
