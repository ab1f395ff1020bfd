#include "report/diagnosis.h"

#include <inttypes.h>
#include <string.h>

#include "report/internal.h"

static void print_tensor(const struct style *style, const char *name, const struct tensor *tensor)
{
    char shape[SHAPE_TEXT_SIZE], strides[SHAPE_TEXT_SIZE];
    struct layout as_shape = tensor->layout;
    memcpy(as_shape.shape, tensor->layout.stride, sizeof as_shape.shape);
    report_label(style, name, "%s %s, strides %s, offset %" PRId64 ", in storage %" PRIu32,
                 dtype_name(tensor->storage->dtype), layout_shape_text(&tensor->layout, shape),
                 layout_shape_text(&as_shape, strides), tensor->layout.offset, tensor->storage->id);
}

static const char *const step_names[] = {
    [STEP_UPLOAD] = "upload",
    [STEP_DOWNLOAD] = "download",
    [STEP_FILL] = "fill",
    [STEP_COPY] = "copy",
    [STEP_MODMUL] = "modmul",
    [STEP_MODSUM] = "modsum",
    [STEP_MOD] = "mod",
    [STEP_MODNEG] = "modneg",
    [STEP_ABS] = "abs",
    [STEP_AXIS_MODSUM] = "sum along an axis",
    [STEP_MODMUL_AXIS_SUM] = "sum of products",
    [STEP_NTT] = "ntt",
    [STEP_INTT] = "intt",
    [STEP_DIGITS] = "digits",
    [STEP_DIGITS_FULL_Q] = "digits of the full modulus",
    [STEP_GATHER] = "gather",
    [STEP_RELEASE] = "release",
};

/* The step's operands, as the kernels see them: views in the plan's order of axes. */
static void print_step(const struct diagnosis_facts *facts, const struct style *style)
{
    const struct diagnosis *diagnosis = facts->diagnosis;
    const struct step *step = diagnosis->step;
    report_label(style, "entry", "%zu (%s)", step->entry, step->name);
    report_label(style, "segment", "%s",
                 *diagnosis->segment->name ? diagnosis->segment->name : "(no segment)");
    report_label(style, "step", "%s, %zu steps before it agree", step_names[step->kind],
                 diagnosis->steps - 1);
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            print_tensor(style, step_input_name(step, i), step->in[i]);
    if (step->out)
        print_tensor(style, "out", step->out);
}

static void print_difference(const struct diagnosis_facts *facts, const struct style *style)
{
    const struct diagnosis *diagnosis = facts->diagnosis;
    const struct step *step = diagnosis->step;
    const struct tensor *tensor = step->out ? step->out : step->in[0];
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
    if (!smallest->transcript) {
        report_label(style, "smaller", "no smaller transcript of this step alone fails");
        return;
    }
    report_label(style, "smallest", "%s, %s", smallest->text,
                 smallest->strided ? "tensors as in the transcript" : "contiguous");
    if (facts->case_path)
        report_label(style, "written", "healcl run -d %u:%u %s", facts->device->platform_index,
                     facts->device->device_index, facts->case_path);
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
        fprintf(style->stream, "all %zu steps agree with the host reference\n", diagnosis->steps);
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
