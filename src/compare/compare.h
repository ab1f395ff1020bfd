/*
 * Several devices on the same transcripts: what was found, and how it is told.
 *
 * A comparison is filled from what child processes write (`healcl devices --json`, `healcl run
 * --json`) and from comparisons that were saved, and printed as a table for the terminal, as JSON
 * (docs/COMPARE.md), CSV, Markdown or HTML. Times are nanoseconds, sizes bytes; both are below
 * 2^53. Strings come from drivers and files: they may hold anything but a 0, and printers clean or
 * escape them. They and all arrays belong to the comparison.
 */
#ifndef HEALCL_COMPARE_COMPARE_H
#define HEALCL_COMPARE_COMPARE_H

#include "core/process.h"
#include "report/report.h"

enum compare_outcome {
    COMPARE_VERIFIED,
    COMPARE_UNVERIFIED, /* ran, and there was nothing to verify */
    COMPARE_UNPROVEN, /* the process says that it verified, and its results do not bear that out */
    COMPARE_DIFFERENT,
    COMPARE_REFUSED, /* the transcript, by that device or by all */
    COMPARE_FAILED,  /* the device or OpenCL failed, or the process ended with a code of its own */
    COMPARE_CRASHED, /* the process died of a signal */
    COMPARE_TIMED_OUT, /* the process was killed for taking too long */
};

/* Whose fault it is that a run did not go well. */
enum compare_fault {
    COMPARE_NO_FAULT,
    COMPARE_DEVICE_FAULT,
    /* It is refused; or it expects what the host reference does not compute either. */
    COMPARE_TRANSCRIPT_FAULT,
};

/* Where and when runs were measured. */
struct compare_origin {
    const char *baseline; /* the file that it was read from; NULL: here and now */
    const char *date;     /* "2026-01-31T12:00:00Z" */
    const char *healcl;   /* version */
    const char *commit;   /* or "" */
    const char *system;   /* "Linux 6.1.0 x86_64" */
    const char *processor;
    const char *model;    /* of the processor: "family 25, model 17, stepping 1", or "" */
    const char *governor; /* of its clock: "performance", or "" */
    uint64_t processors, memory_bytes;
    uint64_t load_before, load_after; /* how many processes ran or waited, in the minute before the
                                         runs began and before they ended: hundredths */
};

/* What `healcl check` found on a device. */
struct compare_check {
    bool done;
    bool verified; /* nothing was wrong */
    bool quick;    /* few sizes */
    uint64_t calls, failed, unsupported;
    const char *message; /* why it came to no end, or "" */
};

/* What is measured of a run. */
enum compare_figure {
    COMPARE_COMPUTE, /* the device's kernels, or steps of the reference */
    COMPARE_STEADY,  /* a request of a session, in which all but live inputs is resident */
    COMPARE_LEADING, /* by those before it devices are compared and judged */
    COMPARE_TRANSFER = COMPARE_LEADING,
    COMPARE_DECODE, /* of payloads, by the host */
    COMPARE_WHOLE,  /* these three, without building kernels and verifying */
    COMPARE_FIGURES
};

/* Nanoseconds, by the host's clock, of each repetition or request. */
struct compare_samples {
    uint64_t *of;
    size_t count; /* 0: it was not measured */
};

/* Speed-ups of a device over all transcripts that count (compare_transcript). */
struct compare_mean {
    double factor;            /* their geometric mean; 0: it has not all of them */
    double low, high;         /* those of opposite quartiles */
    double least, most;       /* of them */
    size_t least_at, most_at; /* the transcripts that they belong to */
};

