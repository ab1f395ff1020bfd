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
    writer_upload(&script->writer, name, dtype, &layout, false, DTYPE_INT64, values);
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

/* ---------------------------------------------------------------- lines */

enum { WORD_SIZE = 64, LINE_SIZE = 256, VALUES_MAX = 4096 };

/* "(2,3) :int8", or without a dtype int64. */
static void upload_line(struct script *script, const char *name, const char *text)
{
    static int64_t values[VALUES_MAX];
    int64_t shape[MAX_RANK];
    uint32_t rank = 0;
    char dtype[WORD_SIZE] = "int64", *next;
    for (const char *size = text + 1; *size >= '0' && *size <= '9'; size = next + (*next == ','))
        shape[rank++] = strtoll(size, &next, 10);
    for (int64_t i = 0; i < VALUES_MAX; i++)
        values[i] = 1 + i % 97;
    (void)sscanf(strchr(text, ')'), ") :%63s", dtype);
    script_upload(script, name,
                  strcmp(dtype, "int8") == 0    ? DTYPE_INT8
                  : strcmp(dtype, "int32") == 0 ? DTYPE_INT32
                                                : DTYPE_INT64,
                  rank, shape, values);
}

static void put_line(struct script *script, char *line)
{
    char word[WORD_SIZE], result[WORD_SIZE];
    int at = 0;
    const bool has_result = sscanf(line, "%63s = %n", result, &at) == 1 && at > 0;
    line += at;
    if (sscanf(line, "%63s %n", word, &at) != 1)
        abort();
    line += at;
    if (*line == '(' && strcmp(word, "empty") != 0 && strcmp(word, "zeros") != 0)
        upload_line(script, word, line);
    else if (strcmp(word, "get") == 0)
        script_download(script, line);
    else if (strcmp(word, "free") == 0)
        script_free(script, line);
    else if (strcmp(word, "segment") == 0)
        script_segment_start(script, line);
    else if (strcmp(word, "end") == 0)
        script_segment_end(script);
    else
        script_call(script, has_result ? result : NULL, word, line);
}

void script_lines(struct script *script, const char *lines)
{
    for (size_t length; *lines; lines += length + (lines[length] == ';')) {
        char line[LINE_SIZE];
        lines += strspn(lines, " ");
        length = strcspn(lines, ";");
        if (length >= sizeof line)
            abort();
        memcpy(line, lines, length);
        line[length] = 0;
        if (length > 0)
            put_line(script, line);
    }
}

void script_finish(struct script *script)
{
    if (!writer_finish(&script->writer))
        abort();
    script->source = (struct source){.text = script->writer.bytes, .length = script->writer.length};
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

void script_spoil(struct plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++)
        for (int j = 0; j < STEP_INPUTS; j++)
            if (!plan->steps[i].in[j])
                plan->steps[i].arguments[j].parameter = 1;
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
        TRY(device_executor_create(device, script->plan, &executor, error));
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
