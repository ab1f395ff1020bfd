/* Small parts of HTML pages. Whatever a file or a driver says goes through html_text. */
#ifndef HEALCL_COMPARE_HTML_H
#define HEALCL_COMPARE_HTML_H

#include <stdint.h>
#include <stdio.h>

/* Text with its special characters escaped: for content, and for attributes in double quotes. What
 * is not UTF-8, and control characters, become '?'. */
void html_text(FILE *stream, const char *text);

/* As fprintf, with each %s as html_text; it knows %s and %zu, and nothing else. */
__attribute__((format(printf, 2, 3))) void html_print(FILE *stream, const char *format, ...);

/* As html_text, at most so many characters, the last one dots where there were more. */
void html_short_text(FILE *stream, const char *text, size_t characters);

/* "3.81 ms", "13.4 MB" as HTML, with a narrow blank that does not break; return text. */
enum { HTML_UNIT_SIZE = 48 };
const char *html_time(uint64_t nanoseconds, char text[HTML_UNIT_SIZE]);
const char *html_bytes(uint64_t bytes, char text[HTML_UNIT_SIZE]);
/* The same in memory that lives as long as the block around it. */
#define HTML_TIME(nanoseconds) html_time(nanoseconds, (char[HTML_UNIT_SIZE]){0})
#define HTML_BYTES(bytes) html_bytes(bytes, (char[HTML_UNIT_SIZE]){0})

/* A cell in a table's row; a dash for 0. The number itself is in the attribute data-ns. */
void html_time_cell(FILE *stream, uint64_t nanoseconds);

#endif