struct compare_device {
    const struct compare_origin *origin;
    const char *selector;         /* as --device takes it, or "reference" */
    const char *platform_version; /* which may tell of the compiler */
    const char *name, *type, *platform, *vendor, *driver, *version; /* "" where unknown */
    const char *title;    /* what it is called for people: compare_conclude; or NULL */
    const char *tuning;   /* as HEALCL_TUNING takes it; "" where unknown */
    const char *tuned_by; /* "healcl tune", "the environment" ...; "" where it is not, or unknown */
    bool tuned;
    bool emulator;                     /* of hardware that is not there, or a software renderer */
    uint64_t compute_units, clock_mhz; /* 0 where unknown */
    uint64_t global_memory, max_allocation, local_memory, max_work_group_size;
    uint64_t copied_bytes, products; /* a second (docs/JSON.md); 0: not measured */
    struct compare_check check;
    /* What the runs come to: compare_conclude. */
    bool at_fault; /* one of its runs failed, or its check */
    struct compare_mean means[COMPARE_LEADING];
};

struct compare_run;

struct compare_transcript {
    const char *file;
    uint64_t bytes;
    char digest[24]; /* of the file: 64 bits of xxHash */
    bool too_small;  /* to tell devices apart: compare_conclude */
    bool counts;     /* in geometric means: compare_conclude */
    /* The host reference's run that tells whose fault it is that results differ; NULL where none
     * do, or where the reference is among the devices. */
    const struct compare_run *judge;
};

/* A segment, or all operations of one kind. */
struct compare_part {
    const char *name;
    uint64_t count;              /* of operations */
    uint64_t bytes;              /* up and down; of a kind: that its operations read and write */
    uint64_t nanoseconds;        /* median */
    uint64_t fallbacks;          /* of a kind: steps that the host did, for the device could not */
    const char *fallback_reason; /* or "" */
};

/* A process of its own, up to its first result. */
struct compare_first {
    uint64_t nanoseconds; /* from the start of the process until that was verified; 0: unknown */
    uint64_t compile_nanoseconds;
};

enum { COMPARE_COLUMNS_MAX = 64 };

/* One transcript on one device. */
struct compare_run {
    size_t device, transcript; /* indices */
    enum compare_outcome outcome;
    enum compare_fault fault; /* compare_conclude; of a saved run as it was then */
    int exit_code;            /* of the process; -1: it had none */
    int signal;               /* that ended the process; 0: none did */
    const char *message;      /* one line about what went wrong, or "" */
    const char *command;      /* that repeats the run */
    uint64_t results, compared, different;
    struct compare_samples times[COMPARE_FIGURES];
    uint64_t open_device_nanoseconds, open_transcript_nanoseconds, compile_nanoseconds;
    uint64_t warm_up_nanoseconds; /* a first repetition that does not count, with cold kernels */
    uint64_t programs_built, programs_loaded; /* from source; from kept binaries */
    struct compare_first cold, warm; /* with empty caches; with those that the cold one left */
    uint64_t process_nanoseconds;    /* from before the process started to after its end */
    uint64_t taken_nanoseconds;      /* by all of its processes; 0: it has not been made */
    uint64_t host_bytes;             /* most at one time */
    uint64_t roofline_nanoseconds;   /* that the device's rates allow for kernels; 0: unknown */
    /* What was measured and is only told, by the place of its row in the table of columns.h. */
    uint64_t figures[COMPARE_COLUMNS_MAX];
    uint64_t *profiled; /* time of each further repetition, in which operations were timed */
    size_t profiled_count;
    bool operations_by_host; /* their times are of the host's clock: docs/COMPARE.md */
    struct compare_part *segments, *operations;
    size_t segment_count, operation_count;
    struct healcl_manifest_kernel *kernels;
    size_t kernel_count;
    const char **differences; /* the first few lines that told of them */
    size_t difference_count;
};

/* A rank of healcl-mpi, or all of them together. */
struct compare_rank {
    bool is_all;
    uint64_t rank;
    const char *host, *device; /* "" of all */
    uint64_t requests, left_out, failed, batches;
    uint64_t nanoseconds; /* that it served, or the median of a request that all ranks share */
    uint64_t median, p95, p99, longest; /* nanoseconds of a request that it served */
    uint64_t longest_wait;              /* for the next request's number */
    uint64_t exchange_nanoseconds;
    uint64_t bytes_uploaded, bytes_sent; /* to the device; to other ranks */
    uint64_t device_bytes, device_bytes_peak;
};

