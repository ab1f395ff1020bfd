/* manifest.json. It is anybody's: every field is looked at, and named where it is wrong. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_tree.h"
#include "package/package.h"

enum {
    PROGRAMS_MOST = 4096,  /* the bundled transcripts have 43, with 280 kernels */
    KERNELS_MOST = 1024,   /* of a program */
    VALUES_MOST = 1 << 17, /* of the JSON, names among them: those have 1900 */
    TEXT_MOST = 4096,
    WHERE_SIZE = 64
};

/* ---------------------------------------------------------------- reading */

/* where: "programs[3]." or "" */
static enum healcl_status get_text(const cJSON *object, const char *where, const char *name,
                                   const char **text, struct healcl_error *error)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!value)
        REFUSE(error, "manifest.json: %s%s is missing", where, name);
    if (!cJSON_IsString(value))
        REFUSE(error, "manifest.json: %s%s is no string", where, name);
    if (strlen(value->valuestring) > TEXT_MOST)
        REFUSE(error, "manifest.json: %s%s has more than %d characters", where, name, TEXT_MOST);
    *text = value->valuestring;
    return HEALCL_OK;
}

static enum healcl_status get_number(const cJSON *object, const char *where, const char *name,
                                     uint64_t least, uint64_t most, uint64_t *number,
                                     struct healcl_error *error)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!value)
        REFUSE(error, "manifest.json: %s%s is missing", where, name);
    double d = cJSON_IsNumber(value) ? value->valuedouble : -1;
    if (!(d >= (double)least && d <= (double)most) || (double)(uint64_t)d != d)
        REFUSE(error, "manifest.json: %s%s is no integer from %llu to %llu", where, name,
               (unsigned long long)least, (unsigned long long)most);
    *number = (uint64_t)d;
    return HEALCL_OK;
}

static enum healcl_status get_hash(const cJSON *object, const char *where, const char *name,
                                   char hash[PACKAGE_HASH_SIZE], struct healcl_error *error)
{
    const char *text;
    TRY(get_text(object, where, name, &text, error));
    if (strlen(text) != PACKAGE_HASH_SIZE - 1 ||
        strspn(text, "0123456789abcdef") != PACKAGE_HASH_SIZE - 1)
        REFUSE(error, "manifest.json: %s%s is no hash of %d hexadecimal digits", where, name,
               PACKAGE_HASH_SIZE - 1);
    memcpy(hash, text, PACKAGE_HASH_SIZE);
    return HEALCL_OK;
}

/* An array, or object, of 1 to most elements. */
static enum healcl_status get_list(const cJSON *object, const char *where, const char *name,
                                   bool is_object, int most, const cJSON **list,
                                   struct healcl_error *error)
{
    *list = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!*list)
        REFUSE(error, "manifest.json: %s%s is missing", where, name);
    if (is_object ? !cJSON_IsObject(*list) : !cJSON_IsArray(*list))
        REFUSE(error, "manifest.json: %s%s is no %s", where, name, is_object ? "object" : "array");
    int count = cJSON_GetArraySize(*list);
    if (count < 1 || count > most)
        REFUSE(error, "manifest.json: %s%s has %d elements, not 1 to %d", where, name, count, most);
    return HEALCL_OK;
}

/* What a member of the zip may be called: it is never the name of a file elsewhere. */
static bool is_file_name(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length < PACKAGE_FILE_SIZE && *name != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
               length &&
           strcmp(name, "manifest.json") != 0;
}

/* hash and bytes may be missing, where an image is yet to be compiled. */
static enum healcl_status read_image(const cJSON *object, const char *where,
                                     struct package_image *image, struct healcl_error *error)
{
    const char *file;
    uint64_t bytes = 0;
    TRY(get_text(object, where, "file", &file, error));
    if (!is_file_name(file))
        REFUSE(error, "manifest.json: %sfile is '%.80s', no name of a member", where, file);
    memcpy(image->file, file, strlen(file) + 1);
    if (!cJSON_GetObjectItemCaseSensitive(object, "hash"))
        return HEALCL_OK;
    TRY(get_hash(object, where, "hash", image->hash, error));
    TRY(get_number(object, where, "bytes", 1, (uint64_t)1 << 40, &bytes, error));
    image->bytes = (size_t)bytes;
    return HEALCL_OK;
}

