#include "tools/diagnose.h"

#include "kernels/variant.h"
#include "plan/axes.h"
#include "reference/reference.h"
#include "run/compare.h"
#include "tools/results.h"
#include "tools/writer.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- the smallest case */

enum { SMALL_BYTES = 64 << 20 }; /* a larger case is not useful to send */

/* ---------------------------------------------------------------- operands */

/* A step that a device computes wrongly, the memory before it, and the remaining parts of its
 * tensors. */
struct candidate {
    const struct plan *plan;
    const struct step *step;
    const struct reference *reference; /* contains the storages of the inputs */
    const void *out_before;            /* contents of step->out's storage before it */
    struct step_axes axes;
    struct layout layouts[STEP_OPERANDS];
};

static bool is_scalar_input(const struct candidate *candidate, int i)
{
    const struct tensor *tensor = candidate->step->operands[i];
    return tensor && tensor->storage == candidate->plan->constants.storage;
}

/* Whether the operand is uploaded. */
static bool is_tensor(const struct candidate *candidate, int i)
{
    return candidate->step->operands[i] && !is_scalar_input(candidate, i);
}

static enum dtype dtype_of(const struct candidate *candidate, int i)
{
    return candidate->step->operands[i]->storage->dtype;
}

/* Returns its storage. */
static const char *image_of(const struct candidate *candidate, int i)
{
    const struct storage *storage = candidate->step->operands[i]->storage;
    return storage == candidate->step->out->storage
               ? candidate->out_before
               : candidate->reference->memories[storage->id].bytes;
}

static struct candidate whole_of(const struct candidate *failing)
{
    struct candidate whole = *failing;
    step_axes(whole.step, &whole.axes);
    FOR_EACH_OPERAND (i, tensor, whole.step)
        whole.layouts[i] = tensor->layout;
    /* The moduli of a sum, given in out's shape, become a vector. */
    for (char *names = whole.axes.names[1];
         whole.step->kind == STEP_AXIS_MODSUM && whole.layouts[1].rank > 1;) {
        whole.layouts[1] = layout_drop_axis(&whole.layouts[1], 0);
        memmove(names, names + 1, strlen(names));
    }
    return whole;
}

/* ---------------------------------------------------------------- cutting */

/* For each axis letter: the number of elements kept around the wrong one. */
struct cut {
    int64_t full[AXIS_LETTERS]; /* 0: the letter does not occur, or is not cut */
    int64_t wrong[AXIS_LETTERS];
    int64_t size[AXIS_LETTERS];
};

static void cut_init(struct cut *cut, const struct candidate *whole, int64_t first_wrong)
{
    int64_t index[LAYOUT_RANK];
    memset(cut, 0, sizeof *cut);
    for (int i = 0; i < STEP_OPERANDS; i++)
        for (uint32_t axis = 0; axis < whole->layouts[i].rank; axis++)
            if (whole->axes.names[i][axis] != '*')
                cut->full[(int)whole->axes.names[i][axis]] = whole->layouts[i].shape[axis];
    layout_multi_index(&whole->layouts[STEP_OUT], first_wrong, index);
    for (uint32_t axis = 0; axis < whole->layouts[STEP_OUT].rank; axis++)
        cut->wrong[(int)whole->axes.names[STEP_OUT][axis]] = index[axis];
    memcpy(cut->size, cut->full, sizeof cut->size);
}

/* The first index of a letter's part. Parts begin at multiples of their size if possible, as
 * vectors do. */
static int64_t cut_start(const struct cut *cut, int letter)
{
    int64_t size = cut->size[letter], start = cut->wrong[letter] / size * size;
    return start + size <= cut->full[letter] ? start : cut->full[letter] - size;
}

static struct candidate part_of(const struct candidate *whole, const struct cut *cut)
{
    struct candidate part = *whole;
    for (int i = 0; i < STEP_OPERANDS; i++)
        for (uint32_t axis = 0; axis < part.layouts[i].rank; axis++) {
            int letter = (unsigned char)part.axes.names[i][axis];
            if (cut->full[letter] > 0)
                part.layouts[i] = layout_narrow(&part.layouts[i], axis, cut_start(cut, letter),
                                                cut->size[letter]);
        }
    return part;
}

