/*
 * What tests cover, and which of their cases need programs that nothing else of them needs.
 *
 * The linker puts these functions in front of launch_step and device_launch
 * (--wrap). Where HEALCL_COVERED names a file, each launch of a kernel that is unlike those before
 * it in this process is a line there: the operation, the kind of step, dtypes, layouts, sizes, and
 * the kernel with its program's options. scripts/covered.py reads it. Without that variable nothing
 * is done.
 *
 * By share_choose_programs a case of problem_check runs twice: first its launches are only looked
 * at, then it runs, or is left out.
 */
#include "helper_share.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>
#include <xxhash.h>

#include "device/internal.h"
#include "kernels/variant.h"
#include "lab/problem_check.h"

enum healcl_status __real_launch_step(struct launcher *self, const struct step *step,
                                      struct healcl_error *error);
enum healcl_status __wrap_launch_step(struct launcher *self, const struct step *step,
                                      struct healcl_error *error);
enum healcl_status __real_device_launch(struct healcl_device *device, const struct launch *launch,
                                        struct healcl_error *error);
enum healcl_status __wrap_device_launch(struct healcl_device *device, const struct launch *launch,
                                        struct healcl_error *error);

enum check_result __real_problem_check(struct healcl_device *device, const struct problem *problem,
                                       const struct placement *placement,
                                       const struct problem_data *data, struct random *random,
                                       struct healcl_error *error);
enum check_result __wrap_problem_check(struct healcl_device *device, const struct problem *problem,
                                       const struct placement *placement,
                                       const struct problem_data *data, struct random *random,
                                       struct healcl_error *error);

/* ---------------------------------------------------------------- what was noted */

enum { TEXT_SIZE = 2048, SEEN = 1 << 18 };

/* The step whose kernels are launched now; "" outside of steps. */
static thread_local char step_text[TEXT_SIZE];

static mtx_t seen_lock;
static once_flag seen_once = ONCE_FLAG_INIT;

/* Hashes of texts, each at the place that it says or behind it; 0: free. */
struct set {
    uint64_t of[SEEN];
};
static struct set noted;

static void make_lock(void)
{
    if (mtx_init(&seen_lock, mtx_plain) != thrd_success)
        abort();
}

static uint64_t hash_of(const char *text, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, strlen(text), seed) | 1;
}

/* Whether it was not in the set. Where the set is full, nothing is. */
static bool is_new(struct set *set, uint64_t hash, bool adds)
{
    call_once(&seen_once, make_lock);
    mtx_lock(&seen_lock);
    size_t at = hash / 2 % SEEN, tried = 0;
    while (set->of[at] && set->of[at] != hash && ++tried < SEEN)
        at = (at + 1) % SEEN;
    bool found = set->of[at] == hash;
    if (!set->of[at] && adds)
        set->of[at] = hash;
    mtx_unlock(&seen_lock);
    return !found;
}

/* Several processes write to one file: each line with one call. */
static void note(const char *path, const char *line)
{
    if (!is_new(&noted, hash_of(line, 0), true))
        return;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, strlen(line)) != (ssize_t)strlen(line))
        abort();
    close(file);
}

/* ---------------------------------------------------------------- texts */

__attribute__((format(printf, 2, 3))) static void add(char text[TEXT_SIZE], const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, TEXT_SIZE - length, format, arguments);
    va_end(arguments);
}

/* Letters: c contiguous, else g for gaps; o not from the start; b repeats elements; p axes out of
 * order; a the output's storage. */
static void add_layout(char text[TEXT_SIZE], const struct tensor *tensor, const struct tensor *out)
{
    const struct layout *layout = &tensor->layout;
    int64_t last = INT64_MAX;
    bool is_permuted = false;
    for (uint32_t i = 0; i < layout->rank; i++) {
        if (layout->shape[i] <= 1 || layout->stride[i] == 0)
            continue;
        is_permuted = is_permuted || layout->stride[i] > last;
        last = layout->stride[i];
    }
    add(text, "%s%s%s%s%s", layout_is_contiguous(layout) ? "c" : "g", layout->offset ? "o" : "",
        layout_overlaps_itself(layout) ? "b" : "", is_permuted ? "p" : "",
        out && tensor->storage == out->storage ? "a" : "");
}

/* The sizes of a class do not tell which branch a kernel takes; these are many enough for a test
 * that has lost some to be seen. */
static int size_class(int64_t size)
{
    static const int64_t classes[] = {1, 2, 8, 64, 512, 4096, 32768};
    int class = 0;
    while (class < 7 && size >= classes[class])
        class ++;
    return class;
}

