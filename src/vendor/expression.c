#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include "vendor/expression.h"

#include <inttypes.h>
#include <string.h>

#include "core/numbers.h"

enum { NESTING_MAX = 64 };

enum node_kind {
    NODE_NUMBER,
    NODE_INTEGER, /* an argument's value */
    NODE_SHAPE,
    NODE_STRIDE,
    NODE_OFFSET,
    NODE_RANK,
    NODE_SIZE,
    NODE_DTYPE,
    NODE_PRESENT,
    NODE_MIN,
    NODE_MAX,
    NODE_LOG2,
    NODE_NOT,
    NODE_NEGATIVE,
    NODE_OR,
    NODE_AND,
    NODE_EQUAL,
    NODE_UNEQUAL,
    NODE_AT_MOST,
    NODE_AT_LEAST,
    NODE_BELOW,
    NODE_ABOVE,
    NODE_PLUS,
    NODE_MINUS,
    NODE_TIMES,
    NODE_DIVIDE,
    NODE_REMAINDER,
};

struct node {
    enum node_kind kind;
    uint32_t name;        /* of what is asked for a shape and the like */
    uint32_t left, right; /* operands */
    int64_t number;
};

struct expression {
    const char *text;
    uint32_t root, count;
    struct node nodes[]; /* at most one for each character */
};

/* ---------------------------------------------------------------- parsing */

struct parser {
    const char *at;
    const struct expression_names *names;
    struct expression *expression;
    uint32_t depth;
    struct healcl_error *error;
};

/* Operators by how they bind, the loosest first; of those that begin alike the longer one first. */
static const struct {
    uint32_t level;
    const char *text;
    enum node_kind kind;
} operators[] = {
    {0, "||", NODE_OR},       {1, "&&", NODE_AND},     {2, "==", NODE_EQUAL},
    {2, "!=", NODE_UNEQUAL},  {2, "<=", NODE_AT_MOST}, {2, ">=", NODE_AT_LEAST},
    {2, "<", NODE_BELOW},     {2, ">", NODE_ABOVE},    {3, "+", NODE_PLUS},
    {3, "-", NODE_MINUS},     {4, "*", NODE_TIMES},    {4, "/", NODE_DIVIDE},
    {4, "%", NODE_REMAINDER},
};

enum { TIGHTEST = 4 };

static const struct {
    const char *name;
    enum node_kind kind;
    bool of_tensor, wants_more, strides;
} functions[] = {
    {"shape", NODE_SHAPE, true, true, false},  {"rank", NODE_RANK, true, false, false},
    {"size", NODE_SIZE, true, false, false},   {"dtype", NODE_DTYPE, true, false, false},
    {"stride", NODE_STRIDE, true, true, true}, {"offset", NODE_OFFSET, true, false, true},
    {"min", NODE_MIN, false, true, false},     {"max", NODE_MAX, false, true, false},
    {"log2", NODE_LOG2, false, false, false},  {"present", NODE_PRESENT, true, false, false},
};

#define REFUSE_HERE(parser, ...)                                                     \
    do {                                                                             \
        (void)ERROR((parser)->error, HEALCL_REFUSED, __VA_ARGS__);                   \
        error_prefix((parser)->error,                                                \
                     "column %td: ", (parser)->at - (parser)->expression->text + 1); \
        return HEALCL_REFUSED;                                                       \
    } while (0)

static void skip_spaces(struct parser *parser)
{
    while (*parser->at == ' ')
        parser->at++;
}

static bool take(struct parser *parser, const char *text)
{
    skip_spaces(parser);
    size_t length = strlen(text);
    if (strncmp(parser->at, text, length) != 0)
        return false;
    parser->at += length;
    return true;
}

static uint32_t add_node(struct parser *parser, struct node node)
{
    parser->expression->nodes[parser->expression->count] = node;
    return parser->expression->count++;
}

static enum healcl_status parse_level(struct parser *parser, uint32_t level, uint32_t *node);

