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

/* ---------------------------------------------------------------- Python's literals */

enum { NESTED_MAX = 199 /* parentheses, beside the braces, as in Python */ };

struct text {
    const char *next;
    const char *end;
    unsigned version;
    int nested;
};

enum literal_kind { LITERAL_STRING, LITERAL_BOOL, LITERAL_INTEGER, LITERAL_SIGNED, LITERAL_TUPLE };

struct literal {
    enum literal_kind kind;
    char word[41];    /* a string, cut */
    int64_t value;    /* of a bool or an integer; INT64_MIN: beyond 2^63-1 */
    bool of_integers; /* a tuple */
    uint32_t rank;    /* a tuple's, which may be above MAX_RANK */
    int64_t shape[MAX_RANK];
};

static char peek(const struct text *text)
{
    return text->next < text->end ? *text->next : 0;
}

static bool is_in(char character, const char *set)
{
    return character != 0 && strchr(set, character);
}

static bool take_word(struct text *text, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(text->end - text->next) < length || memcmp(text->next, word, length) != 0)
        return false;
    text->next += length;
    return true;
}

static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c < 0;
}

/* White space, ends of lines, and comments, which version 3 has in UTF-8: only ASCII of it. */
static void skip_space(struct text *text)
{
    for (;;)
        if (is_in(peek(text), " \t\r\n\f"))
            text->next++;
        else if (peek(text) == '#')
            while (!is_in(peek(text), "\r\n") &&
                   (peek(text) > 0 || (peek(text) < 0 && text->version < 3)))
                text->next++;
        else if (!take_word(text, "\\\n") && !take_word(text, "\\\r\n"))
            return;
}

/* Skips white space, then takes the character if it is the next one. */
static bool take(struct text *text, char character)
{
    skip_space(text);
    const bool is_next = text->next < text->end && *text->next == character;
    text->next += is_next;
    return is_next;
}

/* Appends a string to a word. One with escapes, which no writer needs, is refused. */
static bool take_string(struct text *text, char *word, size_t *length, size_t most)
{
    static const char *const quotes[] = {"'''", "\"\"\"", "'", "\""};
    size_t q = 0;
    text->next += is_in(peek(text), "uUrR");
    while (q < 4 && !take_word(text, quotes[q]))
        q++;
    while (q < 4 && !take_word(text, quotes[q])) {
        const char c = peek(text);
        if (c == 0 || c == '\\' || (q > 1 && is_in(c, "\r\n")))
            return false;
        if (*length < most)
            word[(*length)++] = c;
        text->next++;
    }
    return q < 4;
}

/* Strings beside each other are one. */
static bool take_strings(struct text *text, struct literal *literal)
{
    size_t length = 0;
    do {
        if (!take_string(text, literal->word, &length, sizeof literal->word - 1))
            return false;
        skip_space(text);
    } while (is_in(peek(text), "'\"uUrR"));
    return true;
}

static int digit_value(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : 16;
}

/* At least one digit of a number in base, with a '_' between two of them. */
static bool take_digits(struct text *text, int base, int64_t *value)
{
    const char *begin = text->next;
    bool is_huge = false;
    for (; digit_value(peek(text)) < base; text->next++) {
        is_huge |= __builtin_mul_overflow(*value, base, value) ||
                   __builtin_add_overflow(*value, digit_value(*text->next), value);
        if (text->next + 2 < text->end && text->next[1] == '_' && digit_value(text->next[2]) < base)
            text->next++;
    }
    *value = is_huge ? INT64_MIN : *value;
    return text->next > begin;
}

/* Until version 2 also with the L of Python 2. */
static bool take_integer(struct text *text, int64_t *value)
{
    const int base = take_word(text, "0x") || take_word(text, "0X")   ? 16
                     : take_word(text, "0o") || take_word(text, "0O") ? 8
                     : take_word(text, "0b") || take_word(text, "0B") ? 2
                                                                      : 10;
    const char first = peek(text);
    if (base != 10 && first == '_')
        text->next++;
    if (!take_digits(text, base, value) || (base == 10 && first == '0' && *value != 0))
        return false;
    const char *behind = text->next;
    while (is_in(peek(text), " \t\f"))
        text->next++;
    if (text->version > 2 || !take_word(text, "L"))
        text->next = behind;
    return !is_of_word(peek(text)) && peek(text) != '.';
}

static bool take_literal(struct text *text, struct literal *literal);

/* Behind a parenthesis: a tuple, or without a comma what stands in it. */
static bool take_group(struct text *text, struct literal *literal)
{
    struct literal tuple = {.kind = LITERAL_TUPLE, .of_integers = true}, item;
    bool comma = true, any_comma = false;
    for (; !take(text, ')'); any_comma |= comma = take(text, ',')) {
        if (!comma || !take_literal(text, &item))
            return false;
        tuple.of_integers &= item.kind != LITERAL_STRING && item.kind != LITERAL_TUPLE;
        if (tuple.rank < MAX_RANK)
            tuple.shape[tuple.rank] = item.value;
        tuple.rank++;
    }
    *literal = tuple.rank == 1 && !any_comma ? item : tuple;
    return true;
}

