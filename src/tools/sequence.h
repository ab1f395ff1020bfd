/*
 * Sequences of calls that passes make fewer steps of: chains of all pairs of elementwise operations
 * first, then whatever else passes look for, and what comes in between. Random by their numbers.
 * The device runs what passes make of them, and again as recorded; the host reference what they
 * are.
 */
#ifndef HEALCL_TOOLS_SEQUENCE_H
#define HEALCL_TOOLS_SEQUENCE_H

#include "tools/variants.h"

/* Sequences with all pairs and dtypes; those that a quick check looks at beside; and all. */
enum { SEQUENCES_FIRST = 192, SEQUENCES_MORE = 1024, SEQUENCES_MOST = 2048 };

enum dtype sequence_dtype(uint32_t number);

/* Checks a sequence; only_new: if it has variants run steps in new ways, else *skipped. Errors:
 * HEALCL_DIFFERENT, HEALCL_REFUSED for what is beyond the device, or why it failed; the detail has
 * the calls. */
enum healcl_status sequence_check(struct variants *variants, uint32_t number, bool only_new,
                                  bool *skipped, struct healcl_error *error);

#endif
