#include "core/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum healcl_status file_open_regular(const char *path, int *file, struct healcl_error *error)
{
    struct stat about = {.st_size = 0};
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int code = *file < 0 || fstat(*file, &about) != 0 ? errno : 0;
    if (code == 0 && S_ISREG(about.st_mode))
        return HEALCL_OK;
    if (*file >= 0)
        close(*file);
    *file = -1;
    if (code == 0 && S_ISDIR(about.st_mode))
        code = EISDIR;
    FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path,
             code != 0 ? strerror(code) : "not a regular file");
}

static enum healcl_status read_descriptor(int file, const char *path, uint64_t most,
                                          unsigned char **data, size_t *bytes,
                                          struct healcl_error *error)
{
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size < 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT " cannot be read", path);
    if ((uint64_t)about.st_size > most)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT " is too large", path);
    const size_t size = (size_t)about.st_size;
    *data = malloc(size + 1);
    NEED_MEMORY(*data, error);
    for (*bytes = 0; *bytes < size;) {
        ssize_t got = read(file, *data + *bytes, size - *bytes);
        if (got <= 0)
            FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT " cannot be read", path);
        *bytes += (size_t)got;
    }
    (*data)[size] = 0;
    return HEALCL_OK;
}

enum healcl_status file_read(const char *path, uint64_t most, unsigned char **data, size_t *bytes,
                             struct healcl_error *error)
{
    int file;
    *data = NULL;
    TRY(file_open_regular(path, &file, error));
    enum healcl_status status = read_descriptor(file, path, most, data, bytes, error);
    close(file);
    if (status != HEALCL_OK) {
        free(*data);
        *data = NULL;
    }
    return status;
}

int file_is_json(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".json") == 0;
}

bool file_leads_out(const char *folder, const char *path)
{
    char *inside = realpath(folder, NULL), *there = inside ? realpath(path, NULL) : NULL;
    const size_t length = inside ? strlen(inside) : 0;
    const bool leads = there && (strncmp(there, inside, length) != 0 ||
                                 (length > 1 && there[length] != '/')); /* "/" has its own slash */
    free(there);
    free(inside);
    return leads;
}