static enum healcl_status expect(struct parser *parser, const char *text)
{
    if (!take(parser, text))
        REFUSE_HERE(parser, "'%s' is missing", text);
    return HEALCL_OK;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A word at the parser's place, which it passes. */
static size_t take_word(struct parser *parser, const char **word)
{
    skip_spaces(parser);
    *word = parser->at;
    if (is_letter(*parser->at))
        while (is_letter(*parser->at) || is_digit(*parser->at))
            parser->at++;
    return (size_t)(parser->at - *word);
}

static enum healcl_status find_name(struct parser *parser, const char *word, size_t length,
                                    bool tensor, uint32_t *found)
{
    for (uint32_t i = 0; i < parser->names->count; i++) {
        const char *name = parser->names->of[i].name;
        if (!name || strncmp(name, word, length) != 0 || name[length])
            continue;
        if (parser->names->of[i].is_tensor != tensor || !parser->names->of[i].is_known)
            break;
        *found = i;
        return HEALCL_OK;
    }
    parser->at = word;
    REFUSE_HERE(parser, "'%.*s' is no %s", (int)(length < 80 ? length : 80), word,
                tensor ? "tensor" : "integer argument");
}

static enum healcl_status parse_function(struct parser *parser, size_t function, uint32_t *node)
{
    struct node made = {.kind = functions[function].kind};
    TRY(expect(parser, "("));
    if (functions[function].of_tensor) {
        const char *word;
        size_t length = take_word(parser, &word);
        TRY(find_name(parser, word, length, true, &made.name));
    } else {
        TRY(parse_level(parser, 0, &made.left));
    }
    if (functions[function].wants_more) {
        TRY(expect(parser, ","));
        TRY(parse_level(parser, 0, &made.right));
    }
    TRY(expect(parser, ")"));
    *node = add_node(parser, made);
    return HEALCL_OK;
}

static enum healcl_status parse_word(struct parser *parser, uint32_t *node)
{
    const char *word;
    size_t length = take_word(parser, &word);
    skip_spaces(parser);
    if (*parser->at == '(')
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            if (strlen(functions[i].name) == length &&
                strncmp(functions[i].name, word, length) == 0 &&
                (parser->names->strides || !functions[i].strides))
                return parse_function(parser, i, node);
    struct node made = {.kind = NODE_INTEGER};
    TRY(find_name(parser, word, length, false, &made.name));
    *node = add_node(parser, made);
    return HEALCL_OK;
}

static enum healcl_status parse_number(struct parser *parser, uint32_t *node)
{
    struct node made = {.kind = NODE_NUMBER};
    for (; is_digit(*parser->at); parser->at++)
        if (__builtin_mul_overflow(made.number, 10, &made.number) ||
            __builtin_add_overflow(made.number, *parser->at - '0', &made.number))
            REFUSE_HERE(parser, "a number beyond 64 bits");
    *node = add_node(parser, made);
    return HEALCL_OK;
}

static enum healcl_status parse_primary(struct parser *parser, uint32_t *node)
{
    skip_spaces(parser);
    if (is_digit(*parser->at))
        return parse_number(parser, node);
    if (is_letter(*parser->at))
        return parse_word(parser, node);
    if (take(parser, "(")) {
        TRY(parse_level(parser, 0, node));
        return expect(parser, ")");
    }
    bool negative = take(parser, "-");
    if (!negative && !take(parser, "!"))
        REFUSE_HERE(parser, "a value is missing");
    struct node made = {.kind = negative ? NODE_NEGATIVE : NODE_NOT};
    TRY(parse_level(parser, TIGHTEST + 1, &made.left));
    *node = add_node(parser, made);
    return HEALCL_OK;
}

/* The operator of that level which comes next. */
static bool take_operator(struct parser *parser, uint32_t level, enum node_kind *kind)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && take(parser, operators[i].text)) {
            *kind = operators[i].kind;
            return true;
        }
    return false;
}

static enum healcl_status parse_level(struct parser *parser, uint32_t level, uint32_t *node)
{
    struct node made = {.kind = NODE_NUMBER};
    if (++parser->depth > NESTING_MAX * (TIGHTEST + 2))
        REFUSE_HERE(parser, "it is nested too deep");
    if (level > TIGHTEST) {
        TRY(parse_primary(parser, node));
    } else {
        TRY(parse_level(parser, level + 1, node));
        while (take_operator(parser, level, &made.kind)) {
            made.left = *node;
            TRY(parse_level(parser, level + 1, &made.right));
            *node = add_node(parser, made);
        }
    }
    parser->depth--;
    return HEALCL_OK;
}

enum healcl_status expression_parse(const char *text, const struct expression_names *names,
                                    struct arena *arena, struct expression **expression,
                                    struct healcl_error *error)
{
    size_t length = strlen(text);
    if (length > EXPRESSION_TEXT_MAX)
        REFUSE(error, "an expression of more than %d characters", EXPRESSION_TEXT_MAX);
    struct expression *made = arena_alloc(arena, sizeof *made + (length + 1) * sizeof *made->nodes);
    char *copy = arena_strdup(arena, text);
    if (!made || !copy)
        NO_MEMORY(error);
    made->text = copy;
    struct parser parser = {.at = copy, .names = names, .expression = made, .error = error};
    TRY(parse_level(&parser, 0, &made->root));
    skip_spaces(&parser);
    if (*parser.at)
        REFUSE_HERE(&parser, "'%.20s' is not expected here", parser.at);
    *expression = made;
    return HEALCL_OK;
}

const char *expression_text(const struct expression *expression)
{
    return expression->text;
}

