/* The folder of what is kept between runs: how its files are named and written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file.h"
#include "core/registry.h"
#include "device/internal.h"

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

char *cache_directory(void)
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

char *cache_path(const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
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

void cache_key(const struct device_info *info, const char *abi, const char *options,
               size_t text_count, const char *const *texts, char key[CACHE_KEY_SIZE])
{
    const char *names[] = {abi,        info->platform, info->platform_version, info->vendor,
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

/* ---------------------------------------------------------------- reading */

FILE *cache_open(const char *path)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int descriptor;
    FILE *file =
        file_open_regular(path, &descriptor, &error) == HEALCL_OK ? fdopen(descriptor, "r") : NULL;
    if (!file && descriptor >= 0)
        close(descriptor);
    healcl_error_clear(&error);
    return file;
}

bool cache_read_line(const char *path, size_t size, char *text)
{
    FILE *file = cache_open(path);
    if (!file)
        return false;
    bool read = fgets(text, (int)size, file) != NULL && fgetc(file) == EOF;
    fclose(file);
    size_t length = read ? strlen(text) : 0;
    if (length == 0 || text[length - 1] != '\n')
        return false; /* not ours, or not all of it */
    text[length - 1] = 0;
    return true;
}

/* ---------------------------------------------------------------- writing */

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

bool cache_write(const char *directory, const char *name, size_t count,
                 const struct cache_part *parts)
{
    char *path = cache_path(directory, name);
    char *temporary = path ? join(path, ".XXXXXX") : NULL;
    int descriptor =
        temporary && make_directory(directory) ? temporary_create_unique(temporary) : -1;
    bool written = descriptor >= 0;
    for (size_t i = 0; written && i < count; i++)
        written = write_all(descriptor, parts[i].data, parts[i].bytes);
    if (descriptor >= 0) {
        written = close(descriptor) == 0 && written;
        written = written && rename(temporary, path) == 0;
        if (!written)
            (void)unlink(temporary);
        temporary_forget(temporary);
    }
    free(temporary);
    free(path);
    return written;
}
