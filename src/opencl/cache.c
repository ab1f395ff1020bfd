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

/* Writes the path of the folder of cached files. Returns false if nothing is cached, or the path is
 * too long. An empty HEALCL_CACHE_DIR turns caching off. Relative paths in XDG_CACHE_HOME and HOME
 * are ignored, as the XDG specification says. */
bool cache_directory(char path[CACHE_PATH_SIZE])
{
    const char *healcl_folder = getenv("HEALCL_CACHE_DIR");
    const char *user_folder = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length = 0;
    if (healcl_folder)
        length = snprintf(path, CACHE_PATH_SIZE, "%s", healcl_folder);
    else if (user_folder && *user_folder == '/')
        length = snprintf(path, CACHE_PATH_SIZE, "%s/healcl", user_folder);
    else if (home && *home == '/')
        length = snprintf(path, CACHE_PATH_SIZE, "%s/.cache/healcl", home);
    return length > 0 && length < CACHE_PATH_SIZE;
}

/* Writes the path of a cached file, whether the file exists or not. Returns false if nothing is
 * cached, or the path is too long. */
static bool cache_path(const char *name, char path[CACHE_PATH_SIZE])
{
    if (!cache_directory(path))
        return false;
    const size_t length = strlen(path), rest = CACHE_PATH_SIZE - length;
    return (size_t)snprintf(path + length, rest, "/%s", name) < rest;
}

/* Variables that drivers' compilers read. Other options produce other code, which may be several
 * times slower. */
static const char *const compiler_variables[] = {
    "POCL_EXTRA_BUILD_FLAGS",       "POCL_WORK_GROUP_METHOD",   "AMD_OCL_BUILD_OPTIONS",
    "AMD_OCL_BUILD_OPTIONS_APPEND", "CL_CONFIG_USE_VECTORIZER", "OCLGRIND_BUILD_OPTIONS",
};

/* Writes the name of a cached file: "<kind>_<hash>". The hash covers the device, its driver, the
 * texts, and the variables that its compiler reads. A new driver thus finds no old file. */
void cache_name(const struct device_info *info, const char *kind, size_t count,
                const char *const *texts, char name[CACHE_NAME_SIZE])
{
    enum { FIELDS = 8, VARIABLES = sizeof compiler_variables / sizeof *compiler_variables };
    char texts_hash[HASH_SIZE], name_hash[HASH_SIZE];
    const char *all[FIELDS + VARIABLES] = {
        info->platform, info->platform_version, info->vendor, info->name,
        info->version,  info->driver,           kind,         texts_hash};
    hash_texts(count, texts, texts_hash);
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(compiler_variables[i]);
        all[FIELDS + i] = value ? value : "";
    }
    hash_texts(FIELDS + VARIABLES, all, name_hash);
    snprintf(name, CACHE_NAME_SIZE, "%.15s_%s", kind, name_hash);
}

/* ---------------------------------------------------------------- reading */

/* Writes the first line of a cached file: its own name and a hash of the contents behind the line.
 * Returns the line's length. The 2 is the version of this format. */
size_t cache_head(const char *name, const void *data, size_t bytes, char head[CACHE_HEAD_SIZE])
{
    char hash[HASH_SIZE];
    hash_bytes(data, bytes, hash);
    return (size_t)snprintf(head, CACHE_HEAD_SIZE, "healcl kept 2 %.64s %s\n", name, hash);
}

/* Checks the first line of a file that was read whole, and moves the contents over that line.
 * Returns false if the file is damaged, or is another file under this name. */
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

/* Reads a cached file, and returns its contents without the first line in new memory. Returns NULL
 * if it is missing or damaged: the caller then computes the contents again. */
unsigned char *cache_read(const char *name, size_t *bytes)
{
    char path[CACHE_PATH_SIZE];
    unsigned char *data = NULL;
    if (cache_path(name, path) &&
        file_read(path, CACHE_FILE_BYTES_MOST, &data, bytes, NULL) == HEALCL_OK &&
        !cache_take_contents(name, data, bytes)) {
        free(data);
        data = NULL;
    }
    return data;
}

/* Whether a file is cached under this name. Its contents are not checked. */
bool cache_has(const char *name)
{
    char path[CACHE_PATH_SIZE];
    return cache_path(name, path) && access(path, R_OK) == 0;
}

/* Reads a cached text into a fixed array of `size` bytes, and ends it with a 0. Returns false if
 * the file is missing, or holds a 0, or is too long. */
bool cache_read_text(const char *name, size_t size, char *text)
{
    size_t bytes = 0;
    unsigned char *data = cache_read(name, &bytes);
    const bool is_text = data && bytes > 0 && bytes < size && !memchr(data, 0, bytes);
    if (is_text) {
        memcpy(text, data, bytes);
        text[bytes] = 0;
    }
    free(data);
    return is_text;
}

/* ---------------------------------------------------------------- writing */

/* Creates all folders of a path but its last part, as mkdir -p does. Cuts the path at each slash
 * for a moment. Errors are ignored: creating the file then fails as well. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

/* Whether files can be cached. Creates the folder if necessary. The path ends with a slash, so that
 * make_folders creates the folder itself too. */
bool cache_can_write(void)
{
    char path[CACHE_PATH_SIZE];
    if (!cache_path("", path))
        return false;
    make_folders(path);
    return access(path, W_OK) == 0;
}

/* Writes the first line and the contents. new_file_commit renames the file when it is complete, and
 * reports errors of the writes before it. */
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

/* Caches bytes under a name, and creates the folder if necessary. Other processes see the whole
 * file or none. Success without a folder is intended: the user has turned caching off. Then nothing
 * is written, and *path stays NULL. */
enum healcl_status cache_write(const char *name, const void *data, size_t bytes, char **path,
                               struct healcl_error *error)
{
    char file[CACHE_PATH_SIZE];
    if (path)
        *path = NULL;
    if (!cache_path(name, file))
        return HEALCL_OK;
    make_folders(file);
    TRY(cache_write_file(file, name, data, bytes, error));
    if (path) {
        *path = strdup(file);
        NEED_MEMORY(*path, error);
    }
    return HEALCL_OK;
}

/* Locks the folder of cached files against other processes. Returns an open file that holds the
 * lock until it is closed, or -1 if the folder cannot be written. */
int cache_lock(void)
{
    char path[CACHE_PATH_SIZE];
    if (!cache_path("lock", path))
        return -1;
    make_folders(path);
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    /* Fails on file systems without locks: processes may then undo each other's changes. */
    if (file >= 0)
        (void)flock(file, LOCK_EX);
    return file;
}

/* Removes a cached file, if it exists. Failure is harmless: readers check each file. */
void cache_remove(const char *name)
{
    char path[CACHE_PATH_SIZE];
    if (cache_path(name, path))
        (void)unlink(path);
}
