/* Options, printing and limits, which the commands share. */
#ifndef HEALCL_CLI_CLI_H
#define HEALCL_CLI_CLI_H

#include <getopt.h> /* optind */
#include <glob.h>
#include <stddef.h>

#include "cli/report.h"
#include "core/process.h"

/* Exit codes of the process. */
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
    OPERANDS_ANY,   /* several, or none */
};

/* Kinds of values of options, and how each is stored. */
enum option_kind {
    OPTION_HELP,
    OPTION_FLAG,   /* it takes none; a bool becomes true */
    OPTION_DEVICE, /* a selector: the text, as the next five */
    OPTION_WORD,
    OPTION_FILE, /* that is read, as is the next */
    OPTION_FOLDER,
    OPTION_MANIFESTS, /* a folder that is read, whose operations are loaded */
    OPTION_NEW_FILE,  /* that is written, as is the next */
    OPTION_NEW_FOLDER,
    OPTION_INPUT,  /* ENTRY=PATH of what is read */
    OPTION_REPORT, /* a file that is written, "-" for standard output: a struct report_file */
    OPTION_COUNT,  /* from 1 to most: a uint32_t */
    OPTION_BYTES,  /* with a suffix K, M, G or T: a uint64_t */
};

struct command;

enum { OPTIONS_MAX = 64 };

struct command_option {
    const char *name; /* "repeat" */
    char letter;      /* 0: it has none */
    enum option_kind kind;
    const char *value, *help; /* for --help: "N", or NULL; and what it does */
    bool decides_device; /* with it the command opens a device where it does not else, or none */
    size_t member;       /* where the value is kept: an offset in what the command keeps */
    uint32_t most;
    /* Takes the value instead, unless NULL. Returns EXIT_VERIFIED or a usage error. */
    int (*take)(const struct command *command, const struct command_option *option, void *self,
                const char *text);
};

#define KEPT_IN(type, name) .member = offsetof(type, name)

/* The last row of each command's options, without its braces. */
#define HELP_OPTION "help", 'h', OPTION_HELP, .help = "print this text"

/* Where drivers run: supervise.h. */
enum device_use {
    DEVICE_NONE,
    DEVICE_HERE,        /* the command runs in a child */
    DEVICE_IN_CHILDREN, /* it has children of its own */
};

enum { OUTPUTS_MAX = 3 }; /* standard output, and those of a command's function `outputs` */

struct words;

/* Functions of a command, each NULL where there is nothing to do. self: its memory, all 0 at first.
 */
struct command_steps {
    /* Adds the files that are written but not named by an option, once operands are known. Their
     * paths live as long as the command's memory. */
    void (*outputs)(void *self, struct words *paths);
    /* Checks what the options say together, and sets what they leave open. Returns GOES_ON or the
     * exit code. */
    int (*prepare)(const struct command *command, void *self);
    /* Those of job_run (command_job.h). conclude: once all is printed, or it failed, which came to
     * code; returns the exit code. */
    enum healcl_status (*work)(void *self, struct healcl_error *error);
    cJSON *(*report)(void *self);
    void (*print)(void *self, const cJSON *document,
                  const struct style *style); /* job_run needs it */
    void (*junit)(void *self, const cJSON *document, FILE *stream);
    int (*conclude)(void *self, int code);
    void (*release)(void *self); /* frees what it has, however far that has come */
};

struct command {
    const char *name;
    const char *summary;
    const char *help;                     /* a paragraph before the options */
    const char *usage;                    /* NULL: as the operands want it */
    const char *notes;                    /* paragraphs behind the options; or NULL */
    const struct command_option *options; /* up to HELP_OPTION */
    enum command_operands operands;
    enum device_use device; /* where its options do not decide */
    size_t size;            /* of its memory, which begins with a struct command_job */
    int (*run)(const struct command *command, void *self); /* returns an exit code; NULL: job_run */
    struct command_steps steps;
};

extern const struct command command_run, command_inspect, command_devices, command_ops,
    command_bench, command_tune, command_compile, command_compare, command_check, command_diagnose,
    command_pack;

/* A program of commands: main.c of each one tells of it. Its overview and its manual have the
 * texts. */
struct program {
    const char *name;     /* "healcl" */
    const char *ended_by; /* what else than healcl may end its process: "a driver" */
    const char *summary;  /* whole lines, as the next */
    const char *exit_codes;
    const struct command *const *commands;
    size_t command_count;
};

/* The program that program_run was given. */
extern const struct program *this_program;

/* Runs the command that argv[1] names. Returns the exit code. */
int program_run(const struct program *program, int argc, char **argv);

/* ---- arguments ---- */

/* Prints "PROGRAM: ...; see 'PROGRAM NAME --help'" and returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int usage_error(const struct command *command,
                                                      const char *format, ...);

/* Takes the command line, of which argv[0] is the command's name, into its memory. Looks whether
 * the operands are as many as the command wants, and no file that is written is read too. Then
 * forks where a device is opened (supervise.h), and loads folders of manifests. Returns GOES_ON; or
 * the exit code where that was all, for it was wrong or asked for help. */
enum { GOES_ON = -1 };
struct command_job;
int take_arguments(const struct command *command, int argc, char **argv, struct command_job *job);

/* The folder of transcripts that come with healcl, from where the program lies; the caller frees
 * it. NULL: there is none. An operand that names no file is looked up there. */
char *bundled_folder(void);

/* Lists the files in it, for globfree. Errors: HEALCL_USAGE: there is none. */
enum healcl_status bundled_find(glob_t *found, struct healcl_error *error);

/* Values of an option that may be repeated, or arguments; of is for free(). */
struct words {
    const char **of; /* with a NULL behind them, unless there are none */
    size_t count;
};
void words_add(struct words *words, const char *text);

/* Adds the value to the struct words that the option is kept in. */
int take_word(const struct command *command, const struct command_option *option, void *self,
              const char *text);

int print_help(const struct command *command);

/* "64M", "2GiB", "1000": bytes, or K, M, G or T of 1024. */
bool parse_size(const char *text, uint64_t *bytes);

/* "2%", "0.5%", "10": at most `most` percent. Refuses 0.02, which may be a share of 1. */
bool parse_percent(const char *text, double most, double *percent);

/* A number in [1, most]. */
bool parse_count(const char *text, uint32_t most, uint32_t *count);

/* ---- printing ---- */

/* "PROGRAM: FILE: message" on stderr, in one line, and the details below it. verbose adds the place
 * in the source. Returns the exit code. */
int print_failure(const char *file, const struct healcl_error *error, bool verbose);

/* Prints an error unless its status is HEALCL_OK, and clears it. Returns the exit code. */
int end_error(struct healcl_error *error, bool verbose);

/* A line on stderr that begins with the program's name and ": ". */
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

/* "0:1", which selects a device. Returns selector. */
enum { SELECTOR_SIZE = 24 };
const char *device_selector(const struct device_info *info, char selector[SELECTOR_SIZE]);

/* ---- limits ---- */

/* Takes the value of --expand. */
int take_expand(const struct command *command, const struct command_option *option, void *self,
                const char *text);

/* Bytes of memory that this process may use: the machine's, or its control group's. */
uint64_t host_memory(void);

#endif
