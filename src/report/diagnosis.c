#include "report/diagnosis.h"

#include <inttypes.h>
#include <string.h>

#include "report/members.h"
#include "report/text.h"

/* ---------------------------------------------------------------- text */

static void print_tensor(const struct style *style, const char *name, const struct tensor *tensor)
{
    char shape[SHAPE_TEXT_SIZE], strides[SHAPE_TEXT_SIZE];
    struct layout as_shape = tensor->layout;
    memcpy(as_shape.shape, tensor->layout.stride, sizeof as_shape.shape);
    report_label(style, name, "%s %s, strides %s, offset %" PRId64 ", in storage %" PRIu32,
                 dtype_name(tensor->storage->dtype), layout_shape_text(&tensor->layout, shape),
                 layout_shape_text(&as_shape, strides), tensor->layout.offset, tensor->storage->id);
}

/* The step's operands, as the kernels see them: views in the plan's order of axes. */
static void print_step(const struct diagnosis_facts *facts, const struct style *style)
{
    const struct diagnosis *diagnosis = facts->diagnosis;
    const struct step *step = diagnosis->step;
    const struct origin *origin = step_origin(step, NO_INPUT);
    report_label(style, "entry", "%zu (%s)", origin->entry, origin->name);
    report_label(style, "segment", "%s", segment_title(diagnosis->segment->name));
    report_label(style, "step", "%s, %zu steps before it agree", step_traits[step->kind].name,
                 diagnosis->steps - 1);
    if (diagnosis->kernel.name)
        report_label(style, "kernel", "%s, of %s", diagnosis->kernel.name, diagnosis->kernel.file);
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            print_tensor(style, step_input_name(step, i), step->in[i]);
    if (step->out)
        print_tensor(style, "out", step->out);
}

/* What the step made: its output, or what it downloaded. */
static const struct tensor *result_of(const struct step *step)
{
    return step->out ? step->out : step->in[0];
}

static void print_difference(const struct diagnosis_facts *facts, const struct style *style)
{
    const struct diagnosis *diagnosis = facts->diagnosis;
    const struct tensor *tensor = result_of(diagnosis->step);
    char index[SHAPE_TEXT_SIZE];
    if (diagnosis->different > 0)
        report_label(style, "differ",
                     "%" PRIu64 " of %" PRIu64 " elements, the first at %s: %" PRId64
                     ", expected %" PRId64,
                     diagnosis->different, diagnosis->elements,
                     layout_index_text(&tensor->layout, diagnosis->position, index),
                     diagnosis->actual, diagnosis->expected);
    if (diagnosis->outside > 0)
        report_label(style, "outside",
                     "%" PRIu64 " elements of the storage changed that are not the "
                     "output's",
                     diagnosis->outside);
}

static void print_case(const struct diagnosis_facts *facts, const struct style *style)
{
    const struct failing_case *smallest = &facts->diagnosis->smallest;
    if (facts->diagnosis->step->kind == STEP_VENDOR) {
        report_label(style, "smaller", "healcl check --op %s tries it",
                     step_origin(facts->diagnosis->step, NO_INPUT)->name);
        return;
    }
    if (!smallest->transcript) {
        report_label(style, "smaller", "no smaller transcript of this step alone fails");
        return;
    }
    report_label(style, "smallest", "%s", smallest->text);
    if (!facts->case_path)
        return;
    report_label(style, "written", "%s", facts->case_path);
    fprintf(style->stream, "  healcl run -d %u:%u", facts->device->platform_index,
            facts->device->device_index);
    report_folders(facts->operations, style->stream);
    putc(' ', style->stream);
    text_shell(style->stream, facts->case_path);
    putc('\n', style->stream);
}

void report_diagnosis(const struct diagnosis_facts *facts, const struct style *style)
{
    const struct diagnosis *diagnosis = facts->diagnosis;
    report_label(style, "transcript", "%s", facts->file);
    report_label(style, "device", "%s", facts->device->name);
    if (facts->self_test_failure)
        report_label(style, "self-test", "%s", facts->self_test_failure);
    putc('\n', style->stream);
    if (diagnosis->kind == DIAGNOSIS_AGREES) {
        fprintf(style->stream, "all %zu steps agree with the host reference%s\n", diagnosis->steps,
                diagnosis->whole == HEALCL_VERIFIED ? ", and the whole run with the transcript"
                                                    : "");
        return;
    }
    if (diagnosis->kind == DIAGNOSIS_WHOLE) {
        fprintf(style->stream,
                "every step agrees with the host reference alone, the whole run does not: %s\n",
                diagnosis->failure.message);
        return;
    }
    print_step(facts, style);
    if (diagnosis->kind == DIAGNOSIS_FAILS)
        report_label(style, "fails", "%s", diagnosis->failure.message);
    else
        print_difference(facts, style);
    if (diagnosis->kind == DIAGNOSIS_EXPECTED)
        fprintf(style->stream,
                "\nthe device agrees with the host reference; it is the transcript that "
                "expects something else\n");
    else
        print_case(facts, style);
}

