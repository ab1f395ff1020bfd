#include "bench/transfers.h"

#include <stdlib.h>

#include "check/writer.h"
#include "core/clock.h"
#include "run/results.h"

enum { SAMPLES = 4 }; /* of which the fastest counts; the first one makes buffers */

/* Two segments: an upload, and the result of it. NULL without memory; freed with free(). */
static char *write_transcript(uint64_t bytes, size_t *length)
{
    const int64_t count = (int64_t)(bytes / sizeof(int64_t));
    const struct layout layout = layout_of_shape(1, &count);
    struct writer writer = {0};
    int64_t *values = malloc(bytes);
    if (!values)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        values[i] = (int64_t)((uint64_t)i * 0x9e3779b97f4a7c15);
    writer_entry(&writer, "SEGMENT_START", "name", "up");
    writer_upload(&writer, "a", DTYPE_INT64, &layout, false, values);
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    writer_entry(&writer, "SEGMENT_START", "name", "down");
    writer_download(&writer, "a", DTYPE_INT64, &layout, values);
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    free(values);
    char *text = writer_finish(&writer);
    *length = writer.length;
    return text;
}

static enum healcl_status time_segment(struct executor *executor, struct results *results,
                                       const struct segment *segment, uint64_t bytes,
                                       uint64_t *best, struct healcl_error *error)
{
    const struct result_sink sink = results_sink(results);
    struct segment_result ignored = {0};
    results_start_segment(results, segment);
    uint64_t start = monotonic_nanoseconds();
    TRY(executor->class->run_segment(executor, segment, &sink, &ignored, error));
    uint64_t spent = monotonic_nanoseconds() - start;
    uint64_t rate = spent > 0 ? (uint64_t)((double)bytes / (double)spent * 1e9) : 0;
    *best = rate > *best ? rate : *best;
    return HEALCL_OK;
}

static enum healcl_status time_plan(struct executor *executor, const struct plan *plan,
                                    struct results *results, uint64_t bytes,
                                    struct device_rates *rates, struct healcl_error *error)
{
    rates->uploaded_bytes = rates->downloaded_bytes = 0;
    for (int sample = 0; sample < SAMPLES; sample++) {
        TRY(executor->class->reset(executor, error));
        TRY(time_segment(executor, results, &plan->segments[0], bytes, &rates->uploaded_bytes,
                         error));
        TRY(time_segment(executor, results, &plan->segments[1], bytes, &rates->downloaded_bytes,
                         error));
        TRY(results_end_repetition(results, error));
    }
    return HEALCL_OK;
}

enum healcl_status transfers_measure(struct healcl_device *device, struct device_rates *rates,
                                     struct healcl_error *error)
{
    const struct healcl_run_options options = {.repeat = SAMPLES};
    const uint64_t bytes = device_link_bytes(device);
    struct plan *plan = NULL;
    struct executor *executor = NULL;
    struct results *results = NULL;
    size_t length = 0;
    char *text = write_transcript(bytes, &length);
    if (!text)
        NO_MEMORY(error);
    const struct source source = {.text = text, .length = length};
    enum healcl_status status = plan_create(&source, NULL, NULL, &plan, error);
    if (status == HEALCL_OK)
        status = results_create(plan, &options, &results, error);
    if (status == HEALCL_OK)
        status = device_executor_create(device, plan, false, &executor, error);
    if (status == HEALCL_OK)
        status = time_plan(executor, plan, results, bytes, rates, error);
    if (executor)
        executor->class->destroy(executor);
    results_free(results);
    plan_free(plan);
    free(text);
    return status;
}
