#include "helper_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper_view.h"
#include "reference/reference.h"
#include "run/device_executor.h"

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

static size_t tensor_bytes(const struct problem_tensor *tensor)
{
    return (size_t)layout_elements(&tensor->shape) * dtype_size(tensor->dtype);
}

/* ---------------------------------------------------------------- plans of problems */

struct planned {
    char *transcript;
    struct source source;
    struct plan *plan;
};

static enum healcl_status plan_problem(struct planned *planned, const struct problem *problem,
                                       const struct placement *placement, const void *payload,
                                       struct healcl_error *error)
{
    planned->transcript = placement_transcript(placement, problem, payload);
    planned->source = (struct source){planned->transcript, strlen(planned->transcript), false};
    planned->plan = NULL;
    return plan_create(&planned->source, INT64_MAX, &planned->plan, error);
}

static void planned_release(struct planned *planned)
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

void problem_data_init(struct problem_data *data, const struct problem *problem,
                       struct random *random)
{
    memset(data, 0, sizeof *data);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present) {
            data->packed[i] = allocate(tensor_bytes(&problem->tensors[i]));
            problem_fill(&problem->tensors[i], random, data->packed[i]);
        }
    if (problem->payload.present) {
        data->payload = allocate(tensor_bytes(&problem->payload));
        problem_fill(&problem->payload, random, data->payload);
    }
}

void problem_data_release(struct problem_data *data)
{
    for (int i = 0; i < PARAMETERS_MAX; i++)
        free(data->packed[i]);
    free(data->payload);
    free(data->result);
    memset(data, 0, sizeof *data);
}

static void set_result(struct problem_data *data, enum dtype dtype, int64_t elements)
{
    free(data->result);
    data->result = allocate((size_t)elements * dtype_size(dtype));
    data->result_dtype = dtype;
    data->result_elements = elements;
}

static void die(const struct problem *problem, const struct healcl_error *error)
{
    problem_print(problem);
    printf("the reference says: %s\n", error->message);
    fflush(stdout);
    abort();
}

void problem_solve(struct problem_data *data, const struct problem *problem)
{
    struct healcl_error error = {0};
    struct random unused = {0};
    struct placement placement;
    struct planned planned;
    struct reference *reference = NULL;
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, &unused);
    if (plan_problem(&planned, problem, &placement, data->payload, &error) != HEALCL_OK ||
        reference_create(planned.plan, &reference, &error) != HEALCL_OK)
        die(problem, &error);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        void *memory = data->packed[i];
        if (!tensor->present)
            continue;
        if (i == problem->out) {
            set_result(data, tensor->dtype, layout_elements(&tensor->shape));
            memcpy(data->result, memory, tensor_bytes(tensor));
            memory = data->result;
        }
        reference_lend(reference, planned_storage(planned.plan, placement.places[i].storage),
                       memory);
    }
    for (size_t i = 0; i < planned.plan->step_count; i++) {
        const struct step *step = &planned.plan->steps[i];
        if (step->kind == STEP_DOWNLOAD) {
            set_result(data, step->in[0]->storage->dtype, layout_elements(&step->in[0]->layout));
            if (data->result_elements > 0 &&
                reference_read(reference, step->in[0], data->result, &error) != HEALCL_OK)
                die(problem, &error);
        } else if (reference_step(reference, step, &error) != HEALCL_OK) {
            die(problem, &error);
        }
    }
    data->dropped_digits = reference->dropped_digits;
    reference_free(reference);
    planned_release(&planned);
}

/* ---------------------------------------------------------------- images of storages */

struct images {
    uint32_t count;
    void *bytes[PARAMETERS_MAX];
};

