/* Helpers for all output: units, safe strings, wrapped paragraphs. */
#ifndef HEALCL_CLI_TEXT_H
#define HEALCL_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { UNIT_TEXT_SIZE = 32 };

/* "512 B", "13.4 MB": decimal units, three digits. Returns text. */
const char *text_bytes(uint64_t bytes, char text[UNIT_TEXT_SIZE]);

/* "512", "13.4 M" */
const char *text_count(uint64_t count, char text[UNIT_TEXT_SIZE]);

/* "950 ns", "1.23 ms", "75.0 s" */
const char *text_time(uint64_t nanoseconds, char text[UNIT_TEXT_SIZE]);

/* "0.0014", "1.53", "80.9", "2589": a factor or a percentage, with about three digits */
const char *text_factor(double value, char text[UNIT_TEXT_SIZE]);

/* The same, in memory that lives as long as the enclosing block. */
#define TEXT_BYTES(bytes) text_bytes(bytes, (char[UNIT_TEXT_SIZE]){0})
#define TEXT_FACTOR(value) text_factor(value, (char[UNIT_TEXT_SIZE]){0})
#define TEXT_TIME(nanoseconds) text_time(nanoseconds, (char[UNIT_TEXT_SIZE]){0})

/* Replaces bytes that are not UTF-8 by '?'. Unless they are kept, also replaces control characters
 * and controls of the writing direction. Names from hostile files must not break JSON, send
 * commands to a terminal, or look like other names. */
void text_clean(char *text, bool keep_controls);

/* Prints text for XML and HTML; in_value: inside an attribute's value. Line breaks and tabs in
 * values are escaped, because readers turn them into blanks. Carriage returns are escaped
 * everywhere, because readers turn them into line feeds. Invalid UTF-8, characters that XML forbids
 * and control characters become '?'. */
void text_print_escaped(FILE *stream, const char *text, bool in_value);

/* The file name of a path. */
const char *text_base_name(const char *path);

/* The number of characters of valid UTF-8. */
size_t text_columns(const char *text);

/* Returns a word as in a shell command. Replaces the user's home folder, which is private and
 * differs between machines. The text lives as long as the program. */
const char *text_shell(const char *word);

/* Prints words with line breaks before column `width`. Each line is indented by `indent` blanks.
 * The first line continues at its current column. A width of 0 breaks no lines. */
void text_wrap(FILE *stream, const char *text, size_t column, unsigned indent, unsigned width);

#endif
