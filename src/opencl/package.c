/* Packages. They may come from anyone: reading checks every field, and names it if it is wrong. The
 * same programs produce the same bytes. */
#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include "opencl/package.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "core/file.h"
#include "core/json_tree.h"

static const uint64_t FILE_BYTES_MOST = (uint64_t)4 << 30;

/* Beyond UNPACKED_FREE bytes, all members together may be at most this many times as large as the
 * zip. */
static const uint64_t UNPACKED_MOST = 250, UNPACKED_FREE = 64 << 20;

enum {
    MEMBERS_MOST = 4096,   /* the bundled transcripts have 43 programs */
    VALUES_MOST = 1 << 17, /* JSON values, including names */
    TEXT_MOST = 4096
};

/* Frees a package, also one that was read only in part. NULL is ignored. */
void package_free(struct package *package)
{
    if (!package)
        return;
    for (size_t i = 0; i < package->member_count; i++)
        free(package->members[i].data);
    free(package->members);
    cJSON_Delete(package->manifest);
    free(package);
}

/* ---------------------------------------------------------------- manifest.json */

/* Fails unless a member of manifest.json is a string of limited length. where: the object that has
 * it, "device." or "", for the message. */
static enum healcl_status check_text(const cJSON *value, const char *where, const char *name,
                                     struct healcl_error *error)
{
    if (!value)
        REFUSE(error, "manifest.json: %s%s is missing", where, name);
    if (!cJSON_IsString(value) || strlen(value->valuestring) > TEXT_MOST)
        REFUSE(error, "manifest.json: %s%.80s is not a string of at most %d characters", where,
               name, TEXT_MOST);
    return HEALCL_OK;
}

/* Checks the object "programs", which may be missing. It maps keys of programs to prefixes of
 * kernels' names. */
static enum healcl_status check_programs(const cJSON *root, struct healcl_error *error)
{
    const cJSON *value, *list = cJSON_GetObjectItemCaseSensitive(root, "programs");
    if (list && !cJSON_IsObject(list))
        REFUSE(error, "manifest.json: programs is not an object");
    cJSON_ArrayForEach(value, list) TRY(check_text(value, "programs.", value->string, error));
    return HEALCL_OK;
}

static const char *const device_fields[] = {"platform", "name", "driver", "version"};
enum { DEVICE_FIELDS = sizeof device_fields / sizeof *device_fields };

/* Checks every field of manifest.json that is read later, so that reading needs no checks. Anyone
 * may have written the file. */
static enum healcl_status check_manifest(const cJSON *root, struct healcl_error *error)
{
    static const char *const texts[] = {"format", "tuning", "choices"};
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(root, "device");
    if (!cJSON_IsObject(root))
        REFUSE(error, "manifest.json is not an object");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TRY(check_text(cJSON_GetObjectItemCaseSensitive(root, texts[i]), "", texts[i], error));
    const char *format = cJSON_GetObjectItemCaseSensitive(root, "format")->valuestring;
    const cJSON *abi = cJSON_GetObjectItemCaseSensitive(root, "abi");
    if (strcmp(format, "healcl package") != 0)
        REFUSE(error, "manifest.json: format is '%.80s', not 'healcl package'", format);
    if (!cJSON_IsNumber(abi))
        REFUSE(error, "manifest.json: abi is not a number");
    if (abi->valuedouble != PACKAGE_ABI)
        REFUSE(error, "it has ABI %g, this healcl needs ABI %d: make another with healcl compile",
               abi->valuedouble, PACKAGE_ABI);
    if (!cJSON_IsObject(device))
        REFUSE(error, "manifest.json: device is not an object");
    for (size_t i = 0; i < DEVICE_FIELDS; i++)
        TRY(check_text(cJSON_GetObjectItemCaseSensitive(device, device_fields[i]), "device.",
                       device_fields[i], error));
    return check_programs(root, error);
}

/* Parses and checks the text of manifest.json. The package owns the parsed tree, also after an
 * error. */
