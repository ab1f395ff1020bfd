#include "check/problem_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/view.h"
#include "kernels/variant.h"
#include "reference/reference.h"
#include "run/device_executor.h"

/* NULL, and a failure of the data, where memory is lacking. */
static void *allocate(struct problem_data *data, size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory && data->failure.status == HEALCL_OK)
        (void)ERROR(&data->failure, HEALCL_NO_MEMORY, "out of memory");
    return memory;
}

static size_t tensor_bytes(const struct problem_tensor *tensor)
{
    return (size_t)layout_elements(&tensor->shape) * dtype_size(tensor->dtype);
}

/* ---------------------------------------------------------------- plans of problems */

enum healcl_status problem_plan(struct planned *planned, const struct problem *problem,
                                const struct placement *placement, const void *payload,
                                struct healcl_error *error)
{
    planned->plan = NULL;
    planned->transcript = placement_transcript(placement, problem, payload);
    if (!planned->transcript)
        NO_MEMORY(error);
    planned->source =
        (struct source){.text = planned->transcript, .length = strlen(planned->transcript)};
    TRY(plan_create(&planned->source, problem->table, NULL, &planned->plan, error));
    if (!planned->plan) /* never: for analysers, which cannot know */
        NO_MEMORY(error);
    return HEALCL_OK;
}

/* Problems are valid, and so are their data: only what is beyond the device is HEALCL_REFUSED. */
static enum healcl_status wrongly_refused(struct healcl_error *error)
{
    error_prefix(error, "a valid call is refused: ");
    if (error)
        error->status = HEALCL_DIFFERENT;
    return HEALCL_DIFFERENT;
}

void planned_release(struct planned *planned)
{
    plan_free(planned->plan);
    free(planned->transcript);
}

/* The storage of the plan that was placed as number i: the constants come first. */
static const struct storage *planned_storage(const struct plan *plan, uint32_t i)
{
    return plan->storages[1 + i];
}

/* ---------------------------------------------------------------- data */

static void *filled(struct problem_data *data, const struct problem_tensor *tensor,
                    struct random *random)
{
    void *memory = allocate(data, tensor_bytes(tensor));
    if (memory)
        problem_fill(tensor, random, memory);
    return memory;
}

void problem_data_init(struct problem_data *data, const struct problem *problem,
                       struct random *random)
{
    memset(data, 0, sizeof *data);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            data->packed[i] = filled(data, &problem->tensors[i], random);
    if (problem->payload.present)
        data->payload = filled(data, &problem->payload, random);
}

void problem_data_release(struct problem_data *data)
{
    for (int i = 0; i < PARAMETERS_MAX; i++)
        free(data->packed[i]);
    free(data->payload);
    free(data->result);
    healcl_error_clear(&data->failure);
    memset(data, 0, sizeof *data);
}

static enum healcl_status set_result(struct problem_data *data, enum dtype dtype, int64_t elements,
                                     struct healcl_error *error)
{
    free(data->result);
    data->result_dtype = dtype;
    data->result_elements = elements;
    size_t bytes = (size_t)elements * dtype_size(dtype);
    data->result = malloc(bytes ? bytes : 1);
    if (!data->result)
        NO_MEMORY(error);
    return HEALCL_OK;
}

/* The reference works on the data's own arrays; the output's values go into the result. */
static enum healcl_status lend_tensors(struct reference *reference, const struct plan *plan,
                                       const struct problem *problem,
                                       const struct placement *placement, struct problem_data *data,
                                       struct healcl_error *error)
{
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        void *memory = data->packed[i];
        if (!tensor->present)
            continue;
        if (i == problem->out) {
            TRY(set_result(data, tensor->dtype, layout_elements(&tensor->shape), error));
            memcpy(data->result, memory, tensor_bytes(tensor));
            memory = data->result;
        }
        reference_lend(reference, planned_storage(plan, placement->places[i].storage), memory);
    }
    return HEALCL_OK;
}

static enum healcl_status solve_step(struct reference *reference, const struct step *step,
                                     struct problem_data *data, struct healcl_error *error)
{
    if (step->kind != STEP_DOWNLOAD)
        return reference_step(reference, step, error);
    const struct tensor *made = step->in[0];
    TRY(set_result(data, made->storage->dtype, layout_elements(&made->layout), error));
    if (data->result_elements == 0)
        return HEALCL_OK;
    return reference_read(reference, made, data->result, error);
}