static enum healcl_status read_images(struct package *package, struct healcl_error *error)
{
    const cJSON *list, *object;
    TRY(get_list(package->manifest, "", "images", false, PROGRAMS_MOST, &list, error));
    package->images = calloc((size_t)cJSON_GetArraySize(list), sizeof *package->images);
    if (!package->images)
        NO_MEMORY(error);
    cJSON_ArrayForEach(object, list)
    {
        char where[WHERE_SIZE];
        struct package_image *image = &package->images[package->image_count];
        snprintf(where, sizeof where, "images[%zu].", package->image_count++);
        TRY(read_image(object, where, image, error));
        for (const struct package_image *before = package->images; before < image; before++)
            if (strcmp(before->file, image->file) == 0)
                REFUSE(error, "manifest.json: %sfile '%s' is listed twice", where, image->file);
    }
    return HEALCL_OK;
}

static enum healcl_status read_kernels(const cJSON *object, const char *where,
                                       struct package_program *program, struct healcl_error *error)
{
    const cJSON *list, *kernel;
    TRY(get_list(object, where, "kernels", true, KERNELS_MOST, &list, error));
    program->kernels = calloc((size_t)cJSON_GetArraySize(list), sizeof *program->kernels);
    if (!program->kernels)
        NO_MEMORY(error);
    cJSON_ArrayForEach(kernel, list)
    {
        if (!cJSON_IsString(kernel))
            REFUSE(error, "manifest.json: %skernels.%.80s is no string", where, kernel->string);
        program->kernels[program->kernel_count++] =
            (struct package_kernel){kernel->string, kernel->valuestring, NULL};
    }
    return HEALCL_OK;
}

/* What kernels take may be missing: of kernels that are no manifest's, and in older packages. */
static enum healcl_status read_arguments(const cJSON *object, const char *where,
                                         struct package_program *program,
                                         struct healcl_error *error)
{
    char place[WHERE_SIZE + 16];
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "arguments");
    if (!list)
        return HEALCL_OK;
    if (!cJSON_IsObject(list))
        REFUSE(error, "manifest.json: %sarguments is no object", where);
    snprintf(place, sizeof place, "%sarguments.", where);
    for (size_t i = 0; i < program->kernel_count; i++) {
        struct package_kernel *kernel = &program->kernels[i];
        if (cJSON_GetObjectItemCaseSensitive(list, kernel->name))
            TRY(get_text(list, place, kernel->name, &kernel->arguments, error));
    }
    return HEALCL_OK;
}

static enum healcl_status read_program(const struct package *package, const cJSON *object,
                                       const char *where, struct package_program *program,
                                       struct healcl_error *error)
{
    uint64_t image;
    TRY(get_text(object, where, "name", &program->name, error));
    TRY(get_text(object, where, "options", &program->options, error));
    TRY(get_hash(object, where, "source", program->source, error));
    TRY(get_number(object, where, "local_size", 1, UINT32_MAX, &program->local_size, error));
    TRY(get_number(object, where, "image", 0, package->image_count - 1, &image, error));
    program->image = (size_t)image;
    TRY(read_kernels(object, where, program, error));
    return read_arguments(object, where, program, error);
}

static enum healcl_status read_programs(struct package *package, struct healcl_error *error)
{
    const cJSON *list, *object;
    TRY(get_list(package->manifest, "", "programs", false, PROGRAMS_MOST, &list, error));
    package->programs = calloc((size_t)cJSON_GetArraySize(list), sizeof *package->programs);
    if (!package->programs)
        NO_MEMORY(error);
    cJSON_ArrayForEach(object, list)
    {
        char where[WHERE_SIZE];
        struct package_program *program = &package->programs[package->program_count];
        snprintf(where, sizeof where, "programs[%zu].", package->program_count++);
        TRY(read_program(package, object, where, program, error));
    }
    return HEALCL_OK;
}

