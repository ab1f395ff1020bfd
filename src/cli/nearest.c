#include "cli/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_MAX = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The distance of two words of WORD_MAX letters at most. */
static size_t distance_of(const char *a, const char *b)
{
    /* row[i % 3][j] is the distance of the first i letters of a and the first j of b. */
    size_t row[3][WORD_MAX + 1];
    const size_t a_length = strlen(a), b_length = strlen(b);
    for (size_t i = 0; i <= a_length; i++) {
        size_t *now = row[i % 3];
        const size_t *before = row[(i + 2) % 3], *two_before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            if (i == 0) {
                now[j] = j;
                continue;
            }
            now[j] = before[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(now[j], least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], two_before[j - 2] + 1);
        }
    }
    return row[a_length % 3][b_length];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t count)
{
    const char *nearest = NULL;
    const size_t length = strlen(word);
    size_t bound = length < 3 ? 1 : length / 3; /* of the distance */
    bool begins = false;
    for (size_t i = 0; i < count; i++) {
        const size_t letters = strlen(candidates[i]);
        if (length > WORD_MAX || letters > WORD_MAX)
            continue;
        const size_t distance = distance_of(word, candidates[i]);
        const bool begins_so = strncmp(candidates[i], word, length) == 0;
        if (distance > bound || distance >= letters ||
            (nearest && distance == bound && (begins || !begins_so)))
            continue;
        nearest = candidates[i];
        bound = distance;
        begins = begins_so;
    }
    return nearest;
}
