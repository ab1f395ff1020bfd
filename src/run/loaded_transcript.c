#include "run/loaded_transcript.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"
#include "plan/split.h"
#include "plan/widen.h"
#include "run/compare.h"

_Static_assert((int)HEALCL_INT8 == DTYPE_INT8 && (int)HEALCL_INT32 == DTYPE_INT32 &&
                   (int)HEALCL_INT64 == DTYPE_INT64,
               "the library's dtypes are those of core");

/* Describes an upload or a download to callers of the library. Names and shapes belong to the plan.
 */
static struct healcl_tensor_info tensor_info(const struct step *step, const struct tensor *tensor,
                                             size_t segment)
{
    return (struct healcl_tensor_info){
        .name = step->tensor_name,
        .entry = step->origins->of->entry,
        .segment = segment,
        .dtype = (enum healcl_dtype)tensor->storage->dtype,
        .rank = tensor->layout.rank,
        .shape = tensor->layout.shape,
        .bytes = (size_t)packed_bytes(tensor),
        .has_data = step->payload && step->payload->data,
    };
}

/* Lists the plan's uploads and downloads in the order of steps. Callers refer to them by their
 * place in this order: input 0, result 0. */
static enum healcl_status list_tensors(struct healcl_transcript *transcript,
                                       struct healcl_error *error)
{
    const struct plan *plan = transcript->plan;
    struct arena *arena = plan->arena;
    transcript->inputs = arena_alloc(arena, (plan->uploads + 1) * sizeof *transcript->inputs);
    transcript->results = arena_alloc(arena, (plan->results + 1) * sizeof *transcript->results);
    transcript->input_steps =
        arena_alloc(arena, (plan->uploads + 1) * sizeof *transcript->input_steps);
    transcript->result_steps =
        arena_alloc(arena, (plan->results + 1) * sizeof *transcript->result_steps);
    NEED_MEMORY(transcript->inputs && transcript->results && transcript->input_steps &&
                    transcript->result_steps,
                error);
    size_t input = 0, result = 0;
    for (size_t s = 0; s < plan->segment_count; s++)
        for (size_t i = 0; i < plan->segments[s].step_count; i++) {
            const struct step *step = &plan->steps[plan->segments[s].first_step + i];
            if (step->kind == STEP_UPLOAD) {
                transcript->input_steps[input] = step;
                transcript->inputs[input++] = tensor_info(step, step->out, s);
            } else if (step->kind == STEP_DOWNLOAD) {
                transcript->result_steps[result] = step;
                transcript->results[result++] = tensor_info(step, step->in[0], s);
            }
        }
    return HEALCL_OK;
}

/* Stores the options with which a plan is made. Vendors' operations are retained; the text of
 * passes is parsed, since the caller may free it. */
static enum healcl_status set_options(struct healcl_transcript *transcript,
                                      const struct healcl_plan_options *options,
                                      struct healcl_error *error)
{
    transcript->self = transcript;
    atomic_init(&transcript->owners, 1);
    transcript->operations = operations_retain(options ? options->operations : NULL);
    transcript->options = options ? *options : (struct healcl_plan_options){.passes = NULL};
    transcript->options.operations = transcript->operations;
    transcript->options.passes = NULL; /* the caller's text */
    return passes_parse(options ? options->passes : NULL, &transcript->passes, error);
}

/* Makes a plan as it is before passes. A derived transcript, such as a part for a rank, changes a
 * copy of its parent's plan. Passes lose what a change needs, so the parent's plan is made anew
 * unless its plan is kept without passes. */
static enum healcl_status make_plan(const struct healcl_transcript *transcript, struct plan **plan,
                                    struct healcl_error *error)
{
    const struct healcl_plan_options *options = &transcript->options;
    const struct healcl_transcript *parent = transcript->parent;
    TRY(source_check_size(&transcript->source, error)); /* the file is read once more */
    if (!parent)
        return plan_create(&transcript->source, operations_of_options(options), options, plan,
                           error);
    const bool keeps_original = parent->is_before_passes; /* else plan_rewrite frees it */
    struct plan *original = parent->plan;
    if (!keeps_original)
        TRY(make_plan(parent, &original, error));
    return plan_rewrite(original, keeps_original, options, transcript->change, transcript->how,
                        plan, error);
}

/* The last part of opening a transcript: makes its plan, runs the passes and lists its tensors.
 * status: of the first part. After an error of either part closes the transcript. */
