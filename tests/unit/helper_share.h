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

/* The same, where the environment asks for kernels that this device does not run by itself. */
void share_compile_variants_fast(void);

#endif
