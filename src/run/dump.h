/*
 * Results as files: DIR/entry_000208_NAME.npy, format 1.0 of NumPy's numpy.lib.format in C order
 * and little-endian, and DIR/results.json that lists them. The list is written last: where it is,
 * all results are.
 */
#ifndef HEALCL_RUN_DUMP_H
#define HEALCL_RUN_DUMP_H

#include "plan/plan.h"

struct dump;

enum dump_verified { DUMP_NOT_COMPARED, DUMP_EQUAL, DUMP_DIFFERENT };

/* Makes the directory where it is missing, and removes an old list from it.
 * Errors, here and below: HEALCL_USAGE where something cannot be written, HEALCL_NO_MEMORY. */
enum healcl_status dump_open(const char *directory, struct dump **result,
                             struct healcl_error *error);

/* data: the elements of step->in[0] in C order without gaps. */
enum healcl_status dump_result(struct dump *dump, const struct step *step,
                               const struct segment *segment, const void *data,
                               enum dump_verified verified, struct healcl_error *error);

/* Writes the list; no more results follow. */
enum healcl_status dump_finish(struct dump *dump, struct healcl_error *error);

void dump_close(struct dump *dump);

#endif
