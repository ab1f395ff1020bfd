/* What a comparison says of where it was made, and how it is repeated. */
#ifndef HEALCL_COMPARE_DESCRIBE_H
#define HEALCL_COMPARE_DESCRIBE_H

#include "compare/compare.h"

/* Fills in this machine, whose memory a process may use so much of, and the time. Where there is no
 * memory for what is kept: comparison_status. */
void compare_describe_host(struct comparison *comparison, uint64_t memory_bytes);

/* Fills in the load behind the runs. */
void compare_describe_end(struct comparison *comparison);

/* Fills in size and digest of a file that can be read. Errors: HEALCL_USAGE. */
enum healcl_status compare_describe_file(struct comparison *comparison, const char *path,
                                         struct compare_transcript *transcript,
                                         struct healcl_error *error);

/* How many characters of text are the home folder, with a slash behind it: 0 where it is another
 * one. */
size_t compare_home_length(const char *text);

/* Fills in the settings of the environment that matter, as a shell takes them. In them and in
 * command lines "~" or "$HOME" stands for the home folder. */
void compare_describe_environment(struct comparison *comparison);

/* A command line for a shell, with those settings in front. */
const char *compare_command_line(struct comparison *comparison, const char *const *arguments,
                                 size_t count);

#endif