static enum healcl_status add_plan(struct healcl_transcript *transcript, enum healcl_status status,
                                   struct healcl_transcript **result, struct healcl_error *error)
{
    THEN(status, make_plan(transcript, &transcript->plan, error));
    if (status == HEALCL_OK && !transcript->is_before_passes)
        status = plan_optimise(transcript->plan, transcript->passes, error);
    THEN(status, list_tensors(transcript, error));
    status = source_explain(&transcript->source, status, error);
    if (status != HEALCL_OK) {
        healcl_transcript_close(transcript);
        return status;
    }
    *result = transcript;
    return HEALCL_OK;
}

/* Opens a file, or the text in memory if path is NULL. is_before_passes: keeps the plan without
 * passes, from which others are derived without reading the file again. */
static enum healcl_status open_source(const char *path, const void *data, size_t length,
                                      const struct healcl_plan_options *options,
                                      bool is_before_passes, struct healcl_transcript **result,
                                      struct healcl_error *error)
{
    NEED(result, error);
    struct healcl_transcript *transcript = calloc(1, sizeof *transcript);
    NEED_MEMORY(transcript, error);
    transcript->is_before_passes = is_before_passes;
    enum healcl_status status = set_options(transcript, options, error);
    THEN(status, path ? source_open(&transcript->source, path, error)
                      : source_open_memory(&transcript->source, data, length, error));
    return add_plan(transcript, status, result, error);
}

enum healcl_status healcl_transcript_open(const char *path,
                                          const struct healcl_plan_options *options,
                                          struct healcl_transcript **result,
                                          struct healcl_error *error)
{
    NEED(path, error);
    return open_source(path, NULL, 0, options, false, result, error);
}

enum healcl_status transcript_open_plain(const char *path,
                                         const struct healcl_plan_options *options,
                                         struct healcl_transcript **result,
                                         struct healcl_error *error)
{
    return open_source(path, NULL, 0, options, true, result, error);
}

enum healcl_status healcl_transcript_open_memory(const void *data, size_t length,
                                                 const struct healcl_plan_options *options,
                                                 struct healcl_transcript **result,
                                                 struct healcl_error *error)
{
    NEED(data, error);
    return open_source(NULL, data, length, options, false, result, error);
}

/* Makes a transcript that is a change of its parent, which it retains: a part for a rank, or a
 * wider one. change: the function that makes the plan. how: its arguments, of how_bytes bytes,
 * which are copied. Derived transcripts may be parents too: all changes are then applied in order.
 */
static enum healcl_status transcript_derive(const struct healcl_transcript *parent,
                                            plan_change *change, const void *how, size_t how_bytes,
                                            struct healcl_transcript **result,
                                            struct healcl_error *error)
{
    struct healcl_transcript *transcript = calloc(1, sizeof *transcript);
    NEED_MEMORY(transcript, error);
    enum healcl_status status = set_options(transcript, &parent->options, error);
    transcript->passes = parent->passes;
    transcript->parent = transcript_retain(parent);
    transcript->change = change;
    transcript->how = malloc(how_bytes + 1);
    if (transcript->how)
        memcpy(transcript->how, how, how_bytes);
    else if (status == HEALCL_OK)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    return add_plan(transcript, status, result, error);
}

/* Ends one owner's use of a transcript. The last owner frees it, and ends its use of its parent. */
void healcl_transcript_close(struct healcl_transcript *transcript)
{
    if (!transcript || atomic_fetch_sub(&transcript->owners, 1) != 1)
        return;
    plan_free(transcript->plan);
    source_close(&transcript->source);
    healcl_transcript_close(transcript->parent);
    free(transcript->how);
    healcl_operations_free(transcript->operations);
    free(transcript);
}

/* Adds an owner. A reader has only a const pointer, so that the transcript's own pointer to itself
 * is used. */
struct healcl_transcript *transcript_retain(const struct healcl_transcript *transcript)
{
    atomic_fetch_add(&transcript->self->owners, 1);
    return transcript->self;
}

const struct healcl_tensor_info *healcl_transcript_inputs(
    const struct healcl_transcript *transcript, size_t *count)
{
    if (count)
        *count = transcript ? transcript->plan->uploads : 0;
    return transcript ? transcript->inputs : NULL;
}

