/* Making a package. The same programs give the same bytes. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "opencl/package.h"

/* head: what stands before the data. Both stay until the zip is closed. */
static bool add_member(zip_t *zip, const char *name, char *head, unsigned char *data, size_t bytes)
{
    const zip_buffer_fragment_t parts[] = {{(zip_uint8_t *)head, strlen(head)}, {data, bytes}};
    const int first = *head ? 0 : 1; /* libzip crashes on empty parts */
    zip_source_t *source =
        zip_source_buffer_fragment(zip, parts + first, (zip_uint64_t)(2 - first), 0);
    const zip_int64_t index = source ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (source && index < 0)
        zip_source_free(source);
    /* Of no day: 1980-01-01, the first one that a zip knows. */
    return index >= 0 && zip_file_set_dostime(zip, (zip_uint64_t)index, 0, 0x21, 0) == 0;
}

static bool add_members(zip_t *zip, const struct package *package, char *manifest)
{
    char none[] = "", (*heads)[CACHE_HEAD_SIZE] = calloc(package->member_count + 1, sizeof *heads);
    bool good = heads &&
                add_member(zip, "manifest.json", none, (unsigned char *)manifest, strlen(manifest));
    for (size_t i = 0; good && i < package->member_count; i++) {
        const struct package_member *member = &package->members[i];
        (void)cache_head(member->name, member->data, member->bytes, heads[i]);
        good = add_member(zip, member->name, heads[i], member->data, member->bytes);
    }
    good = good && zip_close(zip) == 0;
    free(heads);
    return good;
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
