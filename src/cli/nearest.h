/* The word that somebody who mistyped one probably meant. */
#ifndef HEALCL_CLI_NEAREST_H
#define HEALCL_CLI_NEAREST_H

#include <stddef.h>

/*
 * The candidate in which the fewest letters must be put in, left out, replaced or swapped with
 * their neighbour to make it word (Damerau and Levenshtein's distance, without changing again what
 * was swapped). Of several the first, or the first that begins with word. NULL where that is more
 * than a third of word's letters and more than one, or all letters of the candidate.
 */
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

#endif
