#include "transcript/scan.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "transcript/base64.h"

/* Pages are released in steps, because each step is a system call. */
enum { FORGET_STEP = 16 * 1024 * 1024 };

/* The text between the quotes of a string: bytes [begin, end) of the file. */
struct span {
    size_t begin, end;
    size_t good; /* for data: number of base64 characters before any other character */
};

/* ---------------------------------------------------------------- bytes and messages */

/* The next byte, or -1 at the end of the file. */
static int scan_peek(const struct scanner *scanner)
{
    if (scanner->at >= scanner->source->length)
        return -1;
    return (unsigned char)scanner->source->text[scanner->at];
}

static void scan_skip_space(struct scanner *scanner)
{
    for (int c = scan_peek(scanner); c == ' ' || c == '\n' || c == '\r' || c == '\t';
         c = scan_peek(scanner))
        scanner->at++;
}

static enum healcl_status not_json(const struct scanner *scanner, const char *what,
                                   struct healcl_error *error)
{
    REFUSE(error, "not JSON at byte %zu: %s", scanner->at, what);
}

/* Refuses the next byte, because something else is required there. */
static enum healcl_status unexpected(const struct scanner *scanner, const char *expected,
                                     struct healcl_error *error)
{
    int c = scan_peek(scanner);
    if (c < 0)
        REFUSE(error, "not JSON at byte %zu: the file ends where %s is expected", scanner->at,
               expected);
    if (c > ' ' && c < 0x7f)
        REFUSE(error, "not JSON at byte %zu: %s is expected, not '%c'", scanner->at, expected, c);
    REFUSE(error, "not JSON at byte %zu: %s is expected, not byte 0x%02x", scanner->at, expected,
           (unsigned)c);
}

/* ---------------------------------------------------------------- the rewritten text */

/* Only entries are rewritten. What is skipped at the top level is not stored. */
static enum healcl_status scan_append(struct scanner *scanner, const char *bytes, size_t length,
                                      struct healcl_error *error)
{
    if (!scanner->in_entry)
        return HEALCL_OK;
    if (length > SCAN_TEXT_MAX - scanner->length)
        REFUSE(error, "the text beside base64 is longer than %d bytes", SCAN_TEXT_MAX);
    memcpy(scanner->text + scanner->length, bytes, length);
    scanner->length += length;
    scanner->text[scanner->length] = 0;
    return HEALCL_OK;
}

static enum healcl_status scan_append_text(struct scanner *scanner, const char *text,
                                           struct healcl_error *error)
{
    return scan_append(scanner, text, strlen(text), error);
}

/* Appends a string of the file, with its escapes unchanged, between `opening` and a quote. */
static enum healcl_status append_span(struct scanner *scanner, const char *opening,
                                      const struct span *span, struct healcl_error *error)
{
    TRY(scan_append_text(scanner, opening, error));
    TRY(scan_append(scanner, scanner->source->text + span->begin, span->end - span->begin, error));
    return scan_append_text(scanner, "\"", error);
}

/* ---------------------------------------------------------------- strings */

/* Advances to the next character that ends the string or needs special treatment. */
static void skip_plain(struct scanner *scanner)
{
    const unsigned char *c = (const unsigned char *)scanner->source->text;
    size_t at = scanner->at, length = scanner->source->length;
    while (at < length && c[at] >= ' ' && c[at] < 0x80 && c[at] != '"' && c[at] != '\\')
        at++;
    scanner->at = at;
}

