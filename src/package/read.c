/* Reading a package: from a file, from memory, and from a folder that was emitted. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "core/file.h"
#include "package/package.h"

static const uint64_t FILE_BYTES_MOST = (uint64_t)4 << 30;

/* Together members may be no more than so many times as large as the zip, beyond some size. */
static const uint64_t UNPACKED_MOST = 250, UNPACKED_FREE = 64 << 20;

enum { SEAL_BYTES = sizeof PACKAGE_SEAL - 1 + PACKAGE_HASH_SIZE - 1 };

void package_free(struct package *package)
{
    if (!package)
        return;
    for (size_t i = 0; i < package->program_count; i++)
        free(package->programs[i].kernels);
    for (size_t i = 0; i < package->image_count; i++)
        free(package->images[i].data);
    free(package->programs);
    free(package->images);
    free(package->path);
    cJSON_Delete(package->manifest);
    free(package);
}

/* ---------------------------------------------------------------- files */

/* The whole of a regular file, freed with free(). */
static enum healcl_status read_descriptor(int file, const char *path, uint64_t most,
                                          unsigned char **data, size_t *bytes,
                                          struct healcl_error *error)
{
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size < 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot read " PATH_FORMAT, path);
    if ((uint64_t)about.st_size > most)
        REFUSE(error, PATH_FORMAT " has %lld bytes, more than %llu", path, (long long)about.st_size,
               (unsigned long long)most);
    size_t size = (size_t)about.st_size;
    *data = malloc(size + 1);
    if (!*data)
        NO_MEMORY(error);
    for (*bytes = 0; *bytes < size;) {
        ssize_t got = read(file, *data + *bytes, size - *bytes);
        if (got <= 0)
            FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot read " PATH_FORMAT, path);
        *bytes += (size_t)got;
    }
    (*data)[size] = 0;
    return HEALCL_OK;
}

/* data is the caller's to free also where this fails. */
static enum healcl_status read_file(const char *path, uint64_t most, unsigned char **data,
                                    size_t *bytes, struct healcl_error *error)
{
    int file;
    *data = NULL;
    TRY(file_open_regular(path, &file, error));
    enum healcl_status status = read_descriptor(file, path, most, data, bytes, error);
    close(file);
    return status;
}

/* ---------------------------------------------------------------- the zip */

/* Why libzip failed: where memory ran out it may also say that the file is no zip. errno was 0. */
static bool is_memory(int code)
{
    return code == ZIP_ER_MEMORY || errno == ENOMEM;
}

/* A member that is to have so many bytes; 0: as many as it has. most, and left: that it may have.
 */
static enum healcl_status read_member(zip_t *zip, const char *name, uint64_t most, uint64_t *left,
                                      unsigned char **data, size_t *bytes,
                                      struct healcl_error *error)
{
    zip_stat_t about;
    zip_stat_init(&about);
    errno = 0;
    if (zip_stat(zip, name, 0, &about) != 0) {
        if (is_memory(zip_error_code_zip(zip_get_error(zip))))
            NO_MEMORY(error);
        REFUSE(error, "%s is missing", name);
    }
    if (most > *left)
        most = *left;
    if (!(about.valid & ZIP_STAT_SIZE) || about.size > most)
        REFUSE(error, "%s unpacks to %llu bytes, and may have %llu", name,
               (unsigned long long)about.size, (unsigned long long)most);
    *left -= about.size;
    if (*bytes != 0 && about.size != *bytes)
        REFUSE(error, "%s has %llu bytes, not %zu", name, (unsigned long long)about.size, *bytes);
    *bytes = (size_t)about.size;
    *data = calloc(1, *bytes + 1);
    if (!*data)
        NO_MEMORY(error);
    errno = 0;
    zip_file_t *file = zip_fopen(zip, name, 0);
    if (!file) {
        if (is_memory(zip_error_code_zip(zip_get_error(zip))))
            NO_MEMORY(error);
        REFUSE(error, "%s cannot be unpacked: %s", name, zip_strerror(zip));
    }
    /* What is asked for beyond the end makes libzip compare its checksum. */
    zip_int64_t got = zip_fread(file, *data, *bytes + 1);
    const bool no_memory = is_memory(zip_error_code_zip(zip_file_get_error(file)));
    int code = zip_fclose(file);
    if (got < 0 || (size_t)got != *bytes || code != 0) {
        if (no_memory || is_memory(code))
            NO_MEMORY(error);
        REFUSE(error, "%s cannot be unpacked: it is damaged", name);
    }
    return HEALCL_OK;
}

static enum healcl_status check_image(const struct package_image *image, struct healcl_error *error)
{
    char hash[PACKAGE_HASH_SIZE];
    package_hash(image->data, image->bytes, hash);
    if (strcmp(hash, image->hash) != 0)
        REFUSE(error, "%s has the hash %s, not %s", image->file, hash, image->hash);
    return HEALCL_OK;
}