/* Whether the uploaded bytes, including those between elements, are few enough for a case. */
static bool is_small(const struct candidate *candidate)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (is_tensor(candidate, i))
            bytes += (uint64_t)(view_end(&candidate->layouts[i]) - candidate->layouts[i].offset) *
                     dtype_size(dtype_of(candidate, i));
    return bytes <= SMALL_BYTES;
}

/* ---------------------------------------------------------------- writing tensors */

/* Whether a transform's input is the same for all moduli. */
static bool is_tiled(const struct candidate *candidate)
{
    const struct layout *a = &candidate->layouts[0];
    const enum step_kind kind = candidate->step->kind;
    return (kind == STEP_NTT || kind == STEP_INTT) &&
           ((a->stride[2] == 0 && a->shape[2] > 1) || dtype_of(candidate, 0) == DTYPE_INT8);
}

/* The operand as an argument: a tiled input has size 1 on the axis of moduli. */
static struct layout argument_layout(const struct candidate *candidate, int i)
{
    struct layout layout = candidate->layouts[i];
    if (i == 0 && is_tiled(candidate))
        layout.shape[2] = 1;
    return layout;
}

/* Returns the first operand with the same tensor as this one. */
static int tensor_number(const struct candidate *candidate, int i)
{
    const struct layout layout = argument_layout(candidate, i);
    for (int j = 0; j < i; j++) {
        const struct layout other = argument_layout(candidate, j);
        if (is_tensor(candidate, j) && image_of(candidate, j) == image_of(candidate, i) &&
            layout_same_elements(&other, &layout))
            return j;
    }
    return i;
}

/* Makes the operand as a view of the part of its storage that it needs. The part begins at a
 * multiple of eight elements, so that vectors keep their alignment. Returns false if that is
 * impossible. */
static bool put_tensor(struct writer *writer, const struct candidate *candidate, int i)
{
    struct layout layout = argument_layout(candidate, i);
    const size_t size = dtype_size(dtype_of(candidate, i));
    const int64_t start = layout.offset - layout.offset % 8;
    const int64_t inside = candidate->step->operands[i]->storage->elements - start;
    char storage[16], name[16];
    layout.offset -= start;
    const int64_t count = view_end(&layout);
    char *bytes = xcalloc((size_t)count, size);
    memcpy(bytes, image_of(candidate, i) + (size_t)start * size,
           (size_t)(inside < count ? inside : count) * size);
    const struct layout flat = layout_of_shape(1, &count);
    snprintf(storage, sizeof storage, "s%d", i);
    snprintf(name, sizeof name, "t%d", i);
    writer_upload(writer, storage, dtype_of(candidate, i), &flat, false, dtype_of(candidate, i),
                  bytes);
    free(bytes);
    return view_put(writer, name, storage, &layout);
}

/* ---------------------------------------------------------------- writing the operation */

enum { WORD_SIZE = 32 };

static void operand_word(const struct candidate *candidate, int i, char word[WORD_SIZE])
{
    if (!candidate->step->operands[i])
        snprintf(word, WORD_SIZE, "none");
    else if (is_scalar_input(candidate, i))
        snprintf(word, WORD_SIZE, "%" PRId64,
                 candidate->plan->constants.values[candidate->layouts[i].offset]);
    else
        snprintf(word, WORD_SIZE, "t%d", tensor_number(candidate, i));
}

