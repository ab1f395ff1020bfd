#include "tools/problem_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/variant.h"
#include "reference/reference.h"
#include "run/run.h"
#include "tools/view.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- plans of problems */

enum healcl_status problem_plan(struct planned *planned, const struct problem *problem,
                                const struct placement *placement, struct healcl_error *error)
{
    planned->plan = NULL;
    planned->transcript = placement_transcript(placement, problem);
    planned->source =
        (struct source){.text = planned->transcript, .length = strlen(planned->transcript)};
    const enum healcl_status status =
        plan_create(&planned->source, problem->table, NULL, &planned->plan, error);
    if (status == HEALCL_NO_MEMORY || (status == HEALCL_OK && !planned->plan))
        xmalloc_fail();
    return status;
}

void planned_release(struct planned *planned)
{
    plan_free(planned->plan);
    free(planned->transcript);
}

/* Problems are valid, and so are their data: only what is beyond the device is HEALCL_REFUSED. */
static enum healcl_status wrongly_refused(struct healcl_error *error)
{
    error_prefix(error, "a valid call is refused: ");
    if (error)
        error->status = HEALCL_DIFFERENT;
    return HEALCL_DIFFERENT;
}

/* The storage of the plan that was placed as number i: the constants come first. */
static const struct storage *planned_storage(const struct plan *plan, uint32_t i)
{
    return plan->storages[1 + i];
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
    memset(data, 0, sizeof *data);
}

/* ---------------------------------------------------------------- images of storages */

struct images {
    uint32_t count;
    void *bytes[PARAMETERS_MAX];
};

/* Random elements, and around a tensor that holds moduli or indices such as it may hold: what reads
 * them by mistake goes on to a wrong result. */
static void fill_image(const struct problem *problem, const struct placement *placement,
                       uint32_t storage, struct random *random, void *bytes)
{
    const enum dtype dtype = placement->storages[storage].dtype;
    const int64_t count = (int64_t)(placement_bytes(placement, storage) / dtype_size(dtype));
    struct problem_tensor whole = {.dtype = dtype, .shape = layout_of_shape(1, &count)};
    for (int i = 0; i < PARAMETERS_MAX && placement->storages[storage].after > 0; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        if (!tensor->present || placement->places[i].storage != storage)
            continue;
        whole.contents = tensor->contents;
        whole.low = tensor->low;
        whole.high = tensor->high;
        if (tensor->contents == CONTENTS_COPRIME)
            whole.contents = CONTENTS_MODULI;
        if (tensor->contents == CONTENTS_PERMUTATION) {
            whole.contents = CONTENTS_BETWEEN;
            whole.low = 0;
            whole.high = layout_elements(&tensor->shape) - 1;
        }
    }
    problem_fill(&whole, random, bytes);
}

