#include "transcript/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/json_tree.h"
#include "transcript/scan.h"
#include "transcript/value.h"

struct entry_reader {
    struct scanner scanner;
    cJSON *tree;           /* of the current entry, which refers to its strings */
    struct arena *arena;   /* the caller's */
    const char *operation; /* the name of the current operation, NULL before it is known */
    struct entry entry;
    char text[SCAN_TEXT_MAX + 1]; /* the scanner's text */
    /* Names of tensors, quoted. There is room for all names that an entry's text can contain. */
    char names[SCAN_TEXT_MAX + 1];
    size_t names_used;
};

static const char *const kind_names[] = {
    [ARGUMENT_DEVICE_TENSOR] = "DEVICE_TENSOR",
    [ARGUMENT_HOST_TENSOR] = "HOST_TENSOR",
    [ARGUMENT_SHAPE] = "SHAPE",
    [ARGUMENT_INT] = "INT",
    [ARGUMENT_NONE] = "NONE",
    [ARGUMENT_TENSOR_TYPE] = "TENSOR_TYPE",
    [ARGUMENT_SLICE] = "SLICE",
    [ARGUMENT_ELLIPSIS] = "ELLIPSIS",
};

enum { VALUES_MAX = 1 << 16 }; /* in an entry's JSON, including names */

enum { KIND_COUNT = sizeof kind_names / sizeof *kind_names };

const char *argument_kind_name(enum argument_kind kind)
{
    return kind_names[kind];
}

/* ---------------------------------------------------------------- values of arguments */

/*
 * Stores a tensor's name, spelled as entry.h describes. The entry's text holds every name in quotes
 * and with a mark before it, with escapes unresolved. So it is never shorter than what is stored
 * here.
 */
static enum healcl_status read_name(struct entry_reader *reader, const cJSON *value,
                                    const char *what, const char **name, struct healcl_error *error)
{
    char *kept = reader->names + reader->names_used;
    const size_t room = sizeof reader->names - reader->names_used;
    const char *text = value_text_or_null(value);
    int64_t integer = 0;
    if (!text)
        TRY(value_integer(value, what, &integer, error));
    const int length =
        text ? snprintf(kept, room, "\"%s\"", text) : snprintf(kept, room, "%" PRId64, integer);
    if (length < 0 || (size_t)length >= room)
        NO_MEMORY(error);
    reader->names_used += (size_t)length + 1;
    *name = kept;
    return HEALCL_OK;
}

/* "int64" or {"__type__":"dtype","value":"int64"}; in a tensor pointer also "torch.int64" */
static enum healcl_status entry_read_dtype(const cJSON *value, const char *what, bool in_pointer,
                                           enum dtype *dtype, struct healcl_error *error)
{
    const char *name;
    TRY(value_constant(value, "dtype", what, &name, error));
    bool is_prefixed = strncmp(name, "torch.", 6) == 0;
    if ((is_prefixed && !in_pointer) || !dtype_from_name(name, dtype))
        REFUSE(error, "dtype '%.80s' is not supported", name);
    return HEALCL_OK;
}

static enum healcl_status read_device_tensor(struct entry_reader *reader, const cJSON *value,
                                             struct argument *argument, struct healcl_error *error)
{
    const cJSON *name, *dtype;
    TRY(value_check_tag(value, "DeviceTensorPointer", error));
    TRY(value_member(value, "inf_name", &name, error));
    TRY(value_member(value, "dtype", &dtype, error));
    TRY(read_name(reader, name, "'inf_name'", &argument->tensor.name, error));
    argument->tensor.bound = NULL;
    argument->tensor.has_dtype = !value_is_nothing(dtype);
    if (!argument->tensor.has_dtype)
        return HEALCL_OK;
    return entry_read_dtype(dtype, "'dtype'", true, &argument->tensor.dtype, error);
}

