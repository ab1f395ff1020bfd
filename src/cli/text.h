/* Small things that everything printed shares: units, clean strings, wrapped paragraphs. */
#ifndef HEALCL_CLI_TEXT_H
#define HEALCL_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { UNIT_TEXT_SIZE = 32 };

/* "512 B", "13.4 MB": decimal units, three digits. Returns text. */
const char *text_bytes(uint64_t bytes, char text[UNIT_TEXT_SIZE]);

/* "512", "13.4 M" */
const char *text_count(uint64_t count, char text[UNIT_TEXT_SIZE]);

/* "950 ns", "1.23 ms", "75.0 s" */
const char *text_time(uint64_t nanoseconds, char text[UNIT_TEXT_SIZE]);

/* "0.0014", "1.53", "80.9", "2589": a factor or a percentage, about three digits */
const char *text_factor(double value, char text[UNIT_TEXT_SIZE]);

/* Do the same in memory that lives as long as the block around it. */
#define TEXT_BYTES(bytes) text_bytes(bytes, (char[UNIT_TEXT_SIZE]){0})
#define TEXT_FACTOR(value) text_factor(value, (char[UNIT_TEXT_SIZE]){0})
#define TEXT_TIME(nanoseconds) text_time(nanoseconds, (char[UNIT_TEXT_SIZE]){0})

/* Puts '?' for bytes that are not UTF-8 and, unless they are kept, for those of control characters
 * and of controls of the writing direction: names from a hostile file must neither break JSON nor
 * reach a terminal as commands, nor be shown as other names. */
void text_clean(char *text, bool keep_controls);

/* Prints text for XML and HTML, or where in_value is set for an attribute's value. Readers make
 * blanks of line breaks and tabs in values that are not escaped, and line feeds of carriage returns
 * everywhere. What is not UTF-8, what is no character, and control characters become '?'. */
void text_print_escaped(FILE *stream, const char *text, bool in_value);

/* The file of a path. */
const char *text_base_name(const char *path);

/* Characters of valid UTF-8. */
size_t text_columns(const char *text);

/* Prints a word of a shell's command line, without the home folder's name: it is nobody's business,
 * and another's is elsewhere. */
void text_shell(FILE *stream, const char *word);

/* Prints words with line breaks before column width, each line behind indent blanks. A first line
 * that has columns already goes on there. A width of 0 breaks none. */
void text_wrap(FILE *stream, const char *text, size_t column, unsigned indent, unsigned width);

#endif
