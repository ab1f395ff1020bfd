/* What the subcommands share. */
#ifndef HEALCL_CLI_CLI_H
#define HEALCL_CLI_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/process.h"
#include "report/report.h"

/* What the process exits with. */
enum exit_code {
    EXIT_VERIFIED,
    EXIT_DIFFERENT,
    EXIT_USAGE,
    EXIT_REFUSED,
    EXIT_DEVICE, /* the device, OpenCL, or the host's memory */
    EXIT_SLOWER, /* than compare allows */
};

int exit_code(enum healcl_status status);

enum command_operands {
    OPERANDS_NONE,
    OPERANDS_FILE,  /* one transcript */
    OPERANDS_FILES, /* several */
    OPERANDS_SHELL, /* the name of a shell */
};

struct command {
    const char *name;
    const char *summary; /* NULL: left out of the overview, it is for programs */
    const char *help;
    /* Up to one without a name. Where the value is below 256 it is the option's letter too. */
    const struct option *options;
    enum command_operands operands;
    /* argv[0] is the command's name. Returns an exit code. */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command command_run, command_inspect, command_devices, command_ops,
    command_bench, command_tune, command_compare, command_check, command_diagnose, command_version,
    command_completion;

/* By index; NULL behind the last one. */
const struct command *command_at(size_t index);

/* ---- arguments ---- */

/* Prints "healcl: ...; see 'healcl NAME --help'" and returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int usage_error(const struct command *command,
                                                      const char *format, ...);

/* The next of the command's options as getopt_long finds it, or -1. ':' also for an option that
 * takes the FILE of a report, and is given another option instead. */
int next_option(const struct command *command, int argc, char **argv);

/* The usage error behind next_option's '?' and ':'. */
int option_error(const struct command *command, int found, char **argv);

int print_help(const struct command *command);

/* The one FILE behind the options, any number of them, or none: all return EXIT_VERIFIED, or a
 * usage error. */
int one_file(const struct command *command, int argc, char **argv, const char **file);
int some_files(const struct command *command, int argc, char **argv);
int no_file(const struct command *command, int argc, char **argv);

/* "64M", "2G", "1000": bytes with a suffix K, M, G or T (of 1024). */
bool parse_size(const char *text, uint64_t *bytes);

/* "10", "2.5": in [0, 1000000]. */
bool parse_percent(const char *text, double *percent);

/* A number in [1, most]. */
bool parse_count(const char *text, uint32_t most, uint32_t *count);

/* ---- printing ---- */

/* "healcl: FILE: message" on stderr, in one line, and the details below it. verbose adds the place
 * in the source. Returns the exit code. */
int print_error(const char *file, const struct healcl_error *error, bool verbose);

/* A line on stderr that begins with "healcl: ". */
__attribute__((format(printf, 1, 2))) void print_notice(const char *format, ...);

/* The words behind "healcl: " of what a child process said last. */
const char *last_words(const struct process_result *result);

/* Width and colour of standard output or standard error. */
struct style style_of(FILE *stream);

/* Whether a stream is a terminal that knows escape sequences. */
bool is_smart_terminal(FILE *stream);

/* Flushes standard output. Returns code, or EXIT_USAGE where code was EXIT_VERIFIED and not all
 * could be written. */
int finish_output(int code);

/* The exit code of a printer of report.h. */
int printed(enum healcl_status status);

/* ---- limits ---- */

/* Bytes of memory that this process may use: the machine's, or its control group's. */
uint64_t host_memory(void);

#endif
