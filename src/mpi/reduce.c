#include "mpi/reduce.h"

#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "plan/split.h"
#include "tools/xmalloc.h"

/* The pieces of a block: rank r has elements [places[r], places[r] + counts[r]). */
struct pieces {
    int *counts, *places; /* by rank */
};

/* MPI's own waiting would keep a processor busy, which other ranks may compute on. Most waits are
 * short where each has its own. sched_yield would wait for whole time slices of other processes. */
static void wait_for(MPI_Request *request)
{
    enum { AWAKE_NANOSECONDS = 50000, REST_NANOSECONDS = 50000 };
    const uint64_t start = monotonic_nanoseconds();
    int done = 0;
    while (!done) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done && monotonic_nanoseconds() - start > AWAKE_NANOSECONDS)
            nanosleep(&(struct timespec){.tv_nsec = REST_NANOSECONDS}, NULL);
    }
}

static MPI_Datatype type_of(enum healcl_dtype dtype)
{
    return dtype == HEALCL_INT64 ? MPI_INT64_T : MPI_INT32_T;
}

/* Others' summands of this rank's piece come one behind the other, by rank. */
static void gather_summands(struct reduce *reduce, const struct pieces *pieces, MPI_Datatype type,
                            size_t item, const char *block, char *summands)
{
    const struct ranks *ranks = reduce->ranks;
    const int own = pieces->counts[ranks->rank];
    int *counts = pieces->counts + ranks->count, *places = pieces->places + ranks->count;
    MPI_Request request;
    for (int rank = 0; rank < ranks->count; rank++) {
        counts[rank] = own;
        places[rank] = rank * own;
    }
    MPI_Ialltoallv(block, pieces->counts, pieces->places, type, summands, counts, places, type,
                   ranks->comm, &request);
    wait_for(&request);
    for (int rank = 0; rank < ranks->count; rank++)
        if (rank != ranks->rank)
            reduce->bytes_sent += (uint64_t)pieces->counts[rank] * item;
}

/* Makes a block the sum of all ranks'. */
static void add_block(struct reduce *reduce, const struct healcl_exchange *exchange, size_t first,
                      size_t count, char *data, char *summands, const struct pieces *pieces)
{
    const struct ranks *ranks = reduce->ranks;
    const size_t item = exchange->dtype == HEALCL_INT64 ? sizeof(int64_t) : sizeof(int32_t);
    MPI_Datatype type = type_of(exchange->dtype);
    char *block = data + first * item;
    MPI_Request request;
    for (int rank = 0; rank < ranks->count; rank++) {
        const uint32_t number = (uint32_t)rank, all = (uint32_t)ranks->count;
        pieces->places[rank] = (int)exchange_piece(count, number, all);
        pieces->counts[rank] = (int)exchange_piece(count, number + 1, all) - pieces->places[rank];
    }
    gather_summands(reduce, pieces, type, item, block, summands);
    const size_t own = (size_t)pieces->counts[ranks->rank];
    for (int rank = 0; rank < ranks->count; rank++)
        if (rank != ranks->rank)
            healcl_exchange_add(exchange, first + (size_t)pieces->places[ranks->rank], own, data,
                                summands + (size_t)rank * own * item);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, type, block, pieces->counts, pieces->places, type, ranks->comm,
                    &request);
    wait_for(&request);
    reduce->bytes_sent += own * item * (size_t)(ranks->count - 1);
}

enum healcl_status reduce_exchange(void *context, const struct healcl_exchange *exchange,
                                   void *data, struct healcl_error *error)
{
    struct reduce *reduce = context;
    const size_t ranks = (size_t)reduce->ranks->count;
    const size_t item = exchange->dtype == HEALCL_INT64 ? sizeof(int64_t) : sizeof(int32_t);
    const size_t block = exchange->elements < EXCHANGE_BLOCK ? exchange->elements : EXCHANGE_BLOCK;
    char *summands = xmalloc((block + ranks) * item);
    int *numbers = xmalloc(4 * ranks * sizeof *numbers);
    (void)error;
    const struct pieces pieces = {numbers, numbers + 2 * ranks};
    for (size_t first = 0, count; first < exchange->elements; first += count) {
        count = exchange->elements - first < block ? exchange->elements - first : block;
        add_block(reduce, exchange, first, count, data, summands, &pieces);
    }
    free(numbers);
    free(summands);
    return HEALCL_OK;
}
