#include "tools/example.h"

#include <dirent.h>
#include <errno.h>

#include "core/file.h"
#include "tools/results.h"
#include "tools/xmalloc.h"

const char *const example_side_names[] = {"kernel", "body"};

/* ---------------------------------------------------------------- operations */

const struct operation *example_operation_at(const struct operation_table *table, size_t i)
{
    const size_t number = OPERATION_COUNT + i;
    return table && number < operation_count(table) ? operation_at(table, number) : NULL;
}

const struct operation *example_operation_find(const struct operation_table *table,
                                               const char *name)
{
    const int64_t number = operation_number(table, name);
    return number >= OPERATION_COUNT ? operation_at(table, (size_t)number) : NULL;
}

/* Makes a new tensor a parameter, if there is room for one. */
static void take_out(struct arena *arena, struct vendor_operation *operation)
{
    struct form *form = &operation->form;
    const uint32_t count = form->parameter_count;
    if (!operation->makes_out || count == PARAMETERS_MAX)
        return;
    struct healcl_parameter_info *parameters =
        xchecked(arena_alloc(arena, (count + 1) * sizeof *parameters));
    memcpy(parameters, form->parameters, count * sizeof *parameters);
    parameters[count] = (struct healcl_parameter_info){.name = "out", .kind = HEALCL_PARAMETER_OUT};
    operation->parameters[count].number = VENDOR_OUT;
    operation->parameters[count].dtypes = UINT32_C(1) << operation->out_dtype;
    operation->parameter_of[VENDOR_OUT] = (int)count;
    operation->makes_out = false;
    form->parameters = parameters;
    form->parameter_count++;
}

/* The state while files are read. */
struct reading {
    struct examples *examples;
    struct example **last;
    const char *file;
    bool have_bodies;
    struct operation_table *noting; /* the table whose calls are recorded */
};

/* An operation in a table of examples. */
struct copy {
    struct vendor_operation vendor; /* must be first: it is the infer function's context */
    struct reading *reading;
    const struct operation *operation;
    const struct form *form; /* the form that problems have */
};

/* Adds a copy of an operation, with another infer function. */
static enum healcl_status add_copy(struct operation_table *table, struct copy *copy,
                                   infer_function *function, struct healcl_error *error)
{
    struct operation added = *copy->operation;
    added.context = copy;
    added.infer = function;
    added.result = copy->vendor.makes_out ? RESULT_NEW : RESULT_ALIAS;
    return operation_table_add(table, &added, &copy->vendor.form, error);
}

/* ---------------------------------------------------------------- transcripts */

/* Downloads the elements of a tensor before the call. */
static enum healcl_status note_tensor(struct call *call, struct example *example, uint32_t i,
                                      const struct tensor *tensor, struct healcl_error *error)
{
    struct planner *planner = call->planner;
    struct step step = planner_step(planner, STEP_DOWNLOAD, NULL);
    example->problem.tensors[i] = (struct problem_tensor){
        .present = true, .dtype = tensor->storage->dtype, .shape = layout_packed(&tensor->layout)};
    step.in[0] = tensor;
    step.tensor_name = example->problem.text[i]; /* keep_result recognizes it by this */
    planner->plan->results++;
    planner->segment->results++;
    return planner_add_step(planner, &step, error);
}

/* An infer function. */
static enum healcl_status note_call(struct call *call, struct healcl_error *error)
{
    const struct copy *noted = call->form->operation->context;
    struct reading *reading = noted->reading;
    struct example *example = xchecked(arena_alloc(reading->examples->arena, sizeof *example));
    *example = (struct example){.operation = noted->operation,
                                .file = reading->file,
                                .entry = call->entry->index,
                                .problem = {.form = noted->form, .out = -1}};
    for (uint32_t i = 0; i < call->form->parameter_count; i++) {
        char *text = example->problem.text[i];
        if (call->tensors[i])
            TRY(note_tensor(call, example, i, call->tensors[i], error));
        else if (noted->vendor.parameters[i].number == NO_INPUT)
            strcpy(text, "none");
        else
            snprintf(text, ARGUMENT_TEXT_SIZE, "%" PRId64, call->entry->arguments[i].integer);
    }
    TRY(infer_vendor(call, error));
    const int out = form_parameter(noted->form, "out");
    if (out >= (int)call->form->parameter_count)
        example->problem.tensors[out] =
            (struct problem_tensor){.present = true,
                                    .dtype = call->result->storage->dtype,
                                    .shape = layout_packed(&call->result->layout)};
    example->problem.out = out;
    *reading->last = example;
    reading->last = &example->next;
    return HEALCL_OK;
}

