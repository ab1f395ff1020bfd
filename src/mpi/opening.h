/* Every command of healcl-mpi takes and opens these at each rank: a command line, a transcript and
 * a device. */
#ifndef HEALCL_MPI_OPENING_H
#define HEALCL_MPI_OPENING_H

#include "cli/command_job.h"
#include "core/hash.h"
#include "mpi/ranks.h"

extern const struct command command_run_ranks, command_serve;

/* The memory of each command begins with it. */
struct opening {
    /* The command line sets these. */
    struct command_job job; /* its selector: with commas between several; NULL: none is named */
    const char *package;    /* or NULL */
    bool reference;         /* the host's, instead of a device */
    bool is_split; /* all ranks do one request: the transcript's plan is for parts to be made of */
    /* Set by opening_open, with the job's device. */
    struct healcl_transcript *transcript;
    char transcript_hash[HASH_SIZE], plan_hash[HASH_SIZE];
    struct device_info info; /* of the device */
    uint64_t memory_limit;   /* of the tensors of one rank; 0: there is none */
};

/* Looks whether options of devices agree: a step of commands before MPI begins. A mistake, which
 * all ranks have, is reported by the first one alone. Returns GOES_ON or the exit code. */
int opening_prepare(const struct command *command, void *self);

/* Begins MPI, and the report of rank 0. Returns GOES_ON or the exit code of all. */
int opening_start(struct opening *opening, struct ranks *ranks);

/*
 * Opens both. The ranks of a host take its devices in turn: those that devices names; else the one
 * that HEALCL_DEVICE names; else all that are of one kind with the best one and of its platform.
 * Returns GOES_ON; or where that fails at a rank, or its version, transcript or plan are not rank
 * 0's, the exit code of all. All ranks call this. Released with opening_release.
 */
int opening_open(struct opening *opening, struct ranks *ranks);
void opening_release(struct opening *opening);

/* Names a rank's device. */
const char *opening_device(const struct opening *opening);

#define DEVICES_OPTION                                                                            \
    "devices", 'd', OPTION_DEVICE, "LIST",                                                        \
        "selectors as healcl devices shows them, with commas between them, which the ranks of a " \
        "host take in turn, or reference; else the one that HEALCL_DEVICE names, or all of the "  \
        "best kind",                                                                              \
        KEPT_IN(struct command_job, selector)
#define REFERENCE_OPTION                                                         \
    "reference", 0, OPTION_FLAG, NULL, "plain C on the host instead of devices", \
        KEPT_IN(struct opening, reference), .decides_device = true
#define PACKAGE_OPTION                                                                   \
    "package", 0, OPTION_FILE, "PACKAGE", "take programs from what healcl compile made", \
        KEPT_IN(struct opening, package)
#define QUIET_OPTION \
    "quiet", 'q', OPTION_FLAG, NULL, "print only errors", KEPT_IN(struct command_job, quiet)
#define OPENING_OPTIONS                                                                         \
    {DEVICES_OPTION}, {REFERENCE_OPTION}, {PACKAGE_OPTION}, {PASSES_OPTION}, JOB_LIMITS,        \
        {OPS_OPTION}, {TRUST_OPTION}, {QUIET_OPTION}, {JSON_OPTION}, {TIMEOUT_OPTION(GIVE_UP)}, \
    {                                                                                           \
        HELP_OPTION                                                                             \
    }

#endif
