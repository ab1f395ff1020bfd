#include "mpi/reduce.h"

#include <sched.h>
#include <stdlib.h>

/* Elements that are added up at a time: what a rank needs beside the tensor are as many. */
enum { BLOCK_ELEMENTS = 1 << 20 };

/* The pieces of a block: rank r has elements [places[r], places[r] + counts[r]). */
struct pieces {
    int *counts, *places; /* by rank */
};

static uint64_t piece_begin(uint64_t elements, int rank, int ranks)
{
    return elements * (uint64_t)rank / (uint64_t)ranks;
}

uint64_t reduce_bytes(int rank, int ranks, uint64_t elements, uint64_t item)
{
    uint64_t bytes = 0;
    for (uint64_t block; elements > 0; elements -= block) {
        block = elements < BLOCK_ELEMENTS ? elements : BLOCK_ELEMENTS;
        const uint64_t own = piece_begin(block, rank + 1, ranks) - piece_begin(block, rank, ranks);
        bytes += (block - own + own * (uint64_t)(ranks - 1)) * item;
    }
    return bytes;
}

/* Other ranks may compute on this processor: MPI's own waiting would keep it busy. */
static void wait_for(MPI_Request *request)
{
    for (int done = 0; !done;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done)
            sched_yield();
    }
}

static MPI_Datatype type_of(enum healcl_dtype dtype)
{
    return dtype == HEALCL_INT64 ? MPI_INT64_T : MPI_INT32_T;
}

/* Others' summands of this rank's piece come one behind the other, by rank. */
static void gather_summands(struct reduce *reduce, const struct pieces *pieces, MPI_Datatype type,
                            const char *block, char *summands)
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
        pieces->places[rank] = (int)piece_begin(count, rank, ranks->count);
        pieces->counts[rank] =
            (int)piece_begin(count, rank + 1, ranks->count) - pieces->places[rank];
    }
    gather_summands(reduce, pieces, type, block, summands);
    const size_t own = (size_t)pieces->counts[ranks->rank];
    for (int rank = 0; rank < ranks->count; rank++)
        if (rank != ranks->rank)
            healcl_exchange_add(exchange, first + (size_t)pieces->places[ranks->rank], own, data,
                                summands + (size_t)rank * own * item);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, type, block, pieces->counts, pieces->places, type, ranks->comm,
                    &request);
    wait_for(&request);
}

enum healcl_status reduce_exchange(void *context, const struct healcl_exchange *exchange,
                                   void *data, struct healcl_error *error)
{
    struct reduce *reduce = context;
    const size_t ranks = (size_t)reduce->ranks->count;
    const size_t item = exchange->dtype == HEALCL_INT64 ? sizeof(int64_t) : sizeof(int32_t);
    const size_t block = exchange->elements < BLOCK_ELEMENTS ? exchange->elements : BLOCK_ELEMENTS;
    char *summands = malloc((block + ranks) * item);
    int *numbers = malloc(4 * ranks * sizeof *numbers);
    enum healcl_status status = HEALCL_OK;
    if (!summands || !numbers)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    const struct pieces pieces = {numbers, numbers + 2 * ranks};
    for (size_t first = 0, count; first < exchange->elements && status == HEALCL_OK;
         first += count) {
        count = exchange->elements - first < block ? exchange->elements - first : block;
        add_block(reduce, exchange, first, count, data, summands, &pieces);
    }
    reduce->bytes_sent +=
        reduce_bytes(reduce->ranks->rank, reduce->ranks->count, exchange->elements, item);
    free(numbers);
    free(summands);
    return status;
}
