/* Each rank of a healcl-mpi command reads the command line, and opens a transcript and a device. */
#ifndef HEALCL_MPI_OPENING_H
#define HEALCL_MPI_OPENING_H

#include "cli/command_job.h"
#include "mpi/ranks.h"

extern const struct command command_run_ranks, command_serve;

/* The state of each command begins with this structure. */
struct opening {
    /* The command line sets these. */
    struct command_job job; /* its selector may be a list with commas; NULL: none */
    const char *package;    /* or NULL */
    bool reference;         /* use the host reference instead of a device */
    /* All ranks work on one request. Parts are made from the transcript's plan. */
    bool is_split;
    /* Set by opening_open, with the job's device. */
    struct healcl_transcript *transcript;
    char transcript_hash[HASH_SIZE], plan_hash[HASH_SIZE];
    struct device_info info; /* of the device */
    uint64_t memory_limit;   /* limit for the tensors of one rank; 0: no limit */
};

/* Checks that the options of devices agree, before MPI begins. A mistake is the same at all ranks,
 * so only the first rank reports it. Returns GOES_ON or the exit code. */
int opening_prepare(const struct command *command, void *self);

/* Begins MPI, and the report of rank 0. Returns GOES_ON or the exit code of all ranks. */
int opening_start(struct opening *opening, struct ranks *ranks);

/* Opens the transcript and the device. The ranks on a host take its devices in turn: those that the
 * selector names, else the one that HEALCL_DEVICE names. Otherwise they take all devices of the
 * best device's kind and platform. Returns GOES_ON, or the exit code of all ranks. It fails if a
 * rank fails, or if its version, transcript or plan differs from rank 0's. All ranks call this.
 * Release with opening_release. */
int opening_open(struct opening *opening, struct ranks *ranks);
void opening_release(struct opening *opening);

/* Returns the name of a rank's device. */
const char *opening_device(const struct opening *opening);

#define DEVICES_OPTION                                                            \
    "devices", 'd', OPTION_DEVICE, "LIST", KEPT_IN(struct command_job, selector), \
        "selectors as healcl devices shows them, separated by commas, that the "  \
        "ranks of a host take in turn; or reference; by default HEALCL_DEVICE, "  \
        "else all devices of the best kind"
#define REFERENCE_OPTION                                                   \
    "reference", 0, OPTION_FLAG, NULL, KEPT_IN(struct opening, reference), \
        "run in plain C on the host instead of on devices", .decides_device = true
#define PACKAGE_OPTION                                                      \
    "package", 0, OPTION_FILE, "PACKAGE", KEPT_IN(struct opening, package), \
        "use the programs of a package from healcl compile"
#define QUIET_OPTION \
    "quiet", 'q', OPTION_FLAG, NULL, KEPT_IN(struct command_job, quiet), "print only errors"
#define OPENING_OPTIONS                                                                         \
    {DEVICES_OPTION}, {REFERENCE_OPTION}, {PACKAGE_OPTION}, {PASSES_OPTION}, JOB_LIMITS,        \
        {OPS_OPTION}, {TRUST_OPTION}, {QUIET_OPTION}, {JSON_OPTION}, {TIMEOUT_OPTION(GIVE_UP)}, \
    {                                                                                           \
        HELP_OPTION                                                                             \
    }

#endif
