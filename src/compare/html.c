#include "compare/html.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "report/text.h"

static const struct text_escape escapes[] = {{'&', "&amp;"},  {'<', "&lt;"},   {'>', "&gt;"},
                                             {'"', "&quot;"}, {'\'', "&#39;"}, {0, NULL}};

void html_text(FILE *stream, const char *text)
{
    text_print_escaped(stream, text, escapes);
}

void html_print(FILE *stream, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    for (const char *next; (next = strchr(format, '%')); format = strpbrk(next, "su") + 1) {
        (void)fwrite(format, 1, (size_t)(next - format), stream);
        if (next[1] == 's')
            html_text(stream, va_arg(arguments, const char *));
        else
            fprintf(stream, "%zu", va_arg(arguments, size_t));
    }
    va_end(arguments);
    fputs(format, stream);
}

void html_short_text(FILE *stream, const char *text, size_t characters)
{
    bool cut = text_columns(text) > characters;
    for (size_t i = 0; *text && i + cut < characters; i++)
        text += text_print_character(stream, text, escapes);
    if (cut)
        fputs("&hellip;", stream);
}

/* Of "12.3 us". */
static const char *with_unit(const char *plain, char text[HTML_UNIT_SIZE])
{
    int digits = (int)strcspn(plain, " ");
    const char *unit = plain + digits + 1;
    snprintf(text, HTML_UNIT_SIZE, "%.*s&#8239;%s", digits, plain,
             strcmp(unit, "us") == 0 ? "&micro;s" : unit);
    return text;
}

const char *html_time(uint64_t nanoseconds, char text[HTML_UNIT_SIZE])
{
    char plain[UNIT_TEXT_SIZE];
    return with_unit(text_time(nanoseconds, plain), text);
}

const char *html_bytes(uint64_t bytes, char text[HTML_UNIT_SIZE])
{
    char plain[UNIT_TEXT_SIZE];
    return with_unit(text_bytes(bytes, plain), text);
}

void html_time_cell(FILE *stream, uint64_t nanoseconds)
{
    fprintf(stream, "<td class=\"n\" data-ns=\"%" PRIu64 "\">%s</td>", nanoseconds,
            nanoseconds > 0 ? HTML_TIME(nanoseconds) : "&ndash;");
}
