/* Sequences of calls that passes turn into fewer steps. The first ones are chains of all pairs of
 * elementwise operations. Then come the other patterns of passes, with other operations in between.
 * Each is random, and its number is the seed. The device runs the plan after passes, and again from
 * a recording. The host reference runs the plan before passes. */
#ifndef HEALCL_TOOLS_SEQUENCE_H
#define HEALCL_TOOLS_SEQUENCE_H

#include "plan/passes.h"
#include "tools/variants.h"

/* Number of sequences with all pairs and dtypes; of further ones in a quick check; of all. */
enum { SEQUENCES_FIRST = 192, SEQUENCES_MORE = 1024, SEQUENCES_MOST = 2048 };

enum dtype sequence_dtype(uint32_t number);

/* Checks a sequence. only_new: checks it only if variants then run steps in new ways; else *skipped
 * is true. Adds to changes[i] the number of steps that pass i changed. Errors: HEALCL_DIFFERENT;
 * HEALCL_REFUSED for what exceeds the device; or why the device failed. The detail lists the calls.
 */
enum healcl_status sequence_check(struct variants *variants, uint32_t number, bool only_new,
                                  bool *skipped, uint64_t *changes, struct healcl_error *error);

/* Compares the changes by passes in all sequences of a quick check with the expected numbers, which
 * do not depend on the device: a pass that misses steps leaves all results right. Errors:
 * HEALCL_DIFFERENT. */
enum healcl_status sequence_check_changes(const uint64_t *changes, struct healcl_error *error);

#endif
