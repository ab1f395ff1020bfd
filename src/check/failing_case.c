#include "check/failing_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/view.h"
#include "ops/ops.h"
#include "plan/axes.h"
#include "run/run.h"

/* ---------------------------------------------------------------- operands */

enum {
    OUT = STEP_OUT, /* the operand behind the inputs */
    OPERANDS = STEP_OPERANDS,
    SMALL_BYTES = 64 << 20, /* a case of more is none to send to anybody */
};

struct operand {
    bool present;
    bool scalar; /* an INT argument, value; nothing below is used */
    int64_t value;
    enum dtype dtype;
    struct layout layout; /* in image */
    const void *image;    /* its storage, not owned */
    int64_t image_elements;
    char axes[LAYOUT_RANK + 1]; /* a letter for each axis: those of the same letter go together */
};

/* A step and what is left of its tensors. */
struct candidate {
    const struct operation_table *table; /* with the kernels of manifests; or NULL */
    const struct step *step;
    struct operand operands[OPERANDS];
    bool strided;
};

static bool is_transform(const struct step *step)
{
    return step->kind == STEP_NTT || step->kind == STEP_INTT;
}

/* A sum's q, which is given in out's shape, becomes a vector. */
static void name_axes(struct candidate *candidate)
{
    const struct step *step = candidate->step;
    struct step_axes axes;
    step_axes(step, &axes);
    for (int i = 0; i < OPERANDS; i++)
        strcpy(candidate->operands[i].axes, axes.names[i]);
    if (step->kind != STEP_AXIS_MODSUM)
        return;
    struct operand *q = &candidate->operands[1];
    const uint32_t last = q->layout.rank - 1;
    q->layout.shape[0] = q->layout.shape[last];
    q->layout.stride[0] = q->layout.stride[last];
    q->layout.rank = 1;
    q->axes[0] = q->axes[last];
    q->axes[1] = 0;
}

static void init_operand(struct operand *operand, const struct plan *plan,
                         const struct tensor *tensor, const void *image)
{
    operand->present = tensor != NULL;
    if (!tensor)
        return;
    operand->scalar = tensor->storage == plan->constants.storage;
    if (operand->scalar)
        operand->value = plan->constants.values[tensor->layout.offset];
    operand->dtype = tensor->storage->dtype;
    operand->layout = tensor->layout;
    operand->image = image;
    operand->image_elements = tensor->storage->elements;
}

static void candidate_init(struct candidate *candidate, const struct failing_step *failing)
{
    const struct step *step = failing->step;
    memset(candidate, 0, sizeof *candidate);
    candidate->table = failing->plan->table;
    candidate->step = step;
    for (int i = 0; i < STEP_INPUTS; i++)
        init_operand(&candidate->operands[i], failing->plan, step->in[i],
                     failing->inputs[i] ? failing->inputs[i] : failing->out_before);
    init_operand(&candidate->operands[OUT], failing->plan, step->out, failing->out_before);
    name_axes(candidate);
}

/* ---------------------------------------------------------------- cutting */

enum { LETTERS = AXIS_LETTERS };

/* How far each letter is cut: to size elements around its wrong one. */
struct cut {
    int64_t full[LETTERS]; /* 0: no such letter, or one that is not cut */
    bool single[LETTERS];  /* the operation has no axis for it: it is always cut to 1 */
    int64_t wrong[LETTERS];
    int64_t size[LETTERS];
};

