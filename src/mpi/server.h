/* One rank of `healcl-mpi serve`. */
#ifndef HEALCL_MPI_SERVER_H
#define HEALCL_MPI_SERVER_H

#include "mpi/journal.h"
#include "mpi/opening.h"
#include "mpi/request_list.h"
#include "mpi/serve_report.h"

enum { SESSIONS_MAX = 16, BATCH_MAX = 1024 };

/* Bytes that grow at their end. */
struct bytes {
    char *data;
    size_t size, capacity;
};

struct server {
    struct ranks *ranks;
    const struct opening *opening;
    const struct request_list *list;
    const size_t *inputs; /* numbers of the transcript's inputs, list->inputs of them */
    const char *folder;   /* of results */
    uint32_t sessions;    /* that run at the same time */
    uint32_t batch;       /* requests that a run does at once */
    bool resume;
    /* Of all threads, behind the lock. */
    pthread_mutex_t lock;
    struct journal journal;
    struct served served;
    uint64_t start;
    uint64_t *nanoseconds; /* served.requests of them */
    size_t capacity;
    struct bytes failures; /* NAME 0 MESSAGE 0 of each */
};

/* Serves requests until there are none: each of sessions threads takes one batch after the other,
 * so that one reads and uploads while another one computes. Tells where memory has room for smaller
 * batches only. Returns GOES_ON; or where a rank cannot open its sessions, the exit code of all.
 * What a device or a file does wrong later ends all ranks. Released with server_release. */
int server_run(struct server *server);
void server_release(struct server *server);

#endif