/* {"type": "numpy", "dtype": "int64", "shape": [2, 3]}: a tensor whose data a caller supplies. */
static enum healcl_status read_declared_tensor(const cJSON *dtype, const cJSON *shape,
                                               struct argument *argument,
                                               struct healcl_error *error)
{
    enum dtype declared;
    int64_t sizes[MAX_RANK];
    uint32_t rank = 0;
    TRY(entry_read_dtype(dtype, "'dtype'", false, &declared, error));
    if (!cJSON_IsArray(shape))
        REFUSE(error, "'shape' is %s, not a list", value_kind(shape));
    for (const cJSON *size = shape->child; size; size = size->next) {
        if (rank == MAX_RANK)
            REFUSE(error, "a shape of rank above %d", MAX_RANK);
        TRY(value_integer(size, "a size in 'shape'", &sizes[rank++], error));
    }
    argument->host.present = true;
    return payload_declare(declared, rank, sizes, &argument->host.payload, error);
}

/* {"file": "digits.bin", "offset": 64, "bytes": 1376, "xxh3": "..."}: raw bytes of a .npy file,
 * stored in a file of the same folder. */
static enum healcl_status read_raw_tensor(const struct source *source, const cJSON *data,
                                          struct argument *argument, struct healcl_error *error)
{
    const struct source *file;
    const cJSON *value;
    const char *name, *expected;
    char hash[HASH_SIZE];
    int64_t offset, bytes;
    TRY(value_member(data, "file", &value, error));
    TRY(value_text(value, "'file'", &name, error));
    TRY(value_member(data, "offset", &value, error));
    TRY(value_integer(value, "'offset'", &offset, error));
    TRY(value_member(data, "bytes", &value, error));
    TRY(value_integer(value, "'bytes'", &bytes, error));
    TRY(value_member(data, "xxh3", &value, error));
    TRY(value_text(value, "'xxh3'", &expected, error));
    TRY(source_open_beside(source, name, &file, error));
    if (offset < 0 || bytes < 1 || (uint64_t)bytes > file->length ||
        (uint64_t)offset > file->length - (uint64_t)bytes)
        REFUSE_FOR(error, FILE, "'%.80s' has %zu bytes, not %" PRId64 " from byte %" PRId64 " on",
                   name, file->length, bytes, offset);
    hash_bytes(file->text + offset, (size_t)bytes, hash);
    source_forget(source, file->text + offset, (size_t)bytes);
    if (strcmp(hash, expected) != 0)
        REFUSE_FOR(error, FILE,
                   "'%.80s' has changed: %" PRId64 " bytes from byte %" PRId64
                   " on have another hash",
                   name, bytes, offset);
    argument->host.present = true;
    return payload_parse_raw(file->text + offset, (size_t)bytes, &argument->host.payload, error);
}

static enum healcl_status read_host_tensor(struct entry_reader *reader, const cJSON *value,
                                           struct argument *argument, struct healcl_error *error)
{
    const struct source *source = reader->scanner.source;
    const cJSON *tensor, *type, *data, *dtype, *shape;
    argument->host.present = false;
    if (value_is_nothing(value))
        return HEALCL_OK;
    TRY(value_check_tag(value, "HostTensor", error));
    TRY(value_member(value, "tensor_base64", &tensor, error));
    if (value_is_nothing(tensor))
        return HEALCL_OK;

    const char *type_name;
    TRY(value_member(tensor, "type", &type, error));
    TRY(value_text(type, "'type'", &type_name, error));
    if (strcmp(type_name, "numpy") != 0)
        REFUSE(error, "a host tensor of type '%.80s' is not supported, only 'numpy' is", type_name);
    size_t offset, length, good;
    TRY(value_member(tensor, "data", &data, error));
    TRY(value_member(tensor, "dtype", &dtype, error));
    TRY(value_member(tensor, "shape", &shape, error));
    if (value_is_nothing(data) && !value_is_nothing(shape))
        return read_declared_tensor(dtype, shape, argument, error);
    if (cJSON_IsObject(data))
        return read_raw_tensor(source, data, argument, error);
    TRY(value_span(data, "'data'", &offset, &length, &good, error));
    argument->host.present = true;
    return payload_parse(source->text + offset, length, good, reader->arena,
                         &argument->host.payload, error);
}

static enum healcl_status read_int(const cJSON *value, int64_t *integer, struct healcl_error *error)
{
    if (!cJSON_IsBool(value))
        return value_integer(value, "'value'", integer, error);
    *integer = cJSON_IsTrue(value);
    return HEALCL_OK;
}

