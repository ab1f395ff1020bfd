/*
 * What tests cover: each launch of a kernel by the operation, the kind of step, dtypes, layouts,
 * sizes, and the kernel with its program's options (helper_covered.c), and which cases are left out
 * because they would cover nothing new (helper_choice.c).
 */
#ifndef HEALCL_TESTS_HELPER_COVERED_H
#define HEALCL_TESTS_HELPER_COVERED_H

#include <stdbool.h>
#include <stdint.h>

#include "programs/internal.h"

enum { COVERED_TEXT = 2048, COVERED_SEEN = 1 << 18 };

/* Hashes of texts, each at the place that it says or behind it; 0: free. */
struct covered_set {
    uint64_t of[COVERED_SEEN];
};

/* Never 0. */
uint64_t covered_hash(const char *text, uint64_t seed);

/* Whether it was not in the set. Where the set is full, nothing is. From any thread. */
bool covered_is_new(struct covered_set *set, uint64_t hash, bool adds);

/* Takes note of a launch of a step of that description, where cases are chosen. Returns whether the
 * case is only looked at: the launch is to be left out. */
bool choice_looks_at(const struct launch *launch, const char *step);

#endif
