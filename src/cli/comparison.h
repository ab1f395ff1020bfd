/*
 * Several devices on the same transcripts. A comparison is one JSON document, whose keys and units
 * docs/compare.schema.json tells. It is filled from what child processes write (`healcl devices
 * --json`, `healcl run --json`, `healcl check --json`) and from comparisons that were saved. Then
 * compare_conclude adds what follows from that, and the printers draw everything from it.
 *
 * Children and saved files may write anything: keys that are missing or of another type count as
 * empty texts and zeros, and control characters become '?'. Memory that runs out ends the program.
 */
#ifndef HEALCL_CLI_COMPARISON_H
#define HEALCL_CLI_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "core/process.h"

#define COMPARE_REFERENCE "reference" /* the selector of the host reference */

struct comparison {
    cJSON *top;                          /* the document; owned */
    cJSON *transcripts, *devices, *runs; /* its lists; devices of baselines are the last ones */
    cJSON *judges;                       /* runs of compare_add_judge; owned */
    size_t base;                         /* the device whose mean is 1; no device: no means */
    size_t counting;                     /* transcripts that count in means */
};

/* Starts a document about this machine, whose memory a process may use so much of. */
void comparison_init(struct comparison *comparison, uint64_t memory_bytes);
void comparison_release(struct comparison *comparison);

/* ---- values ---- */

/* A number in [0, 2^53) at a path, else 0. */
double compare_number(const cJSON *object, const char *path);

/* Whether two objects have the same text there. */
bool compare_same(const cJSON *a, const cJSON *b, const char *path);

/* All put an item at a path, in place of what is there. A text is cleaned of control characters. */
void compare_put(cJSON *object, const char *path, cJSON *item);
void compare_put_number(cJSON *object, const char *path, double number);
void compare_put_text(cJSON *object, const char *path, const char *text);

/* ---- filling ---- */

/* Adds a transcript with size and digest of its file. Errors: HEALCL_USAGE. */
enum healcl_status compare_add_transcript(struct comparison *comparison, const char *path,
                                          struct healcl_error *error);

/* Adds a device of which source, JSON of `healcl devices`, tells; NULL: nothing is known. */
cJSON *compare_add_device(struct comparison *comparison, const cJSON *source);

/* Adds those that can be used of what `healcl devices --json` wrote: the default one and, unless
 * default_only, all others behind it. *is_of_driver: a driver has kept it from listing any. Returns
 * how many. */
size_t compare_add_devices(struct comparison *comparison, const char *text, bool default_only,
                           bool *is_of_driver);

/* Adds a run that is still to be made: one without an outcome. */
cJSON *compare_add_run(struct comparison *comparison, size_t transcript, size_t device);

/* An empty run of the host reference, to be filled, that tells whose fault it is that results of a
 * transcript differ. NULL: none is needed. */
cJSON *compare_add_judge(struct comparison *comparison, size_t transcript);

/* Removes runs that have not been made: the comparison is incomplete. Returns how many are left. */
size_t compare_end_early(struct comparison *comparison);

/* Fills a run from the end of its process and from what `healcl run --json` wrote there. */
void compare_take_run(struct comparison *comparison, cJSON *run,
                      const struct process_result *process);

/* The rates of the default device of `healcl devices --measure --json`, if there are any. */
void compare_take_rates(cJSON *device, const char *text);

/* Adds devices of a saved comparison and their runs of files with the same bytes as those here.
 * *added: how many runs. Errors: HEALCL_USAGE. */
enum healcl_status compare_add_baseline(struct comparison *comparison, const char *path,
                                        size_t *added, struct healcl_error *error);

/* *tree: the JSON of a file, cleaned, freed with cJSON_Delete also behind an error; NULL where the
 * text is none. HEALCL_USAGE: the file cannot be read, or it is too large. */
enum healcl_status compare_read_file(const char *path, cJSON **tree, struct healcl_error *error);

/* Fills in the load of the machine, "load_before" or "load_after" the runs. */
void compare_describe_load(struct comparison *comparison, const char *key);

/* Puts a "command" line for a shell: a command of healcl and its arguments, with settings of the
 * environment that matter in front, and ~ for the home folder. */
void compare_put_command(cJSON *object, const char *command, const char *const *arguments,
                         size_t count);

/* ---- runs and devices ---- */

cJSON *compare_device(const struct comparison *comparison, size_t device);
cJSON *compare_transcript(const struct comparison *comparison, size_t transcript);
cJSON *compare_device_of(const struct comparison *comparison, const cJSON *run);

#define FOR_EACH_RUN_OF(run, comparison, transcript)                                            \
    cJSON_ArrayForEach((run), (comparison)->runs) if (json_number_at((run), "transcript_at") == \
                                                      (transcript))

size_t compare_own_devices(const struct comparison *comparison); /* no baseline's: the first ones */
bool compare_is_own(const struct comparison *comparison, const cJSON *run);

/* Whether its results were verified, or there was nothing to verify. */
bool compare_is_right(const cJSON *run);

/* ---- what it means ---- */

/* Figures by which devices are compared and judged: paths of a run. */
enum { COMPARE_COMPUTE, COMPARE_STEADY, COMPARE_FIGURES };
struct compare_figure {
    const char *name, *samples, *median, *low, *high;
    const char *speedup, *mean; /* of a device: mean */
};
extern const struct compare_figure compare_figures[COMPARE_FIGURES];