/* What `healcl-mpi serve --json` or `healcl-mpi run --json` wrote. */
struct compare_ranks {
    const char *report;        /* the file */
    const char *transcript;    /* as it was named there */
    bool is_served;            /* by serve */
    struct compare_rank *rows; /* of each rank, and of all of them behind */
    size_t count;              /* of rows */
};

enum { COMPARE_DEVICES_MAX = 64, COMPARE_RANKS_MAX = 32 };

#define COMPARE_REFERENCE "reference" /* the selector of the host reference */

struct comparison {
    struct arena *arena;
    bool no_memory; /* something was left out for that: comparison_status */
    struct compare_origin origin;
    const char *command;
    const char *environment; /* with which commands begin: "A=b C=d", or "" */
    uint32_t repeat, timeout_seconds;
    size_t planned;     /* runs here, where it was interrupted; else 0 */
    bool judges_times;  /* by those of baselines */
    double fail_slower; /* percent that they may be slower */
    struct compare_transcript *transcripts;
    size_t transcript_count;
    struct compare_device devices[COMPARE_DEVICES_MAX]; /* those of baselines last */
    size_t device_count;
    struct compare_run *runs;
    size_t run_count, run_capacity;
    struct compare_ranks ranks[COMPARE_RANKS_MAX]; /* reports of several runs of ranks */
    size_t ranks_count;
    /* compare_conclude: */
    size_t base;           /* the device whose mean is 1; device_count: there are no means */
    size_t counting_count; /* transcripts that count in means */
};

/* Zeroed memory, and a copy of a text without control characters; they live as long as the
 * comparison's arena. Where there is no memory: NULL and "", and comparison_status says so from
 * then on, so that who keeps many has to look but once. */
void *comparison_alloc(struct comparison *comparison, size_t size);
const char *comparison_keep(struct comparison *comparison, const char *text);
enum healcl_status comparison_status(const struct comparison *comparison,
                                     struct healcl_error *error);

/* ---- filling (compare.c, read.c) ----
 * Errors: HEALCL_NO_MEMORY, and where told others. */

enum healcl_status comparison_init(struct comparison *comparison, struct healcl_error *error);
void comparison_release(struct comparison *comparison);

/* Adds an empty device or run, which lives until the next one is added. HEALCL_USAGE: there are
 * COMPARE_DEVICES_MAX devices. */
enum healcl_status comparison_add_device(struct comparison *comparison,
                                         struct compare_device **device,
                                         struct healcl_error *error);
enum healcl_status comparison_add_run(struct comparison *comparison, size_t transcript,
                                      size_t device, struct compare_run **run,
                                      struct healcl_error *error);

/* Adds, of what `healcl devices --json` wrote, the device that runs by default, and behind it all
 * others that can be used unless default_only. Adds none where text is no such JSON. */
enum healcl_status compare_read_devices(struct comparison *comparison, const char *text,
                                        bool default_only, struct healcl_error *error);

/* An empty run of the host reference, to be filled, as judge of a transcript; NULL where none is
 * wanted. */
enum healcl_status comparison_add_judge(struct comparison *comparison, size_t transcript,
                                        struct compare_run **judge, struct healcl_error *error);
/* Makes a run empty again, to be filled anew. */
void comparison_reset_run(struct compare_run *run);

/* Forgets the runs that are still to be made, for nobody will make them: the comparison is
 * incomplete from then on. Returns how many of those here are there. */
size_t comparison_end_early(struct comparison *comparison);

/* What the runs that are still to be made will probably take: as long as those of their transcript
 * did, or else as all. 0: nothing is known. */
uint64_t comparison_left(const struct comparison *comparison);

/* Fills a run from the end of its process, and from what `healcl run --json` wrote there. */
enum healcl_status compare_read_run(struct comparison *comparison, struct compare_run *run,
                                    const struct process_result *process,
                                    struct healcl_error *error);

