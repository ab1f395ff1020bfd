/*
 * The ranks of MPI that run a command: one process for each device.
 *
 * A thread of rank 0 answers the other ranks while rank 0 computes. It hands out numbers, and lets
 * only one rank report an error. It uses messages. With Open MPI 4.1, windows work under
 * MPI_THREAD_MULTIPLE only if the network has remote memory access.
 *
 * Other code uses ranks->comm for MPI. The thread has a separate communicator.
 */
#ifndef HEALCL_MPI_RANKS_H
#define HEALCL_MPI_RANKS_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cli/cli.h"

struct ranks {
    int rank, count;
    int local, local_count; /* the same among the ranks on this host */
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm comm;
    MPI_Comm desk; /* questions to rank 0's thread, and its answers */
    pthread_mutex_t lock;
    pthread_t thread; /* runs at rank 0 */
    atomic_bool is_ending;
    uint64_t next;  /* at rank 0: the next number to hand out */
    bool is_failed; /* at rank 0: a rank is reporting an error */
};

/* Begins MPI. Ends the process if that fails. Afterwards, if xmalloc runs out of memory, that is
 * reported and all ranks end. */
void ranks_begin(struct ranks *ranks);

/* Waits for all ranks without busy waiting, and ends MPI. */
void ranks_end(struct ranks *ranks);

/* Returns the next number, counted from 0. No other call on any rank returns it. Any thread may
 * call this. */
uint64_t ranks_take(struct ranks *ranks);

/* Waits for a request without busy waiting. Returns false if that takes more than `seconds`; 0: no
 * limit. */
bool ranks_wait(MPI_Request *request, unsigned seconds);

/* Waits until all ranks have called this, without busy waiting. */
void ranks_meet(struct ranks *ranks);

/* Returns at rank 0 the bytes of all ranks, concatenated, to be freed with free(). Returns NULL at
 * other ranks. */
void *ranks_gather(struct ranks *ranks, const void *data, size_t bytes);

/* Sends rank 0's bytes to all ranks. */
void ranks_share(const struct ranks *ranks, void *data, size_t bytes);

/* Sends rank 0's code to all ranks. Returns it. */
int ranks_first(const struct ranks *ranks, int code);

/* Prints "PROGRAM: rank 3 on HOST: ...". Any thread may call this. */
#define ranks_notice(ranks, format, ...) \
    print_notice("rank %d on %s: " format, (ranks)->rank, (ranks)->host, __VA_ARGS__)

/* Returns what all ranks must do next: GOES_ON if the status of every rank is HEALCL_OK, else the
 * exit code of the first rank with an error. That rank prints its error like ranks_notice, after
 * `file`, which may be NULL. Clears error. A rank with an error waits only a few seconds for the
 * others, then ends all ranks as ranks_fail does. All ranks call this. */
int ranks_agree(struct ranks *ranks, enum healcl_status status, const char *file,
                struct healcl_error *error);

/* Prints an error like ranks_notice and ends all ranks with its exit code, from any thread. It is
 * for errors at which the other ranks do not meet. If several ranks fail, only the first one prints
 * its error. Does not wait for a rank that hangs. Launchers may kill the other ranks, and end with
 * a different code. */
_Noreturn void ranks_fail(struct ranks *ranks, const char *file, const struct healcl_error *error);

#endif