/* A string, a bool, an integer or a tuple, as Python reads it. Others are not taken. */
static bool take_literal(struct text *text, struct literal *literal)
{
    *literal = (struct literal){.kind = LITERAL_STRING};
    skip_space(text);
    const char c = peek(text);
    const bool is_nested = is_in(c, "(+-");
    text->next += is_nested;
    if (is_nested && text->nested++ == NESTED_MAX)
        return false;
    bool taken = true;
    if (c == '(') {
        taken = take_group(text, literal);
    } else if (is_nested) {
        taken = take_literal(text, literal) && literal->kind == LITERAL_INTEGER;
        literal->kind = LITERAL_SIGNED;
        if (c == '-' && literal->value != INT64_MIN)
            literal->value = -literal->value;
    } else if (c >= '0' && c <= '9') {
        literal->kind = LITERAL_INTEGER;
        taken = take_integer(text, &literal->value);
    } else if (c == 'T' || c == 'F') {
        literal->kind = LITERAL_BOOL;
        literal->value = take_word(text, "True");
        taken = (literal->value || take_word(text, "False")) && !is_of_word(peek(text));
    } else {
        taken = take_strings(text, literal);
    }
    text->nested -= is_nested;
    return taken;
}

/* ---------------------------------------------------------------- the header */

static enum healcl_status read_dtype(const struct literal *descr, struct npy_header *header,
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
    if (descr->kind != LITERAL_STRING)
        REFUSE(error, "the .npy header's 'descr' is not a string");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(descr->word, dtypes[i].name) == 0) {
            header->dtype = dtypes[i].dtype;
            header->big_endian = dtypes[i].big_endian;
            return HEALCL_OK;
        }
    REFUSE(error, "dtype '%s' is not supported", descr->word);
}

static enum healcl_status read_shape(const struct literal *shape, struct healcl_error *error)
{
    if (shape->kind != LITERAL_TUPLE || !shape->of_integers)
        REFUSE(error, "the .npy header's 'shape' is not a tuple of integers");
    if (shape->rank > MAX_RANK)
        REFUSE(error, "the .npy header's 'shape' has more than %d axes", MAX_RANK);
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        if (shape->shape[axis] == INT64_MIN)
            REFUSE(error, "a size in the .npy header's 'shape' is beyond 2^63-1");
    return HEALCL_OK;
}

enum { DESCR, ORDER, SHAPE, KEY_COUNT };
static const char *const keys[KEY_COUNT] = {"descr", "fortran_order", "shape"};

/* The values of the keys, of which the last one counts, as in Python. */
static enum healcl_status read_dict(struct text *text, struct literal values[KEY_COUNT],
                                    struct healcl_error *error)
{
    static const char *const needs[KEY_COUNT] = {"not a string", "neither True nor False",
                                                 "not a tuple of integers"};
    bool seen[KEY_COUNT] = {false, false, false};
    for (bool comma = true; !take(text, '}'); comma = take(text, ',')) {
        struct literal name;
        if (!comma || !take_literal(text, &name) || name.kind != LITERAL_STRING || !take(text, ':'))
            REFUSE(error, "the .npy header is not a dict");
        int key = 0;
        while (key < KEY_COUNT && strcmp(name.word, keys[key]) != 0)
            key++;
        if (key == KEY_COUNT)
            REFUSE(error, "unknown key '%s' in the .npy header", name.word);
        if (!take_literal(text, &values[key]))
            REFUSE(error, "the .npy header's '%s' is %s", keys[key], needs[key]);
        seen[key] = true;
    }
    for (int key = 0; key < KEY_COUNT; key++)
        if (!seen[key])
            REFUSE(error, "the .npy header lacks the key '%s'", keys[key]);
    if (values[ORDER].kind != LITERAL_BOOL)
        REFUSE(error, "the .npy header's '%s' is %s", keys[ORDER], needs[ORDER]);
    return HEALCL_OK;
}

enum healcl_status npy_read_header(unsigned version, const char *bytes, size_t length,
                                   struct npy_header *header, struct healcl_error *error)
{
    struct text text = {.next = bytes, .end = bytes + length, .version = version};
    struct literal values[KEY_COUNT];
    skip_space(&text);
    const bool is_indented = text.next > bytes && is_in(text.next[-1], " \t") &&
                             (memchr(bytes, '\n', (size_t)(text.next - bytes)) ||
                              memchr(bytes, '\r', (size_t)(text.next - bytes)));
    while (take(&text, '('))
        text.nested++;
    if (is_indented || text.nested > NESTED_MAX || !take(&text, '{'))
        REFUSE(error, "the .npy header is not a dict");
    TRY(read_dict(&text, values, error));
    while (text.nested > 0 && take(&text, ')'))
        text.nested--;
    skip_space(&text);
    if (text.next != text.end || text.nested > 0 || text.end[-1 - (text.end[-1] == '\n')] == '\\')
        REFUSE(error, "the .npy header has text behind its dict");
    TRY(read_dtype(&values[DESCR], header, error));
    TRY(read_shape(&values[SHAPE], error));
    header->fortran_order = values[ORDER].value;
    return layout_init(&header->layout, values[SHAPE].rank, values[SHAPE].shape,
                       dtype_size(header->dtype), error);
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