struct compare_speedup {
    double factor;    /* of the medians, or a mean of such; above 1: faster */
    double low, high; /* of opposite quartiles */
};

/* Speed-ups of a device over another one on all transcripts that count. */
struct compare_mean {
    struct compare_speedup of;
    double least, most;
    size_t faster, slower; /* on how many the whole interval says so */
};

/* Adds medians and quartiles of a run's samples. */
void compare_add_figures(cJSON *run);

/*
 * Adds names, faults, speed-ups, means, and times against baselines, once all is filled.
 *
 * A transcript counts in means where it is not too small to tell devices apart, and where every
 * device here that is not at fault has run it right. The first of these devices is the base. A
 * device at fault, or of a baseline, has a mean where it has run all of these transcripts right.
 */
void compare_conclude(struct comparison *comparison);

extern const char compare_too_small[]; /* a sentence about such a transcript */

/* Whether a run failed by its device's fault. */
bool compare_is_at_fault(const struct comparison *comparison, size_t device);

/* How many times as fast as another device one is. False: one of them has not run all transcripts
 * that count right, or the figure was not measured. */
bool compare_mean_against(const struct comparison *comparison, const struct compare_figure *figure,
                          size_t device, size_t other, struct compare_mean *mean);

/* Whether the quartiles are more than COMPARE_SPREAD_MAX percent of the median from the middle. */
enum { COMPARE_SPREAD_MAX = 30, COMPARE_LEAST_NANOSECONDS = 100000 };
bool compare_spreads(const cJSON *run, const struct compare_figure *figure);

/* Whether they spread so, and the median is not too short to say anything. */
bool compare_is_noisy(const cJSON *run, const struct compare_figure *figure);

/* Titles, "PoCL 3.1 on AMD EPYC 9354", and labels, which tell devices apart. */
void compare_name_devices(struct comparison *comparison);

/* "Intel Arc A770" of "Intel(R) Arc(TM) A770", cut where it is long. Returns text. */
enum { NAME_SIZE = 256 };
const char *compare_plain_name(char text[NAME_SIZE], const char *name);

/* Says in a few sentences how the devices compare. To be freed. */
char *compare_lead(const struct comparison *comparison);

/* "verified: 1 of 3", "timed out: 600 s"; to be freed. */
char *compare_outcome_text(const struct comparison *comparison, const cJSON *run);

/* ---- columns ---- */

/* A row is a key of the document, and a column of every form in which it is printed. */

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

/* How a column is printed. */
enum {
    ALWAYS = 1,      /* an empty text or 0 where it is not known */
    COPIED = 2,      /* out of what a child process wrote, or a saved comparison */
    OF_DEVICE = 4,   /* a key of the run's device */
    WHERE_KNOWN = 8, /* for people only where any run has a value */
    IN_CSV = 16,
    IN_TERMINAL = 32,
    IN_MARKDOWN = 128,
    ON_PAGE = 256,    /* its table of runs, or of devices */
    IN_DETAILS = 512, /* what the page unfolds */
};

/* A word or two behind a value, for people. */
enum compare_note { NO_NOTE, NOTE_COMPUTE, NOTE_STEADY, NOTE_RANGE, NOTE_CACHED, NOTE_CACHES };

struct compare_column {
    const char *path, *heading; /* heading: NULL for programs alone */
    enum compare_kind kind;
    unsigned places;
    const char *csv; /* its name there, where it is not the path */
    enum compare_note note;
    const char *meaning; /* of the heading; or NULL */
};

/* The lists end with a path of NULL. */
extern const struct compare_column compare_run_columns[], compare_device_columns[],
    compare_host_columns[];

#define FOR_EACH_COLUMN(column, table, place)                                   \
    for (const struct compare_column *column = (table); column->path; column++) \
        if (column->places & (place))

/* Copies what columns say of a source, which may be NULL. */
void compare_copy(cJSON *target, const cJSON *source, const struct compare_column *table);

/* ---- against baselines ---- */

/* Puts "slowdowns" of a run, if times are judged. Returns whether one of them is slower. */
bool compare_judge(const struct comparison *comparison, cJSON *run);

/* "compute: 1.32 times the time in base.json (1.25 to 1.40 at 95 %), more than 10 % slower"; to be
 * freed. */
char *compare_slowdown_text(const struct comparison *comparison, const cJSON *slowdown);

/* The exit code of the worst run here. */
int compare_worst(const struct comparison *comparison);

/* ---- files of devices ---- */

/* Makes a folder for them, unless there is one. HEALCL_USAGE: it cannot be written into. */
enum healcl_status compare_make_results(const char *folder, struct healcl_error *error);

/* Writes FOLDER/VENDOR-DEVICE.json of each device here but the host reference. What such a file
 * has of runs, or of a check, stays where there are none now. HEALCL_USAGE: it cannot be read or
 * written, or is of another device. */
enum healcl_status compare_write_results(const struct comparison *comparison, const char *folder,
                                         struct healcl_error *error);

/* ---- printing ---- */

void compare_print_table(const struct comparison *comparison, const struct style *style);
void compare_print_json(const struct comparison *comparison, FILE *stream);
void compare_print_csv(const struct comparison *comparison, FILE *stream);
void compare_print_markdown(const struct comparison *comparison, FILE *stream);
void compare_print_junit(const struct comparison *comparison, FILE *stream);
void compare_print_html(const struct comparison *comparison, FILE *stream);

#endif
