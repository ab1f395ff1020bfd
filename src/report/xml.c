#include "report/xml.h"

#include <string.h>

#include "report/text.h"

/* U+FFFE and U+FFFF, which are valid in UTF-8. */
static bool is_no_character(const char *character)
{
    return strcmp(character, "\xef\xbf\xbe") == 0 || strcmp(character, "\xef\xbf\xbf") == 0;
}

/* Readers make blanks of line breaks and tabs in attributes that are not escaped, and line feeds of
 * carriage returns everywhere. */
static void put_character(FILE *stream, char character[TEXT_CHARACTER_SIZE], bool in_attribute)
{
    switch (character[0]) {
    case '&': fputs("&amp;", stream); return;
    case '<': fputs("&lt;", stream); return;
    case '>': fputs("&gt;", stream); return;
    case '"': fputs("&quot;", stream); return;
    case '\r': fputs("&#13;", stream); return;
    case '\n':
    case '\t':
        if (in_attribute)
            fprintf(stream, "&#%d;", character[0]);
        else
            putc(character[0], stream);
        return;
    default: text_clean(character, false);
    }
    fputs(is_no_character(character) ? "?" : character, stream);
}

static void put_text(FILE *stream, const char *text, bool in_attribute)
{
    char character[TEXT_CHARACTER_SIZE];
    while (*text) {
        text += text_character(text, character);
        put_character(stream, character, in_attribute);
    }
}

static void end_tag(struct xml *xml)
{
    if (xml->in_tag)
        putc('>', xml->stream);
    xml->in_tag = false;
}

static void begin_line(const struct xml *xml)
{
    fprintf(xml->stream, "\n%*s", (int)(2 * xml->depth), "");
}

void xml_start(struct xml *xml, FILE *stream)
{
    *xml = (struct xml){.stream = stream};
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", stream);
}

void xml_open(struct xml *xml, const char *name)
{
    end_tag(xml);
    begin_line(xml);
    fprintf(xml->stream, "<%s", name);
    xml->open[xml->depth++] = name;
    xml->in_tag = true;
    xml->has_text = false;
}

void xml_attribute(struct xml *xml, const char *name, const char *value)
{
    fprintf(xml->stream, " %s=\"", name);
    put_text(xml->stream, value, true);
    putc('"', xml->stream);
}

void xml_text(struct xml *xml, const char *text)
{
    end_tag(xml);
    put_text(xml->stream, text, false);
    xml->has_text = true;
}

void xml_elements(struct xml *xml, const char *elements)
{
    if (*elements)
        end_tag(xml);
    fputs(elements, xml->stream);
}

void xml_close(struct xml *xml)
{
    const char *name = xml->open[--xml->depth];
    if (xml->in_tag) {
        fputs("/>", xml->stream);
    } else {
        if (!xml->has_text)
            begin_line(xml);
        fprintf(xml->stream, "</%s>", name);
    }
    xml->in_tag = xml->has_text = false;
    if (xml->depth == 0)
        putc('\n', xml->stream);
}
