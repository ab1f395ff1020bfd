/* Options, printing and limits, which all commands share. */
#ifndef HEALCL_CLI_CLI_H
#define HEALCL_CLI_CLI_H

#include <getopt.h> /* optind */
#include <glob.h>

#include "cli/report.h"
#include "core/process.h"

/* Exit codes of the process. */
enum exit_code {
    EXIT_VERIFIED,
    EXIT_DIFFERENT,
    EXIT_USAGE,
    EXIT_REFUSED,
    EXIT_DEVICE, /* an error of the device, OpenCL, or host memory */
    EXIT_SLOWER, /* slower than compare allows */
};

int exit_code(enum healcl_status status);

enum command_operands {
    OPERANDS_NONE,
    OPERANDS_FILE,  /* exactly one transcript */
    OPERANDS_FILES, /* one or more */
    OPERANDS_ANY,   /* any number, or none */
};

/* The types of option values, and how each is stored. */
enum option_kind {
    OPTION_HELP,
    OPTION_FLAG,   /* no value; sets a bool to true */
    OPTION_DEVICE, /* a selector; stored as text, like all kinds without another note */
    OPTION_WORD,
    OPTION_FILE, /* is read; the next three too */
    OPTION_FOLDER,
    OPTION_INPUT,     /* ENTRY=PATH of a file to read */
    OPTION_MANIFESTS, /* a folder of manifests to load; not stored */
    OPTION_NEW_FILE,  /* is written; the next two too */
    OPTION_NEW_FOLDER,
    OPTION_REPORT, /* file to write, "-" for standard output: struct report_file */
    OPTION_COUNT,  /* a uint32_t from 1 to `most` */
    OPTION_BYTES,  /* a uint64_t; suffixes K, M, G or T */
};

struct command;

enum { OPTIONS_MAX = 64 };

struct command_option {
    const char *name; /* "repeat" */
    char letter;      /* 0: none */
    enum option_kind kind;
    const char *value; /* for --help: "N", or NULL */
    size_t member;     /* offset of the value in the command's state */
    const char *help;  /* what it does */
    /* The option makes a command open a device that otherwise opens none, or the reverse. */
    bool decides_device;
    uint32_t most;
    /* Stores the value instead, if not NULL. Returns EXIT_VERIFIED or a usage error. */
    int (*take)(const struct command *command, const struct command_option *option, void *self,
                const char *text);
};

#define KEPT_IN(type, name) .member = offsetof(type, name)

/* The last row of each command's options, without its braces. */
#define HELP_OPTION "help", 'h', OPTION_HELP, .help = "print this text"

/* The process that calls drivers: see supervise.h. */
enum device_use {
    DEVICE_NONE,
    DEVICE_HERE,        /* the command runs in a child process */
    DEVICE_IN_CHILDREN, /* it starts child processes itself */
};

enum { OUTPUTS_MAX = 3 }; /* standard output, and those of the `outputs` function */

struct words;

/* Functions of a command; NULL if it needs none. self: the command's state, initially all 0. */
struct command_steps {
    /* Adds output files that no option names, once operands are known. The paths live as long as
     * the command's state. */
    void (*outputs)(void *self, struct words *paths);
    /* Checks the combination of options, and sets defaults. Returns GOES_ON or the exit code. */
    int (*prepare)(const struct command *command, void *self);
    /* Called by job_run (command_job.h). conclude is called after printing or failure, with the
     * exit code so far. It returns the final exit code. */
    enum healcl_status (*work)(void *self, struct healcl_error *error);
    cJSON *(*report)(void *self);
    void (*print)(void *self, const cJSON *document,
                  const struct style *style); /* job_run requires it */
    void (*junit)(void *self, const cJSON *document, FILE *stream);
    int (*conclude)(void *self, int code);
    void (*release)(void *self); /* frees the state, also if it is incomplete */
};

struct command {
    const char *name;
    const char *summary;
    const char *help;                     /* a paragraph before the options */
    const char *usage;                    /* NULL: derived from the operands */
    const char *notes;                    /* paragraphs after the options; or NULL */
    const struct command_option *options; /* ends with HELP_OPTION */
    enum command_operands operands;
    enum device_use device; /* unless an option decides */
    size_t size;            /* of its state, which begins with a struct command_job */
    int (*run)(const struct command *command, void *self); /* returns an exit code; NULL: job_run */
    struct command_steps steps;
};

