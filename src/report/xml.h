/* XML 1.0 that is well-formed whatever text says. */
#ifndef HEALCL_REPORT_XML_H
#define HEALCL_REPORT_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { XML_DEPTH_MAX = 8 };

struct xml {
    FILE *stream;
    const char
        *open[XML_DEPTH_MAX]; /* names of elements that are not closed, the outermost first */
    size_t depth;
    bool in_tag;   /* attributes may follow */
    bool has_text; /* what ends the innermost element stands behind text */
};

/* Writes the declaration, in UTF-8. */
void xml_start(struct xml *xml, FILE *stream);

/* Opens an element in the one that is open. name lives until it is closed. */
void xml_open(struct xml *xml, const char *name);

/* Of the element that was opened last, before anything is in it; names differ. What is not UTF-8
 * and what is no character of XML 1.0 becomes '?', and so do other control characters than tabs and
 * line breaks. */
void xml_attribute(struct xml *xml, const char *name, const char *value);

/* Adds to the text of the element that was opened last, which has no elements in it. */
void xml_text(struct xml *xml, const char *text);

/* Adds elements that have been written already, maybe none. */
void xml_elements(struct xml *xml, const char *elements);

/* Closes the innermost element. */
void xml_close(struct xml *xml);

#endif