static enum healcl_status read_bound(const cJSON *slice, const char *key, bool *given,
                                     int64_t *bound, struct healcl_error *error)
{
    const cJSON *value;
    char what[16];
    snprintf(what, sizeof what, "'%s'", key);
    TRY(value_member(slice, key, &value, error));
    *given = !value_is_nothing(value);
    return *given ? value_integer(value, what, bound, error) : HEALCL_OK;
}

static enum healcl_status read_slice(const cJSON *value, struct healcl_index *item,
                                     struct healcl_error *error)
{
    *item = (struct healcl_index){.kind = HEALCL_INDEX_SLICE};
    TRY(value_check_tag(value, "slice", error));
    TRY(read_bound(value, "start", &item->has_start, &item->start, error));
    TRY(read_bound(value, "stop", &item->has_stop, &item->stop, error));
    return read_bound(value, "step", &item->has_step, &item->step, error);
}

/* NONE and ELLIPSIS contain null, {}, only a tag, or nothing at all. */
static enum healcl_status check_empty(const cJSON *value, const char *tag,
                                      struct healcl_error *error)
{
    if (value_is_nothing(value))
        return HEALCL_OK;
    if (!cJSON_IsObject(value))
        REFUSE(error, "'value' is %s, not null", value_kind(value));
    TRY(value_check_tag(value, tag, error));
    for (const cJSON *member = value->child; member; member = member->next)
        if (strcmp(member->string, "__type__") != 0)
            REFUSE(error, "'value' is an object with the key '%.80s', not null", member->string);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- arguments */

/* The two keys of an ARG object. */
static enum healcl_status open_argument(const cJSON *object, enum argument_kind *kind,
                                        const cJSON **value, struct healcl_error *error)
{
    if (!cJSON_IsObject(object))
        REFUSE(error, "an argument is an object with 'arg_type' and 'value', not %s",
               value_kind(object));
    const cJSON *type;
    const char *name;
    TRY(value_check_tag(object, "DeviceOpArg", error));
    TRY(value_member(object, "arg_type", &type, error));
    TRY(value_constant(type, "DeviceOpArgType", "'arg_type'", &name, error));
    TRY(value_member(object, "value", value, error));
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(name, kind_names[i]) == 0) {
            *kind = (enum argument_kind)i;
            return HEALCL_OK;
        }
    REFUSE(error, "unknown argument type '%.80s'", name);
}

static enum healcl_status read_item(const cJSON *object, struct healcl_index *item,
                                    struct healcl_error *error)
{
    enum argument_kind kind;
    const cJSON *value;
    TRY(open_argument(object, &kind, &value, error));
    *item = (struct healcl_index){.kind = HEALCL_INDEX_INT};
    switch (kind) {
    case ARGUMENT_INT: return read_int(value, &item->value, error);
    case ARGUMENT_SLICE: return read_slice(value, item, error);
    case ARGUMENT_ELLIPSIS:
        item->kind = HEALCL_INDEX_ELLIPSIS;
        return check_empty(value, "ellipsis", error);
    default: REFUSE(error, "a %s is not allowed in a SHAPE", argument_kind_name(kind));
    }
}

static enum healcl_status entry_read_shape(const cJSON *list, struct argument *argument,
                                           struct healcl_error *error)
{
    if (!cJSON_IsArray(list))
        REFUSE(error, "'value' is %s, not a list", value_kind(list));
    argument->shape.count = 0;
    for (const cJSON *object = list->child; object; object = object->next) {
        uint32_t i = argument->shape.count;
        if (i == INDEX_ITEMS_MAX)
            REFUSE(error, "a SHAPE of more than %d items", INDEX_ITEMS_MAX);
        TRY_PREFIX(read_item(object, &argument->shape.items[i], error), "item %" PRIu32 ": ",
                   i + 1);
        argument->shape.count++;
    }
    return HEALCL_OK;
}

