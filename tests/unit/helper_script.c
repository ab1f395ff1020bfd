#include "helper_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transcript/source.h"

static void begin(struct script *script)
{
    if (script->text.length == 0)
        text_put(&script->text, "[");
}

void script_upload(struct script *script, const char *name, enum dtype dtype, uint32_t rank,
                   const int64_t *shape, const int64_t *values)
{
    struct layout layout;
    if (layout_init(&layout, rank, shape, 8, NULL) != HEALCL_OK)
        abort();
    int64_t count = layout_elements(&layout);
    void *packed = malloc((size_t)count * dtype_size(dtype) + 1);
    if (!packed)
        abort();
    for (int64_t i = 0; i < count; i++) {
        if (!dtype_holds(dtype, values[i]))
            abort();
        dtype_store(dtype, packed, i, values[i]);
    }
    begin(script);
    text_begin(&script->text, "host_to_device");
    text_payload(&script->text, dtype, &layout, false, packed);
    text_put(&script->text, "],\"out\":");
    text_tensor(&script->text, name);
    text_put(&script->text, "}}");
    free(packed);
}

/* The items of "(2,3)" or "[1:5:2,0]". */
static void put_list(struct text *text, const char *list)
{
    text_put(text, "{\"arg_type\":\"SHAPE\",\"value\":[");
    for (const char *next = list + 1; *next && *next != ')' && *next != ']';) {
        char *end;
        long long first = strtoll(next, &end, 10);
        if (end == next)
            abort();
        text_put(text, next > list + 1 ? "," : "");
        if (*end == ':') {
            long long stop = strtoll(end + 1, &end, 10), step = strtoll(end + 1, &end, 10);
            text_slice(text, first, stop, step);
        } else {
            text_int(text, first);
        }
        next = *end == ',' ? end + 1 : end;
    }
    text_put(text, "]}");
}

static void put_argument(struct text *text, const char *word)
{
    if (strcmp(word, "none") == 0)
        text_put(text, "{\"arg_type\":\"NONE\",\"value\":null}");
    else if (*word == ':')
        text_put(text, "{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"%s\"}", word + 1);
    else if (*word == '(' || *word == '[')
        put_list(text, word);
    else if (strchr("-0123456789", *word))
        text_int(text, strtoll(word, NULL, 10));
    else
        text_tensor(text, word);
}

void script_call(struct script *script, const char *out, const char *operation,
                 const char *arguments)
{
    char words[512], *rest = words;
    snprintf(words, sizeof words, "%s", arguments);
    begin(script);
    text_begin(&script->text, operation);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        text_put(&script->text, word > words ? "," : "");
        put_argument(&script->text, word);
    }
    text_put(&script->text, "],\"out\":");
    if (out)
        text_tensor(&script->text, out);
    else
        text_put(&script->text, "{\"arg_type\":\"NONE\",\"value\":null}");
    text_put(&script->text, "}}");
}

void script_download(struct script *script, const char *name)
{
    script_call(script, NULL, "device_to_host", name);
}

static void put_entry(struct script *script, const char *before, const char *name,
                      const char *after)
{
    begin(script);
    text_put(&script->text, "%s{\"type\":%s%s%s}", script->text.length > 1 ? ",\n" : "", before,
             name, after);
}

void script_free(struct script *script, const char *name)
{
    put_entry(script, "\"FREE_DEVICE_TENSOR\",\"tensor_name\":\"", name, "\"");
}

void script_segment_start(struct script *script, const char *name)
{
    put_entry(script, "\"SEGMENT_START\",\"name\":\"", name, "\"");
}

void script_segment_end(struct script *script)
{
    put_entry(script, "\"SEGMENT_END\"", "", "");
}

void script_plan(struct script *script)
{
    struct healcl_error error = {0};
    begin(script);
    text_put(&script->text, "]");
    script->source = (struct source){script->text.bytes, script->text.length, false};
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
    free(script->text.bytes);
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
    for (size_t i = 0; i < script->plan->segment_count; i++) {
        struct segment_result result = {0};
        TRY(executor->class->run_segment(executor, &script->plan->segments[i], &sink, &result,
                                         error));
    }
    return HEALCL_OK;
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
