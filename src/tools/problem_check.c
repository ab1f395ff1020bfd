#include "tools/problem_check.h"

#include "core/process.h"
#include "tools/results.h"
#include "tools/variants.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- plans of problems */

/* Plans a call through its transcript. The caller releases the plan, also on failure. */
static enum healcl_status plan_problem(struct planned *planned, const struct problem *problem,
                                       const struct placement *placement,
                                       struct healcl_error *error)
{
    return planned_init(planned, placement_transcript(placement, problem), problem->table, NULL,
                        error);
}

/* ---------------------------------------------------------------- data */

void problem_data_init(struct problem_data *data, const struct problem *problem,
                       struct random *random)
{
    memset(data, 0, sizeof *data);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        if (!tensor->present)
            continue;
        data->packed[i] =
            xcalloc((size_t)layout_elements(&tensor->shape), dtype_size(tensor->dtype));
        problem_fill(tensor, random, data->packed[i]);
    }
}

void problem_data_release(struct problem_data *data)
{
    for (int i = 0; i < PARAMETERS_MAX; i++)
        free(data->packed[i]);
}

/* ---------------------------------------------------------------- images of storages */

/* Makes random elements. Around a tensor of moduli or indices they are valid ones too, so that a
 * kernel that reads them by mistake continues to a wrong result. */
static void fill_image(const struct problem *problem, const struct placement *placement,
                       uint32_t storage, struct random *random, void *bytes)
{
    const enum dtype dtype = placement->storages[storage].dtype;
    const int64_t count = (int64_t)(placement_bytes(placement, storage) / dtype_size(dtype));
    struct problem_tensor whole = {.dtype = dtype};
    for (int i = 0; i < PARAMETERS_MAX && placement->storages[storage].after > 0; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        if (!tensor->present || placement->places[i].storage != storage)
            continue;
        whole = *tensor;
        if (tensor->contents == CONTENTS_COPRIME)
            whole.contents = CONTENTS_MODULI;
        if (tensor->contents == CONTENTS_PERMUTATION) {
            whole.contents = CONTENTS_BETWEEN;
            whole.low = 0;
            whole.high = layout_elements(&tensor->shape) - 1;
        }
    }
    whole.shape = layout_of_shape(1, &count);
    problem_fill(&whole, random, bytes);
}

/* Copies an array in C order to the elements of a view. image: the contents of its storage. */
static void scatter(const struct layout *layout, size_t size, void *image, const void *packed)
{
    const struct layout *layouts[] = {layout};
    struct walk walk;
    const char *from = packed;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), from += size)
        memcpy((char *)image + walk.position[0] * (int64_t)size, from, size);
}

/* Fills the memory around the problem's tensors, then the tensors. */
static void images_init(void *images[PARAMETERS_MAX], const struct problem *problem,
                        const struct placement *placement, const struct problem_data *data,
                        struct random *random)
{
    for (uint32_t i = 0; i < placement->storage_count; i++) {
        images[i] = xmalloc(placement_bytes(placement, i));
        fill_image(problem, placement, i, random, images[i]);
    }
    /* Tensors that must have particular values come last, because tensors may share elements. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < PARAMETERS_MAX; i++) {
            const struct problem_tensor *tensor = &problem->tensors[i];
            if (tensor->present && problem_is_free(tensor) == (pass == 0))
                scatter(&placement->places[i].layout, dtype_size(tensor->dtype),
                        images[placement->places[i].storage], data->packed[i]);
        }
}

/* ---------------------------------------------------------------- differences */

/* Makes an error for a difference. Its detail describes the problem, and the layout of its
 * tensors. */
static enum healcl_status different(const struct problem *problem,
                                    const struct placement *placement, const char *where,
                                    const struct difference *difference, struct healcl_error *error)
{
    char strides[SHAPE_TEXT_SIZE];
    struct writer text = {0};
    (void)ERROR(error, HEALCL_DIFFERENT, "%s is %" PRId64 ", not %" PRId64, where,
                difference->actual, difference->expected);
    problem_put(&text, problem);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct place *place = &placement->places[i];
        const struct placed_storage *storage = &placement->storages[place->storage];
        struct layout as_shape = place->layout;
        if (!problem->tensors[i].present)
            continue;
        memcpy(as_shape.shape, place->layout.stride, sizeof as_shape.shape);
        writer_put(&text, "  %s: offset %" PRId64 ", strides %s, in storage %u of %" PRId64,
                   problem->form->parameters[i].name, place->layout.offset,
                   layout_shape_text(&as_shape, strides), place->storage, storage->elements);
        if (storage->after > 0)
            writer_put(&text, ", between %" PRId64 " and %" PRId64 " other elements",
                       storage->before, storage->after);
        writer_put(&text, "\n");
    }
    if (error)
        error->detail = text.bytes;
    else
        free(text.bytes);
    return HEALCL_DIFFERENT;
}