/* The letters are defined in plan/steps.def. */
static void argument_word(const struct candidate *candidate, char letter, char word[WORD_SIZE])
{
    const struct step *step = candidate->step;
    const struct layout *out = &candidate->layouts[STEP_OUT];
    uint32_t digits_axis = step->kind == STEP_DIGITS_FULL_Q ? 1 : out->rank - 1;
    int64_t value = 0;
    switch (letter) {
    case 'o': operand_word(candidate, STEP_OUT, word); return;
    case 'N': snprintf(word, WORD_SIZE, "none"); return;
    case 'A': value = -1; break;
    case 'v': value = step->value[0]; break;
    case 'S': value = out->shape[digits_axis]; break;
    case 'T': value = is_tiled(candidate); break;
    case 'P': value = !step->in[3]; break;
    case 'Q': value = step->in[3] != NULL; break;
    case 'Z': break;
    default: operand_word(candidate, letter - '0', word); return;
    }
    snprintf(word, WORD_SIZE, "%" PRId64, value);
}

/* Writes the transcript. expected: the packed result, or NULL. Returns NULL if it cannot be
 * written. */
static char *candidate_transcript(const struct candidate *candidate, const void *expected)
{
    struct writer writer = {0};
    const struct step_traits *traits = &step_traits[candidate->step->kind];
    const struct layout of_out = argument_layout(candidate, STEP_OUT);
    const struct layout shape = layout_packed(&of_out);
    char name[WORD_SIZE], words[PARAMETERS_MAX * WORD_SIZE] = "";
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (is_tensor(candidate, i) && tensor_number(candidate, i) == i &&
            !put_tensor(&writer, candidate, i)) {
            free(writer.bytes);
            return NULL;
        }
    for (const char *letter = traits->arguments; *letter; letter++) {
        argument_word(candidate, *letter, name);
        strcat(strcat(words, name), " ");
    }
    operand_word(candidate, STEP_OUT, name);
    writer_call(&writer, name, traits->operation, "%s", words);
    writer_download(&writer, name, dtype_of(candidate, STEP_OUT), &shape, expected);
    return writer_finish(&writer);
}

static void describe(const struct candidate *candidate, char *description, size_t size)
{
    int used = snprintf(description, size, "%s(", step_traits[candidate->step->kind].operation);
    for (int i = 0; i < STEP_OPERANDS && (size_t)used < size; i++) {
        const struct layout layout = argument_layout(candidate, i);
        char shape[SHAPE_TEXT_SIZE], word[WORD_SIZE];
        if (!candidate->step->operands[i])
            continue;
        operand_word(candidate, i, word);
        used += snprintf(description + used, size - (size_t)used, "%s %s%s%s%s",
                         i == STEP_OUT ? "out" : step_input_name(candidate->step, i),
                         is_scalar_input(candidate, i) ? word : dtype_name(dtype_of(candidate, i)),
                         is_scalar_input(candidate, i) ? "" : " ",
                         is_scalar_input(candidate, i) ? "" : layout_shape_text(&layout, shape),
                         i == STEP_OUT ? ")" : ", ");
    }
}

/* ---------------------------------------------------------------- trying */

/* Returns whether the device computes the part wrongly. If so, writes it as a case. */
static bool try_cut(struct healcl_device *device, const struct candidate *whole,
                    const struct cut *cut, struct failing_case *found)
{
    const struct candidate part = part_of(whole, cut);
    char *transcript = candidate_transcript(&part, NULL);
    if (!transcript)
        return false;
    struct planned planned;
    struct results expected = {.count = 0}, actual = {.count = 0};
    const bool runs =
        planned_init(&planned, transcript, whole->plan->table, NULL, NULL) == HEALCL_OK &&
        results_run(&expected, NULL, planned.plan, NULL, 0, NULL) == HEALCL_OK;
    const bool wrong =
        runs && (results_run(&actual, device, planned.plan, NULL, 0, NULL) != HEALCL_OK ||
                 memcmp(actual.of[0].bytes, expected.of[0].bytes, expected.of[0].size) != 0);
    if (wrong) {
        free(found->transcript);
        found->transcript = candidate_transcript(&part, expected.of[0].bytes);
        found->bytes = strlen(found->transcript);
        describe(&part, found->text, sizeof found->text);
    }
    planned_release(&planned);
    results_release(&actual);
    results_release(&expected);
    return wrong;
}