/* Fills what is around the problem's tensors, and then these. */
static void images_init(struct images *images, const struct problem *problem,
                        const struct placement *placement, const struct problem_data *data,
                        struct random *random)
{
    images->count = placement->storage_count;
    for (uint32_t i = 0; i < images->count; i++) {
        images->bytes[i] = xmalloc(placement_bytes(placement, i));
        fill_image(problem, placement, i, random, images->bytes[i]);
    }
    /* What must hold certain values comes last, as tensors may share elements. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < PARAMETERS_MAX; i++) {
            const struct problem_tensor *tensor = &problem->tensors[i];
            if (tensor->present && problem_is_free(tensor) == (pass == 0))
                view_scatter(&placement->places[i].layout, dtype_size(tensor->dtype),
                             images->bytes[placement->places[i].storage], data->packed[i]);
        }
}

static void images_release(struct images *images)
{
    for (uint32_t i = 0; i < images->count; i++)
        free(images->bytes[i]);
}

/* ---------------------------------------------------------------- the reference */

/* What the reference makes of the images of a plan's storages. */
struct answer {
    enum dtype dtype; /* of a tensor that the call makes, or of what it downloads */
    int64_t elements;
    void *made; /* NULL: there is none */
    uint64_t dropped_digits;
};

static enum healcl_status answer_step(struct reference *reference, const struct step *step,
                                      struct answer *answer, struct healcl_error *error)
{
    if (step->kind != STEP_DOWNLOAD)
        return reference_step(reference, step, error);
    answer->dtype = step->in[0]->storage->dtype;
    answer->elements = layout_elements(&step->in[0]->layout);
    answer->made = xcalloc((size_t)answer->elements, dtype_size(answer->dtype));
    return answer->elements > 0 ? reference_read(reference, step->in[0], answer->made, error)
                                : HEALCL_OK;
}

/* The images become what they are to be. The caller frees answer->made, also where this fails. */
static enum healcl_status answer_find(struct answer *answer, const struct plan *plan,
                                      struct images *images, struct healcl_error *error)
{
    struct reference *reference = NULL;
    enum healcl_status status = reference_create(plan, &reference, error);
    if (status == HEALCL_NO_MEMORY)
        xmalloc_fail();
    for (uint32_t i = 0; i < images->count; i++)
        reference_lend(reference, planned_storage(plan, i), images->bytes[i]);
    for (size_t i = 0; status == HEALCL_OK && i < plan->step_count; i++)
        if (!step_is_left_out(&plan->steps[i], NULL))
            status = answer_step(reference, &plan->steps[i], answer, error);
    answer->dropped_digits = reference->dropped_digits;
    reference_free(reference);
    if (status == HEALCL_REFUSED)
        status = wrongly_refused(error);
    if (status != HEALCL_OK)
        error_prefix(error, "the reference: ");
    return status;
}

/* ---------------------------------------------------------------- the device */

/* The first difference of two arrays. */
struct difference {
    bool found;
    int64_t element;
    int64_t actual, expected;
};

static struct difference difference_of(enum dtype dtype, const char *actual, const char *expected,
                                       size_t bytes)
{
    size_t at = 0;
    if (bytes == 0 || memcmp(actual, expected, bytes) == 0)
        return (struct difference){.found = false};
    while (actual[at] == expected[at])
        at++;
    const int64_t element = (int64_t)(at / dtype_size(dtype));
    return (struct difference){true, element, dtype_load(dtype, actual, element),
                               dtype_load(dtype, expected, element)};
}

/* Compares a download with the answer. */
struct sink_context {
    const struct answer *answer;
    struct difference difference;
    bool taken;
};

static enum healcl_status take(void *context, const struct step *step, const void *bytes,
                               struct healcl_error *error)
{
    (void)error;
    struct sink_context *sink = context;
    const struct answer *answer = sink->answer;
    sink->taken = step->in[0]->storage->dtype == answer->dtype &&
                  layout_elements(&step->in[0]->layout) == answer->elements;
    if (sink->taken)
        sink->difference = difference_of(answer->dtype, bytes, answer->made,
                                         (size_t)answer->elements * dtype_size(answer->dtype));
    return HEALCL_OK;
}

/* Makes an error of a difference. Its detail is the problem, and where its tensors lie. */
static enum healcl_status different(const struct problem *problem,
                                    const struct placement *placement, const char *where,
                                    const struct difference *difference, struct healcl_error *error)
{
    char call[PROBLEM_TEXT_SIZE], strides[SHAPE_TEXT_SIZE];
    struct writer text = {0};
    (void)ERROR(error, HEALCL_DIFFERENT, "%s is %" PRId64 ", not %" PRId64, where,
                difference->actual, difference->expected);
    writer_put(&text, "%s\n", problem_text(problem, call));
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

/* "out[1, 2]", where the element of a storage is one of the output's, or "element 5 of storage 0,
 * outside of the output,". */
static void describe_element(const struct problem *problem, const struct placement *placement,
                             uint32_t storage, int64_t element, char text[SHAPE_TEXT_SIZE + 32])
{
    const struct place *out = problem->out >= 0 ? &placement->places[problem->out] : NULL;
    char index[SHAPE_TEXT_SIZE];
    if (out && out->storage == storage) {
        const struct layout *layouts[] = {&out->layout};
        struct walk walk;
        int64_t linear = 0;
        for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), linear++)
            if (walk.position[0] == element) {
                sprintf(text, "%s%s", problem->form->parameters[problem->out].name,
                        layout_index_text(&out->layout, linear, index));
                return;
            }
    }
    sprintf(text, "element %" PRId64 " of storage %" PRIu32 ", outside of the output,", element,
            storage);
}

static enum healcl_status compare_storage(struct launcher *launcher, const struct problem *problem,
                                          const struct placement *placement, uint32_t i,
                                          const char *expected, struct healcl_error *error)
{
    const struct buffer *buffer = launcher_memory(launcher, planned_storage(launcher->plan, i));
    const size_t bytes = placement_bytes(placement, i);
    char where[SHAPE_TEXT_SIZE + 32], *actual = xmalloc(bytes);
    struct difference difference = {.found = false};
    enum healcl_status status = device_read(launcher->device, buffer, 0, bytes, actual, error);
    if (status == HEALCL_OK)
        difference = difference_of(placement->storages[i].dtype, actual, expected, bytes);
    free(actual);
    if (!difference.found)
        return status;
    describe_element(problem, placement, i, difference.element, where);
    return different(problem, placement, where, &difference, error);
}

/* A download that differs from the answer. */
static enum healcl_status check_result(const struct problem *problem,
                                       const struct placement *placement,
                                       const struct sink_context *context,
                                       struct healcl_error *error)
{
    char where[64] = "the result's shape or dtype";
    if (context->taken && !context->difference.found)
        return HEALCL_OK;
    if (context->taken)
        snprintf(where, sizeof where, "element %" PRId64 " of the result",
                 context->difference.element);
    return different(problem, placement, where, &context->difference, error);
}

/* The manifest's kernel that runs a step of a plan, the first one. */
static struct manifest_kernel vendors_kernel(const struct plan *plan,
                                             const struct healcl_device *device)
{
    struct manifest_kernel kernel = {.name = NULL};
    for (size_t i = 0; i < plan->step_count && !kernel.name; i++)
        kernel = vendor_kernel_for(plan, &plan->steps[i], device);
    return kernel;
}

