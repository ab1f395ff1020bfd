#include "check/example.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/random.h"
#include "check/writer.h"
#include "core/clock.h"
#include "kernels/variant.h"
#include "run/device_executor.h"

/* Of everything random here. */
enum { EXAMPLE_SEED = 0x6e8a391 };

const char *example_side_name(enum example_side side)
{
    return side == EXAMPLE_KERNEL ? "kernel" : "body";
}

/* ---------------------------------------------------------------- operations */

const struct operation *example_operation_at(const struct operation_table *table, size_t i)
{
    const size_t number = OPERATION_COUNT + i;
    return table && number < operation_count(table) ? operation_at(table, number) : NULL;
}

const struct vendor_operation *example_vendor(const struct operation *operation)
{
    return operation->context;
}

const struct operation *example_operation_find(const struct operation_table *table,
                                               const char *name)
{
    const struct operation *operation;
    for (size_t i = 0; (operation = example_operation_at(table, i)); i++)
        if (strcmp(operation->name, name + (*name == '_')) == 0)
            return operation;
    return NULL;
}

static bool is_tensor(const struct vendor_operation *operation, uint32_t parameter)
{
    const enum healcl_parameter_kind kind = operation->form.parameters[parameter].kind;
    return kind == HEALCL_PARAMETER_TENSOR || kind == HEALCL_PARAMETER_OUT;
}

/* ---------------------------------------------------------------- transcripts */

/* What is uploaded for a tensor: it, or what a view takes every other element of the last axis of,
 * from the second one on. */
static struct layout base_of(const struct layout *shape, bool is_strided)
{
    struct layout base = *shape;
    if (is_strided && base.rank > 0)
        base.shape[base.rank - 1] = 2 * base.shape[base.rank - 1] + 1;
    return layout_packed(&base);
}

static void put_tensors(struct writer *writer, const struct vendor_operation *operation,
                        const struct vendor_example *example, bool is_strided)
{
    for (uint32_t i = 0; i < operation->form.parameter_count; i++) {
        char name[24];
        const struct layout *shape = &example->arguments[i].shape;
        const struct layout base = base_of(shape, is_strided);
        if (!is_tensor(operation, i))
            continue;
        snprintf(name, sizeof name, "base%" PRIu32, i);
        writer_declare(writer, name, example->arguments[i].dtype, &base);
        snprintf(name, sizeof name, "t%" PRIu32, i);
        if (is_strided && base.rank > 0)
            writer_call(writer, name, "get_slice", "base%" PRIu32 " [...,1::2]", i);
        else
            writer_call(writer, name, "new_reference", "base%" PRIu32, i);
    }
}

enum { WORD_SIZE = 24 };

static void put_call(struct writer *writer, const struct vendor_operation *operation,
                     const struct vendor_example *example)
{
    char words[PARAMETERS_MAX * WORD_SIZE] = "";
    for (uint32_t i = 0, used = 0; i < operation->form.parameter_count; i++) {
        char *word = words + used;
        if (is_tensor(operation, i))
            used += (uint32_t)snprintf(word, WORD_SIZE, "t%" PRIu32 " ", i);
        else if (operation->parameters[i].number == NO_INPUT)
            used += (uint32_t)snprintf(word, WORD_SIZE, "none ");
        else
            used +=
                (uint32_t)snprintf(word, WORD_SIZE, "%" PRId64 " ", example->arguments[i].integer);
    }
    writer_call(writer, operation->makes_out ? "made" : NULL, operation->name, "%s", words);
}

