/* Every command of healcl-mpi takes and opens these at each rank: a command line, a transcript and
 * a device. */
#ifndef HEALCL_MPI_OPENING_H
#define HEALCL_MPI_OPENING_H

#include "cli/report_file.h"
#include "core/hash.h"
#include "mpi/ranks.h"

extern const struct command command_run_ranks, command_serve;

struct opening {
    /* The command line sets these. */
    const char *file;    /* the transcript */
    const char *devices; /* selectors with commas between them, or NULL */
    const char *package; /* or NULL */
    bool reference;      /* the host's, instead of a device */
    struct healcl_limits limits;
    bool is_split; /* all ranks do one request: the transcript's plan is for parts to be made of */
    struct report_file json; /* of rank 0 */
    bool quiet;
    /* Set by opening_open. */
    struct healcl_transcript *transcript;
    char transcript_hash[HASH_SIZE], plan_hash[HASH_SIZE];
    struct healcl_device *device; /* NULL: the reference */
    struct device_info info;      /* of the device */
    uint64_t memory_limit;        /* of the tensors of one rank; 0: there is none */
};

/* Takes a command line into a command's memory, which has opening, before MPI begins: a mistake,
 * which all ranks have, is reported by the first one alone. Returns GOES_ON or the exit code. */
int opening_take(struct opening *opening, const struct command *command, int argc, char **argv,
                 void *memory);

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

#define DEVICES_OPTION(type, member)                                                              \
    "devices", 'd', OPTION_DEVICE, "LIST",                                                        \
        "selectors as healcl devices shows them, with commas between them, which the ranks of a " \
        "host take in turn, or reference; else the one that HEALCL_DEVICE names, or all of the "  \
        "best kind",                                                                              \
        KEPT_IN(type, member)
#define REFERENCE_OPTION(type, member)                                           \
    "reference", 0, OPTION_FLAG, NULL, "plain C on the host instead of devices", \
        KEPT_IN(type, member), .decides_device = true
#define PACKAGE_OPTION(type, member)                                                     \
    "package", 0, OPTION_FILE, "PACKAGE", "take programs from what healcl compile made", \
        KEPT_IN(type, member)
#define PASSES_OPTION(type, member)        \
    "passes", 0, OPTION_WORD, "LIST|none", \
        "only these passes, with commas between them, or none of them", KEPT_IN(type, member)
#define QUIET_OPTION(type, member) \
    "quiet", 'q', OPTION_FLAG, NULL, "print only errors", KEPT_IN(type, member)

#define OPENING_OPTIONS(type, member)                                                           \
    {DEVICES_OPTION(type, member.devices)}, {REFERENCE_OPTION(type, member.reference)},         \
        {PACKAGE_OPTION(type, member.package)}, {PASSES_OPTION(type, member.limits.passes)},    \
        {MEMORY_OPTION(type, member.limits.memory_bytes)},                                      \
        {WORK_OPTION(type, member.limits.work)}, {EXPAND_OPTION(type, member.limits.expand)},   \
        {OPS_OPTION(type, member.limits.operations, take_operations)},                          \
        {TRUST_OPTION(type, member.limits.operations, take_operations)},                        \
        {QUIET_OPTION(type, member.quiet)}, {JSON_OPTION(type, member.json)}, {TIMEOUT_OPTION}, \
    {                                                                                           \
        HELP_OPTION                                                                             \
    }

#endif
