/* Sums of residues over ranks: what `healcl-mpi run` exchanges. */
#ifndef HEALCL_MPI_REDUCE_H
#define HEALCL_MPI_REDUCE_H

#include "mpi/ranks.h"

struct reduce {
    struct ranks *ranks;
    uint64_t bytes_sent; /* to other ranks, so far */
};

/*
 * The function of sessions (struct healcl_session_options), of which context is a struct reduce.
 * Each rank adds up a piece of the tensor and gives it to the others. Where MPI fails it ends all
 * ranks.
 */
enum healcl_status reduce_exchange(void *context, const struct healcl_exchange *exchange,
                                   void *data, struct healcl_error *error);

#endif
