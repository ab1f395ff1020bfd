/*
 * A run of the tests takes a share of each long sweep, another one with each seed: with
 * HEALCL_TEST_SEED, a number, or without it by the day. Where HEALCL_TEST_ALL is 1, as
 * `scripts/test.sh --all` sets it, it takes the whole. The seed is printed.
 */
#ifndef HEALCL_TESTS_HELPER_SHARE_H
#define HEALCL_TESTS_HELPER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

bool share_is_all(void);

/* Whether this run takes the case of that number in a sweep: of each `of` neighbours one. */
bool share_takes(const char *sweep, uint64_t number, uint32_t of);

/* Has PoCL compile what is built from now on without optimising it, which takes a quarter of the
 * time, unless the whole is asked for: for kernels that are made for other devices. */
void share_compile_fast(bool fast);

/* For a test of the kernels that this device runs by itself: in one of three runs they are
 * optimised, and always where the whole is asked for. Never where the environment asks for kernels
 * of others. */
enum optimised_test {
    OPTIMISED_PATHS,
    OPTIMISED_RESIDUES,
    OPTIMISED_TRANSFORMS,
    OPTIMISED_RANDOM,
    OPTIMISED_SUMS,
    OPTIMISED_INTERLEAVED,
    OPTIMISED_PASSES,
    OPTIMISED_LARGE,
    OPTIMISED_COVERAGE,
    OPTIMISED_SHAPES,
    OPTIMISED_VALUES,
};
bool share_is_optimised(enum optimised_test test);
void share_optimise(enum optimised_test test);

#endif