/* Cuts an axis as far as the device's result remains wrong. */
static void shrink(struct healcl_device *device, const struct candidate *whole, struct cut *cut,
                   int letter, struct failing_case *found)
{
    const int64_t before = cut->size[letter];
    for (cut->size[letter] = 1; cut->size[letter] < before; cut->size[letter] *= 2)
        if (try_cut(device, whole, cut, found))
            return;
    cut->size[letter] = before;
}

/* Cuts the axes of the step's tensors, one after the other, around the first wrong element, while
 * the device's result is still wrong. Some kinds of steps cannot be written as an operation; then
 * there is no case. */
static void failing_case_find(struct healcl_device *device, const struct candidate *failing,
                              int64_t first_wrong, struct failing_case *found)
{
    struct cut cut;
    memset(found, 0, sizeof *found);
    if (!step_traits[failing->step->kind].operation || !failing->step->out ||
        layout_elements(&failing->step->out->layout) == 0)
        return;
    const struct candidate whole = whole_of(failing);
    struct candidate part = whole;
    cut_init(&cut, &whole, first_wrong);
    for (int64_t most = SMALL_BYTES; !is_small(&part); most /= 2) {
        if (most == 0) /* nothing remains to cut */
            return;
        for (int letter = 0; letter < AXIS_LETTERS; letter++)
            cut.size[letter] = cut.size[letter] < most ? cut.size[letter] : most;
        part = part_of(&whole, &cut);
    }
    const bool fails_again = try_cut(device, &whole, &cut, found);
    for (int letter = 0; fails_again && letter < AXIS_LETTERS; letter++)
        shrink(device, &whole, &cut, letter, found);
}

/* ---------------------------------------------------------------- one diagnosis */

/* One diagnosis. */
struct diagnosis_state {
    const struct plan *plan;
    struct executor *executor;
    struct launcher *launcher; /* the executor's */
    struct reference *reference;
    struct diagnosis *diagnosis;
    const struct segment *segment; /* of the step at hand */
    const struct step *step;       /* whose output or result is compared */
    /* The steps that the device runs for it: itself, or all of a manifest's kernel. */
    const struct step *first;
    size_t count;
};

static void compare(struct diagnosis *diagnosis, enum dtype dtype, const struct layout *layout,
                    const void *device, const void *reference)
{
    const struct layout *layouts[] = {layout};
    struct walk walk;
    int64_t position = 0;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), position++) {
        const int64_t actual = dtype_load(dtype, device, walk.position[0]);
        const int64_t expected = dtype_load(dtype, reference, walk.position[0]);
        if (actual == expected || diagnosis->different++ > 0)
            continue;
        diagnosis->position = position;
        diagnosis->actual = actual;
        diagnosis->expected = expected;
    }
}

/* ---------------------------------------------------------------- the device */

static enum healcl_status upload_storage(struct diagnosis_state *state, const struct tensor *tensor,
                                         struct healcl_error *error)
{
    struct buffer *buffer = launcher_memory(state->launcher, tensor->storage);
    if (tensor->storage == state->plan->constants.storage || buffer->memory)
        return HEALCL_OK;
    void *bytes;
    TRY(reference_memory(state->reference, tensor->storage, &bytes, error));
    return device_upload_memory(state->launcher->device, NULL, storage_bytes(tensor->storage),
                                bytes, buffer, error);
}

/* Puts all that is read and written on the device, as the reference has it. */
static enum healcl_status upload_state(struct diagnosis_state *state, struct healcl_error *error)
{
    struct executor *executor = state->executor;
    TRY(executor->class->rewind(executor, 0, error));
    for (size_t number = 0; number < state->count; number++) {
        const struct step *step = &state->first[number];
        FOR_EACH_INPUT (i, tensor, step)
            TRY(upload_storage(state, tensor, error));
        if (step->out && step->kind != STEP_UPLOAD)
            TRY(upload_storage(state, step->out, error));
    }
    return HEALCL_OK;
}