static void describe(const struct step *step)
{
    *step_text = 0;
    for (size_t i = 0; i < step->origins->count && i < 4; i++)
        add(step_text, "%s%s", i ? "+" : "", origin_operation(&step->origins->of[i])->name);
    add(step_text, "\t%s\t%s:", step_traits[step->kind].name,
        dtype_name(step->out->storage->dtype));
    add_layout(step_text, step->out, NULL);
    for (int i = 0; i < STEP_INPUTS; i++) {
        if (!step->in[i])
            continue;
        add(step_text, " %d%s:", i, dtype_name(step->in[i]->storage->dtype));
        if (step->in[i]->storage->scalars)
            add(step_text, "s");
        else
            add_layout(step_text, step->in[i], step->out);
    }
    const struct layout *shape = &step->out->layout;
    uint32_t axes = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        axes += shape->shape[i] != 1;
    add(step_text, "\t%u axes, size %d, last %d", axes < 5 ? axes : 5,
        size_class(layout_elements(shape)),
        shape->rank ? size_class(shape->shape[shape->rank - 1]) : 0);
}

/* ---------------------------------------------------------------- choosing */

enum { WORDS_MAX = 32, PAIRS_WANTED = 4, LEAST_FIRST = 4 };

static enum share_programs choice = PROGRAMS_ANY;
static struct set launched, features; /* kernels of programs; what they have */
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
    static const char *const sizes[] = {"LOG2_", "STAGES=", "ROWS=", "LOCAL_SIZE=", "LIMBS="};
    bool found = false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        found = found || strncmp(word, sizes[i], strlen(sizes[i])) == 0;
    return found && strncmp(word, "LOG2_RADIX", 10) != 0;
}

/* How much of what is launched nothing has had: values of options, the operation, and the dtypes;
 * one more where pairs of values count, and enough of them are new. */
static int count_new(const char *kernel, char *options, bool adds)
{
    uint64_t seed = hash_of(kernel, 0), hashes[WORDS_MAX];
    bool sizes[WORDS_MAX], found = false;
    int pairs = 0;
    char text[TEXT_SIZE], *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(options, " ", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "-D") == 0)
            continue;
        sizes[count] = is_size(word);
        hashes[count++] = hash_of(word, seed);
    }
    for (size_t i = 0; i < count; i++) {
        found += is_new(&features, hashes[i], adds);
        for (size_t j = 0; j < i && choice == PROGRAMS_PAIRS && !sizes[i]; j++)
            pairs += !sizes[j] && is_new(&features, (hashes[i] * 3 + hashes[j]) | 1, adds);
    }
    /* The operation, and the kind of step with its operands' dtypes. */
    snprintf(text, sizeof text, "%s", step_text);
    uint64_t dtypes = seed;
    int field = 0;
    for (char *word = strtok_r(text, "\t ", &rest); word && field < 64;
         word = strtok_r(NULL, "\t ", &rest)) {
        char *end = strchr(word, ':');
        if (end)
            *end = 0;
        if (end || field == 1)
            dtypes = hash_of(word, dtypes);
        if (field++ == 0)
            found += is_new(&features, hash_of(word, seed), adds);
    }
    found += is_new(&features, dtypes, adds);
    return found + (pairs >= PAIRS_WANTED);
}

static void look_at(const struct launch *launch)
{
    char kernel[256], options[LAUNCH_OPTIONS_SIZE + 128];
    snprintf(kernel, sizeof kernel, "%s:%s", launch->program, launch->kernel);
    snprintf(options, sizeof options, "%s -D LOCAL_SIZE=%zu -D CHUNKS=%u", launch->options,
             launch->local_size, launch_chunks(launch));
    const bool misses = is_new(&launched, hash_of(options, hash_of(kernel, 0)), !looks);
    missing += misses;
    if (misses || !looks)
        brings += count_new(kernel, options, !looks);
}

/* ---------------------------------------------------------------- in front of the library */

enum healcl_status __wrap_launch_step(struct launcher *self, const struct step *step,
                                      struct healcl_error *error)
{
    if (choice != PROGRAMS_ANY || getenv("HEALCL_COVERED"))
        describe(step);
    enum healcl_status status = __real_launch_step(self, step, error);
    *step_text = 0;
    return status;
}

enum healcl_status __wrap_device_launch(struct healcl_device *device, const struct launch *launch,
                                        struct healcl_error *error)
{
    const char *path = getenv("HEALCL_COVERED");
    if (choice != PROGRAMS_ANY)
        look_at(launch);
    if (looks)
        return HEALCL_OK;
    if (path && launch->groups > 0) {
        char line[2 * TEXT_SIZE];
        snprintf(line, sizeof line, "%s\t%s\t%s\t%s -D LOCAL_SIZE=%zu -D CHUNKS=%u\n",
                 *step_text ? step_text : "-\t-\t-\t-", launch->program, launch->kernel,
                 launch->options, launch->local_size, launch_chunks(launch));
        note(path, line);
    }
    return __real_device_launch(device, launch, error);
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
