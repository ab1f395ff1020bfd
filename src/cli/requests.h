/* Implements healcl run --input, --requests, --steady and --keep: a transcript that serves
 * requests. */
#ifndef HEALCL_CLI_REQUESTS_H
#define HEALCL_CLI_REQUESTS_H

#include "cli/cli.h"

/* The options, before the transcript is known. Release with request_inputs_free. */
struct request_inputs {
    struct words texts;          /* values of --input: "ENTRY=FILE.npy" */
    struct healcl_input *inputs; /* texts.count of them, once read */
    struct words segments;       /* values of --keep */
};

/* Stores a value of --input in a struct request_inputs. The text must live as long. */
int take_request_input(const struct command *command, const struct command_option *option,
                       void *self, const char *text);

/* Finds the input that `length` characters of text name as ENTRY of an option. ENTRY is the number
 * of its entry or the name of its tensor. "entry:" or "name:" in front selects one of them. Errors:
 * HEALCL_USAGE if it names no input, or several. */
enum healcl_status find_input(const struct healcl_transcript *transcript, const char *option,
                              const char *text, size_t length, size_t *input,
                              struct healcl_error *error);

/* Sets input and axis of a split from "ENTRY:AXIS". Errors: HEALCL_USAGE. */
enum healcl_status find_split(const struct healcl_transcript *transcript, const char *text,
                              struct healcl_split *split, struct healcl_error *error);

/* Reads the files. Errors: those of find_input and npy_read_file. */
enum healcl_status request_inputs_read(struct request_inputs *live,
                                       const struct healcl_transcript *transcript,
                                       struct healcl_error *error);
void request_inputs_free(struct request_inputs *live);

/* `--audit`; share 0: no audit. */
struct request_audit {
    double share;
    uint32_t seed;
    struct healcl_audit_facts facts; /* of the session */
    struct healcl_error error;       /* the error that ended the request */
};

struct request_facts {
    bool no_verify;
    struct healcl_session *session; /* for an audit, or NULL */
    uint32_t count;                 /* requests after the first one */
    uint32_t done;                  /* completed ones: fewer if an audit has ended one */
    struct request_audit audit;
    uint64_t *nanoseconds;      /* of each; the report sorts them; freed with free() */
    uint64_t spent_nanoseconds; /* for all of them */
    /* The first request is not counted among them. It uploads kept data and compiles kernels. */
    uint64_t first_nanoseconds, first_bytes_uploaded;
    uint64_t bytes_uploaded;      /* by each later request */
    uint64_t device_bytes;        /* allocated on the device at the end */
    uint64_t fallbacks;           /* steps of the last request that the host ran for the device */
    uint64_t compared, different; /* results, over all requests */
};

/* Adds "requests_per_second" and "latency_ns" of `count` requests: their nanoseconds, and `all` for
 * the total. The values are 0 if count is 0. Sorts the nanoseconds. */
void report_add_rates(cJSON *object, uint64_t *nanoseconds, size_t count, uint64_t all);

/* device: NULL for the host reference. */
cJSON *report_requests(const char *file, const struct device_info *device,
                       const struct request_facts *facts);
void report_requests_text(const cJSON *document, const struct style *style);

/*
 * Runs facts->count requests in one session. facts->done of them have completed. It is less if an
 * audit found a difference, which is not an error here.
 *
 * Each request brings data from memory for its live inputs. These are the inputs of --input, and
 * with --keep the uploads of other segments. Without both options they are the uploads of the
 * segments upload_ct..., or of the last segment that uploads. device: NULL for the host reference.
 */
enum healcl_status requests_run(const struct healcl_transcript *transcript,
                                struct healcl_device *device, const struct request_inputs *live,
                                struct request_facts *facts, struct healcl_error *error);

/* Frees what facts own. Call it before the device is closed. */
void requests_release(struct request_facts *facts);

#endif
