/*
 * Compares several devices on the same transcripts. A comparison is one JSON document;
 * docs/compare.schema.json describes its keys and units. It is filled from the output of child
 * processes (`healcl devices --json`, `healcl run --json`, `healcl check --json`) and from saved
 * comparisons. Then compare_conclude adds conclusions, and the printers print the document.
 *
 * Children and saved files are not trusted. Keys that are missing or of another type count as empty
 * texts and zeros. Control characters become '?'. The program ends if memory runs out.
 */
#ifndef HEALCL_CLI_COMPARISON_H
#define HEALCL_CLI_COMPARISON_H

#include "cli/cli.h"

#define COMPARE_REFERENCE "reference" /* the selector of the host reference */

struct comparison {
    cJSON *top;                          /* the document; owned */
    cJSON *transcripts, *devices, *runs; /* its lists; devices of baselines come last */
    cJSON *judges;                       /* runs made by compare_add_judge; owned */
    size_t base;                         /* the device whose mean is 1; if not a device: no means */
    size_t counting;                     /* number of transcripts that count in means */
};

/* Starts a document about this machine. memory_bytes: most memory that a process may use. */
void comparison_init(struct comparison *comparison, uint64_t memory_bytes);
void comparison_release(struct comparison *comparison);

/* ---- values ---- */

/* A number in [0, 2^53) at a path, else 0. */
double compare_number(const cJSON *object, const char *path);

/* Whether two objects have the same text at a path. */
bool compare_same(const cJSON *a, const cJSON *b, const char *path);

/* All set the item at a path, and replace an existing one. Control characters in texts are
 * replaced. */
void compare_put(cJSON *object, const char *path, cJSON *item);
void compare_put_number(cJSON *object, const char *path, double number);
void compare_put_text(cJSON *object, const char *path, const char *text);

/* ---- filling ---- */

/* Adds a transcript with its file's size and digest. Errors: HEALCL_USAGE. */
enum healcl_status compare_add_transcript(struct comparison *comparison, const char *path,
                                          struct healcl_error *error);

/* Adds a device. source: its JSON from `healcl devices`; NULL: nothing is known. */
cJSON *compare_add_device(struct comparison *comparison, const cJSON *source);

/* Adds usable devices from the output of `healcl devices --json`: the default device first, then
 * all others unless default_only. *is_of_driver: a driver prevented the listing. Returns the number
 * of devices. */
size_t compare_add_devices(struct comparison *comparison, const char *text, bool default_only,
                           bool *is_of_driver);

/* Adds a run that is not made yet: it has no outcome. */
cJSON *compare_add_run(struct comparison *comparison, size_t transcript, size_t device);

/* Returns an empty run of the host reference, to be filled. It shows whether a device or the
 * transcript causes differing results. NULL: it is not needed. */
cJSON *compare_add_judge(struct comparison *comparison, size_t transcript);

/* Removes runs that were not made from an incomplete comparison. Returns the number of remaining
 * runs. */
size_t compare_end_early(struct comparison *comparison);

/* Fills a run from the exit of its process, and from the output of `healcl run --json`. */
void compare_take_run(struct comparison *comparison, cJSON *run,
                      const struct process_result *process);

/* Stores the default device's rates from `healcl devices --measure --json`, if there are any. */
void compare_take_rates(cJSON *device, const char *text);

/* Adds the devices of a saved comparison, with their runs of files whose bytes equal those here.
 * *added: the number of runs. Errors: HEALCL_USAGE. */
enum healcl_status compare_add_baseline(struct comparison *comparison, const char *path,
                                        size_t *added, struct healcl_error *error);

/* Reads a JSON file. *tree has its texts cleaned; free it with cJSON_Delete, also after an error.
 * It is NULL if the text is not JSON. HEALCL_USAGE: the file cannot be read, or is too large. */
enum healcl_status compare_read_file(const char *path, cJSON **tree, struct healcl_error *error);

/* Stores the machine's load under "load_before" or "load_after". */
void compare_describe_load(struct comparison *comparison, const char *key);

/* Stores a shell command line under "command": a healcl command with its arguments. Relevant
 * environment settings come first; ~ replaces the home folder. */
void compare_put_command(cJSON *object, const char *command, const char *const *arguments,
                         size_t count);

/* ---- runs and devices ---- */

cJSON *compare_device(const struct comparison *comparison, size_t device);
cJSON *compare_transcript(const struct comparison *comparison, size_t transcript);
cJSON *compare_device_of(const struct comparison *comparison, const cJSON *run);

#define FOR_EACH_RUN_OF(run, comparison, transcript) \
    JSON_EACH(run, (comparison)->runs) if (json_number_at(run, "transcript_at") == (transcript))

/* The devices of this comparison come before those of baselines. */
size_t compare_own_devices(const struct comparison *comparison);
bool compare_is_own(const struct comparison *comparison, const cJSON *run);

/* Whether its results were verified, or it had no results to verify. */
bool compare_is_right(const cJSON *run);

/* ---- conclusions ---- */

/* The figures used to compare and judge devices, as paths in a run. */
enum { COMPARE_COMPUTE, COMPARE_STEADY, COMPARE_FIGURES };
struct compare_figure {
    const char *name, *samples, *median, *low, *high;
    const char *speedup, *mean; /* paths in a device */
};
extern const struct compare_figure compare_figures[COMPARE_FIGURES];

struct compare_speedup {
    double factor;    /* ratio of the medians, or a mean of ratios; above 1: faster */
    double low, high; /* ratios of opposite quartiles */
};