/* Runs the step, or those of the kernel, alone. */
static enum healcl_status run_on_device(struct diagnosis_state *state, struct results *results,
                                        struct healcl_error *error)
{
    const struct result_sink sink = {.context = results, .take = results_take};
    struct segment alone = *state->segment;
    alone.first_step = (size_t)(state->first - state->plan->steps);
    alone.step_count = state->count;
    return state->executor->class->run_segment(state->executor, &alone, &sink, error);
}

/* ---------------------------------------------------------------- downloads */

/* Where both agree, but the transcript expects something else. */
static enum healcl_status compare_expected(struct diagnosis_state *state, const void *result,
                                           struct healcl_error *error)
{
    const struct step *step = state->step;
    struct diagnosis *diagnosis = state->diagnosis;
    struct comparison comparison;
    if (!step->payload)
        return HEALCL_OK;
    TRY(compare_result(&step->in[0]->layout, step->in[0]->storage->dtype, result, step->payload,
                       &comparison, error));
    payload_forget(step->payload, state->plan->source);
    if (comparison_is_equal(&comparison))
        return HEALCL_OK;
    diagnosis->kind = DIAGNOSIS_EXPECTED;
    diagnosis->different = comparison.different;
    if (comparison.first_count > 0) {
        diagnosis->position = comparison.first[0].position;
        diagnosis->actual = comparison.first[0].actual;
        diagnosis->expected = comparison.first[0].expected;
    }
    return HEALCL_OK;
}

/* The device has failed where the reference can go on. */
static void note_failure(struct diagnosis *diagnosis, const struct healcl_error *failure)
{
    if (failure->status == HEALCL_NO_MEMORY) /* says nothing of the device */
        xmalloc_fail();
    diagnosis->kind = DIAGNOSIS_FAILS;
    diagnosis->failure = *failure;
}

static enum healcl_status check_download(struct diagnosis_state *state, struct healcl_error *error)
{
    struct diagnosis *diagnosis = state->diagnosis;
    const struct tensor *tensor = state->step->in[0];
    const enum dtype dtype = tensor->storage->dtype;
    const struct layout packed = layout_packed(&tensor->layout);
    struct healcl_error failure = {.status = HEALCL_OK};
    struct results results = {.count = 0};
    diagnosis->elements = (uint64_t)layout_elements(&packed);
    void *expected = xcalloc(diagnosis->elements, dtype_size(dtype));
    enum healcl_status status = diagnosis->elements > 0
                                    ? reference_read(state->reference, tensor, expected, error)
                                    : HEALCL_OK;
    THEN(status, upload_state(state, error));
    if (status == HEALCL_OK && run_on_device(state, &results, &failure) != HEALCL_OK) {
        note_failure(diagnosis, &failure);
    } else if (status == HEALCL_OK) {
        compare(diagnosis, dtype, &packed, results.of[0].bytes, expected);
        if (diagnosis->different > 0)
            diagnosis->kind = DIAGNOSIS_DIFFERS;
        else
            status = compare_expected(state, expected, error);
    }
    results_release(&results);
    free(expected);
    return status;
}

/* ---------------------------------------------------------------- steps */

static void compare_outputs(struct diagnosis_state *state, const void *actual, const void *expected)
{
    const struct tensor *out = state->step->out;
    struct diagnosis *diagnosis = state->diagnosis;
    const enum dtype dtype = out->storage->dtype;
    compare(diagnosis, dtype, &out->layout, actual, expected);
    for (int64_t i = 0; i < out->storage->elements; i++)
        diagnosis->outside += dtype_load(dtype, actual, i) != dtype_load(dtype, expected, i);
    diagnosis->outside -= diagnosis->different;
    if (diagnosis->different + diagnosis->outside > 0)
        diagnosis->kind = DIAGNOSIS_DIFFERS;
}

