#include "cli/text.h"

#include <inttypes.h>

#include "tools/xmalloc.h"

/* Returns the number of decimals that gives three digits. */
static int decimals_of(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

/* Prints a value in the largest unit that leaves up to three digits before the point; each unit is
 * a thousand times the previous. */
static const char *by_thousands(uint64_t value, const char *const *units, size_t count,
                                char text[UNIT_TEXT_SIZE])
{
    if (value < 1000) {
        snprintf(text, UNIT_TEXT_SIZE, "%" PRIu64 "%s", value, units[0]);
        return text;
    }
    double scaled = (double)value / 1000;
    size_t unit = 1;
    for (; scaled >= 999.5 && unit + 1 < count; unit++)
        scaled /= 1000;
    snprintf(text, UNIT_TEXT_SIZE, "%.*f %s", decimals_of(scaled), scaled, units[unit]);
    return text;
}

const char *text_bytes(uint64_t bytes, char text[UNIT_TEXT_SIZE])
{
    static const char *const units[] = {" B", "kB", "MB", "GB", "TB", "PB", "EB"};
    return by_thousands(bytes, units, 7, text);
}

const char *text_count(uint64_t count, char text[UNIT_TEXT_SIZE])
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    return by_thousands(count, units, 7, text);
}

const char *text_time(uint64_t nanoseconds, char text[UNIT_TEXT_SIZE])
{
    static const char *const units[] = {" ns", "us", "ms", "s"};
    return by_thousands(nanoseconds, units, 4, text);
}

const char *text_factor(double value, char text[UNIT_TEXT_SIZE])
{
    if (value < 0.0995)
        snprintf(text, UNIT_TEXT_SIZE, "%.2g", value);
    else
        snprintf(text, UNIT_TEXT_SIZE, "%.*f", decimals_of(value), value);
    return text;
}

/* ---------------------------------------------------------------- UTF-8 */

/* Bytes of the character at text; 0 if it is not valid UTF-8 (RFC 3629). */
static size_t character_length(const unsigned char *text)
{
    if (text[0] < 0x80)
        return 1;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xed && text[1] > 0x9f;
    bool too_high = text[0] == 0xf4 && text[1] > 0x8f;
    return overlong || surrogate || too_high ? 0 : length;
}

/* Characters that change the display order of text: U+061C, U+200E and U+200F, U+202A to U+202E,
 * U+2066 to U+2069 (Unicode Standard Annex 9, 2). They could make a name look like another one. */
static bool is_bidirectional(const unsigned char *character)
{
    if (character[0] == 0xd8)
        return character[1] == 0x9c;
    if (character[0] != 0xe2)
        return false;
    unsigned char last = character[2];
    return character[1] == 0x80   ? last == 0x8e || last == 0x8f || (last >= 0xaa && last <= 0xae)
           : character[1] == 0x81 ? last >= 0xa6 && last <= 0xa9
                                  : false;
}

/* The character must be complete. */
static bool is_control(const unsigned char *character)
{
    return character[0] < ' ' || character[0] == 0x7f ||
           (character[0] == 0xc2 && character[1] < 0xa0) || is_bidirectional(character);
}

void text_clean(char *text, bool keep_controls)
{
    unsigned char *next = (unsigned char *)text;
    while (*next) {
        size_t length = character_length(next);
        if (length == 0 || (!keep_controls && is_control(next))) {
            length = length ? length : 1;
            memset(next, '?', length);
        }
        next += length;
    }
}

void text_print_escaped(FILE *stream, const char *text, bool in_value)
{
    static const struct {
        char character;
        const char *text, *value;
    } escapes[] = {{'&', "&amp;", "&amp;"},   {'<', "&lt;", "&lt;"},    {'>', "&gt;", "&gt;"},
                   {'"', "&quot;", "&quot;"}, {'\r', "&#13;", "&#13;"}, {'\n', "\n", "&#10;"},
                   {'\t', "\t", "&#9;"}};
    while (*text) {
        char character[8] = ""; /* the first byte and its continuation bytes */
        size_t length = 1, i = 0;
        while (length < 4 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length++;
        while (i < 7 && escapes[i].character != *text)
            i++;
        memcpy(character, text, length);
        text_clean(character, false);
        /* U+FFFE and U+FFFF are valid in UTF-8. */
        const bool is_none =
            memcmp(character, "\xef\xbf", 2) == 0 && (unsigned char)character[2] > 0xbd;
        if (i < 7)
            fputs(in_value ? escapes[i].value : escapes[i].text, stream);
        else
            fputs(is_none ? "?" : character, stream);
        text += length;
    }
}

const char *text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

size_t text_columns(const char *text)
{
    size_t columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

/* ---------------------------------------------------------------- paragraphs */

void text_wrap(FILE *stream, const char *text, size_t column, unsigned indent, unsigned width)
{
    if (width == 0 || (column > 0 && column + text_columns(text) <= width)) {
        fprintf(stream, "%s\n", text);
        return;
    }
    text += strspn(text, " ");
    for (const char *before = column > 0 ? "" : NULL; *text; before = " ") {
        const size_t word = strcspn(text, " ");
        if (!before || (*before && column + 1 + word > width)) {
            fputs(before ? "\n" : "", stream);
            column = (size_t)fprintf(stream, "%*s", (int)indent, "");
            before = "";
        }
        column += (size_t)fprintf(stream, "%s%.*s", before, (int)word, text);
        text += word;
        text += strspn(text, " ");
    }
    putc('\n', stream);
}

/* Uses quotes if the word needs them. */
static void print_quoted(FILE *stream, const char *text, size_t length)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%";
    const char *quote = strspn(text, plain) >= length ? "" : "'";
    fputs(quote, stream);
    for (; length > 0; text++, length--)
        fprintf(stream, *text == '\'' ? "'\\''" : "%c", *text);
    fputs(quote, stream);
}

const char *text_shell(const char *word)
{
    const char *set = getenv("HOME");
    char *home = xformat("%s", set ? set : ""), *text;
    size_t length = strlen(home), size;
    FILE *stream = xopen_memstream(&text, &size);
    while (length > 0 && home[length - 1] == '/')
        home[--length] = 0;
    if (!*word)
        fputs("''", stream);
    for (const char *found; length > 0 && (found = strstr(word, home)); word = found + length) {
        print_quoted(stream, word, (size_t)(found - word));
        fputs("\"$HOME\"", stream);
    }
    print_quoted(stream, word, strlen(word));
    xclose(stream);
    return xkeep(text);
}