/* Names an element of a storage: "out[1, 2]", or "element 5 of storage 0, outside of the output,".
 * For a new tensor, names its element. */
static void describe_element(const struct problem *problem, const struct placement *placement,
                             uint32_t storage, int64_t element, char text[SHAPE_TEXT_SIZE + 32])
{
    char index[SHAPE_TEXT_SIZE];
    if (problem->out >= 0 && placement->places[problem->out].storage == storage) {
        const struct layout *layouts[] = {&placement->places[problem->out].layout};
        struct walk walk;
        int64_t linear = 0;
        for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), linear++)
            if (walk.position[0] == element) {
                sprintf(text, "%s%s", problem->form->parameters[problem->out].name,
                        layout_index_text(layouts[0], linear, index));
                return;
            }
    }
    if (storage == placement->storage_count)
        sprintf(text, "element %" PRId64 " of the result", element);
    else
        sprintf(text, "element %" PRId64 " of storage %" PRIu32 ", outside of the output,", element,
                storage);
}

/* ---------------------------------------------------------------- kernels of manifests */

static void add_use(struct kernel_uses *uses, const struct vendor_kernel *kernel, const char *of)
{
    uses->of = xrealloc(uses->of, uses->count + 1, sizeof *uses->of);
    uses->of[uses->count++] = (struct kernel_use){.kernel = kernel, .of = of};
}

void kernel_uses_init(struct kernel_uses *uses, const struct operation_table *table)
{
    const struct vendor_operations *all = table ? vendor_of_table(table) : NULL;
    *uses = (struct kernel_uses){.count = 0};
    for (size_t i = OPERATION_COUNT; all && i < operation_count(table); i++) {
        const struct vendor_operation *operation = operation_at(table, i)->context;
        for (uint32_t j = 0; j < operation->kernel_count; j++)
            add_use(uses, operation->kernels[j], operation->name);
    }
    for (int kind = 0; all && kind < STEP_KINDS; kind++)
        for (const struct vendor_replacement *at = all->replacements[kind]; at; at = at->next)
            add_use(uses, at->kernel, step_traits[kind].id);
}

void kernel_uses_release(struct kernel_uses *uses)
{
    for (size_t i = 0; i < uses->count; i++)
        free(uses->of[i].why_not);
    free(uses->of);
}

struct kernel_use *kernel_uses_find(const struct kernel_uses *uses, const char *name)
{
    for (size_t i = 0; i < uses->count; i++)
        for (uint32_t j = 0; j < uses->of[i].kernel->alternative_count; j++)
            if (uses->of[i].kernel->names[j] == name)
                return &uses->of[i];
    return NULL;
}

/* Counts the steps that kernels run, or stores why they do not. */
static void count_uses(const struct kernel_uses *uses, const struct plan *plan,
                       const struct healcl_device *device, bool has_run)
{
    struct healcl_error why = {.status = HEALCL_OK};
    const struct vendor_kernel *kernel;
    for (size_t i = 0; i < plan->step_count; i++)
        for (uint32_t j = 0; (kernel = vendor_kernel_at(plan, &plan->steps[i], device, j, &why));
             j++) {
            struct kernel_use *use = kernel_uses_find(uses, kernel->names[0]);
            if (why.status == HEALCL_OK) {
                use->steps += has_run;
            } else if (!use->why_not || why.status == HEALCL_REFUSED) {
                free(use->why_not);
                use->why_not = xstrdup(why.message);
            }
            healcl_error_clear(&why);
        }
}

/* ---------------------------------------------------------------- both sides */

/* Finds the first step of a plan that a manifest's kernel runs, and that kernel. Returns NULL if
 * there is none. */
static const struct step *first_step(const struct plan *plan, const struct healcl_device *device,
                                     struct manifest_kernel *kernel)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        *kernel = vendor_kernel_for(plan, &plan->steps[i], device);
        if (kernel->name)
            return &plan->steps[i];
    }
    return NULL;
}

enum healcl_status problem_refused(struct healcl_error *error)
{
    error_prefix(error, "a valid call is refused: ");
    if (error)
        error->status = HEALCL_DIFFERENT;
    return HEALCL_DIFFERENT;
}

/* One call on both sides. */
struct attempt {
    const struct problem *problem;
    const struct placement *placement;
    void *images[PARAMETERS_MAX]; /* contents of storages before the call */
    struct planned planned;
    struct results expected, actual; /* storages, then a tensor that the call makes */
};

