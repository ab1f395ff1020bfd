#include "transcript/npy.h"

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

/* ---------------------------------------------------------------- values */

enum { NESTED_MOST = 64, WORD_SIZE = 41 };

struct text {
    const char *next, *end;
    unsigned version;
};

/* A Python literal, as far as headers contain them. */
struct value {
    enum { VALUE_STRING, VALUE_INTEGER, VALUE_BOOLEAN, VALUE_TUPLE } kind;
    char word[WORD_SIZE]; /* of a string, as much as fits */
    int64_t integer;      /* or boolean; INT64_MIN: a number beyond 2^63-1 */
    bool is_signed;
    uint32_t count; /* number of a tuple's items; their first ones follow */
    int64_t items[MAX_RANK];
    bool are_integers;
};

static char npy_peek(const struct text *text)
{
    return text->next < text->end ? *text->next : 0;
}

static bool is_at(const struct text *text, const char *word)
{
    const size_t length = strlen(word);
    return (size_t)(text->end - text->next) >= length && memcmp(text->next, word, length) == 0;
}

/* The length of a backslash and the line end after it; 0 if there is none. */
static size_t join_length(const struct text *text)
{
    return is_at(text, "\\\r\n") ? 3 : is_at(text, "\\\n") || is_at(text, "\\\r") ? 2 : 0;
}

static void npy_skip_space(struct text *text)
{
    for (bool comment = false; npy_peek(text) > 0; text->next++) {
        const size_t join = comment ? 0 : join_length(text);
        comment = comment ? !strchr("\r\n", npy_peek(text)) : npy_peek(text) == '#';
        if (join > 0 && text->next + join < text->end)
            text->next += join - 1;
        else if (!comment && !strchr(" \t\r\n\f", npy_peek(text)))
            return;
    }
}

/* Skips white space, then consumes the word if it is next. */
static bool npy_take(struct text *text, const char *word)
{
    npy_skip_space(text);
    const bool is_next = is_at(text, word);
    text->next += is_next ? strlen(word) : 0;
    return is_next;
}

/* Adjacent strings are one string. Escapes are refused, except for joined lines. */
static bool take_string(struct text *text, struct value *value)
{
    size_t length = 0;
    for (bool any = false;; any = true) {
        npy_skip_space(text);
        const char prefix = npy_peek(text);
        const bool has_prefix = prefix != 0 && strchr("uUrR", prefix);
        text->next += has_prefix;
        const char quote = npy_peek(text);
        char closing[4] = {quote, quote, quote, 0};
        if (quote != '\'' && quote != '"')
            return any && !has_prefix;
        if (!is_at(text, closing))
            closing[1] = 0;
        for (text->next += strlen(closing); !is_at(text, closing); text->next++) {
            const size_t join = prefix == 'r' || prefix == 'R' ? 0 : join_length(text);
            if (join > 0)
                text->next += join - 1;
            else if (npy_peek(text) == 0 || npy_peek(text) == '\\' ||
                     (!closing[1] && strchr("\r\n", npy_peek(text))))
                return false;
            else if (length + 1 < WORD_SIZE)
                value->word[length++] = *text->next;
        }
        text->next += strlen(closing);
    }
}

/* The value of a digit; 16 for any other character. */
static int digit_of(char c)
{
    const char *digits = "0123456789abcdef", *found = strchr(digits, c >= 'A' ? c | 0x20 : c);
    return c > 0 && found ? (int)(found - digits) : 16;
}

static bool take_integer(struct text *text, struct value *value)
{
    const char mark = text->end - text->next > 1 ? (char)(text->next[1] | 0x20) : 0;
    const int base = npy_peek(text) != '0' ? 10
                     : mark == 'x'         ? 16
                     : mark == 'o'         ? 8
                     : mark == 'b'         ? 2
                                           : 10;
    bool is_huge = false, is_digit = base != 10, any = false;
    text->next += base != 10 ? 2 : 0;
    const bool may_be_octal =
        base == 10 && npy_peek(text) == '0'; /* in Python 2, like the suffix L */
    for (; digit_of(npy_peek(text)) < base || (npy_peek(text) == '_' && is_digit); text->next++) {
        const int digit = digit_of(npy_peek(text));
        is_digit = digit < base;
        any |= is_digit;
        if (is_digit)
            is_huge |= __builtin_mul_overflow(value->integer, base, &value->integer) ||
                       __builtin_add_overflow(value->integer, digit, &value->integer);
    }
    const bool is_right = any && is_digit && !(may_be_octal && (value->integer != 0 || is_huge));
    value->integer = is_huge ? INT64_MIN : value->integer;
    value->kind = VALUE_INTEGER;
    if (text->version < 3)
        (void)npy_take(text, "L");
    return is_right;
}

