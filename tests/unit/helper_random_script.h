/* Random scripts of what a split meets: elementwise operations, sums that are added to, views,
 * several segments, tensors that are freed. */
#ifndef HEALCL_TESTS_HELPER_RANDOM_SCRIPT_H
#define HEALCL_TESTS_HELPER_RANDOM_SCRIPT_H

#include "helper_script.h"

/* Writes one, without its end: each seed has its own. Those below SCRIPTS_CHOSEN have what random
 * ones seldom have. */
enum { SCRIPTS_CHOSEN = 5 };
void script_random(struct script *script, uint64_t seed);

#endif
