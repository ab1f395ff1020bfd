/*
 * Which requests are done, in the folder of their results: a file healcl-mpi-RANK.journal of each
 * rank, with a line for each request:
 *
 *     KEY RESULTS NAME
 *
 * Both are hashes: of the transcript and the inputs, and of the results. A line is added once the
 * results are there. One that was cut, as its process was killed, counts for nothing.
 */
#ifndef HEALCL_MPI_JOURNAL_H
#define HEALCL_MPI_JOURNAL_H

#include <stdio.h>

#include "core/hash.h"
#include "core/status.h"

struct journal_line {
    char key[HASH_SIZE], results[HASH_SIZE];
    char *name;
};

struct journal {
    int file; /* this rank's, -1: none */
    struct journal_line *lines;
    size_t count, capacity;
};

/* Opens the file of a rank for journal_add. Errors: HEALCL_USAGE, HEALCL_NO_MEMORY. Released with
 * journal_release, also after an error. */
enum healcl_status journal_open(struct journal *journal, const char *folder, int rank,
                                struct healcl_error *error);

/* Reads the files of all ranks, for journal_find. Errors: the same. */
enum healcl_status journal_read(struct journal *journal, const char *folder,
                                struct healcl_error *error);

/* The hash of the results of a request, or NULL where no line tells of it. */
const char *journal_find(const struct journal *journal, const char *name, const char *key);

/* One thread at a time. name holds no line feed. Errors: HEALCL_USAGE, HEALCL_NO_MEMORY. */
enum healcl_status journal_add(struct journal *journal, const char *name, const char *key,
                               const char *results, struct healcl_error *error);

void journal_release(struct journal *journal);

#endif
