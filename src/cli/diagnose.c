/* healcl diagnose */
#include "tools/diagnose.h"
#include "cli/command_job.h"
#include "kernels/variant.h"
#include "plan/passes.h"

/* The state of `healcl diagnose`. */
struct diagnose_command {
    struct command_job job;
    const char *case_path;
    struct new_file case_file;
    struct healcl_transcript *transcript;
    struct healcl_error self_test; /* outcome of the self-test */
    struct healcl_error unwritten; /* why the case could not be written */
    struct diagnosis diagnosis;
};

static void on_progress(size_t step, size_t step_count)
{
    if (step == step_count)
        progress_say("the whole run");
    else
        progress_say("step %zu of %zu", step + 1, step_count);
}

static enum healcl_status write_case(struct diagnose_command *self, struct healcl_error *error)
{
    const struct failing_case *smallest = &self->diagnosis.smallest;
    if (!self->case_path || !smallest->transcript)
        return HEALCL_OK;
    (void)fwrite(smallest->transcript, 1, smallest->bytes, self->case_file.stream);
    return new_file_commit(&self->case_file, error);
}

/* A device that fails its self-test is diagnosed too. */
static enum healcl_status find_fault(void *context, struct healcl_error *error)
{
    struct diagnose_command *self = context;
    struct command_job *job = &self->job;
    if (self->case_path) /* before work that may take long */
        TRY(new_file_open(&self->case_file, self->case_path, error));
    progress_say("reading %s", job->file);
    job->options.memory_limit = host_memory();
    TRY(healcl_transcript_open(job->file, &job->options, &self->transcript, error));
    progress_say("opening the device");
    TRY(device_open(&opencl_loader, job->selector, &job->device, error));
    if (self_test_run(job->device, &self->self_test) == HEALCL_NO_MEMORY)
        xmalloc_fail();
    return diagnose(job->device, self->transcript, on_progress, &self->diagnosis, error);
}

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

/* The passes that made the step, and its original entries. */
static void add_passes(cJSON *object, const struct step *step)
{
    if (!step->passes)
        return;
    cJSON *list = json_add_array(object, "passes");
    for (size_t i = 0; i < PASS_COUNT; i++)
        if (step->passes >> i & 1)
            cJSON_AddItemToArray(list, cJSON_CreateString(passes[i].name));
    list = json_add_array(object, "origins");
    for (size_t i = 0; i < step->origins->count; i++) {
        const struct origin *origin = &step->origins->of[i];
        JSON_ADD(json_add_object(list, NULL), NUMBER("entry", origin->entry),
                 STRING("op", origin->name));
    }
}

/* The operands as the kernels see them: views with axes in the plan's order. */
static void add_step(cJSON *object, const struct diagnose_command *self)
{
    const struct diagnosis *diagnosis = &self->diagnosis;
    const struct step *step = diagnosis->step;
    const struct origin *origin = step_origin(step, NO_INPUT);
    JSON_ADD(object, NUMBER("entry", origin->entry), STRING("op", origin->name),
             STRING("segment", diagnosis->segment->name),
             STRING("step", step_traits[step->kind].name));
    if (diagnosis->kernel.name) {
        JSON_ADD(object, STRING("kernel", diagnosis->kernel.name),
                 STRING("manifest", diagnosis->kernel.file));
    } else if (family_of(step->kind)) {
        const struct variant *variant = variant_for(step, self->job.device);
        JSON_ADD(object, STRING("kernel", variant->name), STRING("source", variant->source));
    }
    add_passes(object, step);
    cJSON *tensors = json_add_array(object, "tensors");
    FOR_EACH_INPUT (i, tensor, step)
        add_tensor(tensors, step_input_name(step, i), tensor);
    if (step->out)
        add_tensor(tensors, "out", step->out);
}

/* The place of the first difference in the step's output or downloaded result. */
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

/* Prints the smallest case, and a command that reproduces the fault. For vendors' operations, the
 * command tests other calls. */
static void add_case(cJSON *document, const struct diagnose_command *self)
{
    const struct diagnosis *diagnosis = &self->diagnosis;
    const struct device_info *device = &self->job.device->info;
    const struct healcl_operations *manifests = self->job.options.operations;
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
    if (!self->case_path || self->unwritten.status != HEALCL_OK)
        return;
    json_add_string(object, "file", self->case_path);
    report_add_command(object, "run", device, manifests, "", self->case_path);
}

static cJSON *report_diagnose(void *context)
{
    static const char *const kinds[] = {[DIAGNOSIS_AGREES] = "agrees",
                                        [DIAGNOSIS_DIFFERS] = "differs",
                                        [DIAGNOSIS_FAILS] = "fails",
                                        [DIAGNOSIS_EXPECTED] = "expects something else",
                                        [DIAGNOSIS_WHOLE] = "whole run differs"};
    struct diagnose_command *self = context;
    const struct diagnosis *diagnosis = &self->diagnosis;
    const enum diagnosis_kind kind = diagnosis->kind;
    cJSON *document = report_of(self->job.file, &self->job.device->info);
    report_add_self_test(document,
                         self->self_test.status != HEALCL_OK ? SELF_TEST_FAILED : SELF_TEST_PASSED,
                         self->self_test.message);
    JSON_ADD(
        document, STRING("outcome", kinds[kind]), NUMBER("steps", diagnosis->steps),
        JSON_IF(kind == DIAGNOSIS_AGREES, FLAG("verified", diagnosis->whole == HEALCL_VERIFIED)),
        TEXT("failure", diagnosis->failure.message));
    (void)write_case(self, &self->unwritten);
    if (!diagnosis->step)
        return document;
    add_step(json_add_object(document, "first"), self);
    if (kind != DIAGNOSIS_FAILS)
        add_difference(json_add_object(document, "difference"), diagnosis);
    if (kind != DIAGNOSIS_EXPECTED)
        add_case(document, self);
    return document;
}