/* Speed-ups of a device over another one, on all transcripts that count. */
struct compare_mean {
    struct compare_speedup of;
    double least, most;
    size_t faster, slower; /* number of transcripts whose whole interval agrees */
};

/* Adds the medians and quartiles of a run's samples. */
void compare_add_figures(cJSON *run);

/*
 * Adds names, faults, speed-ups, means and times against baselines to a filled document.
 *
 * A transcript counts in means if it is large enough to distinguish devices. All devices of this
 * comparison that are not at fault must have run it right. The first of these devices is the base.
 * A device that is at fault, or of a baseline, has a mean if it ran all of these transcripts right.
 */
void compare_conclude(struct comparison *comparison);

extern const char compare_too_small[]; /* a sentence about a transcript that is too small */

/* Whether a run failed because of its device. */
bool compare_is_at_fault(const struct comparison *comparison, size_t device);

/* Computes how many times faster one device is than another. False: one of them did not run all
 * counted transcripts right, or the figure was not measured. */
bool compare_mean_against(const struct comparison *comparison, const struct compare_figure *figure,
                          size_t device, size_t other, struct compare_mean *mean);

enum { COMPARE_SPREAD_MAX = 30, COMPARE_LEAST_NANOSECONDS = 100000 };

/* Whether half the distance of the quartiles exceeds COMPARE_SPREAD_MAX percent of the median, and
 * the median is long enough to be meaningful. */
bool compare_is_noisy(const cJSON *run, const struct compare_figure *figure);

/* Sets titles, such as "PoCL 3.1 on AMD EPYC 9354", and labels that distinguish devices. */
void compare_name_devices(struct comparison *comparison);

/* Writes "Intel Arc A770" for "Intel(R) Arc(TM) A770"; cuts long names. Returns text. */
enum { NAME_SIZE = 256 };
const char *compare_plain_name(char text[NAME_SIZE], const char *name);

/* Describes in a few sentences how the devices compare. Like other texts here, the result lives as
 * long as the program. */
const char *compare_lead(const struct comparison *comparison);

/* Returns "verified: 1 of 3" or "timed out: 600 s". */
const char *compare_outcome_text(const struct comparison *comparison, const cJSON *run);

/* ---- columns ---- */

/* A row is a key of the document, and is a column in every printed form. */

enum compare_kind {
    KIND_TEXT,
    KIND_FLAG,
    KIND_COUNT,
    KIND_TIME, /* nanoseconds */
    KIND_BYTES,
    KIND_FACTOR,
    KIND_PERCENT,
    KIND_SHARE, /* percent of a whole; printed as at most 100 */
};

/* How a column is used. */
enum {
    ALWAYS = 1,      /* an empty text or 0 if the value is unknown */
    COPIED = 2,      /* copied from a child process or a saved comparison */
    OF_DEVICE = 4,   /* a key of the run's device */
    WHERE_KNOWN = 8, /* for people, only if any run has a value */
    IN_CSV = 16,
    IN_TERMINAL = 32,
    IN_MARKDOWN = 128,
    ON_PAGE = 256,    /* in its table of runs or devices */
    IN_DETAILS = 512, /* in the details that the page unfolds */
};

/* A short note after a value, for people. */
enum compare_note { NO_NOTE, NOTE_COMPUTE, NOTE_STEADY, NOTE_RANGE, NOTE_CACHED, NOTE_CACHES };

struct compare_column {
    const char *path, *heading; /* heading: NULL if it is only for programs */
    enum compare_kind kind;
    unsigned places;
    const char *csv; /* its name in CSV, if not the path */
    enum compare_note note;
    const char *meaning; /* explanation of the heading; or NULL */
};

/* Each list ends with a path of NULL. */
extern const struct compare_column compare_run_columns[], compare_device_columns[],
    compare_host_columns[];

#define FOR_EACH_COLUMN(column, table, place)                                   \
    for (const struct compare_column *column = (table); column->path; column++) \
        if (column->places & (place))

/* Copies the columns' values from a source, which may be NULL. */
void compare_copy(cJSON *target, const cJSON *source, const struct compare_column *table);

/* ---- against baselines ---- */

/* Adds "slowdowns" to a run, if times are judged. Returns whether any figure is slower. */
bool compare_judge(const struct comparison *comparison, cJSON *run);

/* Returns "compute: 1.32 times the time in base.json (1.25 to 1.40 at 95 %), more than 10 %
 * slower". */
const char *compare_slowdown_text(const struct comparison *comparison, const cJSON *slowdown);

/* The exit code of the worst run of this comparison, without baselines. */
int compare_worst(const struct comparison *comparison);

/* ---- result files of devices ---- */

/* Creates the folder if it does not exist. HEALCL_USAGE: it cannot be written. */
enum healcl_status compare_make_results(const char *folder, struct healcl_error *error);

/* Writes FOLDER/VENDOR-DEVICE.json for each device of this comparison except the host reference. If
 * there are no new runs or check, the file keeps its old ones. HEALCL_USAGE: a file cannot be read
 * or written, or belongs to another device. */
enum healcl_status compare_write_results(const struct comparison *comparison, const char *folder,
                                         struct healcl_error *error);

/* ---- printing ---- */

void compare_print_table(const struct comparison *comparison, const struct style *style);
void compare_print_csv(const struct comparison *comparison, FILE *stream);
void compare_print_markdown(const struct comparison *comparison, FILE *stream);
void compare_print_junit(const struct comparison *comparison, FILE *stream);
void compare_print_html(const struct comparison *comparison, FILE *stream);

#endif