static enum healcl_status write_script(struct example_script *script,
                                       const struct vendor_operation *operation,
                                       const struct vendor_example *example, bool is_strided,
                                       struct healcl_error *error)
{
    static const char *const segments[EXAMPLE_SEGMENTS] = {"prepare", "operation", "result"};
    struct writer writer = {0};
    char name[24];
    for (int segment = 0; segment < EXAMPLE_SEGMENTS; segment++) {
        writer_entry(&writer, "SEGMENT_START", "name", segments[segment]);
        if (segment == EXAMPLE_PREPARE)
            put_tensors(&writer, operation, example, is_strided);
        if (segment == EXAMPLE_OPERATE)
            put_call(&writer, operation, example);
        if (segment == EXAMPLE_RESULT && operation->makes_out)
            writer_download(&writer, "made", DTYPE_INT64, NULL, NULL);
        /* Inputs and what lies between elements too: nobody else writes there. */
        for (uint32_t i = 0; i < operation->form.parameter_count; i++)
            if (segment == EXAMPLE_RESULT && is_tensor(operation, i)) {
                snprintf(name, sizeof name, "base%" PRIu32, i);
                writer_download(&writer, name, DTYPE_INT64, NULL, NULL);
            }
        writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    }
    script->text = writer_finish(&writer);
    if (!script->text)
        NO_MEMORY(error);
    script->source = (struct source){.text = script->text, .length = strlen(script->text)};
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- data */

static void fill(const struct vendor_example *example, uint32_t parameter, bool is_strided,
                 struct random *random, void *memory)
{
    const enum dtype dtype = example->arguments[parameter].dtype;
    const struct layout *shape = &example->arguments[parameter].shape;
    const struct layout base = base_of(shape, is_strided);
    const int64_t *values = example->arguments[parameter].values;
    const int64_t below = example->arguments[parameter].below, count = layout_elements(shape);
    const bool has_gaps = is_strided && shape->rank > 0;
    const int64_t row = shape->rank > 0 ? shape->shape[shape->rank - 1] : 1;
    random_fill_values(random, dtype, layout_elements(&base), memory);
    for (int64_t i = 0; i < count && (values || below > 0); i++) {
        int64_t place = has_gaps ? i / row * (2 * row + 1) + 2 * (i % row) + 1 : i;
        dtype_store(dtype, memory, place,
                    values ? values[i] : random_between(random, 0, below - 1));
    }
}

static enum healcl_status make_data(struct example_script *script,
                                    const struct vendor_operation *operation, uint32_t number,
                                    bool is_strided, struct healcl_error *error)
{
    const struct vendor_example *example = &operation->examples[number];
    const struct plan *plan = script->plan;
    struct random random = {EXAMPLE_SEED + number};
    size_t step = 0;
    script->uploads = calloc(plan->storage_count + 1, sizeof *script->uploads);
    if (!script->uploads)
        NO_MEMORY(error);
    for (uint32_t i = 0; i < operation->form.parameter_count; i++) {
        const struct layout base = base_of(&example->arguments[i].shape, is_strided);
        const size_t bytes =
            (size_t)layout_elements(&base) * dtype_size(example->arguments[i].dtype);
        if (!is_tensor(operation, i))
            continue;
        script->data[i] = malloc(bytes + 1);
        if (!script->data[i])
            NO_MEMORY(error);
        fill(example, i, is_strided, &random, script->data[i]);
        if (bytes == 0) /* there is no upload */
            continue;
        while (step < plan->step_count && plan->steps[step].kind != STEP_UPLOAD)
            step++;
        script->uploads[plan->steps[step++].out->storage->id].data = script->data[i];
    }
    return HEALCL_OK;
}

/* A table of the operation alone, which has a body and no kernels there. */
static enum healcl_status leave_out_kernels(struct example_script *script,
                                            const struct operation *operation,
                                            struct healcl_error *error)
{
    struct operation added = *operation;
    script->without_kernels = *example_vendor(operation);
    script->without_kernels.kernel_count = 0;
    added.context = &script->without_kernels;
    TRY(operation_table_create(&script->bodies, error));
    return operation_table_add(script->bodies, &added, &script->without_kernels.form, 1, error);
}

enum healcl_status example_script_init(struct example_script *script,
                                       const struct operation_table *table,
                                       const struct operation *operation, uint32_t number,
                                       bool is_strided, bool by_body, struct healcl_error *error)
{
    const struct vendor_operation *vendor = example_vendor(operation);
    *script = (struct example_script){.text = NULL};
    if (by_body)
        TRY(leave_out_kernels(script, operation, error));
    TRY(write_script(script, vendor, &vendor->examples[number], is_strided, error));
    TRY(plan_create(&script->source, by_body ? script->bodies : table, NULL, &script->plan, error));
    if (!script->plan) /* never: for analysers, which cannot know */
        NO_MEMORY(error);
    return make_data(script, vendor, number, is_strided, error);
}

void example_script_release(struct example_script *script)
{
    for (uint32_t i = 0; i < PARAMETERS_MAX; i++)
        free(script->data[i]);
    free(script->uploads);
    plan_free(script->plan);
    operation_table_free(script->bodies);
    free(script->text);
    *script = (struct example_script){.text = NULL};
}

struct manifest_kernel example_manifest_kernel(const struct example_script *script,
                                               const struct healcl_device *device)
{
    for (size_t i = 0; i < script->plan->step_count; i++)
        if (script->plan->steps[i].kind == STEP_VENDOR)
            return vendor_kernel_for(script->plan, &script->plan->steps[i], device);
    return (struct manifest_kernel){.name = NULL};
}

const char *example_kernel(const struct example_script *script, const struct healcl_device *device)
{
    return example_manifest_kernel(script, device).name;
}

bool example_has_kernel(const struct example_script *script, const struct healcl_device *device)
{
    return example_kernel(script, device) != NULL;
}

/* ---------------------------------------------------------------- results */

/* Of the host reference, in the order of the transcript. */
struct answers {
    const struct vendor_operation *operation;
    void *of[PARAMETERS_MAX + 1];
    uint32_t count, next; /* next: to be compared */
    bool are_known;       /* else nothing is compared */
    struct {
        const struct tensor *tensor; /* NULL: there is none */
        uint32_t number;
        int64_t position, actual, expected;
    } difference; /* the first one */
};

/* A sink. */
static enum healcl_status keep_answer(void *context, const struct step *step, const void *data,
                                      struct healcl_error *error)
{
    struct answers *answers = context;
    const size_t bytes = (size_t)packed_bytes(step->in[0]);
    void *kept = malloc(bytes + 1);
    if (!kept)
        NO_MEMORY(error);
    if (bytes > 0)
        memcpy(kept, data, bytes);
    answers->of[answers->count++] = kept;
    return HEALCL_OK;
}

/* What a result is called: the tensor that the operation makes, and then its parameters. */
static const char *result_name(const struct vendor_operation *operation, uint32_t number)
{
    if (operation->makes_out && number == 0)
        return "out";
    number -= operation->makes_out;
    for (uint32_t i = 0; i < operation->form.parameter_count; i++)
        if (is_tensor(operation, i) && number-- == 0)
            return operation->form.parameters[i].name;
    return "";
}

/* A sink. */
static enum healcl_status compare_answer(void *context, const struct step *step, const void *data,
                                         struct healcl_error *error)
{
    (void)error;
    struct answers *answers = context;
    const uint32_t number = answers->next++;
    const void *expected = answers->of[number];
    const size_t bytes = (size_t)packed_bytes(step->in[0]);
    const enum dtype dtype = step->in[0]->storage->dtype;
    int64_t i = 0;
    if (!answers->are_known || answers->difference.tensor || bytes == 0 ||
        memcmp(data, expected, bytes) == 0)
        return HEALCL_OK;
    while (dtype_load(dtype, data, i) == dtype_load(dtype, expected, i))
        i++;
    answers->difference.tensor = step->in[0];
    answers->difference.number = number;
    answers->difference.position = i;
    answers->difference.actual = dtype_load(dtype, data, i);
    answers->difference.expected = dtype_load(dtype, expected, i);
    return HEALCL_OK;
}

/* Elements are those of what was uploaded: of a strided tensor every other is its own. */
static enum healcl_status different(const struct answers *answers, struct healcl_error *error)
{
    char text[SHAPE_TEXT_SIZE];
    FAIL(
        error, HEALCL_DIFFERENT, "the memory of %s is %" PRId64 ", not %" PRId64 ", at %s",
        result_name(answers->operation, answers->difference.number), answers->difference.actual,
        answers->difference.expected,
        layout_index_text(&answers->difference.tensor->layout, answers->difference.position, text));
}

/* Runs a script with its own data: on the host reference without a device. */
static enum healcl_status run(const struct example_script *script, struct healcl_device *device,
                              struct answers *answers, struct healcl_error *error)
{
    const struct result_sink sink = {.context = answers,
                                     .take = device ? compare_answer : keep_answer};
    struct executor *executor = NULL;
    answers->next = 0;
    answers->difference.tensor = NULL;
    enum healcl_status status =
        device ? device_executor_create(device, script->plan, false, &executor, error)
               : reference_executor_create(script->plan, &executor, error);
    if (status == HEALCL_OK) {
        executor->uploads = script->uploads;
        status = executor_run(executor, script->plan, &sink, error);
    }
    if (status == HEALCL_OK && answers->difference.tensor)
        status = different(answers, error);
    /* What data reveal is no limit of the device: the reference has not met it. */
    if (status == HEALCL_REFUSED && device && executor && device_executor_has_refused(executor))
        status = error->status = HEALCL_DIFFERENT;
    if (executor)
        executor->class->destroy(executor);
    return status;
}

static void answers_release(struct answers *answers)
{
    for (uint32_t i = 0; i < answers->count; i++)
        free(answers->of[i]);
    answers->count = 0;
}

/* What the body gives on the host reference. */
static enum healcl_status solve(const struct operation *operation, uint32_t number, bool is_strided,
                                struct answers *answers, struct healcl_error *error)
{
    struct example_script script;
    enum healcl_status status =
        example_script_init(&script, NULL, operation, number, is_strided, true, error);
    if (status == HEALCL_OK)
        status = run(&script, NULL, answers, error);
    example_script_release(&script);
    answers->are_known = status == HEALCL_OK;
    if (status != HEALCL_OK)
        error_prefix(error, "the host reference: ");
    return status;
}

/* ---------------------------------------------------------------- checks */

struct attempt {
    const struct operation_table *table;
    struct healcl_device *device;
    uint32_t number;
    bool is_strided;
    enum example_side side;
};

static void note(struct example_check *check, const struct attempt *call,
                 struct healcl_error *error)
{
    if (error->status != HEALCL_OK)
        error_prefix(error, "example %" PRIu32 ", %s, its %s: ", call->number + 1,
                     call->is_strided ? "strided" : "contiguous", example_side_name(call->side));
    (void)check_count(&check->of[call->side], error->status, error, &check->why);
}

static void check_call(struct example_check *check, const struct attempt *call,
                       struct answers *answers)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct example_script script;
    enum healcl_status status =
        example_script_init(&script, call->table, check->operation, call->number, call->is_strided,
                            call->side == EXAMPLE_BODY, &error);
    if (status == HEALCL_REFUSED) /* by the plan */
        status = error.status = HEALCL_DIFFERENT;
    struct manifest_kernel kernel = {.name = NULL};
    if (status == HEALCL_OK && call->side == EXAMPLE_KERNEL)
        kernel = example_manifest_kernel(&script, call->device);
    const bool is_run = status != HEALCL_OK || call->side == EXAMPLE_BODY || kernel.name;
    if (status == HEALCL_OK && is_run)
        status = run(&script, call->device, answers, &error);
    example_script_release(&script);
    if (!is_run || (status == HEALCL_OK && !answers->are_known))
        return;
    if (kernel.name && (!check->kernel.name || check->why.status == HEALCL_OK))
        check->kernel = kernel;
    note(check, call, &error);
}