/* ---------------------------------------------------------------- values */

static enum healcl_status node_value(const struct expression *expression, uint32_t index,
                                     const struct expression_values *values, int64_t *value,
                                     struct healcl_error *error);

static enum healcl_status axis_value(const struct expression *expression, const struct node *node,
                                     const struct expression_values *values, int64_t *value,
                                     struct healcl_error *error)
{
    const struct layout *layout = values->layouts[node->name];
    int64_t given;
    uint32_t axis;
    TRY(node_value(expression, node->right, values, &given, error));
    TRY(axis_normalize(given, layout->rank, &axis, error));
    *value = node->kind == NODE_SHAPE ? layout->shape[axis] : layout->stride[axis];
    return HEALCL_OK;
}

static enum healcl_status tensor_value(const struct expression *expression, const struct node *node,
                                       const struct expression_values *values, int64_t *value,
                                       struct healcl_error *error)
{
    const struct layout *layout = values->layouts[node->name];
    if (!layout)
        REFUSE(error, "a tensor that is asked for its %s is not there",
               node->kind == NODE_DTYPE ? "dtype" : "layout");
    switch (node->kind) {
    case NODE_OFFSET: *value = layout->offset; return HEALCL_OK;
    case NODE_RANK: *value = layout->rank; return HEALCL_OK;
    case NODE_SIZE: *value = layout_elements(layout); return HEALCL_OK;
    case NODE_DTYPE:
        *value = (int64_t)(8 * dtype_size(values->dtypes[node->name]));
        return HEALCL_OK;
    default: return axis_value(expression, node, values, value, error);
    }
}

static enum healcl_status pair_value(enum node_kind kind, int64_t a, int64_t b, int64_t *value,
                                     struct healcl_error *error)
{
    bool beyond = false;
    switch (kind) {
    case NODE_MIN: *value = a < b ? a : b; break;
    case NODE_MAX: *value = a > b ? a : b; break;
    case NODE_EQUAL: *value = a == b; break;
    case NODE_UNEQUAL: *value = a != b; break;
    case NODE_AT_MOST: *value = a <= b; break;
    case NODE_AT_LEAST: *value = a >= b; break;
    case NODE_BELOW: *value = a < b; break;
    case NODE_ABOVE: *value = a > b; break;
    case NODE_PLUS: beyond = __builtin_add_overflow(a, b, value); break;
    case NODE_MINUS: beyond = __builtin_sub_overflow(a, b, value); break;
    case NODE_TIMES: beyond = __builtin_mul_overflow(a, b, value); break;
    default:
        if (b == 0)
            REFUSE(error, "%" PRId64 " is divided by 0", a);
        beyond = a == INT64_MIN && b == -1;
        if (!beyond)
            *value = kind == NODE_DIVIDE ? a / b : a % b;
    }
    if (beyond)
        REFUSE(error, "a value is beyond 64 bits");
    return HEALCL_OK;
}

static enum healcl_status node_value(const struct expression *expression, uint32_t index,
                                     const struct expression_values *values, int64_t *value,
                                     struct healcl_error *error)
{
    const struct node *node = &expression->nodes[index];
    int64_t left, right;
    switch (node->kind) {
    case NODE_NUMBER: *value = node->number; return HEALCL_OK;
    case NODE_INTEGER: *value = values->integers[node->name]; return HEALCL_OK;
    case NODE_SHAPE:
    case NODE_STRIDE:
    case NODE_OFFSET:
    case NODE_RANK:
    case NODE_SIZE:
    case NODE_DTYPE: return tensor_value(expression, node, values, value, error);
    case NODE_PRESENT: *value = values->layouts[node->name] != NULL; return HEALCL_OK;
    default: break;
    }
    TRY(node_value(expression, node->left, values, &left, error));
    switch (node->kind) {
    case NODE_NOT: *value = !left; return HEALCL_OK;
    case NODE_NEGATIVE: return pair_value(NODE_MINUS, 0, left, value, error);
    case NODE_LOG2:
        if (left < 1)
            REFUSE(error, "log2 of %" PRId64, left);
        *value = log2_of((uint64_t)left);
        return HEALCL_OK;
    case NODE_OR:
    case NODE_AND:
        *value = left != 0;
        if (*value == (node->kind == NODE_OR))
            return HEALCL_OK;
        TRY(node_value(expression, node->right, values, &right, error));
        *value = right != 0;
        return HEALCL_OK;
    default: break;
    }
    TRY(node_value(expression, node->right, values, &right, error));
    return pair_value(node->kind, left, right, value, error);
}

enum healcl_status expression_value(const struct expression *expression,
                                    const struct expression_values *values, int64_t *value,
                                    struct healcl_error *error)
{
    return node_value(expression, expression->root, values, value, error);
}