const struct healcl_tensor_info *healcl_transcript_results(
    const struct healcl_transcript *transcript, size_t *count)
{
    if (count)
        *count = transcript ? transcript->plan->results : 0;
    return transcript ? transcript->results : NULL;
}

/* Reads the payload of an upload or download as elements of its tensor. In a widened transcript the
 * tensor holds several copies of the payload. */
static enum healcl_status read_payload(const struct payload *payload, const struct tensor *tensor,
                                       void *memory, struct healcl_error *error)
{
    char shape[SHAPE_TEXT_SIZE], expected[SHAPE_TEXT_SIZE];
    if (!compare_same_shape(&tensor->layout, payload))
        REFUSE_FOR(error, SHAPE, "the result has the shape %s, but %s is expected",
                   layout_shape_text(&tensor->layout, shape),
                   layout_shape_text(&payload->layout, expected));
    const enum dtype dtype = tensor->storage->dtype;
    const size_t copy_bytes = (size_t)layout_elements(&payload->layout) * dtype_size(dtype);
    if (copy_bytes == 0)
        return HEALCL_OK;
    NEED(memory, error);
    TRY(payload_read(payload, dtype, memory, error));
    for (int64_t copy = 1; copy < payload->copies; copy++)
        memcpy((char *)memory + (size_t)copy * copy_bytes, memory, copy_bytes);
    return HEALCL_OK;
}

/* Reads what the file has for an input, or expects as a result. Refuses a size that is not the
 * tensor's. Finally checks that the file has not changed meanwhile. */
static enum healcl_status read_file(const struct healcl_transcript *transcript, bool is_input,
                                    size_t number, void *memory, size_t bytes,
                                    struct healcl_error *error)
{
    NEED(transcript, error);
    const char *what = is_input ? "input" : "result";
    size_t count;
    const struct healcl_tensor_info *infos = is_input
                                                 ? healcl_transcript_inputs(transcript, &count)
                                                 : healcl_transcript_results(transcript, &count);
    NEED_NUMBER(what, number, count, error);
    const struct healcl_tensor_info *info = &infos[number];
    if (!info->has_data)
        FAIL_FOR(error, HEALCL_USAGE, STATE, "the file has no data for %s %zu", what, number);
    if (bytes != info->bytes)
        FAIL(error, HEALCL_USAGE, "%s %zu has %zu bytes, not %zu", what, number, info->bytes,
             bytes);
    const struct step *step =
        is_input ? transcript->input_steps[number] : transcript->result_steps[number];
    const struct source *source = transcript->plan->source;
    TRY(source_check_size(source, error));
    enum healcl_status status =
        read_payload(step->payload, is_input ? step->out : step->in[0], memory, error);
    if (status != HEALCL_OK)
        error_prefix_step(error, step, NO_INPUT);
    status = source_explain(source, status, error);
    return status == HEALCL_OK ? source_check(source, error) : status;
}

enum healcl_status healcl_transcript_read_input(const struct healcl_transcript *transcript,
                                                size_t input, void *memory, size_t bytes,
                                                struct healcl_error *error)
{
    return read_file(transcript, true, input, memory, bytes, error); /* an input */
}

enum healcl_status healcl_transcript_read_expected(const struct healcl_transcript *transcript,
                                                   size_t result, void *memory, size_t bytes,
                                                   struct healcl_error *error)
{
    return read_file(transcript, false, result, memory, bytes, error); /* not an input */
}

size_t healcl_transcript_segment_count(const struct healcl_transcript *transcript)
{
    return transcript ? transcript->plan->segment_count : 0;
}

const char *healcl_transcript_segment_name(const struct healcl_transcript *transcript,
                                           size_t segment)
{
    return segment < healcl_transcript_segment_count(transcript)
               ? transcript->plan->segments[segment].name
               : NULL;
}

/* ---------------------------------------------------------------- parts for ranks */

/* Makes the part of a transcript that one rank runs, as a change of the transcript's plan. */
enum healcl_status healcl_transcript_split(const struct healcl_transcript *transcript,
                                           const struct healcl_split *split,
                                           struct healcl_transcript **part,
                                           struct healcl_error *error)
{
    NEED(transcript, error);
    NEED(split, error);
    NEED(part, error);
    return transcript_derive(transcript, plan_split, split, sizeof *split, part, error);
}

