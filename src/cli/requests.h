/* healcl run --input, --requests, --steady and --keep: a transcript as a service runs it. */
#ifndef HEALCL_CLI_REQUESTS_H
#define HEALCL_CLI_REQUESTS_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/requests_report.h"

/* The options, before the transcript is known. Freed with live_inputs_free. */
struct live_inputs {
    const char **texts; /* "ENTRY=FILE.npy" of --input */
    size_t count;
    struct healcl_input *inputs; /* count of them, once they are read */
    const char **segments;       /* of --keep */
    size_t segment_count;
};

/* Take --input and --keep into a struct live_inputs. The text stays. */
int take_live_input(const struct command *command, const struct command_option *option, void *self,
                    const char *text);
int take_kept_segment(const struct command *command, const struct command_option *option,
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
enum healcl_status live_inputs_read(struct live_inputs *live,
                                    const struct healcl_transcript *transcript,
                                    struct healcl_error *error);
void live_inputs_free(struct live_inputs *live);

/*
 * Runs facts->count requests in one session, of which facts->done have come to their end where an
 * audit differs, which is no error. Each brings data from memory for its live inputs: those of
 * --input, and with --keep the uploads of other segments; without both the uploads of the segments
 * upload_ct..., or where there are none of the last segment that uploads. device: NULL for the host
 * reference.
 */
enum healcl_status requests_run(const struct healcl_transcript *transcript,
                                struct healcl_device *device, const struct live_inputs *live,
                                struct progress *progress, struct request_facts *facts,
                                struct healcl_error *error);

/* Frees what facts own, before the device is closed. */
void requests_release(struct request_facts *facts);

#endif