/* Reads the four hexadecimal digits at the scanner's position. */
static enum healcl_status scan_code(struct scanner *scanner, unsigned *code,
                                    struct healcl_error *error)
{
    *code = 0;
    for (int i = 0; i < 4; i++, scanner->at++) {
        int c = scan_peek(scanner);
        if (c >= '0' && c <= '9')
            *code = *code * 16 + (unsigned)(c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            *code = *code * 16 + (unsigned)((c | 0x20) - 'a' + 10);
        else
            return unexpected(scanner, "a hexadecimal digit", error);
    }
    return HEALCL_OK;
}

static enum healcl_status scan_escape(struct scanner *scanner, struct healcl_error *error)
{
    unsigned code;
    scanner->at++; /* the backslash */
    int c = scan_peek(scanner);
    if (c <= 0 || !strchr("\"\\/bfnrtu", c))
        return unexpected(scanner, "an escape", error);
    scanner->at++;
    if (c != 'u')
        return HEALCL_OK;
    TRY(scan_code(scanner, &code, error));
    /* C strings end at a 0, so names that differ only after it would be taken for one. */
    if (code == 0)
        return not_json(scanner, "\\u0000 is not supported", error);
    if (code >= 0xdc00 && code <= 0xdfff)
        return not_json(scanner, "half a surrogate pair", error);
    if (code < 0xd800 || code > 0xdbff)
        return HEALCL_OK;
    for (const char *expected = "\\u"; *expected; expected++, scanner->at++)
        if (scan_peek(scanner) != *expected)
            return not_json(scanner, "half a surrogate pair", error);
    TRY(scan_code(scanner, &code, error));
    if (code < 0xdc00 || code > 0xdfff)
        return not_json(scanner, "half a surrogate pair", error);
    return HEALCL_OK;
}

/* Reads one character beyond ASCII. The ranges are those of the Unicode standard, table 3-7. */
static enum healcl_status scan_utf8(struct scanner *scanner, struct healcl_error *error)
{
    int first = scan_peek(scanner);
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (first < 0xc2 || first > 0xf4)
        return not_json(scanner, "not UTF-8", error);
    scanner->at++;
    for (; more > 0; more--, scanner->at++, low = 0x80, high = 0xbf) {
        int c = scan_peek(scanner);
        if (c < low || c > high)
            return not_json(scanner, "not UTF-8", error);
    }
    return HEALCL_OK;
}

/* Scans a string from its opening quote to after its closing one. Also checks base64, because it is
 * read here anyway. */
static enum healcl_status scan_string(struct scanner *scanner, bool is_data, struct span *span,
                                      struct healcl_error *error)
{
    bool closed = false;
    scanner->at++;
    *span = (struct span){.begin = scanner->at};
    if (is_data)
        span->good =
            base64_good(scanner->source->text + scanner->at, scanner->source->length - scanner->at);
    scanner->at += span->good;
    while (!closed) {
        skip_plain(scanner);
        int c = scan_peek(scanner);
        if (c < 0)
            return not_json(scanner, "the file ends within a string", error);
        if (c < ' ')
            return not_json(scanner, "a control character within a string", error);
        closed = c == '"';
        if (c == '\\')
            TRY(scan_escape(scanner, error));
        else if (!closed)
            TRY(scan_utf8(scanner, error));
    }
    span->end = scanner->at;
    scanner->at++;
    return HEALCL_OK;
}

/* Whether a string equals word, which has letters and '_' only. Only the escape \uXXXX can
 * represent these. */
static bool span_is(const struct scanner *scanner, const struct span *span, const char *word)
{
    const char *text = scanner->source->text + span->begin,
               *end = scanner->source->text + span->end;
    for (char code[8]; *word && text < end; word++) {
        const bool is_escape = *text == '\\' && end - text >= 6;
        if (is_escape)
            snprintf(code, sizeof code, "\\u%04x", (unsigned char)*word);
        if (is_escape ? strncasecmp(text, code, 6) != 0 : *text != *word)
            return false;
        text += is_escape ? 6 : 1;
    }
    return !*word && text == end;
}

/* ---------------------------------------------------------------- values */

static enum healcl_status scan_value(struct scanner *scanner, int depth, bool is_data,
                                     struct healcl_error *error);

static enum healcl_status scan_digits(struct scanner *scanner, struct healcl_error *error)
{
    int c = scan_peek(scanner);
    if (c < '0' || c > '9')
        return unexpected(scanner, "a digit", error);
    for (; c >= '0' && c <= '9'; c = scan_peek(scanner))
        scanner->at++;
    return HEALCL_OK;
}

static enum healcl_status scan_number(struct scanner *scanner, struct healcl_error *error)
{
    struct span span = {.begin = scanner->at};
    if (scan_peek(scanner) == '-')
        scanner->at++;
    if (scan_peek(scanner) == '0')
        scanner->at++; /* a digit after it is refused as a missing comma */
    else
        TRY(scan_digits(scanner, error));
    if (scan_peek(scanner) == '.') {
        scanner->at++;
        TRY(scan_digits(scanner, error));
    }
    if (scan_peek(scanner) == 'e' || scan_peek(scanner) == 'E') {
        scanner->at++;
        if (scan_peek(scanner) == '+' || scan_peek(scanner) == '-')
            scanner->at++;
        TRY(scan_digits(scanner, error));
    }
    span.end = scanner->at;
    return append_span(scanner, "\"#", &span, error);
}

static enum healcl_status scan_literal(struct scanner *scanner, const char *word,
                                       struct healcl_error *error)
{
    for (const char *expected = word; *expected; expected++, scanner->at++)
        if (scan_peek(scanner) != *expected)
            return unexpected(scanner, word, error);
    return scan_append_text(scanner, word, error);
}

static enum healcl_status scan_string_value(struct scanner *scanner, bool is_data,
                                            struct healcl_error *error)
{
    struct span span;
    TRY(scan_string(scanner, is_data, &span, error));
    if (!is_data)
        return append_span(scanner, "\"$", &span, error);
    char reference[80];
    snprintf(reference, sizeof reference, "\"@%zu,%zu,%zu\"", span.begin, span.end - span.begin,
             span.good);
    return scan_append_text(scanner, reference, error);
}

/* Between the items of a list or object: whether another one follows. If not, advances past
 * `close`. */
static enum healcl_status next_item(struct scanner *scanner, bool first, char close, bool *more,
                                    struct healcl_error *error)
{
    scan_skip_space(scanner);
    *more = scan_peek(scanner) != close;
    if (!*more) {
        scanner->at++;
        return HEALCL_OK;
    }
    if (first)
        return HEALCL_OK;
    if (scan_peek(scanner) != ',')
        return unexpected(scanner, close == ']' ? "',' or ']'" : "',' or '}'", error);
    scanner->at++;
    scan_skip_space(scanner);
    if (scan_peek(scanner) == close)
        return not_json(scanner, "a value is expected after ','", error);
    return HEALCL_OK;
}

/* Scans a key and the ':' after it. */
static enum healcl_status scan_key(struct scanner *scanner, struct span *key,
                                   struct healcl_error *error)
{
    if (scan_peek(scanner) != '"')
        return unexpected(scanner, "a key", error);
    TRY(scan_string(scanner, false, key, error));
    scan_skip_space(scanner);
    if (scan_peek(scanner) != ':')
        return unexpected(scanner, "':'", error);
    scanner->at++;
    return HEALCL_OK;
}

/* Scans a list or an object. */
static enum healcl_status scan_items(struct scanner *scanner, int depth, bool is_object,
                                     struct healcl_error *error)
{
    const char close = is_object ? '}' : ']';
    bool more;
    scanner->at++;
    TRY(scan_append_text(scanner, is_object ? "{" : "[", error));
    for (bool first = true;; first = false) {
        struct span key = {0};
        TRY(next_item(scanner, first, close, &more, error));
        if (!more)
            return scan_append(scanner, &close, 1, error);
        if (!first)
            TRY(scan_append_text(scanner, ",", error));
        if (is_object) {
            TRY(scan_key(scanner, &key, error));
            TRY(append_span(scanner, "\"", &key, error));
            TRY(scan_append_text(scanner, ":", error));
        }
        TRY(scan_value(scanner, depth, is_object && span_is(scanner, &key, "data"), error));
    }
}

/* Scans and rewrites one value. depth: the number of lists and objects around it. SCAN_DEPTH_MAX
 * bounds the recursion. */
static enum healcl_status scan_value(struct scanner *scanner, int depth, bool is_data,
                                     struct healcl_error *error)
{
    scan_skip_space(scanner);
    int c = scan_peek(scanner);
    if ((c == '{' || c == '[') && depth == SCAN_DEPTH_MAX)
        REFUSE(error, "lists and objects nest deeper than %d at byte %zu", SCAN_DEPTH_MAX,
               scanner->at);
    switch (c) {
    case '{':
    case '[': return scan_items(scanner, depth + 1, c == '{', error);
    case '"': return scan_string_value(scanner, is_data, error);
    case 't': return scan_literal(scanner, "true", error);
    case 'f': return scan_literal(scanner, "false", error);
    case 'n': return scan_literal(scanner, "null", error);
    default: break;
    }
    if (c != '-' && (c < '0' || c > '9'))
        return unexpected(scanner, "a value", error);
    return scan_number(scanner, error);
}

/* ---------------------------------------------------------------- the top level */

static enum healcl_status refuse_top(struct healcl_error *error)
{
    REFUSE(error, "the top level is neither an ExecutionTranscript nor a list");
}

static enum healcl_status check_tag(struct scanner *scanner, struct healcl_error *error)
{
    struct span tag;
    if (scanner->has_tag)
        REFUSE(error, "the key '__type__' appears twice at the top level");
    scanner->has_tag = true;
    if (scan_peek(scanner) != '"')
        return refuse_top(error);
    TRY(scan_string(scanner, false, &tag, error));
    return span_is(scanner, &tag, "ExecutionTranscript") ? HEALCL_OK : refuse_top(error);
}

static enum healcl_status enter_list(struct scanner *scanner, struct healcl_error *error)
{
    if (scanner->has_list)
        REFUSE(error, "the key 'transcript' appears twice at the top level");
    scanner->has_list = true;
    if (scan_peek(scanner) != '[')
        REFUSE(error, "the value of 'transcript' is not a list");
    scanner->at++;
    scanner->place = SCAN_LIST;
    return HEALCL_OK;
}

static enum healcl_status end_file(struct scanner *scanner, struct healcl_error *error)
{
    scan_skip_space(scanner);
    if (scan_peek(scanner) >= 0)
        return unexpected(scanner, "the end of the file", error);
    scanner->place = SCAN_END;
    return HEALCL_OK;
}

/* Reads keys of the top-level object: up to its list, or after the list to its end. */
static enum healcl_status scan_top_keys(struct scanner *scanner, bool first,
                                        struct healcl_error *error)
{
    for (;; first = false) {
        bool more;
        struct span key;
        TRY(next_item(scanner, first, '}', &more, error));
        if (!more)
            break;
        TRY(scan_key(scanner, &key, error));
        scan_skip_space(scanner);
        if (span_is(scanner, &key, "transcript"))
            return enter_list(scanner, error);
        if (span_is(scanner, &key, "__type__"))
            TRY(check_tag(scanner, error));
        else
            TRY(scan_value(scanner, 1, false, error));
    }
    if (!scanner->has_tag || !scanner->has_list)
        return refuse_top(error);
    return end_file(scanner, error);
}

static enum healcl_status scan_top(struct scanner *scanner, struct healcl_error *error)
{
    if (scanner->source->length == 0)
        REFUSE(error, "the file is empty");
    scan_skip_space(scanner);
    int c = scan_peek(scanner);
    if (c == '[')
        return enter_list(scanner, error);
    if (c == '{') {
        scanner->at++;
        scanner->in_object = true;
        return scan_top_keys(scanner, true, error);
    }
    TRY(scan_value(scanner, 0, false, error));
    return refuse_top(error);
}

enum healcl_status scanner_next(struct scanner *scanner, struct healcl_error *error)
{
    scanner->in_entry = false;
    if (scanner->at - scanner->forgotten >= FORGET_STEP) { /* the caller has finished with it */
        source_forget(scanner->source, scanner->source->text + scanner->forgotten,
                      scanner->at - scanner->forgotten);
        scanner->forgotten = scanner->at;
    }
    if (scanner->place == SCAN_START)
        TRY(scan_top(scanner, error));
    if (scanner->place == SCAN_END)
        return HEALCL_OK;

    bool more;
    TRY(next_item(scanner, scanner->entry_count == 0, ']', &more, error));
    if (!more)
        /* After the list, in_object says how the file must continue. */
        return scanner->in_object ? scan_top_keys(scanner, false, error) : end_file(scanner, error);
    scanner->entry_count++;
    scanner->in_entry = true;
    scanner->length = 0;
    return scan_value(scanner, scanner->in_object ? 2 : 1, false, error);
}