static void check_layout(struct example_check *check, struct attempt *call)
{
    const struct vendor_operation *vendor = example_vendor(check->operation);
    struct healcl_error error = {.status = HEALCL_OK};
    struct answers answers = {.operation = vendor};
    call->side = EXAMPLE_BODY;
    if (vendor->body_count > 0 &&
        solve(check->operation, call->number, call->is_strided, &answers, &error) != HEALCL_OK) {
        error.status = error.status == HEALCL_REFUSED ? HEALCL_DIFFERENT : error.status;
        note(check, call, &error);
    } else {
        for (int side = 0; side < EXAMPLE_SIDES; side++) {
            call->side = (enum example_side)side;
            if (call->side == EXAMPLE_KERNEL ? vendor->kernel_count > 0 : vendor->body_count > 0)
                check_call(check, call, &answers);
        }
    }
    answers_release(&answers);
}

bool example_is_right(const struct example_check *check)
{
    return check->why.status == HEALCL_OK || check->why.status == HEALCL_REFUSED;
}

void example_check(struct healcl_device *device, const struct operation_table *table,
                   struct example_check *check)
{
    const struct vendor_operation *vendor = example_vendor(check->operation);
    const uint64_t begin = monotonic_nanoseconds();
    struct attempt call = {.table = table, .device = device};
    check->unchecked = vendor->example_count == 0 ? "no examples"
                       : vendor->body_count == 0  ? "no body to compare with"
                                                  : NULL;
    for (call.number = 0; call.number < vendor->example_count; call.number++)
        for (int is_strided = 0; is_strided < 2; is_strided++) {
            call.is_strided = is_strided;
            check_layout(check, &call);
        }
    check->nanoseconds = monotonic_nanoseconds() - begin;
}

enum healcl_status example_verify(struct healcl_device *device, const struct operation_table *table,
                                  const struct operation *operation, uint32_t number,
                                  bool is_strided, bool by_body, struct healcl_error *error)
{
    struct answers answers = {.operation = example_vendor(operation)};
    struct example_script script = {.text = NULL};
    enum healcl_status status = HEALCL_OK;
    if (answers.operation->body_count > 0)
        status = solve(operation, number, is_strided, &answers, error);
    if (status == HEALCL_OK)
        status = example_script_init(&script, table, operation, number, is_strided, by_body, error);
    if (status == HEALCL_OK)
        status = run(&script, device, &answers, error);
    example_script_release(&script);
    answers_release(&answers);
    return status;
}
