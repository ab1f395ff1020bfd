#include "helper_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transcript/source.h"

void script_upload(struct script *script, const char *name, enum dtype dtype, uint32_t rank,
                   const int64_t *shape, const int64_t *values)
{
    const struct layout layout = layout_of_shape(rank, shape);
    for (int64_t i = 0; i < layout_elements(&layout); i++)
        if (!dtype_holds(dtype, values[i]))
            abort();
    writer_upload_values(&script->writer, name, dtype, &layout, values);
}

void script_call(struct script *script, const char *out, const char *operation,
                 const char *arguments)
{
    writer_call(&script->writer, out, operation, "%s", arguments);
}

void script_download(struct script *script, const char *name)
{
    script_call(script, NULL, "device_to_host", name);
}

void script_free(struct script *script, const char *name)
{
    writer_entry(&script->writer, "FREE_DEVICE_TENSOR", "tensor_name", name);
}

void script_segment_start(struct script *script, const char *name)
{
    writer_entry(&script->writer, "SEGMENT_START", "name", name);
}

void script_segment_end(struct script *script)
{
    writer_entry(&script->writer, "SEGMENT_END", NULL, NULL);
}

void script_finish(struct script *script)
{
    if (!writer_finish(&script->writer))
        abort();
    script->source = (struct source){script->writer.bytes, script->writer.length, false};
}

void script_plan(struct script *script)
{
    struct healcl_error error = {0};
    script_finish(script);
    if (plan_create(&script->source, script->operations, NULL, &script->plan, &error) !=
        HEALCL_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
}

enum healcl_status script_open(struct script *script, const char *path, struct healcl_error *error)
{
    memset(script, 0, sizeof *script);
    TRY(source_open(&script->source, path, error));
    return plan_create(&script->source, script->operations, NULL, &script->plan, error);
}

void script_release(struct script *script)
{
    plan_free(script->plan);
    source_close(&script->source);
    free(script->writer.bytes);
    memset(script, 0, sizeof *script);
}

/* ---------------------------------------------------------------- running */

static enum healcl_status take(void *context, const struct step *step, const void *data,
                               struct healcl_error *error)
{
    (void)error;
    struct script_results *results = context;
    int64_t count = layout_elements(&step->in[0]->layout);
    if (results->count + (size_t)count > results->capacity) {
        results->capacity = 2 * (results->count + (size_t)count);
        results->values = realloc(results->values, results->capacity * sizeof *results->values);
        if (!results->values)
            abort();
    }
    for (int64_t i = 0; i < count; i++)
        results->values[results->count++] = dtype_load(step->in[0]->storage->dtype, data, i);
    results->results++;
    return HEALCL_OK;
}

struct result_sink script_sink(struct script_results *results)
{
    return (struct result_sink){.context = results, .take = take};
}

void script_results_release(struct script_results *results)
{
    free(results->values);
    memset(results, 0, sizeof *results);
}

enum healcl_status script_run(const struct script *script, struct executor *executor,
                              struct script_results *results, struct healcl_error *error)
{
    struct result_sink sink = script_sink(results);
    return executor_run(executor, script->plan, &sink, error);
}

enum healcl_status script_run_on(const struct script *script, struct healcl_device *device,
                                 struct script_results *results, struct healcl_error *error)
{
    struct executor *executor = NULL;
    if (device)
        TRY(device_executor_create(device, script->plan, false, &executor, error));
    else
        TRY(reference_executor_create(script->plan, &executor, error));
    enum healcl_status status = script_run(script, executor, results, error);
    executor->class->destroy(executor);
    return status;
}

bool script_same_results(const struct script_results *a, const struct script_results *b)
{
    return a->results == b->results && a->count == b->count &&
           (a->count == 0 || memcmp(a->values, b->values, a->count * sizeof *a->values) == 0);
}