static enum healcl_status solve_plan(const struct plan *plan, const struct problem *problem,
                                     const struct placement *placement, struct problem_data *data,
                                     struct healcl_error *error)
{
    struct reference *reference = NULL;
    TRY(reference_create(plan, &reference, error));
    enum healcl_status status = lend_tensors(reference, plan, problem, placement, data, error);
    for (size_t i = 0; status == HEALCL_OK && i < plan->step_count; i++)
        if (!step_is_left_out(&plan->steps[i], NULL))
            status = solve_step(reference, &plan->steps[i], data, error);
    data->dropped_digits = reference->dropped_digits;
    reference_free(reference);
    return status;
}

void problem_solve(struct problem_data *data, const struct problem *problem)
{
    struct random unused = {0};
    struct placement placement;
    struct planned planned;
    if (data->failure.status != HEALCL_OK)
        return;
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, &unused);
    enum healcl_status status =
        problem_plan(&planned, problem, &placement, data->payload, &data->failure);
    if (status == HEALCL_OK)
        status = solve_plan(planned.plan, problem, &placement, data, &data->failure);
    if (status == HEALCL_REFUSED)
        status = wrongly_refused(&data->failure);
    if (status != HEALCL_OK)
        error_prefix(&data->failure, "the reference: ");
    planned_release(&planned);
}

/* ---------------------------------------------------------------- images of storages */

struct images {
    uint32_t count;
    void *bytes[PARAMETERS_MAX]; /* NULL where there was no memory */
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

/* What is around the problem's tensors, and then these. */
static enum healcl_status images_init(struct images *images, const struct problem *problem,
                                      const struct placement *placement,
                                      const struct problem_data *data, struct random *random,
                                      struct healcl_error *error)
{
    images->count = placement->storage_count;
    for (uint32_t i = 0; i < images->count; i++) {
        images->bytes[i] = malloc(placement_bytes(placement, i) + 1);
        if (!images->bytes[i])
            NO_MEMORY(error);
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
    return HEALCL_OK;
}

static void images_release(struct images *images)
{
    for (uint32_t i = 0; i < images->count; i++)
        free(images->bytes[i]);
}

/* What the tensors hold, where some share elements. */
static void read_images(struct problem_data *data, const struct problem *problem,
                        const struct placement *placement, const struct images *images)
{
    memset(data, 0, sizeof *data);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        if (!tensor->present)
            continue;
        data->packed[i] = allocate(data, tensor_bytes(tensor));
        if (data->packed[i])
            view_gather(&placement->places[i].layout, dtype_size(tensor->dtype),
                        images->bytes[placement->places[i].storage], data->packed[i]);
    }
}

/* ---------------------------------------------------------------- the device */

struct difference {
    bool found;
    int64_t element;
    int64_t actual, expected;
};

/* Finds the first difference of arrays, the elements from first on. */
static void find_difference(enum dtype dtype, const char *actual, const char *expected,
                            size_t bytes, int64_t first, struct difference *difference)
{
    size_t at = 0;
    if (bytes == 0 || memcmp(actual, expected, bytes) == 0)
        return;
    while (actual[at] == expected[at])
        at++;
    int64_t element = (int64_t)(at / dtype_size(dtype));
    *difference = (struct difference){true, first + element, dtype_load(dtype, actual, element),
                                      dtype_load(dtype, expected, element)};
}

/* What a buffer is compared with. */
struct expected_bytes {
    enum dtype dtype;
    const char *bytes;
    struct difference *difference;
};

static enum healcl_status compare_piece(void *context, uint64_t offset, uint64_t bytes,
                                        const void *memory, struct healcl_error *error)
{
    const struct expected_bytes *expected = context;
    (void)error;
    if (!expected->difference->found)
        find_difference(expected->dtype, memory, expected->bytes + offset, bytes,
                        (int64_t)(offset / dtype_size(expected->dtype)), expected->difference);
    return HEALCL_OK;
}

static enum healcl_status compare(struct healcl_device *device, const struct buffer *buffer,
                                  enum dtype dtype, const char *expected, size_t count,
                                  struct difference *difference, struct healcl_error *error)
{
    struct expected_bytes with = {dtype, expected, difference};
    return device_download(device, buffer, 0, count, &(struct device_taker){compare_piece, &with},
                           error);
}

/* Compares a download with the answer. */
struct sink_context {
    const struct problem_data *data;
    struct difference difference;
    bool taken;
};

static enum healcl_status take(void *context, const struct step *step, const void *bytes,
                               struct healcl_error *error)
{
    (void)error;
    struct sink_context *sink = context;
    const struct problem_data *data = sink->data;
    enum dtype dtype = data->result_dtype;
    sink->taken = step->in[0]->storage->dtype == dtype &&
                  layout_elements(&step->in[0]->layout) == data->result_elements;
    if (sink->taken)
        find_difference(dtype, bytes, data->result,
                        (size_t)data->result_elements * dtype_size(dtype), 0, &sink->difference);
    return HEALCL_OK;
}

/* The problem, and where its tensors lie. */
static void put_problem(struct writer *writer, const struct problem *problem,
                        const struct placement *placement)
{
    char call[PROBLEM_TEXT_SIZE];
    writer_put(writer, "%s\n", problem_text(problem, call));
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct place *place = &placement->places[i];
        char strides[SHAPE_TEXT_SIZE], storage[SHAPE_TEXT_SIZE];
        struct layout as_shape = place->layout;
        if (!problem->tensors[i].present)
            continue;
        memcpy(as_shape.shape, place->layout.stride, sizeof as_shape.shape);
        writer_put(writer, "  %s: offset %" PRId64 ", strides %s, in storage %u of shape %s",
                   problem->form->parameters[i].name, place->layout.offset,
                   layout_shape_text(&as_shape, strides), place->storage,
                   layout_shape_text(&placement->storages[place->storage].shape, storage));
        if (placement->storages[place->storage].after > 0)
            writer_put(writer, ", between %" PRId64 " and %" PRId64 " other elements",
                       placement->storages[place->storage].before,
                       placement->storages[place->storage].after);
        writer_put(writer, "\n");
    }
}

