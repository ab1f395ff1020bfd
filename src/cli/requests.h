/* healcl run --input, --requests, --batch and --keep: a transcript as a service runs it. */
#ifndef HEALCL_CLI_REQUESTS_H
#define HEALCL_CLI_REQUESTS_H

#include "cli/cli.h"
#include "report/requests.h"

/* What the options name, before the transcript is known. Freed with live_inputs_free. */
struct live_inputs {
    char **texts; /* "ENTRY=FILE.npy" */
    size_t count, capacity;
    struct healcl_input *inputs; /* count of them, once they are read */
    char **segments;             /* of --keep */
    size_t segment_count, segment_capacity;
};

/* For the options --input and --keep. Returns EXIT_VERIFIED or a usage error. */
int live_inputs_add(const struct command *command, struct live_inputs *live, const char *text);
int live_inputs_keep(const struct command *command, struct live_inputs *live, const char *segment);

/* The number of the input that text, of so many characters, names as ENTRY of an option: by the
 * number of its entry or the name of its tensor, or behind "entry:" or "name:" by that alone.
 * Errors: HEALCL_USAGE where it names none, or several. */
enum healcl_status find_input(const struct healcl_transcript *transcript, const char *option,
                              const char *text, size_t length, size_t *input,
                              struct healcl_error *error);

/* Sets input and axis of a split from "ENTRY:AXIS". Errors: HEALCL_USAGE. */
enum healcl_status find_split(const struct healcl_transcript *transcript, const char *text,
                              struct healcl_split *split, struct healcl_error *error);

/* Reads the files. Errors: those of find_input and npy_read_file. */
enum healcl_status live_inputs_read(struct live_inputs *live,
                                    const struct healcl_transcript *transcript,
                                    struct healcl_error *error);
void live_inputs_free(struct live_inputs *live);

/* Runs facts->count requests in one session, of which facts->done have come to their end where an
 * audit differs, which is no error; began, which may be NULL, is told of each. With facts->batch
 * they run together in batches. device: NULL for the host reference. */
enum healcl_status requests_run(const struct healcl_transcript *transcript,
                                struct healcl_device *device, const struct live_inputs *live,
                                void (*began)(void *context, uint32_t number), void *context,
                                struct request_facts *facts, struct healcl_error *error);

/* The same one by one, with the data of live inputs in memory: those of --input, and with --keep
 * the uploads of other segments; without both the uploads of the segments upload_ct..., or where
 * there are none of the last one that uploads. */
enum healcl_status requests_run_steady(const struct healcl_transcript *transcript,
                                       struct healcl_device *device, const struct live_inputs *live,
                                       struct request_facts *facts, struct healcl_error *error);

/* Frees what facts own. */
void requests_release(struct request_facts *facts);

#endif
