/*
 * The ranks of MPI that a command runs as: one process for each device.
 *
 * Rank 0 has a thread that answers the others while the rank computes. It hands out numbers, and
 * lets one rank alone tell of an error. It works with messages: windows of Open MPI 4.1 exist with
 * MPI_THREAD_MULTIPLE only where the network has remote memory access.
 *
 * Other code of MPI's takes ranks->comm for itself: the thread has a communicator of its own.
 */
#ifndef HEALCL_MPI_RANKS_H
#define HEALCL_MPI_RANKS_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cli/cli.h"

struct ranks {
    int rank, count;
    int local, local_count; /* the same among the ranks of this host */
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm comm;
    MPI_Comm desk; /* of questions to rank 0's thread, and of its answers */
    pthread_mutex_t lock;
    pthread_t thread; /* of rank 0 */
    atomic_bool is_ending;
    uint64_t next;  /* to be handed out, at rank 0 */
    bool is_failed; /* a rank tells of an error, at rank 0 */
};

/* Begins MPI. Ends the process where that fails. From here on memory that xmalloc cannot get is
 * reported, and ends all ranks. */
void ranks_begin(struct ranks *ranks);

/* Waits for all ranks, without keeping a processor busy, and ends MPI. */
void ranks_end(struct ranks *ranks);

/* Takes the next number, counted from 0, which no other call on any rank gets. Any thread may call
 * this. */
uint64_t ranks_take(struct ranks *ranks);

/* Waits until all ranks have called this, without keeping a processor busy. */
void ranks_meet(struct ranks *ranks);

/* Gives rank 0 the bytes of all ranks, one behind the other, freed with free(). Other ranks get
 * NULL. */
void *ranks_gather(struct ranks *ranks, const void *data, size_t bytes);

/* Gives all ranks the bytes that rank 0 has. */
void ranks_share(const struct ranks *ranks, void *data, size_t bytes);

/* Gives all ranks a code so, and returns it. */
int ranks_first(const struct ranks *ranks, int code);

/* Prints "PROGRAM: rank 3 on HOST: ...". Any thread may call this. */
__attribute__((format(printf, 2, 3))) void ranks_notice(const struct ranks *ranks,
                                                        const char *format, ...);

/*
 * Returns what all ranks do next: GOES_ON where the status of each is HEALCL_OK. Else
 * the first one with an error tells of it as ranks_notice does, behind file, which may be NULL, and
 * all get its exit code. Clears error. A rank with an error waits for seconds at most, and then
 * ends all as ranks_fail does. All ranks call this.
 */
int ranks_agree(struct ranks *ranks, enum healcl_status status, const char *file,
                struct healcl_error *error);

/* Tells of an error so, and ends all ranks with its exit code, from any thread: for what others do
 * not wait for. Where several ranks fail the first one alone tells of it. Does not wait for a rank
 * that hangs. Launchers may kill the other ranks, and end with a code of their own. */
_Noreturn void ranks_fail(struct ranks *ranks, const char *file, const struct healcl_error *error);

#endif
