#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include "vendor/expression.h"

#include <ctype.h>
#include <string.h>

#include "core/numbers.h"

enum { NESTING_MAX = 64, TIGHTEST = 4 };

/* Kinds of nodes: those without operator, then operators and functions, in the order of their
 * tables. */
enum { NUMBER, INTEGER, NOT, NEGATIVE };
enum { OR = NEGATIVE + 1, AND, EQ, NE, LE, GE, LT, GT, PLUS, MINUS, TIMES, DIVIDE, REMAINDER };
enum { SHAPE = REMAINDER + 1, STRIDE, OFFSET, RANK, SIZE, DTYPE, PRESENT, MIN, MAX, LOG2 };

/* Operators by precedence, the lowest first. Of two with the same beginning, the longer one comes
 * first. */
static const struct {
    uint32_t level;
    const char *text;
} operators[] = {{0, "||"}, {1, "&&"}, {2, "=="}, {2, "!="}, {2, "<="}, {2, ">="}, {2, "<"},
                 {2, ">"},  {3, "+"},  {3, "-"},  {4, "*"},  {4, "/"},  {4, "%"}};

static const struct {
    const char *name;
    bool of_tensor, wants_more, strides;
} functions[] = {
    {"shape", true, true, false},    {"stride", true, true, true}, {"offset", true, false, true},
    {"rank", true, false, false},    {"size", true, false, false}, {"dtype", true, false, false},
    {"present", true, false, false}, {"min", false, true, false},  {"max", false, true, false},
    {"log2", false, false, false},
};

struct node {
    int kind;
    uint32_t name;        /* tensor of a function, or number of the integer */
    uint32_t left, right; /* operands */
    int64_t number;
};

struct expression {
    const char *text;
    uint32_t root, count;
    struct node nodes[]; /* at most one per character */
};

/* ---------------------------------------------------------------- parsing */

struct parser {
    const char *at;
    const struct expression_names *names;
    struct expression *expression;
    uint32_t depth;
    struct healcl_error *error;
};

#define REFUSE_HERE(parser, ...)                                                     \
    do {                                                                             \
        (void)ERROR((parser)->error, HEALCL_REFUSED, __VA_ARGS__);                   \
        error_prefix((parser)->error,                                                \
                     "column %td: ", (parser)->at - (parser)->expression->text + 1); \
        return HEALCL_REFUSED;                                                       \
    } while (0)

static bool expression_take(struct parser *parser, const char *text)
{
    const size_t length = strlen(text);
    parser->at += strspn(parser->at, " ");
    if (strncmp(parser->at, text, length) != 0)
        return false;
    parser->at += length;
    return true;
}

static enum healcl_status expect(struct parser *parser, const char *text)
{
    if (!expression_take(parser, text))
        REFUSE_HERE(parser, "'%s' is missing", text);
    return HEALCL_OK;
}

static uint32_t add_node(struct parser *parser, struct node node)
{
    parser->expression->nodes[parser->expression->count] = node;
    return parser->expression->count++;
}

static enum healcl_status parse_level(struct parser *parser, uint32_t level, uint32_t *node);

/* Reads a word at the parser's place, and moves past it. */
static size_t take_word(struct parser *parser, const char **word)
{
    *word = parser->at += strspn(parser->at, " ");
    if (!isdigit((unsigned char)*parser->at))
        while (isalnum((unsigned char)*parser->at) || *parser->at == '_')
            parser->at++;
    return (size_t)(parser->at - *word);
}

static enum healcl_status find_name(struct parser *parser, const char *word, size_t length,
                                    bool tensor, uint32_t *found)
{
    for (uint32_t i = 0; i < EXPRESSION_NAMES_MAX; i++) {
        const char *name = parser->names->of[i].name;
        if (!name || strncmp(name, word, length) != 0 || name[length])
            continue;
        if (parser->names->of[i].is_tensor != tensor || !parser->names->of[i].is_known)
            break;
        *found = i;
        return HEALCL_OK;
    }
    parser->at = word;
    REFUSE_HERE(parser, "'%.*s' is not %s", (int)(length < 80 ? length : 80), word,
                tensor ? "a tensor" : "an integer argument");
}

static enum healcl_status parse_function(struct parser *parser, size_t function, uint32_t *node)
{
    struct node made = {.kind = SHAPE + (int)function};
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

static enum healcl_status parse_primary(struct parser *parser, uint32_t *node)
{
    const char *word;
    struct node made = {.kind = INTEGER};
    const size_t length = take_word(parser, &word);
    if (length > 0) {
        parser->at += strspn(parser->at, " ");
        for (size_t i = 0; *parser->at == '(' && i < sizeof functions / sizeof *functions; i++)
            if (strlen(functions[i].name) == length &&
                strncmp(functions[i].name, word, length) == 0 &&
                (parser->names->strides || !functions[i].strides))
                return parse_function(parser, i, node);
        TRY(find_name(parser, word, length, false, &made.name));
    } else if (isdigit((unsigned char)*parser->at)) {
        made.kind = NUMBER;
        for (; isdigit((unsigned char)*parser->at); parser->at++)
            if (__builtin_mul_overflow(made.number, 10, &made.number) ||
                __builtin_add_overflow(made.number, *parser->at - '0', &made.number))
                REFUSE_HERE(parser, "a number beyond 64 bits");
    } else if (expression_take(parser, "(")) {
        TRY(parse_level(parser, 0, node));
        return expect(parser, ")");
    } else {
        made.kind = expression_take(parser, "-") ? NEGATIVE : NOT;
        if (made.kind == NOT && !expression_take(parser, "!"))
            REFUSE_HERE(parser, "a value is missing");
        TRY(parse_level(parser, TIGHTEST + 1, &made.left));
    }
    *node = add_node(parser, made);
    return HEALCL_OK;
}

/* Reads the next operator, if it has that level. */
static bool take_operator(struct parser *parser, uint32_t level, int *kind)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && expression_take(parser, operators[i].text)) {
            *kind = OR + (int)i;
            return true;
        }
    return false;
}