/* What `healcl run --json` of one repetition wrote about its first result. */
void compare_read_first(struct comparison *comparison, struct compare_first *first,
                        const struct process_result *process);

/* What `healcl check --json` wrote, or how it ended. */
enum healcl_status compare_read_check(struct comparison *comparison, struct compare_device *device,
                                      const struct process_result *process,
                                      struct healcl_error *error);

/* Takes the rates of the device that runs by default out of what `healcl devices --measure --json`
 * wrote; they stay where there are none. */
void compare_read_rates(struct comparison *comparison, struct compare_device *device,
                        const char *text);

/* *text: all of a file, to be freed also behind an error. HEALCL_USAGE: it cannot be read, or is
 * too large. */
enum healcl_status compare_read_file(const char *path, char **text, struct healcl_error *error);

/* Adds the devices of a saved comparison and their runs of transcripts that are compared here, that
 * is, files of the same bytes. *added: how many runs. HEALCL_USAGE: the file cannot be read or is
 * no saved comparison. */
enum healcl_status compare_read_baseline(struct comparison *comparison, const char *path,
                                         size_t *added, struct healcl_error *error);

/* Adds a report of `healcl-mpi serve --json` or `run --json`. HEALCL_USAGE: the file cannot be read
 * or is none, or there are COMPARE_RANKS_MAX of them. */
enum healcl_status compare_read_ranks(struct comparison *comparison, const char *path,
                                      struct healcl_error *error);

/* ---- what it means (compare.c, conclude.c) ---- */

/* A transcript is too small to tell devices apart where its operations read and write less, on
 * average, for then their number is measured; or where the fastest device computes for less. */
enum { COMPARE_LEAST_BYTES = 1 << 14, COMPARE_LEAST_NANOSECONDS = 100000 };
extern const char compare_too_small[]; /* a sentence about such a transcript */

/*
 * Once all is filled: titles, whose fault a run is that did not go well, and the geometric means.
 * Where there is no memory for titles: comparison_status.
 *
 * A transcript counts in means where it is not too small, and where every device of this comparison
 * that is not at fault has run it right. Speed-ups are against the first of those devices. A device
 * at fault, or of a baseline, has a mean where it has run all of these transcripts right.
 */
void compare_conclude(struct comparison *comparison);

/* Whether it is the host reference. It tells what is right, and is never called the fastest. */
bool compare_is_reference(const struct compare_device *device);

/* Whether there are means to be told: of several transcripts and devices. */
bool compare_has_means(const struct comparison *comparison);

/* How many devices ran here and now: the first ones. */
size_t compare_own_devices(const struct comparison *comparison);

/* Figures below are leading ones, where not told otherwise. */

/* The devices here, not at fault, with the greatest mean and the next one; device_count where there
 * are none. */
size_t compare_fastest(const struct comparison *comparison, enum compare_figure figure);
size_t compare_next(const struct comparison *comparison, enum compare_figure figure);

/* How many times as fast as another device one is, over the transcripts that count. False: one of
 * them has not run all of these right, or the figure was not measured. */
bool compare_mean_against(const struct comparison *comparison, enum compare_figure figure,
                          size_t device, size_t other, struct compare_mean *mean);

/* Whether that is no difference: the interval has 1 in it. */
bool compare_is_alike(const struct compare_mean *mean);

/* How many times as fast as another one a device ran a transcript that counts. False: it does not
 * count, or one of them did not run it right, or it was not measured. */
struct compare_speedup;
bool compare_mean_part(const struct comparison *comparison, enum compare_figure figure,
                       size_t transcript, size_t device, size_t other,
                       struct compare_speedup *speedup);

/* What it all comes to, in a few sentences of plain text. To be freed; NULL: there is no memory. */
char *compare_lead(const struct comparison *comparison);

/* Of sorted samples. Between low and high, the quartiles, lies half of them. */
struct compare_times {
    uint64_t median, low, high, least, most;
    uint64_t p95, p99; /* what 95 and 99 % of them do not exceed; 0 where they are too few */
};