static enum healcl_status run(struct attempt *attempt, struct healcl_device *device,
                              struct results *results, struct healcl_error *error)
{
    enum healcl_status status = results_run(results, device, attempt->planned.plan, attempt->images,
                                            attempt->placement->storage_count, error);
    if (status == HEALCL_REFUSED && results->refuses_data)
        status = problem_refused(error);
    if (status != HEALCL_OK && !device)
        error_prefix(error, "the reference: ");
    return status;
}

static enum healcl_status compare(const struct attempt *attempt, const struct healcl_device *device,
                                  struct healcl_error *error)
{
    char where[SHAPE_TEXT_SIZE + 32];
    const struct difference digits = {.actual = (int64_t)attempt->actual.dropped_digits,
                                      .expected = (int64_t)attempt->expected.dropped_digits};
    struct manifest_kernel ignored;
    /* a manifest's kernel cannot report errors */
    if (digits.actual != digits.expected && !first_step(attempt->planned.plan, device, &ignored))
        return different(attempt->problem, attempt->placement,
                         "the number of values with dropped digits", &digits, error);
    for (size_t i = attempt->actual.count; i-- > 0;) { /* the result comes first */
        const struct result *actual = &attempt->actual.of[i], *expected = &attempt->expected.of[i];
        const struct difference difference =
            difference_of(actual->dtype, actual->bytes, expected->bytes, expected->size);
        if (!difference.found)
            continue;
        describe_element(attempt->problem, attempt->placement, (uint32_t)i, difference.element,
                         where);
        return different(attempt->problem, attempt->placement, where, &difference, error);
    }
    return HEALCL_OK;
}

/* Prints which manifest's kernel runs, in case it ends the process. */
static void say_kernel(const struct attempt *attempt, const struct healcl_device *device)
{
    char text[96] = "";
    struct manifest_kernel kernel;
    if (attempt->problem->uses && first_step(attempt->planned.plan, device, &kernel))
        snprintf(text, sizeof text, "%.40s, of %.40s,", kernel.name, kernel.file);
    verdict_kernel(text);
}

enum healcl_status problem_check(struct healcl_device *device, const struct problem *problem,
                                 const struct placement *placement, const struct problem_data *data,
                                 struct random *random, struct healcl_error *error)
{
    struct attempt attempt = {.problem = problem, .placement = placement};
    enum healcl_status status = plan_problem(&attempt.planned, problem, placement, error);
    if (status == HEALCL_REFUSED)
        status = problem_refused(error);
    images_init(attempt.images, problem, placement, data, random);
    THEN(status, run(&attempt, NULL, &attempt.expected, error));
    if (status == HEALCL_OK && device) {
        say_kernel(&attempt, device);
        status = run(&attempt, device, &attempt.actual, error);
    }
    if (status == HEALCL_OK && device && problem->uses)
        count_uses(problem->uses, attempt.planned.plan, device, true);
    if (status == HEALCL_OK && device)
        status = compare(&attempt, device, error);
    if (device && problem->variants && attempt.planned.plan)
        variants_end_call(problem->variants, attempt.planned.plan, status == HEALCL_OK);
    results_release(&attempt.expected);
    results_release(&attempt.actual);
    for (uint32_t i = 0; i < placement->storage_count; i++)
        free(attempt.images[i]);
    planned_release(&attempt.planned);
    return status;
}

enum healcl_status problem_kernel(struct healcl_device *device, const struct problem *problem,
                                  const struct placement *placement, struct manifest_kernel *kernel)
{
    struct planned planned;
    *kernel = (struct manifest_kernel){.name = NULL};
    if (!problem->table)
        return HEALCL_OK;
    const enum healcl_status status = plan_problem(&planned, problem, placement, NULL);
    const struct step *step = status == HEALCL_OK ? first_step(planned.plan, device, kernel) : NULL;
    if (step && problem->uses) {
        vendor_take_turn(planned.plan, step, device, problem->turn);
        *kernel = vendor_kernel_for(planned.plan, step, device);
    }
    if (status == HEALCL_OK && problem->uses)
        count_uses(problem->uses, planned.plan, device, false);
    planned_release(&planned);
    return status;
}

bool problem_is_new(const struct problem *problem, const struct placement *placement)
{
    struct planned planned;
    const bool is_new = plan_problem(&planned, problem, placement, NULL) == HEALCL_OK &&
                        variants_are_new(problem->variants, planned.plan);
    planned_release(&planned);
    return is_new;
}

enum healcl_status problem_look(const struct problem *problem,
                                void (*look)(void *context, const struct plan *plan), void *context,
                                struct healcl_error *error)
{
    struct planned planned;
    struct placement placement;
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, NULL);
    const enum healcl_status status = plan_problem(&planned, problem, &placement, error);
    if (status == HEALCL_OK && look)
        look(context, planned.plan);
    planned_release(&planned);
    return status;
}