/* Makes an error of a difference: where says what differs. */
static enum healcl_status different(const struct problem *problem,
                                    const struct placement *placement, const char *where,
                                    const struct difference *difference, struct healcl_error *error)
{
    struct writer text = {0};
    (void)ERROR(error, HEALCL_DIFFERENT, "%s is %" PRId64 ", not %" PRId64, where,
                difference->actual, difference->expected);
    put_problem(&text, problem, placement);
    if (error && !text.failed)
        error->detail = text.bytes;
    else
        free(text.bytes);
    return HEALCL_DIFFERENT;
}

/* "out[1, 2]", where the element of a storage is one of the output's, or "element 5 of storage 0,
 * which is not the output's,". */
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
    const struct placed_storage *storage = &placement->storages[i];
    const struct buffer *buffer = launcher_memory(launcher, planned_storage(launcher->plan, i));
    struct difference difference = {.found = false};
    char where[SHAPE_TEXT_SIZE + 32];
    TRY(compare(launcher->device, buffer, storage->dtype, expected, placement_bytes(placement, i),
                &difference, error));
    if (!difference.found)
        return HEALCL_OK;
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
    struct images images = {.count = 0};
    enum healcl_status status = images_init(&images, problem, placement, data, random, error);
    if (status == HEALCL_OK)
        status = upload(device_executor_launcher(executor), placement, &images, error);
    images_release(&images);
    return status;
}

/* Uploads, runs and compares. HEALCL_DIFFERENT where something differs. */
static enum healcl_status run(struct executor *executor, const struct problem *problem,
                              const struct placement *placement, const struct problem_data *data,
                              struct images *images, struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct plan *plan = launcher->plan;
    struct sink_context context = {.data = data};
    const struct result_sink sink = {.context = &context, .take = take};
    TRY(upload(launcher, placement, images, error));
    TRY(executor_run(executor, plan, &sink, error));
    const struct difference digits = {.actual = (int64_t)executor->dropped_digits,
                                      .expected = (int64_t)data->dropped_digits};
    /* A manifest's kernel cannot say. */
    if (digits.actual != digits.expected && !vendors_kernel(plan, launcher->device).name)
        return different(problem, placement, "the number of values with dropped digits", &digits,
                         error);
    if (problem->out < 0)
        TRY(check_result(problem, placement, &context, error));
    else
        view_scatter(&placement->places[problem->out].layout, dtype_size(data->result_dtype),
                     images->bytes[placement->places[problem->out].storage], data->result);
    for (uint32_t i = 0; i < images->count; i++)
        TRY(compare_storage(launcher, problem, placement, i, images->bytes[i], error));
    return HEALCL_OK;
}