/* Chooses along which axis a transcript is split among ranks. The choice needs the plan as it is
 * before passes. A transcript whose plan is after passes has it made again from the file. */
enum healcl_status healcl_transcript_choose_split(const struct healcl_transcript *transcript,
                                                  struct healcl_split *split,
                                                  struct healcl_error *error)
{
    NEED(transcript, error);
    NEED(split, error);
    struct plan *plan = NULL;
    if (split->ranks == 0)
        FAIL(error, HEALCL_USAGE, "the number of ranks is 0");
    if (transcript->is_before_passes)
        return plan_choose_split(transcript->plan, &transcript->options, split, error);
    TRY(make_plan(transcript, &plan, error));
    enum healcl_status status = plan_choose_split(plan, &transcript->options, split, error);
    plan_free(plan);
    return status;
}

/* The part of a tensor that a rank has, from a table with `count` rows. Without a row, its period
 * is 0: the rank has the whole tensor. */
static struct healcl_part part_of(const struct healcl_part *parts, size_t count, size_t number)
{
    return parts && number < count ? parts[number] : (struct healcl_part){.period = 0};
}

struct healcl_part healcl_transcript_input_part(const struct healcl_transcript *transcript,
                                                size_t input)
{
    const struct plan *plan = transcript ? transcript->plan : NULL;
    return part_of(plan ? plan->input_parts : NULL, plan ? plan->uploads : 0, input);
}

struct healcl_part healcl_transcript_result_part(const struct healcl_transcript *transcript,
                                                 size_t result)
{
    const struct plan *plan = transcript ? transcript->plan : NULL;
    return part_of(plan ? plan->result_parts : NULL, plan ? plan->results : 0, result);
}

/* What a split costs: the sums that ranks must exchange, in number and bytes, and the tensors'
 * memory. */
struct healcl_split_facts healcl_transcript_split_facts(const struct healcl_transcript *transcript)
{
    struct healcl_split_facts facts = {.tensor_bytes =
                                           transcript ? transcript->plan->bytes_peak : 0};
    for (size_t s = 0; s < healcl_transcript_segment_count(transcript); s++) {
        const struct segment *segment = &transcript->plan->segments[s];
        facts.exchanges += segment->exchange_count;
        for (size_t i = 0; i < segment->exchange_count; i++) {
            const struct tensor *sum = segment->exchanges[i].sum;
            facts.exchange_bytes += packed_bytes(sum);
        }
    }
    return facts;
}

/* ---------------------------------------------------------------- widening */

/* The product of `batch` and the elements of any planned view is far below 2^63. */
enum { BATCH_MAX = 1 << 16 };

/* Checks the arguments of healcl_transcript_widen: a batch in its limits, and existing inputs. */
static enum healcl_status check_inputs(const struct healcl_transcript *transcript,
                                       const size_t *inputs, size_t count, int64_t batch,
                                       struct healcl_error *error)
{
    if (batch < 1)
        FAIL(error, HEALCL_USAGE, "a batch has at least 1 request, not %" PRId64, batch);
    if (batch > BATCH_MAX)
        FAIL(error, HEALCL_REFUSED, "a batch of %" PRId64 " requests is more than %d", batch,
             BATCH_MAX);
    for (size_t i = 0; i < count; i++)
        NEED_NUMBER("input", inputs[i], transcript->plan->uploads, error);
    return HEALCL_OK;
}

/* Makes a transcript that runs `batch` requests at once. The inputs listed get one more axis, over
 * requests; the others are shared by all requests. */
enum healcl_status healcl_transcript_widen(const struct healcl_transcript *transcript,
                                           const size_t *inputs, size_t input_count, int64_t batch,
                                           struct healcl_transcript **wide,
                                           struct healcl_error *error)
{
    NEED(transcript, error);
    NEED(wide, error);
    if (input_count > 0)
        NEED(inputs, error);
    TRY(check_inputs(transcript, inputs, input_count, batch, error));
    const size_t bytes = sizeof(struct widen_how) + input_count * sizeof *inputs;
    struct widen_how *how = malloc(bytes);
    NEED_MEMORY(how, error);
    *how = (struct widen_how){.batch = batch, .count = input_count};
    if (input_count > 0)
        memcpy(how->inputs, inputs, input_count * sizeof *inputs);
    enum healcl_status status = transcript_derive(transcript, widen_plan, how, bytes, wide, error);
    free(how);
    return status;
}
