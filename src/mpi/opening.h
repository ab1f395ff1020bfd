/* What every command of healcl-mpi opens at each rank: a transcript and a device. */
#ifndef HEALCL_MPI_OPENING_H
#define HEALCL_MPI_OPENING_H

#include "mpi/ranks.h"
#include "package/package.h"

struct opening {
    /* Of the command line. */
    const char *file;    /* the transcript */
    const char *devices; /* selectors with commas between them, or NULL */
    const char *package; /* or NULL */
    bool reference;      /* the host's, instead of a device */
    struct healcl_limits limits;
    bool is_split; /* all ranks do one request: the transcript's plan is for parts to be made of */
    /* Set by opening_open. */
    struct healcl_transcript *transcript;
    char transcript_hash[PACKAGE_HASH_SIZE], plan_hash[PACKAGE_HASH_SIZE];
    struct healcl_device *device; /* NULL: the reference */
    struct device_info info;      /* of the device */
    uint64_t memory_limit;        /* of the tensors of one rank; 0: there is none */
};

/*
 * Opens both. The ranks of a host take its devices in turn: those that devices names; else the one
 * that HEALCL_DEVICE names; else all that are of one kind with the best one and of its platform.
 * Ends all ranks where that fails, or where version, transcript or plan are not rank 0's. All
 * ranks call this. Released with opening_release.
 */
void opening_open(struct opening *opening, struct ranks *ranks);
void opening_release(struct opening *opening);

#define OPENING_OPTIONS(member)                                                                 \
    {"devices", 'd', OPTION_DEVICE, KEPT_IN(struct session, member.devices)},                   \
        {"reference", 0, OPTION_FLAG, KEPT_IN(struct session, member.reference)},               \
        {"package", 0, OPTION_FILE, KEPT_IN(struct session, member.package)},                   \
        {"memory-limit", 0, OPTION_BYTES, KEPT_IN(struct session, member.limits.memory_bytes)}, \
        {"work-limit", 0, OPTION_NUMBER, KEPT_IN(struct session, member.limits.work)},          \
        {"expand", 0, OPTION_WORD, KEPT_IN(struct session, member.limits.expand),               \
         .take = take_expand},                                                                  \
        {"ops", 0, OPTION_FOLDER, KEPT_IN(struct session, member.limits.operations),            \
         .take = take_operations},                                                              \
        {"trust", 0, OPTION_FOLDER, KEPT_IN(struct session, member.limits.operations),          \
         .take = take_operations},                                                              \
    {                                                                                           \
        "passes", 0, OPTION_WORD, KEPT_IN(struct session, member.limits.passes)                 \
    }

#define OPENING_HELP                                                                           \
    "  -d, --devices LIST       selectors as healcl devices shows them, with commas between\n" \
    "                           them, which the ranks of a host take in turn; else the one\n"  \
    "                           that HEALCL_DEVICE names, or all of the best kind\n"           \
    "      --reference          plain C on the host instead of devices\n"                      \
    "      --package FILE       programs that healcl compile has made\n"                       \
    "      --memory-limit SIZE  as healcl run has it, and the next five\n"                     \
    "      --work-limit N, --expand spec|sdk, --ops DIR, --trust DIR, --passes LIST|none\n"

#endif