static void cut_init(struct cut *cut, const struct candidate *whole, int64_t first_wrong)
{
    memset(cut, 0, sizeof *cut);
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *operand = &whole->operands[i];
        for (uint32_t axis = 0; operand->present && axis < operand->layout.rank; axis++)
            if (operand->axes[axis] != '*')
                cut->full[(int)operand->axes[axis]] = operand->layout.shape[axis];
    }
    const struct operand *out = &whole->operands[OUT];
    for (uint32_t axis = out->layout.rank; axis-- > 0;) {
        int64_t size = out->layout.shape[axis];
        cut->wrong[(int)out->axes[axis]] = first_wrong % size;
        first_wrong /= size;
    }
    memcpy(cut->size, cut->full, sizeof cut->size);
    if (whole->step->kind != STEP_MODMUL_AXIS_SUM)
        return;
    const struct operand *b = &whole->operands[1];
    cut->single['b'] = true;
    for (uint32_t axis = 0; axis < b->layout.rank; axis++)
        if (b->axes[axis] == 'r' && b->layout.stride[axis] != 0)
            cut->single['r'] = true;
}

/* The first element of a letter's part: parts lie at multiples of their sizes where they can, for
 * vectors do. */
static int64_t cut_start(const struct cut *cut, int letter)
{
    int64_t size = cut->size[letter], start = cut->wrong[letter] / size * size;
    return start + size <= cut->full[letter] ? start : cut->full[letter] - size;
}

static struct candidate cut_candidate(const struct candidate *whole, const struct cut *cut,
                                      bool strided)
{
    struct candidate part = *whole;
    part.strided = strided;
    for (int i = 0; i < OPERANDS; i++) {
        struct operand *operand = &part.operands[i];
        for (uint32_t axis = 0; operand->present && axis < operand->layout.rank; axis++) {
            int letter = (unsigned char)operand->axes[axis];
            if (cut->full[letter] > 0)
                operand->layout = layout_narrow(&operand->layout, axis, cut_start(cut, letter),
                                                cut->size[letter]);
        }
    }
    return part;
}

static uint64_t candidate_bytes(const struct candidate *candidate)
{
    uint64_t bytes = 0;
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *operand = &candidate->operands[i];
        if (operand->present && !operand->scalar)
            bytes += (uint64_t)layout_elements(&operand->layout) * dtype_size(operand->dtype);
    }
    return bytes;
}

/* ---------------------------------------------------------------- writing tensors */

/* Whether a transform's input is the same for all moduli. */
static bool is_tiled(const struct candidate *candidate)
{
    const struct layout *a = &candidate->operands[0].layout;
    return is_transform(candidate->step) &&
           ((a->stride[2] == 0 && a->shape[2] > 1) || candidate->operands[0].dtype == DTYPE_INT8);
}

/* How many axes an operand has in modmul_axis_sum; passes make such sums with more. */
static uint32_t rank_in_sum(const struct candidate *candidate, int i)
{
    enum { RANK_A = 4, RANK_B = 3, RANK_OUT = 3 };
    const bool is_sum = candidate->step->kind == STEP_MODMUL_AXIS_SUM;
    return !is_sum    ? LAYOUT_RANK
           : i == 0   ? RANK_A
           : i == 1   ? RANK_B
           : i == OUT ? RANK_OUT
                      : LAYOUT_RANK;
}

/* The operand as an argument has it: a tiled input has size 1 on the axis of moduli, and a sum no
 * axes of requests, nor of reps that share its factors. */
static struct layout argument_layout(const struct candidate *candidate, int i)
{
    struct layout layout = candidate->operands[i].layout;
    if (i == 0 && is_tiled(candidate))
        layout.shape[2] = 1;
    while (layout.rank > rank_in_sum(candidate, i) &&
           (layout.shape[0] == 1 || (i == 1 && layout.stride[0] == 0)))
        layout = layout_drop_axis(&layout, 0);
    return layout;
}

/*
 * How a strided view is made from a storage of one axis: from offset on, that is reshaped to
 * extents, sliced with steps, and its axes moved. Axes of one element and repeated ones come last.
 */