/* Runs the step, or a manifest's body, which follows its kernel's steps. */
static enum healcl_status run_on_reference(struct diagnosis_state *state,
                                           struct healcl_error *error)
{
    const struct plan *plan = state->plan;
    const struct step *step = state->step, *end = step + 1;
    if (step->side == STEP_OF_KERNEL) {
        const struct vendor_call *call = step->vendor;
        const size_t segment_end = state->segment->first_step + state->segment->step_count;
        for (step = state->first + state->count, end = step;
             end < plan->steps + segment_end && end->vendor == call; end++)
            ;
    }
    for (; step < end; step++) {
        enum healcl_status status = reference_step(state->reference, step, error);
        if (status != HEALCL_OK) {
            error_prefix_step(error, step, state->reference->refused_input);
            return status;
        }
    }
    return HEALCL_OK;
}

/* On the reference the step comes last, as the state for what follows. before, actual: memory for
 * what the step starts from, and for what comes of it on the device. */
static enum healcl_status check_output(struct diagnosis_state *state, void *before, void *actual,
                                       struct healcl_error *error)
{
    struct diagnosis *diagnosis = state->diagnosis;
    const struct step *step = state->step;
    const struct storage *storage = step->out->storage;
    struct healcl_device *device = state->launcher->device;
    struct healcl_error failure = {.status = HEALCL_OK};
    const uint64_t bytes = storage_bytes(storage);
    void *memory;
    TRY(reference_memory(state->reference, storage, &memory, error));
    memcpy(before, memory, bytes);
    TRY(upload_state(state, error));
    if (run_on_device(state, NULL, &failure) == HEALCL_OK)
        (void)!device_read(device, launcher_memory(state->launcher, storage), 0, bytes, actual,
                           &failure);
    enum healcl_status status = run_on_reference(state, error);
    if (status != HEALCL_OK) { /* what the device says of it does not matter */
        healcl_error_clear(&failure);
        return status;
    }
    TRY(reference_memory(state->reference, storage, &memory, error));
    diagnosis->elements = (uint64_t)layout_elements(&step->out->layout);
    if (failure.status != HEALCL_OK)
        note_failure(diagnosis, &failure);
    else
        compare_outputs(state, actual, memory);
    const struct candidate failing = {
        .plan = state->plan, .step = step, .reference = state->reference, .out_before = before};
    if (diagnosis->kind != DIAGNOSIS_AGREES && step->kind != STEP_UPLOAD &&
        step->side != STEP_OF_KERNEL)
        failing_case_find(device, &failing, diagnosis->position, &diagnosis->smallest);
    return HEALCL_OK;
}

static enum healcl_status check_step(struct diagnosis_state *state, struct healcl_error *error)
{
    const struct step *step = state->step;
    if (step->kind == STEP_RELEASE)
        return reference_step(state->reference, step, error);
    if (!step->out)
        return check_download(state, error);
    const size_t bytes = (size_t)storage_bytes(step->out->storage);
    char *memory = xcalloc(2, bytes);
    enum healcl_status status = check_output(state, memory, memory + bytes, error);
    if (step->payload)
        payload_forget(step->payload, state->plan->source);
    free(memory);
    return status;
}

/* ---------------------------------------------------------------- all steps */

/* Takes the step of that number, and where it begins those of a manifest's kernel, all of them.
 * Returns how many steps of the plan these are. */
static size_t take_steps(struct diagnosis_state *state, size_t number)
{
    const struct step *first = &state->plan->steps[number], *next = first;
    const struct step *const end =
        state->plan->steps + state->segment->first_step + state->segment->step_count;
    state->first = state->step = first;
    state->count = 1;
    if (first->side != STEP_OF_KERNEL)
        return 1;
    for (; next < end && next->side == STEP_OF_KERNEL && next->vendor == first->vendor; next++)
        if (next->out)
            state->step = next; /* the last one writes the call's output */
    state->count = (size_t)(next - first);
    return state->count;
}