/* The `take` function of a sink. */
static enum healcl_status keep_result(void *context, const struct step *step, const void *data,
                                      struct healcl_error *error)
{
    const struct reading *reading = context;
    const size_t bytes = (size_t)packed_bytes(step->in[0]);
    for (struct example *example = reading->examples->first; example; example = example->next)
        for (int i = 0; i < PARAMETERS_MAX; i++) {
            if (step->tensor_name != example->problem.text[i])
                continue;
            example->data.packed[i] = xmalloc(bytes);
            if (bytes > 0)
                memcpy(example->data.packed[i], data, bytes);
            return HEALCL_OK;
        }
    if (!step->payload)
        return HEALCL_OK;
    const enum healcl_status status = results_expect(NULL, step, data, error);
    if (status == HEALCL_DIFFERENT)
        FAIL(error, HEALCL_DIFFERENT,
             "entry %zu: the bodies on the host reference do not give the expected result",
             step_origin(step, NO_INPUT)->entry);
    return status;
}

/* An operation without a body cannot run. Calls before it remain recorded. */
static enum healcl_status run(struct reading *reading, const struct plan *plan,
                              struct healcl_error *error)
{
    struct executor *executor;
    const struct result_sink sink = {.context = reading, .take = keep_result};
    TRY(reference_executor_create(plan, &executor, error));
    enum healcl_status status = executor_run(executor, plan, &sink, error);
    executor->class->destroy(executor);
    if (status == HEALCL_REFUSED && !reading->have_bodies) {
        healcl_error_clear(error);
        status = HEALCL_OK;
    }
    return status;
}

static enum healcl_status read_transcript(struct reading *reading, const char *path,
                                          struct healcl_error *error)
{
    struct source source;
    struct plan *plan = NULL;
    TRY(source_open(&source, path, error));
    enum healcl_status status = plan_create(&source, reading->noting, NULL, &plan, error);
    THEN(status, run(reading, plan, error));
    plan_free(plan);
    source_close(&source);
    return status;
}

/* Makes the tables of the examples, and the table that records calls: it uses bodies, if there are
 * any. */
static enum healcl_status make_tables(struct reading *reading, const struct operation_table *table,
                                      struct healcl_error *error)
{
    struct examples *examples = reading->examples;
    const struct operation *operation;
    for (int side = 0; side < EXAMPLE_SIDES; side++)
        TRY(operation_table_create(NULL, &examples->tables[side], error));
    TRY(operation_table_create(NULL, &reading->noting, error));
    for (size_t i = 0; (operation = example_operation_at(table, i)); i++) {
        struct copy *copies =
            xchecked(arena_alloc(examples->arena, (EXAMPLE_SIDES + 1) * sizeof *copies));
        for (int side = 0; side <= EXAMPLE_SIDES; side++) {
            struct copy *copy = &copies[side];
            *copy = (struct copy){*example_vendor(operation), reading, operation, NULL};
            if (side < EXAMPLE_SIDES)
                take_out(examples->arena, &copy->vendor);
            else
                copy->form = form_at(examples->tables[EXAMPLE_KERNEL], form_count + i);
            if (side != EXAMPLE_KERNEL && copy->vendor.body_count + (side == EXAMPLE_BODY) > 0)
                copy->vendor.kernel_count = 0;
            reading->have_bodies = reading->have_bodies && copy->vendor.body_count > 0;
            TRY(add_copy(side < EXAMPLE_SIDES ? examples->tables[side] : reading->noting, copy,
                         side < EXAMPLE_SIDES ? infer_vendor : note_call, error));
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- folders */

static enum healcl_status read_folder(struct reading *reading, const char *folder,
                                      struct healcl_error *error)
{
    struct dirent **names = NULL;
    enum healcl_status status = HEALCL_OK;
    const int count = scandir(folder, &names, file_is_json, alphasort);
    if (count < 0 && errno != ENOENT)
        FAIL_FILE(error, "cannot read the folder '%.480s': %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *path = xformat("%s/%s", folder, names[i]->d_name);
        reading->file = xchecked(arena_strdup(reading->examples->arena, names[i]->d_name));
        if (status == HEALCL_OK) {
            status = read_transcript(reading, path, error);
            if (status != HEALCL_OK)
                error_prefix(error, "%.400s: ", path);
        }
        free(names[i]);
    }
    free(names);
    return status;
}

enum healcl_status examples_read(struct examples *examples,
                                 const struct healcl_operations *manifests,
                                 struct healcl_error *error)
{
    struct reading reading = {.examples = examples, .last = &examples->first, .have_bodies = true};
    *examples = (struct examples){.arena = xchecked(arena_create())};
    enum healcl_status status = make_tables(&reading, manifests ? manifests->table : NULL, error);
    for (const struct operation_folder *folder = manifests ? manifests->folders : NULL;
         folder && status == HEALCL_OK; folder = folder->next) {
        status = read_folder(&reading, xformat("%s/examples", folder->path), error);
    }
    operation_table_free(reading.noting);
    return status;
}

void examples_release(struct examples *examples)
{
    for (struct example *example = examples->first; example; example = example->next)
        problem_data_release(&example->data);
    for (int side = 0; side < EXAMPLE_SIDES; side++)
        operation_table_free(examples->tables[side]);
    arena_free(examples->arena);
    *examples = (struct examples){.arena = NULL};
}

const struct example *example_from(const struct example *first, const struct operation *operation)
{
    while (first && first->operation != operation)
        first = first->next;
    return first;
}
