#include "cli/diagnose_report.h"

/* ---------------------------------------------------------------- JSON */

static void add_tensor(cJSON *tensors, const char *name, const struct tensor *tensor)
{
    const struct layout *layout = &tensor->layout;
    cJSON *object = json_add_object(tensors, NULL);
    JSON_ADD(object, STRING("name", name), STRING("dtype", dtype_name(tensor->storage->dtype)));
    json_add_integers(object, "shape", layout->shape, layout->rank);
    json_add_integers(object, "strides", layout->stride, layout->rank);
    JSON_ADD(object, INTEGER("offset", layout->offset), NUMBER("storage", tensor->storage->id));
}

/* The operands are as the kernels see them: views in the plan's order of axes. */
static void add_step(cJSON *object, const struct diagnosis *diagnosis)
{
    const struct step *step = diagnosis->step;
    const struct origin *origin = step_origin(step, NO_INPUT);
    JSON_ADD(object, NUMBER("entry", origin->entry), STRING("op", origin->name),
             STRING("segment", diagnosis->segment->name),
             STRING("step", step_traits[step->kind].name));
    if (diagnosis->kernel.name) {
        JSON_ADD(object, STRING("kernel", diagnosis->kernel.name),
                 STRING("manifest", diagnosis->kernel.file));
    }
    cJSON *tensors = json_add_array(object, "tensors");
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            add_tensor(tensors, step_input_name(step, i), step->in[i]);
    if (step->out)
        add_tensor(tensors, "out", step->out);
}

/* In what the step made: its output, or what it downloaded. */
static void add_difference(cJSON *object, const struct diagnosis *diagnosis)
{
    const struct step *step = diagnosis->step;
    const struct layout *layout = &(step->out ? step->out : step->in[0])->layout;
    int64_t index[LAYOUT_RANK];
    JSON_ADD(object, NUMBER("elements", diagnosis->elements),
             NUMBER("different", diagnosis->different), NUMBER("outside", diagnosis->outside));
    if (diagnosis->different == 0)
        return;
    layout_multi_index(layout, diagnosis->position, index);
    json_add_integers(object, "index", index, layout->rank);
    JSON_ADD(object, INTEGER("actual", diagnosis->actual),
             INTEGER("expected", diagnosis->expected));
}

/* The smallest one, and a command that shows the fault, or for vendors' operations tries others. */
static void add_case(cJSON *document, const struct device_info *device,
                     const struct diagnosis *diagnosis, const struct healcl_operations *manifests,
                     const char *case_path)
{
    const struct failing_case *smallest = &diagnosis->smallest;
    if (diagnosis->step->kind == STEP_VENDOR)
        report_add_command(document, "check", device, manifests, "--op ",
                           step_origin(diagnosis->step, NO_INPUT)->name);
    if (!smallest->transcript) {
        JSON_ADD(document, STRING("smallest", NULL));
        return;
    }
    cJSON *object = json_add_object(document, "smallest");
    json_add_string(object, "call", smallest->text);
    if (!case_path)
        return;
    json_add_string(object, "file", case_path);
    report_add_command(object, "run", device, manifests, "", case_path);
}

cJSON *report_diagnosis(const char *file, const struct device_info *device,
                        const char *self_test_failure, const struct diagnosis *diagnosis,
                        const struct healcl_operations *manifests, const char *case_path)
{
    static const char *const kinds[] = {[DIAGNOSIS_AGREES] = "agrees",
                                        [DIAGNOSIS_DIFFERS] = "differs",
                                        [DIAGNOSIS_FAILS] = "fails",
                                        [DIAGNOSIS_EXPECTED] = "expects something else",
                                        [DIAGNOSIS_WHOLE] = "whole run differs"};
    const enum diagnosis_kind kind = diagnosis->kind;
    cJSON *document = report_of(file, device);
    report_add_self_test(document, self_test_failure ? SELF_TEST_FAILED : SELF_TEST_PASSED,
                         self_test_failure);
    JSON_ADD(document, STRING("outcome", kinds[kind]), NUMBER("steps", diagnosis->steps));
    if (kind == DIAGNOSIS_AGREES)
        JSON_ADD(document, FLAG("verified", diagnosis->whole == HEALCL_VERIFIED));
    if (kind == DIAGNOSIS_WHOLE || kind == DIAGNOSIS_FAILS)
        json_add_string(document, "failure", diagnosis->failure.message);
    if (!diagnosis->step)
        return document;
    add_step(json_add_object(document, "first"), diagnosis);
    if (kind != DIAGNOSIS_FAILS)
        add_difference(json_add_object(document, "difference"), diagnosis);
    if (kind != DIAGNOSIS_EXPECTED)
        add_case(document, device, diagnosis, manifests, case_path);
    return document;
}

/* ---------------------------------------------------------------- text */

static void print_step(const cJSON *document, const struct style *style)
{
    static const struct view_line lines[] = {
        {"entry", "{first.entry} ({first.op})"},
        {"segment", "{first.segment|(no segment)}"},
        {"step", "{first.step}, the last of {steps} that were compared"},
        {"kernel", "{first.kernel}, of {first.manifest}"},
    };
    const cJSON *tensor;
    VIEW_LINES(style, document, lines);
    cJSON_ArrayForEach(tensor, json_at(document, "first.tensors"))
        view_line(style, tensor, cJSON_GetStringValue(json_at(tensor, "name")),
                  "{dtype} {shape}, strides {strides}, offset {offset}, in storage {storage}");
}

void report_diagnosis_text(const cJSON *document, enum diagnosis_kind kind,
                           const struct style *style)
{
    static const struct view_line lines[] = {
        {"fails", "{failure}"},
        {"differ", "{difference.different:?} of {difference.elements} elements, the first at "
                   "{difference.index}: {difference.actual}, expected {difference.expected}"},
        {"outside", "{difference.outside:?} elements of the storage changed that are not the "
                    "output's"},
        {"smallest", "{smallest.call}"},
        {"written", "{smallest.file}"},
    };
    view_line(style, document, "transcript", "{transcript}");
    view_line(style, document, "device", "{device.name}");
    view_line(style, document, "self-test", "{self_test_failure}");
    putc('\n', style->stream);
    if (kind == DIAGNOSIS_AGREES)
        (void)view_text(style, document,
                        "all {steps} steps agree with the host reference"
                        "{verified=, and the whole run with the transcript}");
    else if (kind == DIAGNOSIS_WHOLE)
        (void)view_text(style, document,
                        "every step agrees with the host reference alone, the whole run does not: "
                        "{failure}");
    else {
        print_step(document, style);
        VIEW_LINES(style, document, lines);
        (void)view_text(style, document, "  {smallest.repeat}");
    }
    if (kind == DIAGNOSIS_EXPECTED)
        fputs("\nthe device agrees with the host reference; it is the transcript that expects "
              "something else\n",
              style->stream);
    else if (cJSON_IsNull(json_at(document, "smallest")))
        view_line(style, document, "smallest",
                  "none: no smaller transcript of this step alone fails[; {repeat} tries others]");
}
