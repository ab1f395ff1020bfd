/* Making a package. The same programs give the same bytes. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "programs/package.h"

/* head: what stands before the data. */
static bool add_member(zip_t *zip, const char *name, const char *head, const void *data,
                       size_t bytes)
{
    const size_t length = strlen(head);
    char *all = malloc(length + bytes + 1);
    if (!all)
        return false;
    memcpy(all, head, length);
    memcpy(all + length, data, bytes);
    zip_source_t *source = zip_source_buffer(zip, all, length + bytes, 1);
    if (!source)
        free(all);
    const zip_int64_t index = source ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (source && index < 0)
        zip_source_free(source);
    /* Of no day: 1980-01-01, the first one that a zip knows. */
    return index >= 0 && zip_file_set_dostime(zip, (zip_uint64_t)index, 0, 0x21, 0) == 0;
}

static bool add_members(zip_t *zip, const struct package *package, const char *manifest)
{
    bool good = add_member(zip, "manifest.json", "", manifest, strlen(manifest));
    for (size_t i = 0; good && i < package->member_count; i++) {
        char head[CACHE_HEAD_SIZE];
        const struct package_member *member = &package->members[i];
        (void)cache_head(member->name, member->data, member->bytes, head);
        good = add_member(zip, member->name, head, member->data, member->bytes);
    }
    return good && zip_close(zip) == 0;
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
    const zip_int64_t got = data ? zip_source_read(source, data, *bytes) : -1;
    (void)zip_source_close(source);
    if (got >= 0 && (size_t)got == *bytes)
        return data;
    free(data);
    return NULL;
}

enum healcl_status package_write(const struct package *package, FILE *stream,
                                 struct healcl_error *error)
{
    size_t bytes = 0;
    unsigned char *data = NULL;
    char *manifest = cJSON_Print(package->manifest);
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_TRUNCATE, NULL) : NULL;
    if (zip) {
        zip_source_keep(source);
        if (manifest && add_members(zip, package, manifest))
            data = take_bytes(source, &bytes);
        else
            zip_discard(zip);
    }
    zip_source_free(source);
    free(manifest);
    if (!data)
        NO_MEMORY(error);
    const bool is_written = fwrite(data, 1, bytes, stream) == bytes;
    free(data);
    if (!is_written)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "a package of %zu bytes cannot be written", bytes);
    return HEALCL_OK;
}
