/* What `healcl-mpi run` reports. */
#ifndef HEALCL_MPI_RUN_REPORT_H
#define HEALCL_MPI_RUN_REPORT_H

#include "mpi/ranks.h"

/* Of one rank. */
struct ran {
    uint32_t rank;
    uint64_t nanoseconds;          /* median of the runs that count */
    uint64_t exchange_nanoseconds; /* of them, in exchanges, waiting for other ranks too: median */
    uint64_t bytes_uploaded;       /* by the first run */
    uint64_t bytes_sent;           /* to other ranks, by one run */
    uint64_t bytes_foreseen;       /* the same, by the plan */
    uint64_t tensor_bytes;         /* most that live tensors take, by the plan */
    uint64_t device_bytes;         /* most allocated on the device */
    char host[MPI_MAX_PROCESSOR_NAME], device[256];
};

struct run_ranks_facts {
    const char *file;
    const struct healcl_transcript *part; /* rank 0's */
    const struct healcl_split *split;
    bool is_chosen;          /* by healcl: the command line names none */
    const struct ran *ranks; /* split->ranks of them */
    uint32_t repeat;
    /* Results that carry an expected tensor, and those of them that differ on any rank. */
    size_t compared, different;
};

cJSON *report_run_ranks(const struct run_ranks_facts *facts);
void report_run_ranks_text(const cJSON *document, const struct style *style);

#endif