static enum healcl_status check_steps(struct diagnosis_state *state, diagnose_progress *progress,
                                      struct healcl_error *error)
{
    const struct plan *plan = state->plan;
    const struct healcl_device *device = state->launcher->device;
    for (size_t i = 0; i < plan->segment_count; i++) {
        state->segment = &plan->segments[i];
        const size_t first = state->segment->first_step;
        for (size_t j = 0, taken; j < state->segment->step_count; j += taken) {
            taken = take_steps(state, first + j);
            if (step_is_left_out(state->step, device)) /* of a manifest's operation */
                continue;
            if (progress)
                progress(first + j, plan->step_count);
            TRY(check_step(state, error));
            for (size_t k = 0; k < state->count; k++) /* copies that only a kernel needs */
                if (state->first[k].kind == STEP_RELEASE && state->first[k].side == STEP_OF_KERNEL)
                    reference_forget(state->reference, state->first[k].in[0]->storage);
            state->diagnosis->steps++;
            if (state->diagnosis->kind == DIAGNOSIS_AGREES)
                continue;
            const struct step *step = state->first; /* or of several the one that the kernel runs */
            while (state->count > 1 && step->kind != STEP_VENDOR)
                step++;
            state->diagnosis->step = step;
            state->diagnosis->segment = state->segment;
            state->diagnosis->kernel = vendor_kernel_for(plan, state->diagnosis->step, device);
            return HEALCL_OK;
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the whole run */

static void note_first(void *context, const char *line)
{
    struct healcl_error *failure = context;
    if (failure->status == HEALCL_OK)
        (void)ERROR(failure, HEALCL_DIFFERENT, "%s", line);
}

/* Where launches overlap, or use what earlier ones have left, a step may be right only alone. */
static void run_whole(struct healcl_device *device, const struct healcl_transcript *transcript,
                      struct diagnosis *diagnosis)
{
    struct healcl_error *failure = &diagnosis->failure;
    const struct healcl_run_options options = {
        .no_warm_up = true, .observer = {.context = failure, .difference = note_first}};
    struct healcl_report *report = NULL;
    enum healcl_status status = healcl_run(transcript, device, &options, &report, failure);
    if (status == HEALCL_NO_MEMORY)
        xmalloc_fail();
    diagnosis->whole = status == HEALCL_OK ? report->verdict : HEALCL_DIFFERS;
    if (diagnosis->whole == HEALCL_DIFFERS)
        diagnosis->kind = DIAGNOSIS_WHOLE;
    healcl_report_free(report);
}

/* ---------------------------------------------------------------- all of it */

static enum healcl_status diagnose_steps(struct healcl_device *device, const struct plan *plan,
                                         diagnose_progress *progress, struct diagnosis *diagnosis,
                                         struct healcl_error *error)
{
    struct diagnosis_state state = {.plan = plan, .diagnosis = diagnosis};
    TRY(reference_create(plan, &state.reference, error));
    enum healcl_status status = device_executor_create(device, plan, &state.executor, error);
    if (status == HEALCL_OK) {
        state.launcher = device_executor_launcher(state.executor);
        status = check_steps(&state, progress, error);
        state.executor->class->destroy(state.executor);
    }
    reference_free(state.reference);
    return status;
}

enum healcl_status diagnose(struct healcl_device *device,
                            const struct healcl_transcript *transcript, diagnose_progress *progress,
                            struct diagnosis *diagnosis, struct healcl_error *error)
{
    const struct plan *plan = transcript->plan;
    memset(diagnosis, 0, sizeof *diagnosis);
    enum healcl_status status = diagnose_steps(device, plan, progress, diagnosis, error);
    if (status == HEALCL_OK && diagnosis->kind == DIAGNOSIS_AGREES && plan->expected > 0) {
        if (progress)
            progress(plan->step_count, plan->step_count);
        run_whole(device, transcript, diagnosis);
    }
    status = source_explain(plan->source, status, error);
    if (status == HEALCL_OK && diagnosis->kind != DIAGNOSIS_AGREES)
        status = source_check(plan->source, error);
    if (status != HEALCL_OK)
        diagnosis_release(diagnosis);
    return status;
}

void diagnosis_release(struct diagnosis *diagnosis)
{
    healcl_error_clear(&diagnosis->failure);
    free(diagnosis->smallest.transcript);
    memset(diagnosis, 0, sizeof *diagnosis);
}