enum healcl_status package_read_manifest(struct package *package, const char *text, size_t bytes,
                                         struct healcl_error *error)
{
    size_t stop;
    TRY_PREFIX(json_tree_read(text, bytes, VALUES_MOST, &package->manifest, &stop, error),
               "manifest.json: ");
    if (!package->manifest)
        REFUSE(error, "manifest.json is not JSON at byte %zu", stop);
    return check_manifest(package->manifest, error);
}

/* A text of the manifest that check_manifest has found to exist. */
const char *package_text(const struct package *package, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(package->manifest, name)->valuestring;
}

/* The text at a key of one of the manifest's objects, or NULL. */
const char *package_entry(const struct package *package, const char *object, const char *key)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(package->manifest, object);
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(list, key);
    return value ? value->valuestring : NULL;
}

/* Refuses a package that was compiled for another device or driver: its binaries may not load, or
 * compute something else. */
enum healcl_status package_check(const struct package *package, const struct device_info *info,
                                 struct healcl_error *error)
{
    const char *const expected[] = {info->platform, info->name, info->driver, info->version};
    static const char *const labels[] = {"platform", "device", "driver", "version"};
    for (size_t i = 0; i < DEVICE_FIELDS; i++) {
        const char *packaged = package_entry(package, "device", device_fields[i]);
        if (strcmp(packaged, expected[i]) != 0)
            REFUSE(error,
                   "package " PATH_FORMAT
                   " is for the %s '%.200s', not '%.200s': make another with healcl compile",
                   package->path, labels[i], packaged, expected[i]);
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the zip */

/* Sets the error of libzip: lack of memory, or a file that is refused. When memory runs out, libzip
 * may also report that the file is not a zip. errno must be 0 before libzip is called. */
static enum healcl_status zip_failed(zip_error_t *failure, const char *subject,
                                     struct healcl_error *error)
{
    if (zip_error_code_zip(failure) == ZIP_ER_MEMORY || errno == ENOMEM)
        NO_MEMORY(error);
    REFUSE(error, "%s: %s", subject, zip_error_strerror(failure));
}

/* Unpacks a member to `bytes` bytes of data. Asks for one byte more: only reading past the end
 * makes libzip verify its checksum. So data must have room for bytes + 1. */
static enum healcl_status unpack(zip_t *zip, zip_uint64_t index, const char *name,
                                 unsigned char *data, size_t bytes, struct healcl_error *error)
{
    errno = 0;
    zip_file_t *file = zip_fopen_index(zip, index, 0);
    if (!file)
        return zip_failed(zip_get_error(zip), name, error);
    const zip_int64_t unpacked = zip_fread(file, data, bytes + 1);
    enum healcl_status status = HEALCL_OK;
    if (unpacked < 0)
        status = zip_failed(zip_file_get_error(file), name, error);
    else if ((size_t)unpacked != bytes)
        status = ERROR(error, HEALCL_REFUSED, "%s is damaged", name);
    (void)zip_fclose(file);
    return status;
}

/* Whether the name of a member contains only characters of our own files, and is not too long. */
static bool has_own_name(const zip_stat_t *info)
{
    if (!(info->valid & ZIP_STAT_NAME) || strlen(info->name) >= CACHE_NAME_SIZE)
        return false;
    return info->name[strspn(info->name, "abcdefghijklmnopqrstuvwxyz0123456789_.")] == 0;
}

/* Reads one member of the zip into new memory. A small zip may unpack to any size, so sizes are
 * limited: `limit` bytes for this member, and *left bytes for this one and later ones. */
static enum healcl_status read_member(zip_t *zip, zip_uint64_t index, uint64_t limit,
                                      uint64_t *left, struct package_member *member,
                                      struct healcl_error *error)
{
    zip_stat_t info;
    errno = 0;
    if (zip_stat_index(zip, index, 0, &info) != 0)
        return zip_failed(zip_get_error(zip), "its list of members", error);
    if (!has_own_name(&info))
        REFUSE(error, "member %llu has a name unknown to healcl", (unsigned long long)index + 1);
    strcpy(member->name, info.name);
    limit = limit < *left ? limit : *left;
    if (!(info.valid & ZIP_STAT_SIZE) || info.size > limit)
        REFUSE(error, "%s unpacks to %llu bytes, more than the allowed %llu", member->name,
               (unsigned long long)info.size, (unsigned long long)limit);
    *left -= info.size;
    member->bytes = (size_t)info.size;
    member->data = calloc(1, member->bytes + 1);
    NEED_MEMORY(member->data, error);
    return unpack(zip, index, member->name, member->data, member->bytes, error);
}

/* Reads the first member of the zip, which must be manifest.json. */
static enum healcl_status read_manifest(zip_t *zip, struct package *package, uint64_t *left,
                                        struct healcl_error *error)
{
    struct package_member manifest = {.data = NULL};
    const zip_int64_t index = zip_name_locate(zip, "manifest.json", 0);
    if (index != 0)
        REFUSE(error, "it does not begin with manifest.json");
    enum healcl_status status =
        read_member(zip, 0, PACKAGE_MANIFEST_BYTES_MAX, left, &manifest, error);
    THEN(status,
         package_read_manifest(package, (const char *)manifest.data, manifest.bytes, error));
    free(manifest.data);
    return status;
}

/* Reads the manifest, then all other members, and checks the hash in each one's first line. left:
 * bytes that all together may unpack to. */
static enum healcl_status read_members(zip_t *zip, struct package *package, uint64_t left,
                                       struct healcl_error *error)
{
    const zip_int64_t count = zip_get_num_entries(zip, 0);
    TRY(read_manifest(zip, package, &left, error));
    if (count < 2 || count > MEMBERS_MOST)
        REFUSE(error, "it has %lld members, not 2 to %d", (long long)count, MEMBERS_MOST);
    package->members = calloc((size_t)count, sizeof *package->members);
    NEED_MEMORY(package->members, error);
    for (zip_uint64_t i = 1; i < (zip_uint64_t)count; i++) {
        struct package_member *member = &package->members[package->member_count++];
        TRY(read_member(zip, i, UINT64_MAX, &left, member, error));
        if (!cache_take_contents(member->name, member->data, &member->bytes))
            REFUSE(error, "%s is damaged, or is another file", member->name);
    }
    return HEALCL_OK;
}

/* Reads a package from the bytes of a zip. ZIP_CHECKCONS refuses a zip whose lists of members
 * contradict each other. After an error *package is NULL. */
enum healcl_status package_read_zip(const void *data, size_t bytes, struct package **package,
                                    struct healcl_error *error)
{
    zip_error_t failure;
    *package = calloc(1, sizeof **package);
    NEED_MEMORY(*package, error);
    zip_error_init(&failure);
    errno = 0;
    zip_source_t *source = zip_source_buffer_create(data, bytes, 0, &failure);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &failure) : NULL;
    enum healcl_status status;
    if (zip) {
        status = read_members(zip, *package, UNPACKED_FREE + bytes * UNPACKED_MOST, error);
        zip_discard(zip);
    } else {
        status = zip_failed(&failure, "it is not a valid zip file", error);
        zip_source_free(source);
    }
    zip_error_fini(&failure);
    if (status != HEALCL_OK) {
        package_free(*package);
        *package = NULL;
    }
    return status;
}

/* Reads a package file. Errors name the file. */
enum healcl_status package_read(const char *path, struct package **package,
                                struct healcl_error *error)
{
    unsigned char *data;
    size_t bytes;
    *package = NULL;
    TRY(file_read(path, FILE_BYTES_MOST, &data, &bytes, error));
    enum healcl_status status = package_read_zip(data, bytes, package, error);
    free(data);
    if (status == HEALCL_OK)
        snprintf((*package)->path, sizeof(*package)->path, "%s", path);
    if (status == HEALCL_REFUSED)
        error_prefix(error, "package " PATH_FORMAT ": ", path);
    return status;
}

/* The member with this name, or NULL. */
const struct package_member *package_member(const struct package *package, const char *name)
{
    for (size_t i = 0; i < package->member_count; i++)
        if (strcmp(package->members[i].name, name) == 0)
            return &package->members[i];
    return NULL;
}
