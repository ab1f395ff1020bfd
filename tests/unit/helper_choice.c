/*
 * Which cases of problem_check need programs that nothing else of them needs: by
 * share_choose_programs each runs twice. First its launches are only looked at, then it runs, or is
 * left out.
 */
#include "helper_share.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "kernels/variant.h"
#include "opencl/internal.h"
#include "tools/problem_check.h"

enum healcl_status __real_launch_step(struct launcher *self, const struct step *at,
                                      const struct step *step, struct healcl_error *error);
enum healcl_status __wrap_launch_step(struct launcher *self, const struct step *at,
                                      const struct step *step, struct healcl_error *error);
enum healcl_status __real_device_attach(struct healcl_device *device, const struct launch *launch,
                                        struct kernel **kernel, struct healcl_error *error);
enum healcl_status __wrap_device_attach(struct healcl_device *device, const struct launch *launch,
                                        struct kernel **kernel, struct healcl_error *error);
enum healcl_status __real_device_enqueue(struct healcl_device *device, const struct launch *launch,
                                         struct kernel *kernel, const struct kernel_object *own,
                                         struct healcl_error *error);
enum healcl_status __wrap_device_enqueue(struct healcl_device *device, const struct launch *launch,
                                         struct kernel *kernel, const struct kernel_object *own,
                                         struct healcl_error *error);
enum healcl_status __real_problem_check(struct healcl_device *device, const struct problem *problem,
                                        const struct placement *placement,
                                        const struct problem_data *data, struct random *random,
                                        struct healcl_error *error);
enum healcl_status __wrap_problem_check(struct healcl_device *device, const struct problem *problem,
                                        const struct placement *placement,
                                        const struct problem_data *data, struct random *random,
                                        struct healcl_error *error);

enum { WORDS_MAX = 32, PAIRS_WANTED = 4, LEAST_FIRST = 4, SET_SIZE = 1 << 18 };

/* Hashes, each at its own place or after it; 0: free. */
struct set {
    uint64_t of[SET_SIZE];
};

static enum share_programs choice = PROGRAMS_ANY;
static struct set launched; /* kernels of programs */
static struct set features; /* what they have */
static bool looks;
static const struct step *launched_step; /* NULL: outside of steps */
static int missing,
    brings;           /* of the case that is looked at: kernels, and what they have that is new */
static int least = 1; /* new things of a kernel */

void share_choose_programs(enum share_programs programs)
{
    choice = share_is_all() ? PROGRAMS_ANY : programs;
}

int share_first_least(void)
{
    return share_chooses() ? LEAST_FIRST : 1;
}

void share_programs_given(int things)
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

static uint64_t hash_text(const char *text, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, strlen(text), seed) | 1; /* never 0 */
}

/* Whether it was not in the set. Where the set is full, nothing is. */
static bool is_new(struct set *set, uint64_t hash, bool adds)
{
    size_t at = hash / 2 % SET_SIZE, tried = 0;
    while (set->of[at] && set->of[at] != hash && ++tried < SET_SIZE)
        at = (at + 1) % SET_SIZE;
    const bool found = set->of[at] == hash;
    if (!set->of[at] && adds)
        set->of[at] = hash;
    return !found;
}

/* The kind of step and its operands' dtypes. */
static uint64_t hash_dtypes(const struct step *step, uint64_t seed)
{
    int words[2 + STEP_INPUTS] = {(int)step->kind, (int)step->out->storage->dtype};
    for (int i = 0; i < STEP_INPUTS; i++)
        words[2 + i] = step->in[i] ? (int)step->in[i]->storage->dtype : -1;
    return XXH3_64bits_withSeed(words, sizeof words, seed) | 1;
}

/* How much of what is launched nothing has had: values of options, the operation, and the dtypes;
 * one more where pairs of values count, and enough of them are new. */
static int count_new(const char *kernel, char *options, bool adds)
{
    uint64_t seed = hash_text(kernel, 0), hashes[WORDS_MAX];
    bool sizes[WORDS_MAX];
    int found = 0, pairs = 0;
    char *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(options, " ", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "-D") == 0)
            continue;
        sizes[count] = is_size(word);
        hashes[count++] = hash_text(word, seed);
    }
    for (size_t i = 0; i < count; i++) {
        if (choice != PROGRAMS_BUT_SIZES || !sizes[i])
            found += is_new(&features, hashes[i], adds);
        for (size_t j = 0; j < i && choice == PROGRAMS_PAIRS && !sizes[i]; j++)
            pairs += !sizes[j] && is_new(&features, (hashes[i] * 3 + hashes[j]) | 1, adds);
    }
    if (launched_step) {
        const struct origins *origins = launched_step->origins;
        uint64_t operation = seed;
        for (size_t i = 0; i < origins->count; i++)
            operation = hash_text(origin_operation(&origins->of[i])->name, operation);
        found += is_new(&features, operation, adds);
        found += is_new(&features, hash_dtypes(launched_step, seed), adds);
    }
    return found + (pairs >= PAIRS_WANTED);
}

/* ---------------------------------------------------------------- in front of the library */

enum healcl_status __wrap_launch_step(struct launcher *self, const struct step *at,
                                      const struct step *step, struct healcl_error *error)
{
    if (share_chooses())
        launched_step = step;
    const enum healcl_status status = __real_launch_step(self, at, step, error);
    if (share_chooses())
        launched_step = NULL;
    return status;
}

enum healcl_status __wrap_device_attach(struct healcl_device *device, const struct launch *launch,
                                        struct kernel **kernel, struct healcl_error *error)
{
    if (!share_chooses())
        return __real_device_attach(device, launch, kernel, error);
    char name[256], options[LAUNCH_OPTIONS_SIZE + 128];
    snprintf(name, sizeof name, "%s:%s", launch->program, launch->kernel);
    snprintf(options, sizeof options, "%s -D LOCAL_SIZE=%zu", launch->options, launch->local_size);
    const bool misses = is_new(&launched, hash_text(options, hash_text(name, 0)), !looks);
    missing += misses;
    if (misses || !looks)
        brings += count_new(name, options, !looks);
    return looks ? HEALCL_OK : __real_device_attach(device, launch, kernel, error);
}

enum healcl_status __wrap_device_enqueue(struct healcl_device *device, const struct launch *launch,
                                         struct kernel *kernel, const struct kernel_object *own,
                                         struct healcl_error *error)
{
    return looks ? HEALCL_OK : __real_device_enqueue(device, launch, kernel, own, error);
}

enum healcl_status __wrap_problem_check(struct healcl_device *device, const struct problem *problem,
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
        return HEALCL_OK;
    return __real_problem_check(device, problem, placement, data, random, error);
}