/* Random elements everywhere, then the problem's tensors. */
static void images_init(struct images *images, const struct problem *problem,
                        const struct placement *placement, const struct problem_data *data,
                        struct random *random)
{
    images->count = placement->storage_count;
    for (uint32_t i = 0; i < images->count; i++) {
        const struct placed_storage *storage = &placement->storages[i];
        images->bytes[i] = allocate(placement_bytes(placement, i));
        random_fill_values(random, storage->dtype, layout_elements(&storage->shape),
                           images->bytes[i]);
    }
    /* What must hold certain values comes last, as tensors may share elements. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < PARAMETERS_MAX; i++) {
            const struct problem_tensor *tensor = &problem->tensors[i];
            bool any = tensor->contents == CONTENTS_VALUES || tensor->contents == CONTENTS_TAME;
            if (tensor->present && any == (pass == 0))
                view_scatter(&placement->places[i].layout, dtype_size(tensor->dtype),
                             images->bytes[placement->places[i].storage], data->packed[i]);
        }
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
        data->packed[i] = allocate(tensor_bytes(tensor));
        view_gather(&placement->places[i].layout, dtype_size(tensor->dtype),
                    images->bytes[placement->places[i].storage], data->packed[i]);
    }
}

/* ---------------------------------------------------------------- the device */

static enum healcl_status upload(struct healcl_device *device, struct buffer *buffer,
                                 const char *bytes, size_t count, struct healcl_error *error)
{
    TRY(device_buffer_acquire(device, count, true, buffer, error));
    for (uint32_t chunk = 0; chunk < buffer->chunk_count && count > 0; chunk++) {
        uint64_t first = chunk * device->chunk_bytes, part = count - first;
        part = part < device->chunk_bytes ? part : device->chunk_bytes;
        void *memory;
        TRY(device_upload_map(device, buffer, chunk, &memory, error));
        memcpy(memory, bytes + first, part);
        TRY(device_upload_end(device, buffer, chunk, memory, error));
    }
    return HEALCL_OK;
}

struct difference {
    bool found;
    uint64_t byte;
    int64_t actual, expected;
};

static enum healcl_status compare(struct healcl_device *device, const struct buffer *buffer,
                                  enum dtype dtype, const char *expected, size_t count,
                                  struct difference *difference, struct healcl_error *error)
{
    for (uint32_t chunk = 0; chunk < buffer->chunk_count && count > 0 && !difference->found;
         chunk++) {
        uint64_t first = chunk * device->chunk_bytes, part = count - first;
        part = part < device->chunk_bytes ? part : device->chunk_bytes;
        void *memory;
        TRY(device_download_map(device, buffer, chunk, 0, part, &memory, error));
        const char *actual = memory;
        if (memcmp(actual, expected + first, part) != 0) {
            uint64_t at = 0;
            while (actual[at] == expected[first + at])
                at++;
            difference->found = true;
            difference->byte = first + at;
            int64_t element = (int64_t)(at / dtype_size(dtype));
            difference->actual = dtype_load(dtype, actual, element);
            difference->expected = dtype_load(dtype, expected + first, element);
        }
        TRY(device_download_end(device, buffer, chunk, memory, error));
    }
    return HEALCL_OK;
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
    enum dtype dtype = sink->data->result_dtype;
    sink->taken = step->in[0]->storage->dtype == dtype &&
                  layout_elements(&step->in[0]->layout) == sink->data->result_elements;
    for (int64_t i = 0; sink->taken && i < sink->data->result_elements; i++) {
        int64_t actual = dtype_load(dtype, bytes, i);
        int64_t expected = dtype_load(dtype, sink->data->result, i);
        if (actual == expected)
            continue;
        sink->difference =
            (struct difference){true, (uint64_t)i * dtype_size(dtype), actual, expected};
        break;
    }
    return HEALCL_OK;
}

static void print_difference(const struct problem *problem, const struct placement *placement,
                             const char *where, enum dtype dtype,
                             const struct difference *difference)
{
    problem_print(problem);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct place *place = &placement->places[i];
        char strides[SHAPE_TEXT_SIZE], storage[SHAPE_TEXT_SIZE];
        struct layout as_shape = place->layout;
        if (!problem->tensors[i].present)
            continue;
        memcpy(as_shape.shape, place->layout.stride, sizeof as_shape.shape);
        printf("  %s: offset %" PRId64 ", strides %s, in storage %u of shape %s\n",
               problem->form->parameters[i].name, place->layout.offset,
               layout_shape_text(&as_shape, strides), place->storage,
               layout_shape_text(&placement->storages[place->storage].shape, storage));
    }
    printf("  %s: element %" PRIu64 " is %" PRId64 ", not %" PRId64 "\n", where,
           difference->byte / dtype_size(dtype), difference->actual, difference->expected);
    fflush(stdout);
}