/* Parentheses around one value without a comma are not a tuple. */
static bool npy_take_value(struct text *text, int depth, struct value *value)
{
    *value = (struct value){.kind = VALUE_STRING};
    const bool is_negative = npy_take(text, "-"), is_signed = is_negative || npy_take(text, "+");
    if (depth == 0)
        return false;
    if (is_signed) {
        bool is_number = npy_take_value(text, depth - 1, value) && value->kind == VALUE_INTEGER &&
                         !value->is_signed;
        value->is_signed = true;
        value->integer *= is_negative && value->integer != INT64_MIN ? -1 : 1;
        return is_number;
    }
    if (npy_take(text, "(")) {
        struct value item;
        *value = (struct value){.kind = VALUE_TUPLE, .are_integers = true};
        for (bool comma = true; !npy_take(text, ")");) {
            if (!comma || !npy_take_value(text, depth - 1, &item))
                return false;
            comma = npy_take(text, ",");
            if (value->count < MAX_RANK)
                value->items[value->count] = item.integer;
            value->are_integers &= item.kind == VALUE_INTEGER || item.kind == VALUE_BOOLEAN;
            if (value->count++ == 0 && !comma) {
                *value = item;
                return npy_take(text, ")");
            }
        }
        return true;
    }
    const bool is_true = npy_take(text, "True");
    if (is_true || npy_take(text, "False")) {
        *value = (struct value){.kind = VALUE_BOOLEAN, .integer = is_true};
        return true;
    }
    return npy_peek(text) >= '0' && npy_peek(text) <= '9' ? take_integer(text, value)
                                                          : take_string(text, value);
}

/* ---------------------------------------------------------------- the header */

static enum healcl_status npy_read_dtype(const struct value *value, struct npy_header *header,
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
    if (!value || value->kind != VALUE_STRING)
        REFUSE(error, "the .npy header's 'descr' is not a string");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(value->word, dtypes[i].name) == 0) {
            header->dtype = dtypes[i].dtype;
            header->big_endian = dtypes[i].big_endian;
            return HEALCL_OK;
        }
    REFUSE(error, "dtype '%s' is not supported", value->word);
}

static enum healcl_status read_order(const struct value *value, struct npy_header *header,
                                     struct healcl_error *error)
{
    if (!value || value->kind != VALUE_BOOLEAN)
        REFUSE(error, "the .npy header's 'fortran_order' is neither True nor False");
    header->fortran_order = value->integer;
    return HEALCL_OK;
}

static enum healcl_status npy_read_shape(const struct value *value, struct npy_header *header,
                                         struct healcl_error *error)
{
    if (!value || value->kind != VALUE_TUPLE || !value->are_integers)
        REFUSE(error, "the .npy header's 'shape' is not a tuple of integers");
    if (value->count > MAX_RANK)
        REFUSE(error, "the .npy header's 'shape' has more than %d axes", MAX_RANK);
    for (uint32_t i = 0; i < value->count; i++)
        if (value->items[i] == INT64_MIN)
            REFUSE(error, "a size in the .npy header's 'shape' is beyond 2^63-1");
    header->layout.rank = value->count;
    memcpy(header->layout.shape, value->items, sizeof value->items);
    return HEALCL_OK;
}

enum healcl_status npy_read_header(unsigned version, const char *bytes, size_t length,
                                   struct npy_header *header, struct healcl_error *error)
{
    static const struct {
        const char *name;
        enum healcl_status (*read)(const struct value *value, struct npy_header *header,
                                   struct healcl_error *error);
    } keys[] = {
        {"descr", npy_read_dtype}, {"fortran_order", read_order}, {"shape", npy_read_shape}};
    enum { KEYS = sizeof keys / sizeof *keys };
    struct text text = {bytes, bytes + length, version};
    struct value name, values[KEYS]; /* if a key appears twice, the last one counts, as in Python */
    bool seen[KEYS] = {false};
    int nested = 0, closed = 0;
    npy_skip_space(&text);
    const bool is_indented = text.next > bytes + 1 && strchr(" \t", text.next[-1]) &&
                             memchr(bytes, '\n', (size_t)(text.next - bytes));
    while (nested < NESTED_MOST && npy_take(&text, "("))
        nested++;
    if (is_indented || !npy_take(&text, "{"))
        REFUSE(error, "the .npy header is not a dict");
    for (bool comma = true; !npy_take(&text, "}"); comma = npy_take(&text, ",")) {
        int key = 0;
        if (!comma || !npy_take_value(&text, NESTED_MOST, &name) || name.kind != VALUE_STRING ||
            !npy_take(&text, ":"))
            REFUSE(error, "the .npy header is not a dict");
        while (key < KEYS && strcmp(name.word, keys[key].name) != 0)
            key++;
        if (key == KEYS)
            REFUSE(error, "unknown key '%s' in the .npy header", name.word);
        seen[key] = npy_take_value(&text, NESTED_MOST, &values[key]);
        if (!seen[key])
            return keys[key].read(NULL, header, error);
    }
    for (int key = 0; key < KEYS; key++) {
        if (!seen[key])
            REFUSE(error, "the .npy header lacks the key '%s'", keys[key].name);
        TRY(keys[key].read(&values[key], header, error));
    }
    while (closed < nested && npy_take(&text, ")"))
        closed++;
    npy_skip_space(&text);
    if (closed < nested || text.next != text.end)
        REFUSE(error, "the .npy header has text after its dict");
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
