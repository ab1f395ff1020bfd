/* healcl run --input, --requests, --steady and --keep: a transcript as a service runs it. */
#ifndef HEALCL_CLI_REQUESTS_H
#define HEALCL_CLI_REQUESTS_H

#include "cli/cli.h"
#include "cli/progress.h"

/* The options, before the transcript is known. Freed with request_inputs_free. */
struct request_inputs {
    struct words texts;          /* "ENTRY=FILE.npy" of --input */
    struct healcl_input *inputs; /* as many, once they are read */
    struct words segments;       /* of --keep */
};

/* Takes --input into a struct request_inputs. The text stays. */
int take_request_input(const struct command *command, const struct command_option *option,
                       void *self, const char *text);

/* The number of the input that text, of so many characters, names as ENTRY of an option: by the
 * number of its entry or the name of its tensor; "entry:" or "name:" before it says which. Errors:
 * HEALCL_USAGE where it names none, or several. */
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

/* `--audit`; share 0: there is none. */
struct request_audit {
    double share;
    uint32_t seed;
    struct healcl_audit_facts facts; /* of the session */
    struct healcl_error error;       /* what the request ended with */
};

struct request_facts {
    bool no_verify;
    struct healcl_session *session; /* of an audit, or NULL */
    uint32_t count;                 /* behind the first one */
    uint32_t done;                  /* of those: fewer where an audit has ended one */
    struct request_audit audit;
    uint64_t *nanoseconds;      /* of each; sorted by the report; freed with free() */
    uint64_t spent_nanoseconds; /* by all of them */
    /* The first one, which is not among them, uploads what is kept and compiles kernels. */
    uint64_t first_nanoseconds, first_bytes_uploaded;
    uint64_t bytes_uploaded;      /* by each further one */
    uint64_t device_bytes;        /* allocated on the device in the end */
    uint64_t fallbacks;           /* steps of the last one that the host did for the device */
    uint64_t compared, different; /* results, of all requests */
};

/* Adds "requests_per_second" and "latency_ns" of count requests that took so long each, and all at
 * once; 0 where there are none. Sorts the nanoseconds. */
void report_add_rates(cJSON *object, uint64_t *nanoseconds, size_t count, uint64_t all);

/* device: NULL for the host reference. */
cJSON *report_requests(const char *file, const struct device_info *device,
                       const struct request_facts *facts);
void report_requests_text(const cJSON *document, const struct style *style);

/*
 * Runs facts->count requests in one session, of which facts->done have come to their end where an
 * audit differs, which is no error. Each brings data from memory for its live inputs: those of
 * --input, and with --keep the uploads of other segments; without both the uploads of the segments
 * upload_ct..., or where there are none of the last segment that uploads. device: NULL for the host
 * reference.
 */
enum healcl_status requests_run(const struct healcl_transcript *transcript,
                                struct healcl_device *device, const struct request_inputs *live,
                                struct progress *progress, struct request_facts *facts,
                                struct healcl_error *error);

/* Frees what facts own, before the device is closed. */
void requests_release(struct request_facts *facts);

#endif
