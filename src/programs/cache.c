/*
 * The folder of what is kept between runs: how its files are named, written and read.
 *
 * A file is named by its kind and its key, a hash of all that it depends on, and holds that name in
 * its first line, with a hash of what follows:
 *
 *     healcl kept 1 tuning_00c0...ffee 6f0c...24a1
 *
 * So a file that somebody renames, or copies over another one, is as none, and so is a damaged one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file.h"
#include "core/new_file.h"
#include "programs/internal.h"

static const uint64_t CACHE_FILE_BYTES_MOST = (uint64_t)1 << 30;

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

static void format_hash(XXH128_hash_t hash, char text[CACHE_KEY_SIZE])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    for (size_t i = 0; i < sizeof canonical.digest; i++)
        snprintf(text + 2 * i, 3, "%02x", canonical.digest[i]);
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

/* What drivers' compilers take from the environment: with other options they make other code, which
 * may be several times as slow. */
static const char *const compiler_variables[] = {
    "POCL_EXTRA_BUILD_FLAGS",       "POCL_WORK_GROUP_METHOD",   "AMD_OCL_BUILD_OPTIONS",
    "AMD_OCL_BUILD_OPTIONS_APPEND", "CL_CONFIG_USE_VECTORIZER", "OCLGRIND_BUILD_OPTIONS",
};

void cache_key(const struct device_info *info, const char *abi, const char *options,
               size_t text_count, const char *const *texts, char key[CACHE_KEY_SIZE])
{
    const char *names[] = {abi,        info->platform, info->platform_version, info->vendor,
                           info->name, info->version,  info->driver,           options};
    XXH128_hash_t hash = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hash = add_text(hash, names[i]);
    for (size_t i = 0; i < sizeof compiler_variables / sizeof *compiler_variables; i++) {
        const char *value = getenv(compiler_variables[i]);
        hash = add_text(hash, value ? value : "");
    }
    for (size_t i = 0; i < text_count; i++)
        hash = add_text(hash, texts[i]);
    format_hash(hash, key);
}

/* ---------------------------------------------------------------- reading */

enum { CACHE_HEAD_SIZE = 160 };

/* The first line of a file. Returns its length, 0 where the name is too long. */
static size_t format_head(const char *name, XXH128_hash_t hash, char head[CACHE_HEAD_SIZE])
{
    char text[CACHE_KEY_SIZE];
    format_hash(hash, text);
    int length = snprintf(head, CACHE_HEAD_SIZE, "healcl kept 1 %s %s\n", name, text);
    return length < CACHE_HEAD_SIZE ? (size_t)length : 0;
}

/* The bytes of a file behind its first line, moved to the start of data, if that line is right. */
static bool take_contents(const char *name, unsigned char *data, size_t *bytes)
{
    char head[CACHE_HEAD_SIZE];
    const unsigned char *line_end = memchr(data, '\n', *bytes);
    size_t length = line_end ? (size_t)(line_end - data) + 1 : 0;
    XXH128_hash_t hash = XXH3_128bits(data + length, *bytes - length);
    if (length == 0 || format_head(name, hash, head) != length || memcmp(data, head, length) != 0)
        return false;
    *bytes -= length;
    memmove(data, data + length, *bytes);
    return true;
}

static unsigned char *read_contents(FILE *file, const char *name, size_t *bytes)
{
    struct stat about;
    if (fstat(fileno(file), &about) != 0 || about.st_size <= 0 ||
        (uint64_t)about.st_size > CACHE_FILE_BYTES_MOST)
        return NULL;
    *bytes = (size_t)about.st_size;
    unsigned char *data = malloc(*bytes);
    if (data && fread(data, 1, *bytes, file) == *bytes && take_contents(name, data, bytes))
        return data;
    free(data);
    return NULL;
}

/* A FIFO would wait for a writer. */
static FILE *open_regular(const char *path)
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

unsigned char *cache_read(const char *directory, const char *name, size_t *bytes)
{
    char *path = cache_path(directory, name);
    FILE *file = path ? open_regular(path) : NULL;
    unsigned char *data = file ? read_contents(file, name, bytes) : NULL;
    if (file)
        fclose(file);
    free(path);
    return data;
}

bool cache_read_line(const char *name, size_t size, char *text)
{
    size_t bytes = 0;
    char *directory = cache_directory();
    unsigned char *line = directory ? cache_read(directory, name, &bytes) : NULL;
    bool good = line && bytes > 0 && bytes <= size && memchr(line, '\n', bytes) == line + bytes - 1;
    if (good) {
        memcpy(text, line, bytes - 1);
        text[bytes - 1] = 0;
    }
    free(line);
    free(directory);
    return good;
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

static XXH128_hash_t hash_parts(size_t count, const struct cache_part *parts)
{
    XXH3_state_t *state = XXH3_createState();
    XXH128_hash_t hash = {0};
    if (!state)
        return hash; /* the file will be as damaged */
    (void)XXH3_128bits_reset(state);
    for (size_t i = 0; i < count; i++)
        (void)XXH3_128bits_update(state, parts[i].data, parts[i].bytes);
    hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

bool cache_write(const char *directory, const char *name, size_t count,
                 const struct cache_part *parts)
{
    char head[CACHE_HEAD_SIZE];
    struct new_file file;
    size_t length = format_head(name, hash_parts(count, parts), head);
    char *path = length > 0 ? cache_path(directory, name) : NULL;
    bool good =
        path && make_directory(directory) && new_file_open_cached(&file, path, NULL) == HEALCL_OK;
    if (good) {
        fwrite(head, 1, length, file.stream);
        for (size_t i = 0; i < count; i++)
            fwrite(parts[i].data, 1, parts[i].bytes, file.stream);
        good = new_file_commit(&file, NULL) == HEALCL_OK;
    }
    free(path);
    return good;
}
