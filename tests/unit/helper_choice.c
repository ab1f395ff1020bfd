/*
 * Which cases of problem_check need programs that nothing else of them needs: by
 * share_choose_programs each runs twice. First its launches are only looked at, then it runs, or is
 * left out.
 */
#include "helper_covered.h"
#include "helper_share.h"

#include <stdio.h>
#include <string.h>

#include "check/problem_check.h"

enum check_result __real_problem_check(struct healcl_device *device, const struct problem *problem,
                                       const struct placement *placement,
                                       const struct problem_data *data, struct random *random,
                                       struct healcl_error *error);
enum check_result __wrap_problem_check(struct healcl_device *device, const struct problem *problem,
                                       const struct placement *placement,
                                       const struct problem_data *data, struct random *random,
                                       struct healcl_error *error);

enum { WORDS_MAX = 32, PAIRS_WANTED = 4, LEAST_FIRST = 4 };

static enum share_programs choice = PROGRAMS_ANY;
static struct covered_set launched; /* kernels of programs */
static struct covered_set features; /* what they have */
static bool looks;
static int missing,
    brings;           /* of the case that is looked at: kernels, and what they have that is new */
static int least = 1; /* a kernel is to bring */

void share_choose_programs(enum share_programs programs)
{
    choice = share_is_all() ? PROGRAMS_ANY : programs;
}

int share_first_least(void)
{
    return share_chooses() ? LEAST_FIRST : 1;
}

void share_programs_bring(int things)
{
    least = things;
}

bool share_chooses(void)
{
    return choice != PROGRAMS_ANY;
}

/* Options that say how large something is: each value of them is to be met, but not each together
 * with each of another option. */
static bool is_size(const char *word)
{
    static const char *const sizes[] = {
        "LOG2_", "STAGES=", "ROWS=", "LOCAL_SIZE=", "LIMBS=", "ROW_TILES="};
    bool found = false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        found = found || strncmp(word, sizes[i], strlen(sizes[i])) == 0;
    return found && strncmp(word, "LOG2_RADIX", 10) != 0;
}

/* How much of what is launched nothing has had: values of options, the operation, and the dtypes;
 * one more where pairs of values count, and enough of them are new. */
static int count_new(const char *kernel, char *options, const char *step, bool adds)
{
    uint64_t seed = covered_hash(kernel, 0), hashes[WORDS_MAX];
    bool sizes[WORDS_MAX], found = false;
    int pairs = 0;
    char text[COVERED_TEXT], *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(options, " ", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "-D") == 0)
            continue;
        sizes[count] = is_size(word);
        hashes[count++] = covered_hash(word, seed);
    }
    for (size_t i = 0; i < count; i++) {
        if (choice != PROGRAMS_BUT_SIZES || !sizes[i])
            found += covered_is_new(&features, hashes[i], adds);
        for (size_t j = 0; j < i && choice == PROGRAMS_PAIRS && !sizes[i]; j++)
            pairs += !sizes[j] && covered_is_new(&features, (hashes[i] * 3 + hashes[j]) | 1, adds);
    }
    /* The operation, and the kind of step with its operands' dtypes. */
    snprintf(text, sizeof text, "%s", step);
    uint64_t dtypes = seed;
    int field = 0;
    for (char *word = strtok_r(text, "\t ", &rest); word && field < 64;
         word = strtok_r(NULL, "\t ", &rest)) {
        char *end = strchr(word, ':');
        if (end)
            *end = 0;
        if (end || field == 1)
            dtypes = covered_hash(word, dtypes);
        if (field++ == 0)
            found += covered_is_new(&features, covered_hash(word, seed), adds);
    }
    found += covered_is_new(&features, dtypes, adds);
    return found + (pairs >= PAIRS_WANTED);
}

bool choice_is_on(void)
{
    return choice != PROGRAMS_ANY;
}

bool choice_looks_at(const struct launch *launch, const char *step)
{
    if (!share_chooses())
        return false;
    char kernel[256], options[LAUNCH_OPTIONS_SIZE + 128];
    snprintf(kernel, sizeof kernel, "%s:%s", launch->program, launch->kernel);
    snprintf(options, sizeof options, "%s -D LOCAL_SIZE=%zu", launch->options, launch->local_size);
    const bool misses =
        covered_is_new(&launched, covered_hash(options, covered_hash(kernel, 0)), !looks);
    missing += misses;
    if (misses || !looks)
        brings += count_new(kernel, options, step, !looks);
    return looks;
}

enum check_result __wrap_problem_check(struct healcl_device *device, const struct problem *problem,
                                       const struct placement *placement,
                                       const struct problem_data *data, struct random *random,
                                       struct healcl_error *error)
{
    if (choice == PROGRAMS_ANY)
        return __real_problem_check(device, problem, placement, data, random, error);
    struct random drawn = *random;
    struct healcl_error ignored = {0};
    looks = true;
    missing = brings = 0;
    (void)__real_problem_check(device, problem, placement, data, &drawn, &ignored);
    looks = false;
    healcl_error_clear(&ignored);
    const bool is_drawn = share_is_drawn();
    if (missing > 0 && (is_drawn || brings < least || brings < (least - 1) * missing))
        return CHECK_EQUAL;
    return __real_problem_check(device, problem, placement, data, random, error);
}
