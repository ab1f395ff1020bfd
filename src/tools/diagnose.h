/* Finds the step at which a device first computes a wrong result. Every step of a transcript runs
 * on the device and on the reference, from the reference's state. So the first step that differs is
 * at fault. If none differs, the whole transcript runs once more, because steps may affect each
 * other. A manifest's kernel counts as one step with the copies that it needs. It is compared with
 * the operation's body. */
#ifndef HEALCL_TOOLS_DIAGNOSE_H
#define HEALCL_TOOLS_DIAGNOSE_H

#include "opencl/device.h"
#include "run/loaded_transcript.h"

enum diagnosis_kind {
    DIAGNOSIS_AGREES,   /* all steps and the whole run are right */
    DIAGNOSIS_DIFFERS,  /* a step gives different values */
    DIAGNOSIS_FAILS,    /* a step fails, or refuses inputs that the reference accepts */
    DIAGNOSIS_EXPECTED, /* the device equals the reference, but the transcript expects another
                           result */
    DIAGNOSIS_WHOLE,    /* each step is right on its own, the whole run is not */
};

/* The smallest case that a device computes wrongly: a step of a plan, reduced to a few rows of
 * its tensors. The tensors keep their layout in memory. The case is written as a separate
 * transcript. */
struct failing_case {
    char *transcript; /* NULL: no step fails alone. To be freed with free(). */
    size_t bytes;
    char text[512]; /* "modmul_ttc(a int64 [1, 2], ...)" */
};

struct diagnosis {
    enum diagnosis_kind kind;
    size_t steps; /* number of steps compared */
    /* The first step at fault and its segment; NULL if there is none. */
    const struct step *step;
    const struct segment *segment;
    /* The manifest's kernel that ran it; its name is NULL if none did. */
    struct manifest_kernel kernel;
    uint64_t elements, different; /* elements of its output or result */
    uint64_t outside;             /* changed elements of the storage outside the output */
    int64_t position; /* index of the first differing element, in C order; 0 if none differs */
    int64_t actual, expected; /* values at that index */
    /* DIAGNOSIS_FAILS: the failure. DIAGNOSIS_WHOLE: the first result that differs, or why the run
     * fails. */
    struct healcl_error failure;
    struct failing_case smallest; /* for DIAGNOSIS_DIFFERS and DIAGNOSIS_FAILS */
    enum healcl_verdict whole;    /* of the whole run, if results are expected */
};

/* Called before each step, and with `step` equal to step_count before the whole run. */
typedef void diagnose_progress(size_t step, size_t step_count);

/* Diagnoses a device. progress may be NULL. The host keeps one copy of the live tensors, and the
 * device only those of the current step. Errors: HEALCL_REFUSED if the reference refuses the
 * transcript; HEALCL_NO_MEMORY; HEALCL_DEVICE if the device cannot hold a step's inputs. */
enum healcl_status diagnose(struct healcl_device *device,
                            const struct healcl_transcript *transcript, diagnose_progress *progress,
                            struct diagnosis *diagnosis, struct healcl_error *error);
void diagnosis_release(struct diagnosis *diagnosis);

#endif