enum { P95_SAMPLES = 20, P99_SAMPLES = 100 }; /* for 5 and 1 % to be one of them at least */

struct compare_speedup {
    double factor;    /* of the medians; above 1: faster */
    double low, high; /* of opposite quartiles */
};

/* How far the quartiles are from the middle between them, in percent of the median. */
double compare_spread(const struct compare_times *times);

/* Whether times spread so much, in percent, that their median says little. */
enum { COMPARE_SPREAD_MAX = 30 };
bool compare_spreads(const struct compare_run *run, enum compare_figure figure);
bool compare_is_noisy(const struct compare_run *run); /* any leading figure spreads */

/* Both return false where there are none: no samples, of any figure; or also a result that is not
 * right. */
bool compare_times_of(const struct compare_run *run, enum compare_figure figure,
                      struct compare_times *times);
bool compare_speedup_of(const struct comparison *comparison, const struct compare_run *run,
                        enum compare_figure figure, struct compare_speedup *speedup);

/* Of a run over another one, right or not. Returns false where one of them has no times. */
bool compare_speedup_over(const struct compare_run *base, const struct compare_run *run,
                          enum compare_figure figure, struct compare_speedup *speedup);

/* The run that speed-ups of a transcript refer to: that of the first device which has times. NULL
 * where there is none. */
const struct compare_run *compare_reference(const struct comparison *comparison, size_t transcript,
                                            enum compare_figure figure);

/* The next run of a transcript, device by device, the first one behind NULL; NULL at the end. */
const struct compare_run *compare_next_run(const struct comparison *comparison, size_t transcript,
                                           const struct compare_run *last);

#define FOR_EACH_RUN_OF(comparison, transcript, run)                                          \
    for (const struct compare_run *run = compare_next_run(comparison, transcript, NULL); run; \
         run = compare_next_run(comparison, transcript, run))

/* Whether it was made here and now: it is no baseline's. */
bool compare_is_own(const struct comparison *comparison, const struct compare_run *run);

/* The run of a transcript on a device, or NULL. */
const struct compare_run *compare_find(const struct comparison *comparison, size_t transcript,
                                       size_t device);

/* What it costs to time operations: *factor is the median of the repetitions that do over that of
 * those that do not. Returns false where one of them is of fewer than OVERHEAD_SAMPLES. */
enum { OVERHEAD_SAMPLES = 3 };
bool compare_overhead_of(const struct compare_run *run, double *factor);

/* The time to build kernels that can be compared with other devices': of the process with empty
 * caches, or where there was none of the run itself, which may have found them in a cache. */
uint64_t compare_kernels_of(const struct compare_run *run);
/* A run's figure over that of a baseline's run on what seems to be the same device: of the same
 * name and platform, in a host with the same processor. */
struct compare_slowdown {
    enum compare_figure figure;
    const struct compare_run *run, *baseline; /* baseline: NULL where there is none of the device */
    const char *reason;                       /* why there is no interval; NULL: there is one */
    double ratio, low, high;                  /* of the medians, and the interval of 95 % */
    bool is_slower; /* all of the interval is beyond the percentage that is allowed */
};

/* So many samples of both runs make an interval. */
enum { SLOWDOWN_SAMPLES = 7, SLOWDOWNS_MAX = COMPARE_LEADING * COMPARE_DEVICES_MAX };

/* Lists those of a run, one for each figure of each baseline that has the device; one without,
 * which says so, where no baseline has it. None of runs that are not right, of baselines' runs, and
 * where times are not judged. Returns how many. */
size_t compare_slowdowns_of(const struct comparison *comparison, const struct compare_run *run,
                            struct compare_slowdown slowdowns[SLOWDOWNS_MAX]);

/* Whether one of them is slower. */
bool compare_is_slower(const struct comparison *comparison, const struct compare_run *run);

/* "compute", "steady request" */
const char *compare_figure_name(enum compare_figure figure);

/* "compute: 1.32 times the time in base.json (1.25 to 1.40 at 95 %), more than 10 % slower";
 * returns text. */
