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

/* ---------------------------------------------------------------- the dict literal */

struct text {
    const char *next;
    const char *end;
};

/* A part of the header, not terminated. */
struct word {
    const char *begin;
    size_t length;
};

static bool word_is(struct word word, const char *expected)
{
    return word.length == strlen(expected) && memcmp(word.begin, expected, word.length) == 0;
}

static void skip_space(struct text *text)
{
    while (text->next < text->end && *text->next != 0 && strchr(" \t\r\n\f\v", *text->next))
        text->next++;
}

/* Skips white space, then takes the character if it is the next one. */
static bool take(struct text *text, char character)
{
    skip_space(text);
    if (text->next == text->end || *text->next != character)
        return false;
    text->next++;
    return true;
}

static bool take_string(struct text *text, struct word *word)
{
    char quote = '\'';
    if (!take(text, quote)) {
        quote = '"';
        if (!take(text, quote))
            return false;
    }
    const char *end = memchr(text->next, quote, (size_t)(text->end - text->next));
    if (!end)
        return false;
    *word = (struct word){.begin = text->next, .length = (size_t)(end - text->next)};
    text->next = end + 1;
    return true;
}

/* Letters and digits: True, False. */
static struct word take_identifier(struct text *text)
{
    skip_space(text);
    struct word word = {.begin = text->next};
    while (text->next < text->end && ((*text->next >= 'A' && *text->next <= 'Z') ||
                                      (*text->next >= 'a' && *text->next <= 'z')))
        text->next++;
    word.length = (size_t)(text->next - word.begin);
    return word;
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
    struct word word;
    if (!take_string(text, &word))
        REFUSE(error, "the .npy header's 'descr' is not a string");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (word_is(word, dtypes[i].name)) {
            header->dtype = dtypes[i].dtype;
            header->big_endian = dtypes[i].big_endian;
            return HEALCL_OK;
        }
    REFUSE(error, "dtype '%.*s' is not supported", word.length < 40 ? (int)word.length : 40,
           word.begin);
}

static enum healcl_status read_order(struct text *text, struct npy_header *header,
                                     struct healcl_error *error)
{
    struct word word = take_identifier(text);
    header->fortran_order = word_is(word, "True");
    if (!header->fortran_order && !word_is(word, "False"))
        REFUSE(error, "the .npy header's 'fortran_order' is neither True nor False");
    return HEALCL_OK;
}

static enum healcl_status read_size(struct text *text, int64_t *size, struct healcl_error *error)
{
    bool negative = take(text, '-');
    skip_space(text);
    const char *begin = text->next;
    int64_t value = 0;
    for (; text->next < text->end && *text->next >= '0' && *text->next <= '9'; text->next++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *text->next - '0', &value))
            REFUSE(error, "a size in the .npy header's 'shape' is beyond 2^63-1");
    if (text->next == begin)
        REFUSE(error, "the .npy header's 'shape' is not a tuple of integers");
    *size = negative ? -value : value;
    return HEALCL_OK;
}

/* A tuple: "()", "(3,)", "(2, 3)" or "(2, 3,)", but not "(3)". */
static enum healcl_status read_shape(struct text *text, uint32_t *rank, int64_t shape[MAX_RANK],
                                     struct healcl_error *error)
{
    if (!take(text, '('))
        REFUSE(error, "the .npy header's 'shape' is not a tuple of integers");
    *rank = 0;
    bool comma = true;
    for (; !take(text, ')'); comma = take(text, ',')) {
        int64_t size = 0;
        if (!comma)
            REFUSE(error, "the .npy header's 'shape' is not a tuple of integers");
        TRY(read_size(text, &size, error));
        if (*rank == MAX_RANK)
            REFUSE(error, "the .npy header's 'shape' has more than %d axes", MAX_RANK);
        shape[(*rank)++] = size;
    }
    if (*rank == 1 && !comma)
        REFUSE(error, "the .npy header's 'shape' is not a tuple of integers");
    return HEALCL_OK;
}

enum healcl_status npy_read_header(const char *bytes, size_t length, struct npy_header *header,
                                   struct healcl_error *error)
{
    enum { DESCR, ORDER, SHAPE, KEY_COUNT };
    static const char *const keys[KEY_COUNT] = {"descr", "fortran_order", "shape"};
    bool seen[KEY_COUNT] = {false, false, false};
    struct text text = {.next = bytes, .end = bytes + length};
    uint32_t rank = 0;
    int64_t shape[MAX_RANK] = {0};

    if (!take(&text, '{'))
        REFUSE(error, "the .npy header is not a dict");
    for (bool comma = true; !take(&text, '}'); comma = take(&text, ',')) {
        struct word word;
        if (!comma || !take_string(&text, &word) || !take(&text, ':'))
            REFUSE(error, "the .npy header is not a dict");
        int key = 0;
        while (key < KEY_COUNT && !word_is(word, keys[key]))
            key++;
        if (key == KEY_COUNT)
            REFUSE(error, "unknown key '%.*s' in the .npy header",
                   word.length < 40 ? (int)word.length : 40, word.begin);
        if (seen[key])
            REFUSE(error, "the key '%s' appears twice in the .npy header", keys[key]);
        seen[key] = true;
        switch (key) {
        case DESCR: TRY(read_dtype(&text, header, error)); break;
        case ORDER: TRY(read_order(&text, header, error)); break;
        default: TRY(read_shape(&text, &rank, shape, error)); break;
        }
    }
    skip_space(&text);
    if (text.next != text.end)
        REFUSE(error, "the .npy header has text behind its dict");
    for (int key = 0; key < KEY_COUNT; key++)
        if (!seen[key])
            REFUSE(error, "the .npy header lacks the key '%s'", keys[key]);
    return layout_init(&header->layout, rank, shape, dtype_size(header->dtype), error);
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