enum healcl_status package_read_manifest(struct package *package, const char *text, size_t bytes,
                                         struct healcl_error *error)
{
    const char *format;
    size_t stop;
    uint64_t abi;
    const cJSON *device;
    TRY_PREFIX(json_tree_read(text, bytes, VALUES_MOST, &package->manifest, &stop, error),
               "manifest.json: ");
    if (!package->manifest)
        REFUSE(error, "manifest.json is no JSON, at byte %zu", stop);
    const cJSON *root = package->manifest;
    if (!cJSON_IsObject(root))
        REFUSE(error, "manifest.json is no object");
    TRY(get_text(root, "", "format", &format, error));
    if (strcmp(format, "healcl package") != 0)
        REFUSE(error, "manifest.json: format is '%.80s', not 'healcl package'", format);
    TRY(get_number(root, "", "abi", 0, UINT32_MAX, &abi, error));
    if (abi != PACKAGE_ABI)
        REFUSE(error, "it has ABI %llu, this healcl knows ABI %d: make one with healcl compile",
               (unsigned long long)abi, PACKAGE_ABI);
    TRY(get_list(root, "", "device", true, TEXT_MOST, &device, error));
    TRY(get_text(device, "device.", "platform", &package->platform, error));
    TRY(get_text(device, "device.", "name", &package->device, error));
    TRY(get_text(device, "device.", "driver", &package->driver, error));
    TRY(get_text(device, "device.", "version", &package->version, error));
    TRY(get_text(root, "", "tuning", &package->tuning, error));
    TRY(get_text(root, "", "choices", &package->choices, error));
    TRY(read_images(package, error));
    return read_programs(package, error);
}

/* ---------------------------------------------------------------- writing */

static void write_image(const struct package_image *image, cJSON *list)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list, object);
    cJSON_AddStringToObject(object, "file", image->file);
    if (!image->data)
        return;
    cJSON_AddNumberToObject(object, "bytes", (double)image->bytes);
    cJSON_AddStringToObject(object, "hash", image->hash);
}

static void write_program(const struct package_program *program, cJSON *list)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list, object);
    cJSON_AddStringToObject(object, "name", program->name);
    cJSON_AddStringToObject(object, "options", program->options);
    cJSON_AddStringToObject(object, "source", program->source);
    cJSON_AddNumberToObject(object, "local_size", (double)program->local_size);
    cJSON_AddNumberToObject(object, "image", (double)program->image);
    cJSON *kernels = cJSON_AddObjectToObject(object, "kernels");
    for (size_t i = 0; i < program->kernel_count; i++)
        cJSON_AddStringToObject(kernels, program->kernels[i].name, program->kernels[i].symbol);
    cJSON *arguments = NULL;
    for (size_t i = 0; i < program->kernel_count; i++) {
        if (!program->kernels[i].arguments)
            continue;
        if (!arguments)
            arguments = cJSON_AddObjectToObject(object, "arguments");
        cJSON_AddStringToObject(arguments, program->kernels[i].name, program->kernels[i].arguments);
    }
}

char *package_manifest(const struct package *package)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "format", "healcl package");
    cJSON_AddNumberToObject(root, "abi", PACKAGE_ABI);
    cJSON_AddStringToObject(root, "healcl", HEALCL_VERSION);
    cJSON *device = cJSON_AddObjectToObject(root, "device");
    cJSON_AddStringToObject(device, "platform", package->platform);
    cJSON_AddStringToObject(device, "name", package->device);
    cJSON_AddStringToObject(device, "driver", package->driver);
    cJSON_AddStringToObject(device, "version", package->version);
    cJSON_AddStringToObject(root, "tuning", package->tuning);
    cJSON_AddStringToObject(root, "choices", package->choices);
    cJSON *images = cJSON_AddArrayToObject(root, "images");
    for (size_t i = 0; i < package->image_count; i++)
        write_image(&package->images[i], images);
    cJSON *programs = cJSON_AddArrayToObject(root, "programs");
    for (size_t i = 0; i < package->program_count; i++)
        write_program(&package->programs[i], programs);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}