static enum healcl_status plan_and_run(struct healcl_device *device, const struct problem *problem,
                                       const struct placement *placement,
                                       const struct problem_data *data, struct images *images,
                                       struct healcl_error *error)
{
    struct planned planned;
    struct executor *executor = NULL;
    enum healcl_status status = problem_plan(&planned, problem, placement, data->payload, error);
    if (status == HEALCL_OK)
        status = device_executor_create(device, planned.plan, false, &executor, error);
    if (status == HEALCL_OK)
        status = run(executor, problem, placement, data, images, error);
    if (status == HEALCL_REFUSED &&
        (!planned.plan || (executor && device_executor_has_refused(executor))))
        status = wrongly_refused(error);
    if (executor)
        executor->class->destroy(executor);
    planned_release(&planned);
    return status;
}

/* Tensors that share elements hold what was placed last: the answer is another one then. */
static enum healcl_status place_and_run(struct healcl_device *device, const struct problem *problem,
                                        const struct placement *placement,
                                        const struct problem_data *data, struct random *random,
                                        struct images *images, struct problem_data *placed,
                                        struct healcl_error *error)
{
    TRY(images_init(images, problem, placement, data, random, error));
    if (placement->shared || placement->repeats) {
        read_images(placed, problem, placement, images);
        problem_solve(placed, problem);
        data = placed;
    }
    if (data->failure.status != HEALCL_OK)
        FAIL(error, data->failure.status, "%s", data->failure.message);
    return plan_and_run(device, problem, placement, data, images, error);
}

enum check_result problem_check(struct healcl_device *device, const struct problem *problem,
                                const struct placement *placement, const struct problem_data *data,
                                struct random *random, struct healcl_error *error)
{
    struct images images = {.count = 0};
    struct problem_data placed = {.result = NULL};
    enum healcl_status status = HEALCL_OK;
    if (data->failure.status != HEALCL_OK)
        status = ERROR(error, data->failure.status, "%s", data->failure.message);
    else
        status = place_and_run(device, problem, placement, data, random, &images, &placed, error);
    problem_data_release(&placed);
    images_release(&images);
    return status == HEALCL_OK          ? CHECK_EQUAL
           : status == HEALCL_DIFFERENT ? CHECK_DIFFERENT
                                        : CHECK_REFUSED;
}

struct manifest_kernel problem_kernel(const struct healcl_device *device,
                                      const struct problem *problem,
                                      const struct placement *placement,
                                      const struct problem_data *data)
{
    struct manifest_kernel kernel = {.name = NULL};
    struct planned planned;
    if (!problem->table)
        return kernel;
    if (problem_plan(&planned, problem, placement, data->payload, NULL) == HEALCL_OK)
        kernel = vendors_kernel(planned.plan, device);
    planned_release(&planned);
    return kernel;
}

/* Plans a problem with contiguous tensors. */
static enum healcl_status plan_contiguous(struct planned *planned, const struct problem *problem,
                                          struct random *random, struct healcl_error *error)
{
    struct placement placement;
    struct problem_data data = {.result = NULL};
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, random);
    if (problem->payload.present)
        problem_data_init(&data, problem, random);
    enum healcl_status status = problem_plan(planned, problem, &placement, data.payload, error);
    problem_data_release(&data);
    return status;
}

bool problem_look(const struct problem *problem, struct random *random,
                  void (*look)(void *context, const struct plan *plan), void *context)
{
    struct planned planned;
    bool has_plan = plan_contiguous(&planned, problem, random, NULL) == HEALCL_OK;
    if (has_plan)
        look(context, planned.plan);
    planned_release(&planned);
    return has_plan;
}

bool problem_is_refused(const struct problem *problem, struct random *random,
                        struct healcl_error *error)
{
    struct planned planned;
    enum healcl_status status = plan_contiguous(&planned, problem, random, error);
    planned_release(&planned);
    return status == HEALCL_REFUSED;
}

bool check_count(struct check_counts *counts, enum healcl_status status, struct healcl_error *error,
                 struct healcl_error *why)
{
    const bool is_beyond = status == HEALCL_REFUSED;
    counts->calls++;
    counts->passed += status == HEALCL_OK;
    counts->unsupported += is_beyond;
    const bool is_kept = status != HEALCL_OK && (why->status == HEALCL_OK ||
                                                 (why->status == HEALCL_REFUSED && !is_beyond));
    if (is_kept) {
        healcl_error_clear(why);
        *why = *error;
        *error = (struct healcl_error){.status = HEALCL_OK};
    }
    healcl_error_clear(error);
    return is_kept;
}