/* ---------------------------------------------------------------- text */

static void print_step(const cJSON *document, const struct style *style)
{
    static const struct view_line lines[] = {
        {"entry", "{first.entry} ({first.op})"},
        {"segment", "{first.segment|(outside segments)}"},
        {"step", "{first.step}, the last of {steps} that were compared"},
        {"kernel", "{first.kernel}, of {first.manifest}"},
        {"kernel", "{first.kernel}, of {first.source}"},
        {"passes", "{first.passes}"},
    };
    const cJSON *origins = json_at(document, "first.origins");
    VIEW_LINES(style, document, lines);
    JSON_EACH(tensor, origins) view_line(style, tensor, "from", "entry {entry} ({op})");
    JSON_EACH(tensor, json_at(document, "first.tensors"))
    {
        view_line(style, tensor, json_text(tensor, "name"),
                  "{dtype} {shape}, strides {strides}, offset {offset}, in storage {storage}");
    }
}

static void print_diagnose(void *context, const cJSON *document, const struct style *style)
{
    const enum diagnosis_kind kind = ((const struct diagnose_command *)context)->diagnosis.kind;
    static const struct view_line lines[] = {
        {"fails", "{failure}"},
        {"differ", "{difference.different:?} of {difference.elements} elements, the first at "
                   "{difference.index}: {difference.actual}, expected {difference.expected}"},
        {"outside", "{difference.outside:?} elements of the storage changed outside the output"},
        {"smallest", "{smallest.call}"},
        {"written", "{smallest.file}"},
    };
    view_line(style, document, "transcript", "{transcript}");
    view_line(style, document, "device", "{device.name}");
    view_line(style, document, "self-test", "{self_test_failure}");
    putc('\n', style->stream);
    if (kind == DIAGNOSIS_AGREES)
        view_text(style, document,
                  "all {steps} steps agree with the host reference"
                  "{verified=, and the whole run with the transcript}");
    else if (kind == DIAGNOSIS_WHOLE)
        view_text(style, document,
                  "each step alone agrees with the host reference, but the whole run does not: "
                  "{failure}");
    else {
        print_step(document, style);
        VIEW_LINES(style, document, lines);
        view_text(style, document, "  {smallest.repeat}");
    }
    if (kind == DIAGNOSIS_EXPECTED)
        view_text(
            style, document,
            "\nthe device agrees with the host reference; the transcript expects another value");
    else if (cJSON_IsNull(json_at(document, "smallest")))
        view_line(style, document, "smallest",
                  "none: no smaller transcript of this step fails[; {repeat} tries others]");
}

/* A fault is reported even if the case cannot be written. */
static int conclude(void *context, int code)
{
    const struct diagnose_command *self = context;
    if (self->unwritten.status != HEALCL_OK)
        code = print_failure(NULL, &self->unwritten, false);
    return code != EXIT_VERIFIED || self->diagnosis.kind == DIAGNOSIS_AGREES ? code
                                                                             : EXIT_DIFFERENT;
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {JOB_DEVICE},
    {EXPAND_OPTION},
    {PASSES_OPTION},
    {"output", 'o', OPTION_NEW_FILE, "FILE", KEPT_IN(struct diagnose_command, case_path),
     "write the smallest case to FILE, as a transcript for healcl run and for a bug report"},
    JOB_OPTIONS,
};

static void release_diagnose(void *context)
{
    struct diagnose_command *self = context;
    healcl_error_clear(&self->self_test);
    healcl_error_clear(&self->unwritten);
    diagnosis_release(&self->diagnosis);
    healcl_transcript_close(self->transcript);
    new_file_discard(&self->case_file);
}

const struct command command_diagnose = {
    .name = "diagnose",
    .summary = "find the first operation that a device gets wrong",
    .help = "Runs each step of a transcript on a device and on the host reference, and names the "
            "first one that differs: entry, operation, segment, the passes that made it, the "
            "layouts of its tensors, and the first wrong element. Then it looks for the smallest "
            "part of the tensors that the device still gets wrong. If every step agrees alone, it "
            "runs the whole transcript and compares its results. The device may fail its "
            "self-test.",
    .notes =
        "The layouts are those that kernels see: axes of transforms in the order l, r, k, n, and a "
        "stride of 0 where elements repeat. Exit code 1: a step, or the whole run, is wrong.",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .size = sizeof(struct diagnose_command),
    .steps = {.work = find_fault,
              .report = report_diagnose,
              .print = print_diagnose,
              .conclude = conclude,
              .release = release_diagnose},
};
