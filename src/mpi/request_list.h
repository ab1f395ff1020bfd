/* The requests that `healcl-mpi serve` runs: a name, and a .npy file for each live input. */
#ifndef HEALCL_MPI_REQUEST_LIST_H
#define HEALCL_MPI_REQUEST_LIST_H

#include "mpi/ranks.h"

struct request_list {
    size_t count, inputs;
    /* By request, in the order in which they are begun: its name, and behind it one path for each
     * input. They point into text. */
    const char **words;
    char *text;
    size_t bytes; /* of text */
};

static inline const char *request_name(const struct request_list *list, size_t request)
{
    return list->words[request * (list->inputs + 1)];
}

static inline const char *request_path(const struct request_list *list, size_t request,
                                       size_t input)
{
    return list->words[request * (list->inputs + 1) + 1 + input];
}

/*
 * Reads what --input names: a folder, of which all files NAME.npy that are not hidden are requests,
 * in the order of their names; or a file with a path .../NAME.npy in each line. The order is that
 * of places[0], and each other place has a file for each request, and no others. Errors:
 * HEALCL_USAGE where a place cannot be read, has no request, one twice, or others than places[0];
 * HEALCL_NO_MEMORY. Released with request_list_release, also after an error.
 */
enum healcl_status request_list_read(struct request_list *list, const char *const *places,
                                     size_t count, struct healcl_error *error);

/* Gives rank 0's list to all ranks. Errors: HEALCL_NO_MEMORY, of this rank alone. */
enum healcl_status request_list_share(struct request_list *list, const struct ranks *ranks,
                                      struct healcl_error *error);

void request_list_release(struct request_list *list);

#endif