static enum healcl_status read_argument(struct entry_reader *reader, const cJSON *object,
                                        struct argument *argument, struct healcl_error *error)
{
    const cJSON *value;
    TRY(open_argument(object, &argument->kind, &value, error));
    switch (argument->kind) {
    case ARGUMENT_DEVICE_TENSOR: return read_device_tensor(reader, value, argument, error);
    case ARGUMENT_HOST_TENSOR: return read_host_tensor(reader, value, argument, error);
    case ARGUMENT_SHAPE: return entry_read_shape(value, argument, error);
    case ARGUMENT_INT: return read_int(value, &argument->integer, error);
    case ARGUMENT_NONE: return check_empty(value, "NoneType", error);
    case ARGUMENT_TENSOR_TYPE:
        return entry_read_dtype(value, "'value'", false, &argument->dtype, error);
    case ARGUMENT_SLICE: return read_slice(value, &argument->slice, error);
    case ARGUMENT_ELLIPSIS: break;
    }
    return check_empty(value, "ellipsis", error);
}

/* ---------------------------------------------------------------- operations */

static enum healcl_status entry_read_arguments(struct entry_reader *reader, const cJSON *list,
                                               struct healcl_error *error)
{
    struct entry *entry = &reader->entry;
    if (!cJSON_IsArray(list))
        REFUSE(error, "'args' is %s, not a list", value_kind(list));
    for (const cJSON *object = list->child; object; object = object->next) {
        uint32_t i = entry->argument_count++;
        if (i < ENTRY_ARGUMENTS_MAX)
            TRY_PREFIX(read_argument(reader, object, &entry->arguments[i], error),
                       "argument %" PRIu32 ": ", i + 1);
    }
    return HEALCL_OK;
}

static enum healcl_status entry_read_operation(struct entry_reader *reader, const cJSON *object,
                                               struct healcl_error *error)
{
    struct entry *entry = &reader->entry;
    const cJSON *name, *arguments, *out;
    entry->kind = ENTRY_OPERATION;
    TRY(value_member(object, "name", &name, error));
    TRY(value_text(name, "'name'", &entry->name, error));
    reader->operation = entry->name;
    TRY(value_check_tag(object, "DeviceOp", error));
    TRY(value_member(object, "args", &arguments, error));
    TRY(entry_read_arguments(reader, arguments, error));
    TRY(value_member(object, "out", &out, error));
    if (value_is_nothing(out))
        return HEALCL_OK;
    TRY_PREFIX(read_argument(reader, out, &entry->out, error), "out: ");
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- entries */

/* operation, freed, name: what an entry of the respective kind is about. */
static enum healcl_status entry_read_kind(struct entry_reader *reader, const char *kind,
                                          const cJSON *operation, const cJSON *freed,
                                          const cJSON *name, struct healcl_error *error)
{
    struct entry *entry = &reader->entry;
    if (strcmp(kind, "DEVICE_OP") == 0)
        return entry_read_operation(reader, operation, error);
    if (strcmp(kind, "FREE_DEVICE_TENSOR") == 0) {
        const cJSON *tensor;
        entry->kind = ENTRY_FREE;
        TRY(value_check_tag(freed, "FreeDeviceTensor", error));
        TRY(value_member(freed, "tensor_name", &tensor, error));
        return read_name(reader, tensor, "'tensor_name'", &entry->name, error);
    }
    if (strcmp(kind, "SEGMENT_START") == 0) {
        entry->kind = ENTRY_SEGMENT_START;
        return value_is_nothing(name) ? HEALCL_OK
                                      : value_text(name, "the segment's name", &entry->name, error);
    }
    if (strcmp(kind, "SEGMENT_END") != 0)
        REFUSE(error, "unknown kind of entry '%.80s'", kind);
    entry->kind = ENTRY_SEGMENT_END;
    return HEALCL_OK;
}

/* The tagged spelling: [KIND, PAYLOAD]. */
static enum healcl_status read_pair(struct entry_reader *reader, const cJSON *pair,
                                    struct healcl_error *error)
{
    const cJSON *constant = pair->child;
    const cJSON *payload = constant ? constant->next : NULL;
    if (!constant || (payload && payload->next))
        REFUSE(error, "an entry is a list of a kind and a payload, not of %d items",
               cJSON_GetArraySize(pair));
    if (cJSON_IsNull(constant)) {
        if (!value_is_nothing(payload))
            REFUSE(error, "the payload of an entry without kind is %s, not null",
                   value_kind(payload));
        reader->entry.kind = ENTRY_NOTHING;
        return HEALCL_OK;
    }