enum { SLOWDOWN_TEXT_SIZE = 640 };
const char *compare_slowdown_text(const struct comparison *comparison,
                                  const struct compare_slowdown *slowdown,
                                  char text[SLOWDOWN_TEXT_SIZE]);

/* What all runs and checks here come to: the worst of them, the later the worse. A wrong result is
 * worse news than a device that failed, that than a refused transcript, and that than a longer
 * time. Baselines are past. */
enum compare_news {
    COMPARED_RIGHT,
    COMPARED_SLOWER,
    COMPARED_REFUSED,
    COMPARED_FAILED,
    COMPARED_DIFFERENT,
};
enum compare_news compare_worst(const struct comparison *comparison);

/* Whether a run went well: its results were verified, or there was nothing to verify. */
bool compare_is_right(const struct compare_run *run);

/* "verified", "timed out": for programs and, with details in text, for people. */
const char *compare_outcome_name(enum compare_outcome outcome);
enum { OUTCOME_TEXT_SIZE = 96 };
const char *compare_outcome_text(const struct comparison *comparison, const struct compare_run *run,
                                 char text[OUTCOME_TEXT_SIZE]);

/* ---- names (label.c) ---- */

/* Its title, or else its name, or its selector. */
const char *compare_device_name(const struct compare_device *device);

/* What its driver calls it, where that is something else; or "". */
const char *compare_driver_name(const struct compare_device *device);

/* What people call a device: "PoCL 3.1 on AMD EPYC 9354", "NVIDIA H100". Returns title. */
enum { TITLE_PART_SIZE = 256, TITLE_SIZE = 4 * TITLE_PART_SIZE };
const char *compare_title(const struct compare_device *device, char title[TITLE_SIZE]);

enum { LABEL_SIZE = 512 };

/* What a device's name leaves open, "" where it tells it from all others: what its driver calls it;
 * the platform, where another one drives the same chip, that is, a device whose name contains this
 * one's or the other way round; its driver; its selector, unless that is told anyway. Returns text.
 */
const char *compare_device_detail(const struct comparison *comparison, size_t device,
                                  bool has_selector, char text[LABEL_SIZE]);

/* "PoCL 3.1 on AMD EPYC", "(baseline) llvmpipe", "NVIDIA H100 (1:0)". Returns text. */
const char *compare_device_label(const struct comparison *comparison, size_t device,
                                 char text[LABEL_SIZE]);

/* "2 of 5 calls wrong", "did not end: ..." */
const char *compare_check_text(const struct compare_check *check, char text[LABEL_SIZE]);

/* The file of a path. */
const char *compare_base_name(const char *path);

/* "Intel Arc A770" of "Intel(R) Arc(TM) A770": a name of a driver's, without marks, cut where it is
 * long. */
void compare_plain_name(char text[TITLE_PART_SIZE], const char *name);

/* ---- files of devices (results.c) ---- */

/* Makes a folder for them, unless there is one. HEALCL_USAGE: it cannot be written into. */
enum healcl_status compare_make_results(const char *folder, struct healcl_error *error);

/* Writes FOLDER/VENDOR-DEVICE.json of each device here but the host reference. What such a file
 * has of runs, or of a check, stays where there are none now. HEALCL_USAGE: it cannot be read or
 * written, or is of another device. */
enum healcl_status compare_write_results(const struct comparison *comparison, const char *folder,
                                         struct healcl_error *error);

/* ---- printing, one file each ---- */

enum healcl_status compare_print_table(const struct comparison *comparison,
                                       const struct style *style);
enum healcl_status compare_print_json(const struct comparison *comparison, FILE *stream);
enum healcl_status compare_print_csv(const struct comparison *comparison, FILE *stream);
enum healcl_status compare_print_markdown(const struct comparison *comparison, FILE *stream);
enum healcl_status compare_print_junit(const struct comparison *comparison, FILE *stream);
enum healcl_status compare_print_html(const struct comparison *comparison, FILE *stream);

#endif
