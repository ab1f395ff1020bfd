/*
 * Where a device first goes wrong: every step of a transcript runs on the device and on the
 * reference, from the reference's state, so that the first step that differs is the one at fault.
 * Where none does the transcript runs once more as a whole: steps may do harm to each other.
 * A manifest's kernel of an operation counts as one step, with the copies that it wants: it is
 * compared with the operation's body.
 */
#ifndef HEALCL_TOOLS_DIAGNOSE_H
#define HEALCL_TOOLS_DIAGNOSE_H

#include "run/transcript.h"
#include "tools/failing_case.h"

enum diagnosis_kind {
    DIAGNOSIS_AGREES,   /* all steps, and the whole run */
    DIAGNOSIS_DIFFERS,  /* a step gives other values */
    DIAGNOSIS_FAILS,    /* a step fails, or refuses what the reference takes */
    DIAGNOSIS_EXPECTED, /* the device agrees, but the transcript expects another result */
    DIAGNOSIS_WHOLE,    /* each step agrees alone, the whole run does not */
};

struct diagnosis {
    enum diagnosis_kind kind;
    size_t steps; /* that were compared */
    /* The first one at fault, and its segment; NULL where there is none. */
    const struct step *step;
    const struct segment *segment;
    struct manifest_kernel kernel; /* that ran it, of a manifest; its name is NULL where none did */
    uint64_t elements, different;  /* of its output or result */
    uint64_t outside;         /* elements of the storage that are not the output's, but changed */
    int64_t position;         /* in C order: the first that differs; 0 where none does */
    int64_t actual, expected; /* there */
    /* DIAGNOSIS_FAILS; DIAGNOSIS_WHOLE: the first result that differs, or why the run fails */
    struct healcl_error failure;
    struct failing_case smallest; /* DIAGNOSIS_DIFFERS and DIAGNOSIS_FAILS */
    enum healcl_verdict whole;    /* of the whole run; where no result is expected there is none */
};

struct diagnose_observer {
    void *context;
    /* Called before each step, and with step_count before the whole run. */
    void (*progress)(void *context, size_t step, size_t step_count);
};

/*
 * Only what is alive in the transcript is kept, once on the host, and of it on the device only what
 * the step uses. Errors: HEALCL_REFUSED where the reference refuses the transcript,
 * HEALCL_NO_MEMORY; HEALCL_DEVICE where the device cannot take a step's inputs.
 */
enum healcl_status diagnose(struct healcl_device *device,
                            const struct healcl_transcript *transcript,
                            const struct diagnose_observer *observer, struct diagnosis *diagnosis,
                            struct healcl_error *error);
void diagnosis_release(struct diagnosis *diagnosis);

#endif
