/* Making a package. The same programs give the same bytes. */
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "package/package.h"

enum healcl_status package_add_image(struct package *package, unsigned char *data, size_t bytes,
                                     size_t *index, struct healcl_error *error)
{
    char hash[PACKAGE_HASH_SIZE];
    package_hash(data, bytes, hash);
    for (*index = 0; *index < package->image_count; (*index)++)
        if (strcmp(package->images[*index].hash, hash) == 0) {
            free(data);
            return HEALCL_OK;
        }
    struct package_image *longer =
        realloc(package->images, (package->image_count + 1) * sizeof *longer);
    if (!longer) {
        free(data);
        NO_MEMORY(error);
    }
    package->images = longer;
    struct package_image *image = &longer[package->image_count++];
    *image = (struct package_image){.data = data, .bytes = bytes};
    memcpy(image->hash, hash, sizeof hash);
    snprintf(image->file, sizeof image->file, "%s.bin", hash);
    return HEALCL_OK;
}

static bool add_member(zip_t *zip, const char *name, const void *data, size_t bytes)
{
    zip_source_t *source = zip_source_buffer(zip, data, bytes, 0);
    zip_int64_t index = source ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (source && index < 0)
        zip_source_free(source);
    /* Of no day: 1980-01-01, the first one that a zip knows. */
    return index >= 0 && zip_file_set_dostime(zip, (zip_uint64_t)index, 0, 0x21, 0) == 0;
}

static bool add_members(zip_t *zip, const struct package *package, const char *manifest)
{
    char comment[] = PACKAGE_SEAL "00000000000000000000000000000000";
    bool good = add_member(zip, "manifest.json", manifest, strlen(manifest));
    for (size_t i = 0; good && i < package->image_count; i++)
        good = add_member(zip, package->images[i].file, package->images[i].data,
                          package->images[i].bytes);
    return good && zip_set_archive_comment(zip, comment, (zip_uint16_t)strlen(comment)) == 0;
}

/* The bytes that a closed zip has left in its source. */
static unsigned char *take_bytes(zip_source_t *source, size_t *bytes)
{
    zip_stat_t about;
    if (zip_source_stat(source, &about) != 0 || !(about.valid & ZIP_STAT_SIZE) ||
        zip_source_open(source) != 0)
        return NULL;
    *bytes = (size_t)about.size;
    unsigned char *data = malloc(*bytes + 1);
    zip_int64_t got = data ? zip_source_read(source, data, *bytes) : -1;
    (void)zip_source_close(source);
    if (got >= 0 && (size_t)got == *bytes)
        return data;
    free(data);
    return NULL;
}

static unsigned char *make_zip(const struct package *package, const char *manifest, size_t *bytes)
{
    zip_error_t failure;
    unsigned char *data = NULL;
    zip_error_init(&failure);
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, &failure);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_TRUNCATE, &failure) : NULL;
    if (zip) {
        zip_source_keep(source);
        if (add_members(zip, package, manifest) && zip_close(zip) == 0)
            data = take_bytes(source, bytes);
        else
            zip_discard(zip);
    }
    if (source)
        zip_source_free(source);
    zip_error_fini(&failure);
    return data;
}

enum healcl_status package_write(const struct package *package, FILE *stream,
                                 struct healcl_error *error)
{
    size_t bytes = 0;
    char hash[PACKAGE_HASH_SIZE];
    char *manifest = package_manifest(package);
    unsigned char *data = manifest ? make_zip(package, manifest, &bytes) : NULL;
    free(manifest);
    if (!data || bytes < sizeof hash)
        NO_MEMORY(error);
    package_hash(data, bytes - (sizeof hash - 1), hash);
    memcpy(data + bytes - (sizeof hash - 1), hash, sizeof hash - 1);
    bool written = fwrite(data, 1, bytes, stream) == bytes;
    free(data);
    if (!written)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "a package of %zu bytes cannot be written", bytes);
    return HEALCL_OK;
}