static enum healcl_status read_members(zip_t *zip, struct package *package, uint64_t left,
                                       struct healcl_error *error)
{
    unsigned char *text = NULL;
    size_t bytes = 0;
    enum healcl_status status =
        read_member(zip, "manifest.json", PACKAGE_MANIFEST_BYTES_MAX, &left, &text, &bytes, error);
    if (status == HEALCL_OK)
        status = package_read_manifest(package, (const char *)text, bytes, error);
    free(text);
    TRY(status);
    zip_int64_t members = zip_get_num_entries(zip, 0);
    if (members < 0 || (uint64_t)members != package->image_count + 1)
        REFUSE(error, "it has %lld members, its manifest knows %zu", (long long)members,
               package->image_count + 1);
    for (size_t i = 0; i < package->image_count; i++) {
        struct package_image *image = &package->images[i];
        if (!*image->hash)
            REFUSE(error, "manifest.json: images[%zu].hash is missing", i);
        TRY(read_member(zip, image->file, UINT64_MAX, &left, &image->data, &image->bytes, error));
        TRY(check_image(image, error));
    }
    return HEALCL_OK;
}

enum healcl_status package_read_zip(const void *data, size_t bytes, struct package **package,
                                    struct healcl_error *error)
{
    zip_error_t failure;
    *package = calloc(1, sizeof **package);
    if (!*package)
        NO_MEMORY(error);
    zip_error_init(&failure);
    errno = 0;
    zip_source_t *source = zip_source_buffer_create(data, bytes, 0, &failure);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &failure) : NULL;
    enum healcl_status status = HEALCL_OK;
    if (!zip) {
        status = is_memory(zip_error_code_zip(&failure))
                     ? ERROR(error, HEALCL_NO_MEMORY, "out of memory")
                     : ERROR(error, HEALCL_REFUSED, "it is no good zip: %s",
                             zip_error_strerror(&failure));
        zip_source_free(source);
    } else {
        status = read_members(zip, *package, UNPACKED_FREE + bytes * UNPACKED_MOST, error);
        zip_discard(zip);
    }
    zip_error_fini(&failure);
    if (status != HEALCL_OK) {
        package_free(*package);
        *package = NULL;
    }
    return status;
}

/* ---------------------------------------------------------------- the file */

static enum healcl_status check_seal(const unsigned char *data, size_t bytes,
                                     struct healcl_error *error)
{
    char hash[PACKAGE_HASH_SIZE];
    if (bytes < SEAL_BYTES ||
        memcmp(data + bytes - SEAL_BYTES, PACKAGE_SEAL, sizeof PACKAGE_SEAL - 1) != 0)
        REFUSE(error, "it is no package of healcl, or its end is missing");
    package_hash(data, bytes - (PACKAGE_HASH_SIZE - 1), hash);
    if (memcmp(data + bytes - (PACKAGE_HASH_SIZE - 1), hash, PACKAGE_HASH_SIZE - 1) != 0)
        REFUSE(error, "it has been changed: its hash is not that of its bytes");
    return HEALCL_OK;
}

enum healcl_status package_read(const char *path, struct package **package,
                                struct healcl_error *error)
{
    unsigned char *data;
    size_t bytes;
    *package = NULL;
    enum healcl_status status = read_file(path, FILE_BYTES_MOST, &data, &bytes, error);
    if (status == HEALCL_OK)
        status = check_seal(data, bytes, error);
    if (status == HEALCL_OK)
        status = package_read_zip(data, bytes, package, error);
    free(data);
    if (status == HEALCL_OK && !((*package)->path = strdup(path))) {
        package_free(*package);
        *package = NULL;
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    }
    if (status == HEALCL_REFUSED)
        error_prefix(error, "package " PATH_FORMAT ": ", path);
    return status;
}

/* ---------------------------------------------------------------- a folder */

/* data is the caller's to free also where this fails. */
static enum healcl_status read_in_folder(const char *folder, const char *name, uint64_t most,
                                         unsigned char **data, size_t *bytes,
                                         struct healcl_error *error)
{
    char path[4096];
    *data = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "the path of " PATH_FORMAT " is too long", folder);
    return read_file(path, most, data, bytes, error);
}

static enum healcl_status read_folder(const char *folder, struct package *package,
                                      struct healcl_error *error)
{
    unsigned char *text;
    size_t bytes = 0;
    enum healcl_status status =
        read_in_folder(folder, "manifest.json", PACKAGE_MANIFEST_BYTES_MAX, &text, &bytes, error);
    if (status == HEALCL_OK)
        status = package_read_manifest(package, (const char *)text, bytes, error);
    free(text);
    TRY(status);
    for (size_t i = 0; i < package->image_count; i++) {
        struct package_image *image = &package->images[i];
        TRY(read_in_folder(folder, image->file, FILE_BYTES_MOST, &image->data, &image->bytes,
                           error));
        package_hash(image->data, image->bytes, image->hash);
    }
    return HEALCL_OK;
}

enum healcl_status package_read_folder(const char *folder, struct package **package,
                                       struct healcl_error *error)
{
    *package = calloc(1, sizeof **package);
    if (!*package)
        NO_MEMORY(error);
    enum healcl_status status = read_folder(folder, *package, error);
    if (status == HEALCL_OK)
        return HEALCL_OK;
    if (status == HEALCL_REFUSED)
        error_prefix(error, "folder " PATH_FORMAT ": ", folder);
    package_free(*package);
    *package = NULL;
    return status;
}