/* ---------------------------------------------------------------- JSON */

static void add_integers(struct json *json, cJSON *object, const char *key, const int64_t *values,
                         uint32_t count)
{
    cJSON *array = json_array(json, object, key);
    for (uint32_t i = 0; i < count; i++)
        json_integer(json, array, NULL, values[i]);
}

static void add_tensor(struct json *json, cJSON *tensors, const char *name,
                       const struct tensor *tensor)
{
    const struct layout *layout = &tensor->layout;
    cJSON *object = json_object(json, tensors, NULL);
    json_string(json, object, "name", name);
    json_string(json, object, "dtype", dtype_name(tensor->storage->dtype));
    add_integers(json, object, "shape", layout->shape, layout->rank);
    add_integers(json, object, "strides", layout->stride, layout->rank);
    json_integer(json, object, "offset", layout->offset);
    json_number(json, object, "storage", tensor->storage->id);
}

static void add_step(struct json *json, cJSON *object, const struct diagnosis *diagnosis)
{
    const struct step *step = diagnosis->step;
    const struct origin *origin = step_origin(step, NO_INPUT);
    json_number(json, object, "entry", origin->entry);
    json_string(json, object, "op", origin->name);
    json_string(json, object, "segment", diagnosis->segment->name);
    json_string(json, object, "step", step_traits[step->kind].name);
    if (diagnosis->kernel.name) {
        json_string(json, object, "kernel", diagnosis->kernel.name);
        json_string(json, object, "manifest", diagnosis->kernel.file);
    }
    cJSON *tensors = json_array(json, object, "tensors");
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            add_tensor(json, tensors, step_input_name(step, i), step->in[i]);
    if (step->out)
        add_tensor(json, tensors, "out", step->out);
}

static void add_difference(struct json *json, cJSON *object, const struct diagnosis *diagnosis)
{
    const struct layout *layout = &result_of(diagnosis->step)->layout;
    int64_t index[LAYOUT_RANK];
    json_number(json, object, "elements", diagnosis->elements);
    json_number(json, object, "different", diagnosis->different);
    json_number(json, object, "outside", diagnosis->outside);
    if (diagnosis->different == 0)
        return;
    layout_multi_index(layout, diagnosis->position, index);
    add_integers(json, object, "index", index, layout->rank);
    json_integer(json, object, "actual", diagnosis->actual);
    json_integer(json, object, "expected", diagnosis->expected);
}

static void add_case(struct json *json, cJSON *top, const struct diagnosis_facts *facts)
{
    const struct failing_case *smallest = &facts->diagnosis->smallest;
    if (!smallest->transcript) {
        json_null(json, top, "smallest");
        return;
    }
    cJSON *object = json_object(json, top, "smallest");
    json_string(json, object, "call", smallest->text);
    if (facts->case_path)
        json_string(json, object, "file", facts->case_path);
}

enum healcl_status report_diagnosis_json(const struct diagnosis_facts *facts, FILE *stream)
{
    static const char *const kinds[] = {[DIAGNOSIS_AGREES] = "agrees",
                                        [DIAGNOSIS_DIFFERS] = "differs",
                                        [DIAGNOSIS_FAILS] = "fails",
                                        [DIAGNOSIS_EXPECTED] = "expects something else",
                                        [DIAGNOSIS_WHOLE] = "whole run differs"};
    const struct diagnosis *diagnosis = facts->diagnosis;
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    report_device_members(&json, json_object(&json, json.top, "device"), facts->device);
    report_self_test(&json, json.top,
                     facts->self_test_failure ? SELF_TEST_FAILED : SELF_TEST_PASSED,
                     facts->self_test_failure);
    json_string(&json, json.top, "outcome", kinds[diagnosis->kind]);
    json_number(&json, json.top, "steps", diagnosis->steps);
    if (diagnosis->kind == DIAGNOSIS_WHOLE)
        json_string(&json, json.top, "failure", diagnosis->failure.message);
    if (!diagnosis->step)
        return json_print(&json, stream);
    add_step(&json, json_object(&json, json.top, "first"), diagnosis);
    if (diagnosis->kind == DIAGNOSIS_FAILS)
        json_string(&json, json.top, "failure", diagnosis->failure.message);
    else
        add_difference(&json, json_object(&json, json.top, "difference"), diagnosis);
    if (diagnosis->kind != DIAGNOSIS_EXPECTED)
        add_case(&json, json.top, facts);
    return json_print(&json, stream);
}
