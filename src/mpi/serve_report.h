/* What `healcl-mpi serve` reports. */
#ifndef HEALCL_MPI_SERVE_REPORT_H
#define HEALCL_MPI_SERVE_REPORT_H

#include "cli/requests.h"
#include "mpi/ranks.h"

/* Of one rank, or of all. */
struct served {
    int32_t rank;
    uint64_t requests; /* that have a result from this run */
    uint64_t left_out; /* that had one before, with --resume */
    uint64_t failed;
    uint64_t nanoseconds; /* from the moment when all ranks are ready to its last request */
    uint64_t bytes_uploaded, bytes_written;
    uint64_t longest_wait;    /* nanoseconds, for the next request's number */
    uint64_t device_bytes;    /* allocated on the device in the end, by all sessions */
    uint64_t batches;         /* runs, of one request or several */
    uint32_t sessions, batch; /* at the same time; the requests of a whole batch */
    struct latencies latencies;
    char host[MPI_MAX_PROCESSOR_NAME], device[256];
};

struct serve_facts {
    const char *file, *folder;
    struct served *ranks; /* rank_count of them */
    int rank_count;
    uint64_t *nanoseconds; /* of all requests with a result */
};

cJSON *report_serve(const struct serve_facts *facts);
void report_serve_text(const cJSON *document, const struct style *style);

#endif
