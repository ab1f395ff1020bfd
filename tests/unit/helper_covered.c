/*
 * Records what tests cover.
 *
 * The linker puts these functions in front of launch_step and device_launch (--wrap). Where
 * HEALCL_COVERED names a file, each launch of a kernel that is unlike those before it in this
 * process is a line there: scripts/covered.py reads it. Without that variable nothing is done.
 */
#include "helper_covered.h"
#include "helper_share.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>
#include <xxhash.h>

#include "kernels/variant.h"

enum healcl_status __real_launch_step(struct launcher *self, const struct step *step,
                                      struct healcl_error *error);
enum healcl_status __wrap_launch_step(struct launcher *self, const struct step *step,
                                      struct healcl_error *error);
enum healcl_status __real_device_launch(struct healcl_device *device, const struct launch *launch,
                                        struct healcl_error *error);
enum healcl_status __wrap_device_launch(struct healcl_device *device, const struct launch *launch,
                                        struct healcl_error *error);

/* ---------------------------------------------------------------- what was noted */

/* The step whose kernels are launched now; "" outside of steps. */
static thread_local char step_text[COVERED_TEXT];

static mtx_t seen_lock;
static once_flag seen_once = ONCE_FLAG_INIT;

static struct covered_set noted;

static void make_lock(void)
{
    if (mtx_init(&seen_lock, mtx_plain) != thrd_success)
        abort();
}

uint64_t covered_hash(const char *text, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, strlen(text), seed) | 1;
}

bool covered_is_new(struct covered_set *set, uint64_t hash, bool adds)
{
    call_once(&seen_once, make_lock);
    mtx_lock(&seen_lock);
    size_t at = hash / 2 % COVERED_SEEN, tried = 0;
    while (set->of[at] && set->of[at] != hash && ++tried < COVERED_SEEN)
        at = (at + 1) % COVERED_SEEN;
    bool found = set->of[at] == hash;
    if (!set->of[at] && adds)
        set->of[at] = hash;
    mtx_unlock(&seen_lock);
    return !found;
}

/* Several processes write to one file: each line with one call. */
static void note(const char *path, const char *line)
{
    if (!covered_is_new(&noted, covered_hash(line, 0), true))
        return;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, strlen(line)) != (ssize_t)strlen(line))
        abort();
    close(file);
}

/* ---------------------------------------------------------------- texts */

__attribute__((format(printf, 2, 3))) static void add(char text[COVERED_TEXT], const char *format,
                                                      ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, COVERED_TEXT - length, format, arguments);
    va_end(arguments);
}

/* Letters: c contiguous, else g for gaps; o not from the start; b repeats elements; p axes out of
 * order; a the output's storage. */
static void add_layout(char text[COVERED_TEXT], const struct tensor *tensor,
                       const struct tensor *out)
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

/* ---------------------------------------------------------------- in front of the library */

enum healcl_status __wrap_launch_step(struct launcher *self, const struct step *step,
                                      struct healcl_error *error)
{
    if (share_chooses() || getenv("HEALCL_COVERED"))
        describe(step);
    enum healcl_status status = __real_launch_step(self, step, error);
    *step_text = 0;
    return status;
}

enum healcl_status __wrap_device_launch(struct healcl_device *device, const struct launch *launch,
                                        struct healcl_error *error)
{
    const char *path = getenv("HEALCL_COVERED");
    if (choice_looks_at(launch, step_text))
        return HEALCL_OK;
    if (path && launch->groups > 0) {
        char line[2 * COVERED_TEXT];
        snprintf(line, sizeof line, "%s\t%s\t%s\t%s -D LOCAL_SIZE=%zu\n",
                 *step_text ? step_text : "-\t-\t-\t-", launch->program, launch->kernel,
                 launch->options, launch->local_size);
        note(path, line);
    }
    return __real_device_launch(device, launch, error);
}