struct recipe {
    uint32_t count;              /* axes with more than one element of their own */
    uint32_t order[LAYOUT_RANK]; /* those, by falling strides */
    int64_t extent[LAYOUT_RANK], step[LAYOUT_RANK];
    int64_t inner; /* elements behind each one: an axis of which the first is taken */
    int64_t total; /* elements from offset on */
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns whether the view can be made so. */
static bool find_recipe(const struct layout *layout, struct recipe *recipe)
{
    memset(recipe, 0, sizeof *recipe);
    for (uint32_t axis = 0; axis < layout->rank; axis++) {
        if (layout->shape[axis] <= 1 || layout->stride[axis] == 0)
            continue;
        uint32_t at = recipe->count++;
        for (; at > 0 && layout->stride[recipe->order[at - 1]] < layout->stride[axis]; at--)
            recipe->order[at] = recipe->order[at - 1];
        recipe->order[at] = axis;
    }
    int64_t grain = 0; /* elements of the storage in one of the axis */
    bool fits = true;
    for (uint32_t i = 0; i < recipe->count; i++) {
        int64_t stride = layout->stride[recipe->order[i]], outer = grain;
        grain = common_divisor(stride, grain);
        recipe->step[i] = stride / grain;
        int64_t span = (layout->shape[recipe->order[i]] - 1) * recipe->step[i] + 1;
        recipe->extent[i] = i == 0 ? span : outer / grain;
        fits = fits && span <= recipe->extent[i];
    }
    recipe->inner = recipe->count > 0 ? grain : 1;
    recipe->total = recipe->inner;
    for (uint32_t i = 0; i < recipe->count; i++)
        recipe->total *= recipe->extent[i];
    return fits;
}

/* t<i> = the recipe's part of s<storage>, from offset on, with the layout's axes. */
static void put_view(struct writer *writer, const struct recipe *recipe,
                     const struct layout *layout, int i, int storage, int64_t offset)
{
    char name[16], text[SHAPE_TEXT_SIZE], index[VIEW_INDEX_SIZE] = "";
    struct layout extents = {.rank = recipe->count + 1};
    uint32_t order[LAYOUT_RANK];
    int used = 0;
    for (uint32_t j = 0; j < recipe->count; j++) {
        int64_t last = (layout->shape[recipe->order[j]] - 1) * recipe->step[j];
        extents.shape[j] = recipe->extent[j];
        used += sprintf(index + used, ":%" PRId64 ":%" PRId64 ",", last + 1, recipe->step[j]);
    }
    extents.shape[recipe->count] = recipe->inner;
    snprintf(name, sizeof name, "t%d", i);
    writer_call(writer, name, "get_slice", "s%d [%" PRId64 ":%" PRId64 "]", storage, offset,
                offset + recipe->total);
    writer_call(writer, name, "reshape", "%s %s", name, layout_shape_text(&extents, text));
    writer_call(writer, name, "get_slice", "%s [%s0]", name, index);
    memcpy(order, recipe->order, sizeof order);
    view_order_axes(writer, name, recipe->count, order);
    for (uint32_t axis = 0; axis < layout->rank; axis++) {
        int64_t size = layout->shape[axis];
        if (size > 1 && layout->stride[axis] != 0)
            continue;
        writer_call(writer, name, "unsqueeze", "%s %" PRIu32, name, axis);
        if (size > 1)
            writer_call(writer, name, "expand", "%s %" PRIu32 " %" PRId64, name, axis, size);
    }
}

/* The operands of one storage as views of the part of it that they need, from a multiple of eight
 * elements on: vectors lie as they did. */
static bool put_shared(struct writer *writer, const struct candidate *candidate, int first)
{
    const struct operand *operands = candidate->operands;
    struct recipe recipes[OPERANDS];
    int64_t start = INT64_MAX, end = 0;
    for (int i = first; i < OPERANDS; i++) {
        if (!operands[i].present || operands[i].image != operands[first].image)
            continue;
        struct layout layout = argument_layout(candidate, i);
        if (!find_recipe(&layout, &recipes[i]))
            return false;
        int64_t last = layout.offset + recipes[i].total;
        start = layout.offset < start ? layout.offset : start;
        end = last > end ? last : end;
    }
    start -= start % 8;
    size_t size = dtype_size(operands[first].dtype);
    int64_t inside = operands[first].image_elements - start, count = end - start;
    char *bytes = calloc((size_t)count, size);
    if (!bytes) {
        writer->failed = true;
        return false;
    }
    memcpy(bytes, (const char *)operands[first].image + (size_t)start * size,
           (size_t)(inside < count ? inside : count) * size);
    const struct layout flat = layout_of_shape(1, &count);
    char name[16];
    snprintf(name, sizeof name, "s%d", first);
    writer_upload(writer, name, operands[first].dtype, &flat, false, bytes);
    free(bytes);
    for (int i = first; i < OPERANDS; i++) {
        if (!operands[i].present || operands[i].image != operands[first].image)
            continue;
        struct layout layout = argument_layout(candidate, i);
        put_view(writer, &recipes[i], &layout, i, first, layout.offset - start);
    }
    return true;
}

static bool is_first_of_storage(const struct candidate *candidate, int i)
{
    for (int j = 0; j < i; j++)
        if (candidate->operands[j].present && !candidate->operands[j].scalar &&
            candidate->operands[j].image == candidate->operands[i].image)
            return false;
    return true;
}

/* Returns false where the tensors cannot be made. */
static bool put_tensors(struct writer *writer, const struct candidate *candidate)
{
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *operand = &candidate->operands[i];
        if (!operand->present || operand->scalar)
            continue;
        if (!candidate->strided) {
            char name[16];
            struct layout layout = argument_layout(candidate, i);
            snprintf(name, sizeof name, "t%d", i);
            writer_upload(writer, name, operand->dtype, &layout, false, operand->image);
        } else if (is_first_of_storage(candidate, i) && !put_shared(writer, candidate, i)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- writing the operation */

enum { WORD_SIZE = 32 };

static void operand_word(const struct candidate *candidate, int i, char word[WORD_SIZE])
{
    const struct operand *operand = &candidate->operands[i];
    if (!operand->present)
        snprintf(word, WORD_SIZE, "none");
    else if (operand->scalar)
        snprintf(word, WORD_SIZE, "%" PRId64, operand->value);
    else
        snprintf(word, WORD_SIZE, "t%d", i);
}

/* The letters are those of plan/steps.def. */
static void argument_word(const struct candidate *candidate, char letter, char word[WORD_SIZE])
{
    const struct step *step = candidate->step;
    const struct layout *out = &candidate->operands[OUT].layout;
    uint32_t digits_axis = step->kind == STEP_DIGITS_FULL_Q ? 1 : out->rank - 1;
    bool permutes = candidate->operands[3].present;
    int64_t value = 0;
    switch (letter) {
    case 'o': operand_word(candidate, OUT, word); return;
    case 'N': snprintf(word, WORD_SIZE, "none"); return;
    case 'A': value = -1; break;
    case 'v': value = step->value[0]; break;
    case 'S': value = out->shape[digits_axis]; break;
    case 'T': value = is_tiled(candidate); break;
    case 'P': value = !permutes; break;
    case 'Q': value = permutes; break;
    case 'Z': break;
    default: operand_word(candidate, letter - '0', word); return;
    }
    snprintf(word, WORD_SIZE, "%" PRId64, value);
}

/* expected: the packed result, or NULL. Returns NULL where there is no such transcript. */
static char *candidate_transcript(const struct candidate *candidate, const void *expected,
                                  bool *no_memory)
{
    struct writer writer = {0};
    const struct step_traits *traits = &step_traits[candidate->step->kind];
    const struct operand *out = &candidate->operands[OUT];
    const struct layout of_out = argument_layout(candidate, OUT);
    struct layout shape = layout_packed(&of_out);
    char name[WORD_SIZE], words[PARAMETERS_MAX * WORD_SIZE] = "";
    if (!traits->operation)
        return NULL;
    bool made = put_tensors(&writer, candidate);
    for (const char *letter = traits->arguments; *letter; letter++) {
        argument_word(candidate, *letter, name);
        strcat(strcat(words, name), " ");
    }
    operand_word(candidate, OUT, name);
    writer_call(&writer, name, traits->operation, "%s", words);
    writer_download(&writer, name, out->dtype, &shape, expected);
    char *text = writer_finish(&writer);
    *no_memory = *no_memory || !text;
    if (made)
        return text;
    free(text);
    return NULL;
}

static void describe(const struct candidate *candidate, char *description, size_t size)
{
    int used = snprintf(description, size, "%s(", step_traits[candidate->step->kind].operation);
    for (int i = 0; i < OPERANDS && (size_t)used < size; i++) {
        const struct operand *operand = &candidate->operands[i];
        char shape[SHAPE_TEXT_SIZE];
        struct layout layout = argument_layout(candidate, i);
        if (!operand->present)
            continue;
        const char *name = i == OUT ? "out" : step_input_name(candidate->step, i);
        if (operand->scalar)
            used += snprintf(description + used, size - (size_t)used, "%s %" PRId64, name,
                             operand->value);
        else
            used += snprintf(description + used, size - (size_t)used, "%s %s %s", name,
                             dtype_name(operand->dtype), layout_shape_text(&layout, shape));
        if ((size_t)used < size)
            used += snprintf(description + used, size - (size_t)used, i == OUT ? ")" : ", ");
    }
}

/* ---------------------------------------------------------------- trying */

/* The only result of a transcript. */
struct result {
    void *bytes;
    size_t count;
};

static enum healcl_status take(void *context, const struct step *step, const void *data,
                               struct healcl_error *error)
{
    struct result *result = context;
    result->count = (size_t)packed_bytes(step->in[0]);
    free(result->bytes);
    result->bytes = malloc(result->count + 1);
    if (!result->bytes)
        NO_MEMORY(error);
    memcpy(result->bytes, data, result->count);
    return HEALCL_OK;
}

/* device: NULL for the reference. */
static enum healcl_status run_plan(struct healcl_device *device, const struct plan *plan,
                                   struct result *result, struct healcl_error *error)
{
    struct executor *executor = NULL;
    const struct result_sink sink = {.context = result, .take = take};
    if (device)
        TRY(device_executor_create(device, plan, false, &executor, error));
    else
        TRY(reference_executor_create(plan, &executor, error));
    enum healcl_status status = executor_run(executor, plan, &sink, error);
    executor->class->destroy(executor);
    return status;
}

/* Whether the device gets a transcript wrong that the reference can run; expected is then its
 * result. */
static bool is_wrong(struct healcl_device *device, const struct operation_table *table,
                     const char *transcript, struct result *expected)
{
    const struct source source = {.text = transcript, .length = strlen(transcript)};
    struct plan *plan = NULL;
    struct result actual = {NULL, 0};
    bool wrong = false;
    if (plan_create(&source, table, NULL, &plan, NULL) == HEALCL_OK &&
        run_plan(NULL, plan, expected, NULL) == HEALCL_OK && expected->bytes) {
        enum healcl_status status = run_plan(device, plan, &actual, NULL);
        wrong = status != HEALCL_OK || !actual.bytes || actual.count != expected->count ||
                memcmp(actual.bytes, expected->bytes, actual.count) != 0;
    }
    plan_free(plan);
    free(actual.bytes);
    return wrong;
}

/* Replaces found where the device gets this candidate wrong. */
static bool try_candidate(struct healcl_device *device, const struct candidate *candidate,
                          struct failing_case *found, bool *no_memory)
{
    struct result expected = {NULL, 0};
    if (candidate_bytes(candidate) > SMALL_BYTES)
        return false;
    char *transcript = candidate_transcript(candidate, NULL, no_memory);
    bool wrong = transcript && is_wrong(device, candidate->table, transcript, &expected);
    free(transcript);
    transcript = wrong ? candidate_transcript(candidate, expected.bytes, no_memory) : NULL;
    free(expected.bytes);
    if (!transcript)
        return false;
    free(found->transcript);
    found->transcript = transcript;
    found->bytes = strlen(transcript);
    found->strided = candidate->strided;
    found->fails_again = true;
    describe(candidate, found->text, sizeof found->text);
    return true;
}

/* Cuts all letters to the same size, small ones first. */
static bool find_any(struct healcl_device *device, const struct candidate *whole, struct cut *cut,
                     struct failing_case *found, bool *no_memory)
{
    bool is_whole = false;
    for (int64_t size = 1; !is_whole; size *= 2) {
        is_whole = true;
        for (int letter = 0; letter < LETTERS; letter++) {
            const int64_t full =
                cut->single[letter] && cut->full[letter] > 0 ? 1 : cut->full[letter];
            cut->size[letter] = size < full ? size : full;
            is_whole = is_whole && size >= full;
        }
        for (int strided = 0; strided < 2; strided++) {
            struct candidate candidate = cut_candidate(whole, cut, strided);
            if (try_candidate(device, &candidate, found, no_memory))
                return true;
        }
    }
    return false;
}

/* Cuts each letter alone as far as it goes. */
static void shrink(struct healcl_device *device, const struct candidate *whole, struct cut *cut,
                   struct failing_case *found, bool *no_memory)
{
    for (int letter = 0; letter < LETTERS; letter++) {
        int64_t before = cut->size[letter];
        for (int64_t size = 1; size < before; size *= 2) {
            cut->size[letter] = size;
            struct candidate candidate = cut_candidate(whole, cut, found->strided);
            if (try_candidate(device, &candidate, found, no_memory))
                break;
            cut->size[letter] = before;
        }
    }
}

enum healcl_status failing_case_find(struct healcl_device *device,
                                     const struct failing_step *failing, struct failing_case *found,
                                     struct healcl_error *error)
{
    struct candidate whole;
    struct cut cut;
    bool no_memory = false;
    memset(found, 0, sizeof *found);
    if (!failing->step->out || layout_elements(&failing->step->out->layout) == 0)
        return HEALCL_OK;
    candidate_init(&whole, failing);
    cut_init(&cut, &whole, failing->first_wrong);
    if (find_any(device, &whole, &cut, found, &no_memory))
        shrink(device, &whole, &cut, found, &no_memory);
    if (!no_memory)
        return HEALCL_OK;
    free(found->transcript);
    found->transcript = NULL;
    NO_MEMORY(error);
}

enum healcl_status failing_case_whole(const struct failing_step *failing,
                                      struct failing_case *found, struct healcl_error *error)
{
    struct candidate whole;
    struct result expected = {NULL, 0};
    bool no_memory = false;
    memset(found, 0, sizeof *found);
    candidate_init(&whole, failing);
    char *asked = candidate_transcript(&whole, NULL, &no_memory);
    const struct source source = {.text = asked, .length = asked ? strlen(asked) : 0};
    struct plan *plan = NULL;
    if (asked && plan_create(&source, whole.table, NULL, &plan, NULL) == HEALCL_OK &&
        run_plan(NULL, plan, &expected, NULL) == HEALCL_OK && expected.bytes)
        found->transcript = candidate_transcript(&whole, expected.bytes, &no_memory);
    plan_free(plan);
    free(asked);
    free(expected.bytes);
    if (no_memory)
        NO_MEMORY(error);
    if (!found->transcript)
        return HEALCL_OK;
    found->bytes = strlen(found->transcript);
    describe(&whole, found->text, sizeof found->text);
    return HEALCL_OK;
}