/* Uploads, runs and compares. */
static enum healcl_status run(struct healcl_device *device, struct device_executor *executor,
                              const struct problem *problem, const struct placement *placement,
                              const struct problem_data *data, struct images *images, bool *equal,
                              struct healcl_error *error)
{
    const struct plan *plan = executor->plan;
    struct sink_context context = {.data = data};
    const struct result_sink sink = {&context, take};
    struct segment_result result = {0};
    for (uint32_t i = 0; i < images->count; i++)
        TRY(upload(device, &executor->storages[planned_storage(plan, i)->id].buffer,
                   images->bytes[i], placement_bytes(placement, i), error));
    for (size_t i = 0; i < plan->segment_count; i++)
        TRY(executor->base.class->run_segment(&executor->base, &plan->segments[i], &sink, &result,
                                              error));
    *equal = executor->base.dropped_digits == data->dropped_digits;
    if (!*equal) {
        problem_print(problem);
        printf("  %" PRIu64 " values had digits dropped, not %" PRIu64 "\n",
               executor->base.dropped_digits, data->dropped_digits);
    }
    if (problem->out >= 0) {
        const struct place *out = &placement->places[problem->out];
        view_scatter(&out->layout, dtype_size(data->result_dtype), images->bytes[out->storage],
                     data->result);
    } else if (!context.taken || context.difference.found) {
        print_difference(problem, placement, "the result", data->result_dtype, &context.difference);
        *equal = false;
    }
    for (uint32_t i = 0; i < images->count; i++) {
        const struct placed_storage *storage = &placement->storages[i];
        struct difference difference = {.found = false};
        char where[32];
        TRY(compare(device, &executor->storages[planned_storage(plan, i)->id].buffer,
                    storage->dtype, images->bytes[i], placement_bytes(placement, i), &difference,
                    error));
        if (!difference.found)
            continue;
        snprintf(where, sizeof where, "storage %u", i);
        print_difference(problem, placement, where, storage->dtype, &difference);
        *equal = false;
    }
    return HEALCL_OK;
}

static enum check_result check(struct healcl_device *device, const struct problem *problem,
                               const struct placement *placement, const struct problem_data *data,
                               struct images *images, struct healcl_error *error)
{
    struct planned planned;
    struct executor *executor = NULL;
    bool equal = true;
    enum healcl_status status = plan_problem(&planned, problem, placement, data->payload, error);
    if (status == HEALCL_OK)
        status = device_executor_create(device, planned.plan, false, &executor, error);
    if (status == HEALCL_OK)
        status = run(device, (struct device_executor *)executor, problem, placement, data, images,
                     &equal, error);
    if (executor)
        executor->class->destroy(executor);
    planned_release(&planned);
    return status != HEALCL_OK ? CHECK_REFUSED : equal ? CHECK_EQUAL : CHECK_DIFFERENT;
}

enum check_result problem_check(struct healcl_device *device, const struct problem *problem,
                                const struct placement *placement, const struct problem_data *data,
                                struct random *random, struct healcl_error *error)
{
    struct images images;
    struct problem_data placed = {.result = NULL};
    images_init(&images, problem, placement, data, random);
    if (placement->shared || placement->repeats) {
        read_images(&placed, problem, placement, &images);
        problem_solve(&placed, problem);
        data = &placed;
    }
    enum check_result result = check(device, problem, placement, data, &images, error);
    problem_data_release(&placed);
    images_release(&images);
    return result;
}

bool problem_is_refused(const struct problem *problem, struct random *random,
                        struct healcl_error *error)
{
    struct placement placement;
    struct planned planned;
    struct problem_data data;
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, random);
    problem_data_init(&data, problem, random);
    enum healcl_status status = plan_problem(&planned, problem, &placement, data.payload, error);
    planned_release(&planned);
    problem_data_release(&data);
    return status == HEALCL_REFUSED;
}
