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

/*
 * Which cases of problem_check run, where the whole is not asked for. Compiling is most of what
 * they take: one that needs a program which has not run yet in this process is left out, unless
 * that has an option's value or an operand's dtype that its kernel has not run with
 * yet, or with PROGRAMS_PAIRS two options' values; with PROGRAMS_BUT_SIZES options that say how
 * large something is do not count. Sweeps then take the same share in each run, so that drivers
 * find their programs cached; of the share that the seed draws they take what needs no program.
 */
enum share_programs { PROGRAMS_ANY, PROGRAMS_PAIRS, PROGRAMS_VALUES, PROGRAMS_BUT_SIZES };
void share_choose_programs(enum share_programs programs);

/* One program fewer is needed if those that cover much go first: such a sweep is done again and
 * again, from share_first_least() things that are new in each kernel down to 1. */
int share_first_least(void);
void share_programs_given(int things);

/* PROGRAMS_PAIRS, or PROGRAMS_VALUES where the environment asks for kernels of others; where it
 * asks for a way to multiply alone, PROGRAMS_BUT_SIZES: sizes are tested with the device's own way.
 */
enum share_programs share_programs_wanted(void);

/* Whether the case that share_takes has taken was drawn by the seed: once, for other cases follow
 * that are of no share. */
bool share_is_drawn(void);
bool share_chooses(void);

#endif
