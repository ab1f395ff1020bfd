#include "run/dump.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/new_file.h"
#include "transcript/npy.h"

struct dump {
    char *directory;
    cJSON *list;
};

enum {
    NAME_MAX_KEPT = 40,  /* characters of a tensor's name in a file's */
    FILE_NAME_SIZE = 96, /* "entry_NUMBER_NAME.npy" */
};

static const char list_name[] = "results.json";

/* "DIR/NAME", owned by the caller; NULL when out of memory. */
static char *path_in(const struct dump *dump, const char *name)
{
    size_t size = strlen(dump->directory) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", dump->directory, name);
    return path;
}

static enum healcl_status make_directory(const char *path, struct healcl_error *error)
{
    struct stat about;
    if (mkdir(path, 0777) == 0)
        return HEALCL_OK;
    int code = errno;
    if (code == EEXIST && stat(path, &about) == 0 && !S_ISDIR(about.st_mode))
        code = ENOTDIR;
    if (code != EEXIST)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot write to '%.480s': %s", path, strerror(code));
    return HEALCL_OK;
}

enum healcl_status dump_open(const char *directory, struct dump **result,
                             struct healcl_error *error)
{
    TRY(make_directory(directory, error));
    struct dump *dump = calloc(1, sizeof *dump);
    if (!dump)
        NO_MEMORY(error);
    dump->directory = strdup(directory);
    dump->list = cJSON_CreateArray();
    char *list = dump->directory && dump->list ? path_in(dump, list_name) : NULL;
    if (!list) {
        dump_close(dump);
        NO_MEMORY(error);
    }
    enum healcl_status status = HEALCL_OK;
    if (unlink(list) != 0 && errno != ENOENT)
        status = ERROR(error, HEALCL_USAGE, "cannot replace '%.480s': %s", list, strerror(errno));
    free(list);
    if (status != HEALCL_OK) {
        dump_close(dump);
        return status;
    }
    *result = dump;
    return HEALCL_OK;
}

void dump_close(struct dump *dump)
{
    if (!dump)
        return;
    cJSON_Delete(dump->list);
    free(dump->directory);
    free(dump);
}

/* ---------------------------------------------------------------- the list */

/* "entry_000208_NAME.npy", of the name only what is harmless in a file's. */
static void file_name(const struct step *step, char name[FILE_NAME_SIZE])
{
    char kept[NAME_MAX_KEPT + 1];
    size_t length = 0;
    for (const char *c = step->tensor_name; *c && length < NAME_MAX_KEPT; c++)
        if (*c != '"')
            kept[length++] = isalnum((unsigned char)*c) || *c == '-' ? *c : '_';
    kept[length] = 0;
    snprintf(name, FILE_NAME_SIZE, "entry_%06zu%s%s.npy", step_origin(step, NO_INPUT)->entry,
             length ? "_" : "", kept);
}

static enum healcl_status list_result(struct dump *dump, const struct step *step,
                                      const struct segment *segment, const char *file,
                                      enum dump_verified verified, struct healcl_error *error)
{
    const struct layout *layout = &step->in[0]->layout;
    char number[24];
    snprintf(number, sizeof number, "%zu", step_origin(step, NO_INPUT)->entry);
    cJSON *item = cJSON_CreateObject(), *shape = cJSON_CreateArray();
    bool whole = cJSON_AddRawToObject(item, "entry", number) &&
                 cJSON_AddStringToObject(item, "tensor", step->tensor_name) &&
                 cJSON_AddStringToObject(item, "file", file);
    for (uint32_t axis = 0; whole && axis < layout->rank; axis++) {
        snprintf(number, sizeof number, "%" PRId64, layout->shape[axis]);
        whole = cJSON_AddItemToArray(shape, cJSON_CreateRaw(number));
    }
    whole = whole && cJSON_AddItemToObject(item, "shape", shape);
    if (!whole)
        cJSON_Delete(shape);
    whole = whole &&
            cJSON_AddStringToObject(item, "dtype", dtype_name(step->in[0]->storage->dtype)) &&
            cJSON_AddStringToObject(item, "segment", segment->name) &&
            (verified == DUMP_NOT_COMPARED
                 ? cJSON_AddNullToObject(item, "verified")
                 : cJSON_AddBoolToObject(item, "verified", verified == DUMP_EQUAL)) &&
            cJSON_AddItemToArray(dump->list, item);
    if (!whole) {
        cJSON_Delete(item);
        NO_MEMORY(error);
    }
    return HEALCL_OK;
}

enum healcl_status dump_result(struct dump *dump, const struct step *step,
                               const struct segment *segment, const void *data,
                               enum dump_verified verified, struct healcl_error *error)
{
    char name[FILE_NAME_SIZE];
    file_name(step, name);
    char *path = path_in(dump, name);
    if (!path)
        NO_MEMORY(error);
    const struct tensor *tensor = step->in[0];
    enum healcl_status status =
        npy_write_file(path, tensor->storage->dtype, &tensor->layout, data, error);
    free(path);
    return status == HEALCL_OK ? list_result(dump, step, segment, name, verified, error) : status;
}

enum healcl_status dump_finish(struct dump *dump, struct healcl_error *error)
{
    char *text = cJSON_Print(dump->list), *path = path_in(dump, list_name);
    struct new_file file;
    enum healcl_status status = HEALCL_NO_MEMORY;
    if (text && path)
        status = new_file_open(&file, path, error);
    else
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK) {
        fprintf(file.stream, "%s\n", text);
        status = new_file_commit(&file, error);
    }
    cJSON_free(text);
    free(path);
    return status;
}
