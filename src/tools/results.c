#include "tools/results.h"

#include "run/compare.h"
#include "tools/xmalloc.h"

enum healcl_status planned_init(struct planned *planned, char *text,
                                const struct operation_table *table,
                                const struct healcl_plan_options *options,
                                struct healcl_error *error)
{
    *planned = (struct planned){text, {.text = text, .length = strlen(text)}, NULL};
    const enum healcl_status status =
        plan_create(&planned->source, table, options, &planned->plan, error);
    if (status == HEALCL_NO_MEMORY)
        xmalloc_fail();
    return status;
}

void planned_release(struct planned *planned)
{
    plan_free(planned->plan);
    free(planned->text);
}

enum healcl_status results_take(void *context, const struct step *step, const void *data,
                                struct healcl_error *error)
{
    struct results *results = context;
    struct result *result = &results->of[results->count++];
    (void)error;
    result->name = step->tensor_name;
    result->dtype = step->in[0]->storage->dtype;
    result->size = (size_t)packed_bytes(step->in[0]);
    result->bytes = xmalloc(result->size);
    if (result->size > 0)
        memcpy(result->bytes, data, result->size);
    return HEALCL_OK;
}

/* Writes to storages outside of steps, so that the device's executor keeps no copy of their
 * contents. */
static enum healcl_status write_images(struct executor *executor, const struct plan *plan,
                                       void *const *images, uint32_t count,
                                       struct healcl_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        struct storage *storage = plan->storages[1 + i];
        const struct tensor whole = {storage, layout_of_shape(1, &storage->elements)};
        if (images && storage->elements > 0)
            TRY(executor->class->write(executor, &whole, images[i], error));
    }
    return HEALCL_OK;
}

enum healcl_status results_run(struct results *results, struct healcl_device *device,
                               const struct plan *plan, void *const *images, uint32_t image_count,
                               struct healcl_error *error)
{
    const struct result_sink sink = {.context = results, .take = results_take};
    struct executor *executor;
    *results = (struct results){.count = 0};
    enum healcl_status status = device ? device_executor_create(device, plan, &executor, error)
                                       : reference_executor_create(plan, &executor, error);
    if (status == HEALCL_OK) {
        status = write_images(executor, plan, images, image_count, error);
        THEN(status, executor_run(executor, plan, &sink, error));
        results->dropped_digits = executor->dropped_digits;
        results->refuses_data = !device || device_executor_has_refused(executor);
        executor->class->destroy(executor);
    }
    if (status == HEALCL_NO_MEMORY)
        xmalloc_fail();
    return status;
}

/* Keeps uploads as a session does: those that no other step writes. */
static struct upload *keep_uploads(const struct plan *plan)
{
    struct upload *uploads = xcalloc(plan->storage_count, sizeof *uploads);
    for (size_t i = 0; i < plan->step_count; i++) /* an upload is the first to write */
        if (plan->steps[i].out)
            uploads[plan->steps[i].out->storage->id].is_kept = plan->steps[i].kind == STEP_UPLOAD;
    return uploads;
}

enum healcl_status results_expect(void *context, const struct step *step, const void *data,
                                  struct healcl_error *error)
{
    const struct tensor *tensor = step->in[0];
    struct comparison found;
    (void)context;
    TRY(compare_result(&tensor->layout, tensor->storage->dtype, data, step->payload, &found,
                       error));
    if (!comparison_is_equal(&found))
        FAIL(error, HEALCL_DIFFERENT, RESULTS_DIFFER);
    return HEALCL_OK;
}

enum healcl_status results_repeat(struct healcl_device *device, const struct plan *plan, int runs,
                                  struct healcl_error *error)
{
    const struct result_sink sink = {.take = results_expect};
    struct executor *executor;
    TRY(device_executor_create(device, plan, &executor, error));
    struct upload *uploads = executor->uploads = keep_uploads(plan);
    executor->runs_again = true;
    enum healcl_status status = executor_run(executor, plan, &sink, error);
    while (--runs > 0 && status == HEALCL_OK) {
        status = executor->class->rewind(executor, 0, error);
        THEN(status, executor_run(executor, plan, &sink, error));
    }
    executor->class->destroy(executor);
    free(uploads);
    return status;
}

void results_release(struct results *results)
{
    while (results->count > 0)
        free(results->of[--results->count].bytes);
}

struct difference difference_of(enum dtype dtype, const char *actual, const char *expected,
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