static enum healcl_status upload(struct launcher *launcher, const struct placement *placement,
                                 const struct images *images, struct healcl_error *error)
{
    for (uint32_t i = 0; i < images->count; i++)
        TRY(device_upload_memory(
            launcher->device, NULL, placement_bytes(placement, i), images->bytes[i],
            launcher_memory(launcher, planned_storage(launcher->plan, i)), error));
    return HEALCL_OK;
}

enum healcl_status problem_upload(struct executor *executor, const struct problem *problem,
                                  const struct placement *placement,
                                  const struct problem_data *data, struct random *random,
                                  struct healcl_error *error)
{
    struct images images;
    images_init(&images, problem, placement, data, random);
    const enum healcl_status status =
        upload(device_executor_launcher(executor), placement, &images, error);
    images_release(&images);
    return status;
}

/* One call on both sides. */
struct attempt {
    const struct problem *problem;
    const struct placement *placement;
    struct images images; /* before it, then as they are to be */
    struct answer answer;
};

/* Runs what was uploaded and compares. HEALCL_DIFFERENT where something differs. */
static enum healcl_status run(struct executor *executor, const struct attempt *attempt,
                              struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct plan *plan = launcher->plan;
    struct sink_context context = {.answer = &attempt->answer};
    const struct result_sink sink = {.context = &context, .take = take};
    TRY(executor_run(executor, plan, &sink, error));
    const struct difference digits = {.actual = (int64_t)executor->dropped_digits,
                                      .expected = (int64_t)attempt->answer.dropped_digits};
    /* A manifest's kernel cannot say. */
    if (digits.actual != digits.expected && !vendors_kernel(plan, launcher->device).name)
        return different(attempt->problem, attempt->placement,
                         "the number of values with dropped digits", &digits, error);
    if (attempt->answer.made)
        TRY(check_result(attempt->problem, attempt->placement, &context, error));
    for (uint32_t i = 0; i < attempt->images.count; i++)
        TRY(compare_storage(launcher, attempt->problem, attempt->placement, i,
                            attempt->images.bytes[i], error));
    return HEALCL_OK;
}

/* device: NULL: the reference alone, which may refuse the data. */
static enum healcl_status plan_and_run(struct attempt *attempt, struct healcl_device *device,
                                       struct healcl_error *error)
{
    struct planned planned;
    struct executor *executor = NULL;
    enum healcl_status status = problem_plan(&planned, attempt->problem, attempt->placement, error);
    if (status == HEALCL_REFUSED)
        status = wrongly_refused(error);
    if (status == HEALCL_OK && device)
        status = device_executor_create(device, planned.plan, false, &executor, error);
    if (executor)
        status =
            upload(device_executor_launcher(executor), attempt->placement, &attempt->images, error);
    if (status == HEALCL_OK)
        status = answer_find(&attempt->answer, planned.plan, &attempt->images, error);
    if (status == HEALCL_OK && device)
        status = run(executor, attempt, error);
    if (status == HEALCL_NO_MEMORY)
        xmalloc_fail();
    if (status == HEALCL_REFUSED && executor && device_executor_has_refused(executor))
        status = wrongly_refused(error);
    if (executor)
        executor->class->destroy(executor);
    planned_release(&planned);
    return status;
}

enum check_result problem_check(struct healcl_device *device, const struct problem *problem,
                                const struct placement *placement, const struct problem_data *data,
                                struct random *random, struct healcl_error *error)
{
    struct attempt attempt = {.problem = problem, .placement = placement};
    images_init(&attempt.images, problem, placement, data, random);
    const enum healcl_status status = plan_and_run(&attempt, device, error);
    free(attempt.answer.made);
    images_release(&attempt.images);
    return status == HEALCL_OK          ? CHECK_EQUAL
           : status == HEALCL_DIFFERENT ? CHECK_DIFFERENT
                                        : CHECK_REFUSED;
}

bool problem_is_valid(const struct problem *problem, const struct problem_data *data)
{
    struct random random = {0};
    struct placement placement;
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, NULL);
    return problem_check(NULL, problem, &placement, data, &random, NULL) == CHECK_EQUAL;
}

enum healcl_status problem_kernel(const struct healcl_device *device, const struct problem *problem,
                                  const struct placement *placement, struct manifest_kernel *kernel)
{
    struct planned planned;
    *kernel = (struct manifest_kernel){.name = NULL};
    if (!problem->table)
        return HEALCL_OK;
    const enum healcl_status status = problem_plan(&planned, problem, placement, NULL);
    if (status == HEALCL_OK)
        *kernel = vendors_kernel(planned.plan, device);
    planned_release(&planned);
    return status;
}

enum healcl_status problem_look(const struct problem *problem,
                                void (*look)(void *context, const struct plan *plan), void *context,
                                struct healcl_error *error)
{
    struct planned planned;
    struct placement placement;
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, NULL);
    const enum healcl_status status = problem_plan(&planned, problem, &placement, error);
    if (status == HEALCL_OK && look)
        look(context, planned.plan);
    planned_release(&planned);
    return status;
}