static enum healcl_status parse_level(struct parser *parser, uint32_t level, uint32_t *node)
{
    struct node made = {.kind = NUMBER};
    if (++parser->depth > NESTING_MAX * (TIGHTEST + 2))
        REFUSE_HERE(parser, "it is nested too deeply");
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
    NEED_MEMORY(made && copy, error);
    made->text = copy;
    struct parser parser = {.at = copy, .names = names, .expression = made, .error = error};
    TRY(parse_level(&parser, 0, &made->root));
    parser.at += strspn(parser.at, " ");
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

struct evaluation {
    const struct node *nodes;
    const struct expression_values *values;
    struct healcl_error *error;
};

static enum healcl_status node_value(const struct evaluation *self, uint32_t index, int64_t *value);

static enum healcl_status tensor_value(const struct evaluation *self, const struct node *node,
                                       int64_t *value)
{
    const struct layout *layout = self->values->layouts[node->name];
    uint32_t axis;
    if (!layout)
        REFUSE(self->error, "it uses the %s of a tensor that the call does not have",
               node->kind == DTYPE ? "dtype" : "layout");
    switch (node->kind) {
    case OFFSET: *value = layout->offset; return HEALCL_OK;
    case RANK: *value = layout->rank; return HEALCL_OK;
    case SIZE: *value = layout_elements(layout); return HEALCL_OK;
    case DTYPE:
        *value = (int64_t)(8 * dtype_size(self->values->dtypes[node->name]));
        return HEALCL_OK;
    default: break;
    }
    TRY(node_value(self, node->right, value));
    TRY(axis_normalize(*value, layout->rank, &axis, self->error));
    *value = node->kind == SHAPE ? layout->shape[axis] : layout->stride[axis];
    return HEALCL_OK;
}

static enum healcl_status pair_value(int kind, int64_t a, int64_t b, int64_t *value,
                                     struct healcl_error *error)
{
    bool beyond = false;
    switch (kind) {
    case MIN: *value = a < b ? a : b; break;
    case MAX: *value = a > b ? a : b; break;
    case EQ: *value = a == b; break;
    case NE: *value = a != b; break;
    case LE: *value = a <= b; break;
    case GE: *value = a >= b; break;
    case LT: *value = a < b; break;
    case GT: *value = a > b; break;
    case PLUS: beyond = __builtin_add_overflow(a, b, value); break;
    case MINUS: beyond = __builtin_sub_overflow(a, b, value); break;
    case TIMES: beyond = __builtin_mul_overflow(a, b, value); break;
    default:
        if (b == 0)
            REFUSE(error, "%" PRId64 " is divided by 0", a);
        beyond = a == INT64_MIN && b == -1;
        if (!beyond)
            *value = kind == DIVIDE ? a / b : a % b;
    }
    if (beyond)
        REFUSE(error, "a value is beyond 64 bits");
    return HEALCL_OK;
}

static enum healcl_status node_value(const struct evaluation *self, uint32_t index, int64_t *value)
{
    const struct node *node = &self->nodes[index];
    int64_t left, right;
    if (node->kind == NUMBER)
        *value = node->number;
    else if (node->kind == INTEGER)
        *value = self->values->integers[node->name];
    else if (node->kind == PRESENT)
        *value = self->values->layouts[node->name] != NULL;
    else if (node->kind >= SHAPE && node->kind <= DTYPE)
        return tensor_value(self, node, value);
    else {
        TRY(node_value(self, node->left, &left));
        if (node->kind == NEGATIVE)
            return pair_value(MINUS, 0, left, value, self->error);
        if (node->kind == LOG2 && left < 1)
            REFUSE(self->error, "log2 of %" PRId64, left);
        *value = node->kind == NOT    ? !left
                 : node->kind == LOG2 ? (int64_t)log2_of((uint64_t)left)
                                      : left != 0;
        if (node->kind == NOT || node->kind == LOG2 || (node->kind == OR && left) ||
            (node->kind == AND && !left))
            return HEALCL_OK;
        TRY(node_value(self, node->right, &right));
        if (node->kind != OR && node->kind != AND)
            return pair_value(node->kind, left, right, value, self->error);
        *value = right != 0;
    }
    return HEALCL_OK;
}

enum healcl_status expression_value(const struct expression *expression,
                                    const struct expression_values *values, int64_t *value,
                                    struct healcl_error *error)
{
    const struct evaluation self = {expression->nodes, values, error};
    return node_value(&self, expression->root, value);
}
