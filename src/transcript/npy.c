#include "transcript/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum healcl_status npy_read_prefix(const unsigned char *bytes, size_t length,
                                   uint32_t *header_offset, uint32_t *data_offset,
                                   struct healcl_error *error)
{
    static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (length < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        REFUSE(error, "not a .npy file: it does not begin with its magic bytes");
    if (length < 8)
        REFUSE(error, "the .npy file ends within its header");
    unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        REFUSE(error, ".npy version %u.%u is not supported", major, minor);

    *header_offset = major == 1 ? 10 : 12;
    if (length < *header_offset)
        REFUSE(error, "the .npy file ends within its header");
    uint32_t header_length = (uint32_t)bytes[8] | (uint32_t)bytes[9] << 8;
    if (major > 1)
        header_length |= (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24;
    if (header_length > NPY_HEADER_MAX)
        REFUSE(error, "the .npy header of %" PRIu32 " bytes is longer than %d", header_length,
               NPY_HEADER_MAX);
    *data_offset = *header_offset + header_length;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the header */

struct text {
    const char *next, *end;
    unsigned version;
};

static char peek(const struct text *text)
{
    return text->next < text->end ? *text->next : 0;
}

static void skip_space(struct text *text)
{
    for (bool comment = false; peek(text) > 0; text->next++) {
        comment = comment ? !strchr("\r\n", peek(text)) : peek(text) == '#';
        if (!comment && !strchr(" \t\r\n\f", peek(text)))
            return;
    }
}

/* Skips white space, then takes the word if it is next. */
static bool take(struct text *text, const char *word)
{
    const size_t length = strlen(word);
    skip_space(text);
    if ((size_t)(text->end - text->next) < length || memcmp(text->next, word, length) != 0)
        return false;
    text->next += length;
    return true;
}

/* A string without escapes, of which word keeps as much as fits. It may have Python's u or r. */
static bool take_string(struct text *text, char *word, size_t size)
{
    size_t length = 0;
    skip_space(text);
    text->next += peek(text) != 0 && strchr("uUrR", peek(text));
    const char quote = peek(text);
    if (quote != '\'' && quote != '"')
        return false;
    for (text->next++; peek(text) != quote; text->next++) {
        if (peek(text) == 0 || strchr("\\\r\n", peek(text)))
            return false;
        if (length + 1 < size)
            word[length++] = *text->next;
    }
    text->next++;
    word[length] = 0;
    return true;
}

/* INT64_MIN: a number that is beyond 2^63-1. */
static bool take_integer(struct text *text, int64_t *value)
{
    const bool is_negative = take(text, "-"), is_signed = is_negative || take(text, "+");
    bool is_huge = false;
    if (is_signed)
        skip_space(text);
    const char first = peek(text);
    if (first < '0' || first > '9')
        return false;
    for (*value = 0; peek(text) >= '0' && peek(text) <= '9'; text->next++)
        is_huge |= __builtin_mul_overflow(*value, 10, value) ||
                   __builtin_add_overflow(*value, *text->next - '0', value);
    const bool is_octal = first == '0' && *value != 0; /* of Python 2, as the L */
    *value = is_huge ? INT64_MIN : is_negative ? -*value : *value;
    if (text->version < 3)
        (void)take(text, "L");
    return !is_octal;
}

static enum healcl_status read_dtype(struct text *text, struct npy_header *header,
                                     struct healcl_error *error)
{
    static const struct {
        const char *name;
        enum dtype dtype;
        bool big_endian;
    } dtypes[] = {
        {"<i8", DTYPE_INT64, false}, {">i8", DTYPE_INT64, true}, {"<i4", DTYPE_INT32, false},
        {">i4", DTYPE_INT32, true},  {"|i1", DTYPE_INT8, false}, {"<i1", DTYPE_INT8, false},
        {">i1", DTYPE_INT8, false},
    };
    char name[41];
    if (!take_string(text, name, sizeof name))
        REFUSE(error, "the .npy header's 'descr' is not a string");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            header->dtype = dtypes[i].dtype;
            header->big_endian = dtypes[i].big_endian;
            return HEALCL_OK;
        }
    REFUSE(error, "dtype '%s' is not supported", name);
}

static enum healcl_status read_order(struct text *text, struct npy_header *header,
                                     struct healcl_error *error)
{
    header->fortran_order = take(text, "True");
    if (!header->fortran_order && !take(text, "False"))
        REFUSE(error, "the .npy header's 'fortran_order' is neither True nor False");
    return HEALCL_OK;
}

static enum healcl_status read_shape(struct text *text, struct npy_header *header,
                                     struct healcl_error *error)
{
    struct layout *layout = &header->layout;
    bool is_tuple = take(text, "("), comma = true, any_comma = false;
    for (layout->rank = 0; is_tuple && !take(text, ")"); any_comma |= comma = take(text, ",")) {
        int64_t size;
        is_tuple = comma && take_integer(text, &size);
        if (is_tuple && size == INT64_MIN)
            REFUSE(error, "a size in the .npy header's 'shape' is beyond 2^63-1");
        if (is_tuple && layout->rank == MAX_RANK)
            REFUSE(error, "the .npy header's 'shape' has more than %d axes", MAX_RANK);
        if (is_tuple)
            layout->shape[layout->rank++] = size;
    }
    if (!is_tuple || (layout->rank == 1 && !any_comma))
        REFUSE(error, "the .npy header's 'shape' is not a tuple of integers");
    return HEALCL_OK;
}

enum healcl_status npy_read_header(unsigned version, const char *bytes, size_t length,
                                   struct npy_header *header, struct healcl_error *error)
{
    static const struct {
        const char *name;
        enum healcl_status (*read)(struct text *text, struct npy_header *header,
                                   struct healcl_error *error);
    } keys[] = {{"descr", read_dtype}, {"fortran_order", read_order}, {"shape", read_shape}};
    enum { KEYS = sizeof keys / sizeof *keys };
    struct text text = {bytes, bytes + length, version};
    bool seen[KEYS] = {false};
    skip_space(&text);
    const bool is_indented = text.next > bytes + 1 && strchr(" \t", text.next[-1]) &&
                             memchr(bytes, '\n', (size_t)(text.next - bytes));
    if (is_indented || !take(&text, "{"))
        REFUSE(error, "the .npy header is not a dict");
    for (bool comma = true; !take(&text, "}"); comma = take(&text, ",")) {
        char name[41];
        int key = 0;
        if (!comma || !take_string(&text, name, sizeof name) || !take(&text, ":"))
            REFUSE(error, "the .npy header is not a dict");
        while (key < KEYS && strcmp(name, keys[key].name) != 0)
            key++;
        if (key == KEYS)
            REFUSE(error, "unknown key '%s' in the .npy header", name);
        TRY(keys[key].read(&text, header, error));
        seen[key] = true; /* of a key that stands twice the last value counts, as in Python */
    }
    for (int key = 0; key < KEYS; key++)
        if (!seen[key])
            REFUSE(error, "the .npy header lacks the key '%s'", keys[key].name);
    skip_space(&text);
    if (text.next != text.end)
        REFUSE(error, "the .npy header has text behind its dict");
    const struct layout shape = header->layout;
    return layout_init(&header->layout, shape.rank, shape.shape, dtype_size(header->dtype), error);
}

/* ---------------------------------------------------------------- writing */

size_t npy_write_header(enum dtype dtype, const struct layout *shape, bool fortran_order,
                        char header[NPY_HEADER_SIZE])
{
    enum { PREFIX = 10, ALIGNMENT = 64 };
    static const char *const types[DTYPE_COUNT] = {"|i1", "<i4", "<i8"};
    size_t size = PREFIX;
    size += (size_t)sprintf(header + size, "{'descr': '%s', 'fortran_order': %s, 'shape': (",
                            types[dtype], fortran_order ? "True" : "False");
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        size += (size_t)sprintf(header + size, "%" PRId64 ", ", shape->shape[axis]);
    if (shape->rank > 1)
        size -= 2; /* a tuple of one keeps its comma */
    size += (size_t)sprintf(header + size, "), }");
    while ((size + 1) % ALIGNMENT != 0)
        header[size++] = ' ';
    header[size++] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((size - PREFIX) & 0xff);
    header[9] = (char)((size - PREFIX) >> 8);
    return size;
}