    const char *kind;
    TRY(value_constant(constant, "ExecutionTranscriptOpType", "the kind of entry", &kind, error));
    if (strcmp(kind, "SEGMENT_END") == 0 && !value_is_nothing(payload))
        REFUSE(error, "the payload of SEGMENT_END is %s, not null", value_kind(payload));
    return entry_read_kind(reader, kind, payload, payload, payload, error);
}

/* The plain spelling: {"type": KIND, ...}. */
static enum healcl_status read_object(struct entry_reader *reader, const cJSON *object,
                                      struct healcl_error *error)
{
    const cJSON *operation, *type, *name;
    const char *kind;
    TRY(value_member(object, "op", &operation, error));
    if (value_text_or_null(operation)) {
        reader->operation = value_text_or_null(operation);
        REFUSE(error, "the form with 'op', 'args' and 'output' side by side is not supported");
    }
    TRY(value_member(object, "type", &type, error));
    TRY(value_text(type, "'type'", &kind, error));
    TRY(value_member(object, "name", &name, error));
    return entry_read_kind(reader, kind, operation, object, name, error);
}

/* ---------------------------------------------------------------- the reader */

static enum healcl_status read_entry(struct entry_reader *reader, struct healcl_error *error)
{
    struct entry *entry = &reader->entry;
    reader->names_used = 0;
    /* The scanner has checked the text, so only its limit and memory can fail. */
    TRY(json_tree_read(reader->text, reader->scanner.length, VALUES_MAX, &reader->tree, NULL,
                       error));
    NEED_MEMORY(reader->tree, error);
    entry->index = reader->scanner.entry_count - 1;
    entry->name = "";
    entry->argument_count = 0;
    entry->out.kind = ARGUMENT_NONE;
    if (cJSON_IsArray(reader->tree))
        return read_pair(reader, reader->tree, error);
    if (cJSON_IsObject(reader->tree))
        return read_object(reader, reader->tree, error);
    REFUSE(error, "an entry is a list or an object, not %s", value_kind(reader->tree));
}

enum healcl_status entry_reader_open(const struct source *source, struct arena *arena,
                                     struct entry_reader **reader, struct healcl_error *error)
{
    *reader = malloc(sizeof **reader); /* large, so it is not cleared */
    NEED_MEMORY(*reader, error);
    (*reader)->tree = NULL;
    (*reader)->arena = arena;
    (*reader)->entry.makes_out = false;
    (*reader)->scanner = (struct scanner){.source = source, .text = (*reader)->text};
    return HEALCL_OK;
}

void entry_reader_close(struct entry_reader *reader)
{
    if (reader)
        cJSON_Delete(reader->tree);
    free(reader);
}

/* Drops the current entry and reads the next one, if any. */
static enum healcl_status advance(struct entry_reader *reader, struct healcl_error *error)
{
    cJSON_Delete(reader->tree);
    reader->tree = NULL;
    reader->operation = NULL;
    TRY(scanner_next(&reader->scanner, error));
    return reader->scanner.in_entry ? read_entry(reader, error) : HEALCL_OK;
}

enum healcl_status entry_reader_next(struct entry_reader *reader, const struct entry **entry,
                                     struct healcl_error *error)
{
    const struct scanner *scanner = &reader->scanner;
    const enum healcl_status status = advance(reader, error);
    *entry = status == HEALCL_OK && scanner->in_entry ? &reader->entry : NULL;
    if (status == HEALCL_OK || !scanner->in_entry)
        return status;
    if (reader->operation)
        error_prefix(error, "entry %zu (%.80s): ", scanner->entry_count - 1, reader->operation);
    else
        error_prefix(error, "entry %zu: ", scanner->entry_count - 1);
    error_place(error, (int64_t)scanner->entry_count - 1, -1);
    return status;
}
