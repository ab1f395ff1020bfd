#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum healcl_status check_regular(int file, const char *path, struct healcl_error *error)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(EISDIR));
    if (!S_ISREG(about.st_mode))
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": not a regular file", path);
    return HEALCL_OK;
}

enum healcl_status file_open_regular(const char *path, int *file, struct healcl_error *error)
{
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*file < 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(errno));
    enum healcl_status status = check_regular(*file, path, error);
    if (status != HEALCL_OK) {
        close(*file);
        *file = -1;
    }
    return status;
}