extern const struct command command_run, command_inspect, command_devices, command_ops,
    command_bench, command_tune, command_compile, command_compare, command_check, command_diagnose,
    command_pack;

/* A program with several commands. Its main.c defines it. Its help overview and manual print these
 * texts. */
struct program {
    const char *name;     /* "healcl" */
    const char *ended_by; /* what else may end its process: "a driver" */
    const char *summary;  /* complete lines, like the next */
    const char *exit_codes;
    bool starts_once; /* a second child process cannot take the first one's place, as with MPI */
    const struct command *const *commands;
    size_t command_count;
};

/* The program passed to program_run. */
extern const struct program *this_program;

/* Runs the command that argv[1] names. Returns the exit code. */
int program_run(const struct program *program, int argc, char **argv);

/* ---- arguments ---- */

/* Prints "PROGRAM: ...; see 'PROGRAM NAME --help'" and returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int usage_error(const struct command *command,
                                                      const char *format, ...);

/* Parses the command line into the command's state. argv[0] is the command's name. Checks the
 * number of operands, and that no file is both read and written. Then forks if a device is opened
 * (supervise.h), and loads folders of manifests. Returns GOES_ON; or the exit code after an error
 * or a request for help. */
enum { GOES_ON = -1 };
struct command_job;
int take_arguments(const struct command *command, int argc, char **argv, struct command_job *job);

/* Returns the folder of the transcripts bundled with healcl, found from the program's location.
 * NULL: there is none. Operands that are not files are looked up there. */
const char *bundled_folder(void);

/* Lists the bundled files; release with globfree. Errors: HEALCL_USAGE if there are none. */
enum healcl_status bundled_find(glob_t *found, struct healcl_error *error);

/* Values of a repeatable option, or arguments. */
struct words {
    const char **of; /* ends with NULL if not empty; lives as long as the program */
    size_t count;
};
void words_add(struct words *words, const char *text);

/* Appends the value to the option's struct words. */
int take_word(const struct command *command, const struct command_option *option, void *self,
              const char *text);

int print_help(const struct command *command);

/* "64M", "2GiB", "1000": bytes, or K, M, G or T of 1024. */
bool parse_size(const char *text, uint64_t *bytes);

/* "2%", "0.5%", "10": at most `most` percent. Refuses 0.02, which may be meant as a share of 1. */
bool parse_percent(const char *text, double most, double *percent);

/* A number in [1, most]. */
bool parse_count(const char *text, uint32_t most, uint32_t *count);

/* ---- printing ---- */

/* Prints "PROGRAM: FILE: message" on stderr in one line, then the details. verbose adds the place
 * in the source. Returns the exit code. */
int print_failure(const char *file, const struct healcl_error *error, bool verbose);

/* Prints an error unless its status is HEALCL_OK, and clears it. Returns the exit code. */
int end_error(struct healcl_error *error, bool verbose);

/* Prints a line on stderr that begins with the program's name and ": ". */
__attribute__((format(printf, 1, 2))) void print_notice(const char *format, ...);

/* The text after "healcl: " in the last message of a child process. */
const char *last_words(const struct process_result *result);

/* Width and colour of standard output or standard error. */
struct style style_of(FILE *stream);

/* Whether a stream is a terminal that supports escape sequences. */
bool is_smart_terminal(FILE *stream);

/* Flushes standard output. Returns code, or EXIT_USAGE if code is EXIT_VERIFIED and the output
 * could not all be written. */
int finish_output(int code);

/* Writes "0:1", which selects a device. Returns selector; the text of DEVICE_SELECTOR lives as long
 * as the enclosing block. */
enum { SELECTOR_SIZE = 24 };
const char *device_selector(const struct device_info *info, char selector[SELECTOR_SIZE]);
#define DEVICE_SELECTOR(info) device_selector(info, (char[SELECTOR_SIZE]){0})

/* ---- limits ---- */

/* Stores the value of --expand. */
int take_expand(const struct command *command, const struct command_option *option, void *self,
                const char *text);

/* Bytes of memory that this process may use: the limit of the machine or of its control group. */
uint64_t host_memory(void);

#endif
