#include "opencl/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/new_file.h"

static const uint64_t CACHE_FILE_BYTES_MOST = (uint64_t)1 << 30;

/* ---------------------------------------------------------------- names */

/* Returns "<a>/<b>" in new memory, or NULL. */
static char *cache_join_path(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 2;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%s/%s", a, b);
    return text;
}

char *cache_directory(void)
{
    const char *own = getenv("HEALCL_CACHE_DIR");
    if (own)
        return *own ? strdup(own) : NULL;
    const char *cache = getenv("XDG_CACHE_HOME");
    if (cache && *cache == '/')
        return cache_join_path(cache, "healcl");
    const char *home = getenv("HOME");
    return home && *home == '/' ? cache_join_path(home, ".cache/healcl") : NULL;
}

/* Variables that drivers' compilers read. Other options produce other code, which may be several
 * times slower. */
static const char *const compiler_variables[] = {
    "POCL_EXTRA_BUILD_FLAGS",       "POCL_WORK_GROUP_METHOD",   "AMD_OCL_BUILD_OPTIONS",
    "AMD_OCL_BUILD_OPTIONS_APPEND", "CL_CONFIG_USE_VECTORIZER", "OCLGRIND_BUILD_OPTIONS",
};

void cache_name(const struct device_info *info, const char *kind, size_t count,
                const char *const *texts, char name[CACHE_NAME_SIZE])
{
    enum { OWN = 8, VARIABLES = sizeof compiler_variables / sizeof *compiler_variables };
    char hash[HASH_SIZE];
    const char *all[OWN + VARIABLES] = {
        info->platform, info->platform_version, info->vendor, info->name,
        info->version,  info->driver,           kind,         hash};
    hash_texts(count, texts, hash);
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(compiler_variables[i]);
        all[OWN + i] = value ? value : "";
    }
    char key[HASH_SIZE];
    hash_texts(OWN + VARIABLES, all, key);
    snprintf(name, CACHE_NAME_SIZE, "%.15s_%s", kind, key);
}

/* ---------------------------------------------------------------- reading */

size_t cache_head(const char *name, const void *data, size_t bytes, char head[CACHE_HEAD_SIZE])
{
    char hash[HASH_SIZE];
    hash_bytes(data, bytes, hash);
    return (size_t)snprintf(head, CACHE_HEAD_SIZE, "healcl kept 2 %.64s %s\n", name, hash);
}

bool cache_take_contents(const char *name, unsigned char *data, size_t *bytes)
{
    char head[CACHE_HEAD_SIZE];
    const unsigned char *line_end = memchr(data, '\n', *bytes);
    if (!line_end)
        return false;
    const size_t length = (size_t)(line_end - data) + 1, rest = *bytes - length;
    if (cache_head(name, data + length, rest, head) != length || memcmp(data, head, length) != 0)
        return false;
    memmove(data, data + length, rest);
    *bytes = rest;
    return true;
}

unsigned char *cache_read(const char *directory, const char *name, size_t *bytes)
{
    char *path = cache_join_path(directory, name);
    unsigned char *data = NULL;
    if (path && file_read(path, CACHE_FILE_BYTES_MOST, &data, bytes, NULL) == HEALCL_OK &&
        !cache_take_contents(name, data, bytes)) {
        free(data);
        data = NULL;
    }
    free(path);
    return data;
}

bool cache_has(const char *directory, const char *name)
{
    char *path = cache_join_path(directory, name);
    const bool has = path && access(path, R_OK) == 0;
    free(path);
    return has;
}

bool cache_read_text(const char *name, size_t size, char *text)
{
    size_t bytes = 0;
    char *directory = cache_directory();
    unsigned char *data = directory ? cache_read(directory, name, &bytes) : NULL;
    const bool good = data && bytes > 0 && bytes < size && !memchr(data, 0, bytes);
    if (good) {
        memcpy(text, data, bytes);
        text[bytes] = 0;
    }
    free(data);
    free(directory);
    return good;
}

/* ---------------------------------------------------------------- writing */

/* Creates all folders of path but its last part, as mkdir -p does. If this fails, creating the file
 * fails as well. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

bool cache_can_write(const char *directory)
{
    char *path = cache_join_path(directory, "");
    if (path)
        make_folders(path);
    free(path);
    return access(directory, W_OK) == 0;
}

static enum healcl_status cache_write_file(const char *path, const char *name, const void *data,
                                           size_t bytes, struct healcl_error *error)
{
    char head[CACHE_HEAD_SIZE];
    struct new_file file;
    TRY(new_file_open_cached(&file, path, error));
    fwrite(head, 1, cache_head(name, data, bytes, head), file.stream);
    fwrite(data, 1, bytes, file.stream);
    return new_file_commit(&file, error);
}

enum healcl_status cache_write(const char *directory, const char *name, const void *data,
                               size_t bytes, struct healcl_error *error)
{
    char *path = cache_join_path(directory, name);
    NEED_MEMORY(path, error);
    if (access(directory, F_OK) != 0)
        make_folders(path);
    enum healcl_status status = cache_write_file(path, name, data, bytes, error);
    free(path);
    return status;
}

enum healcl_status cache_write_text(const char *name, const char *text, char **path,
                                    struct healcl_error *error)
{
    char *directory = cache_directory();
    if (path)
        *path = NULL;
    if (!directory)
        return HEALCL_OK;
    enum healcl_status status = cache_write(directory, name, text, strlen(text), error);
    if (status == HEALCL_OK && path && !(*path = cache_join_path(directory, name)))
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    free(directory);
    return status;
}

int cache_lock(void)
{
    char *directory = cache_directory(),
         *path = directory ? cache_join_path(directory, "lock") : NULL;
    int file = -1;
    if (path) {
        make_folders(path);
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    if (file >= 0) /* on a file system without locks nothing is locked */
        (void)flock(file, LOCK_EX);
    free(path);
    free(directory);
    return file;
}

void cache_remove(const char *directory, const char *name)
{
    char *path = cache_join_path(directory, name);
    if (path)
        (void)unlink(path);
    free(path);
}
