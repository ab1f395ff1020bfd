#include "check/failing_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/view.h"
#include "check/xmalloc.h"
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
    /* The operation has no axis of requests, nor reps with factors of their own. */
    const struct operand *b = &whole->operands[1];
    cut->size['b'] = cut->full['b'] > 0;
    for (uint32_t axis = 0; axis < b->layout.rank; axis++)
        if (b->axes[axis] == 'r' && b->layout.stride[axis] != 0)
            cut->size['r'] = 1;
}

/* The first element of a letter's part: parts lie at multiples of their sizes where they can, for
 * vectors do. */
static int64_t cut_start(const struct cut *cut, int letter)
{
    int64_t size = cut->size[letter], start = cut->wrong[letter] / size * size;
    return start + size <= cut->full[letter] ? start : cut->full[letter] - size;
}

static struct candidate cut_candidate(const struct candidate *whole, const struct cut *cut)
{
    struct candidate part = *whole;
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

/* Of what is uploaded: all that lies between the elements, too. */
static uint64_t candidate_bytes(const struct candidate *candidate)
{
    uint64_t bytes = 0;
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *operand = &candidate->operands[i];
        int64_t span = 1;
        for (uint32_t axis = 0; axis < operand->layout.rank; axis++)
            span += (operand->layout.shape[axis] - 1) * operand->layout.stride[axis];
        if (operand->present && !operand->scalar)
            bytes += (uint64_t)span * dtype_size(operand->dtype);
    }
    return bytes;
}

/* Halves the longest part of all; false where nothing is left to cut. */
static bool cut_longest(struct cut *cut)
{
    int longest = 0;
    for (int letter = 0; letter < LETTERS; letter++)
        if (cut->size[letter] > cut->size[longest])
            longest = letter;
    cut->size[longest] /= 2;
    return cut->size[longest] > 0;
}

/* ---------------------------------------------------------------- writing tensors */

/* Whether a transform's input is the same for all moduli. */
static bool is_tiled(const struct candidate *candidate)
{
    const struct layout *a = &candidate->operands[0].layout;
    return is_transform(candidate->step) &&
           ((a->stride[2] == 0 && a->shape[2] > 1) || candidate->operands[0].dtype == DTYPE_INT8);
}

/* The operand as an argument has it: a tiled input has size 1 on the axis of moduli, and a sum no
 * axes of requests, nor of reps that share its factors. */
static struct layout argument_layout(const struct candidate *candidate, int i)
{
    const bool is_sum = candidate->step->kind == STEP_MODMUL_AXIS_SUM;
    const uint32_t most = i == 0 ? 4 : 3; /* axes of a, and of b and out */
    struct layout layout = candidate->operands[i].layout;
    if (i == 0 && is_tiled(candidate))
        layout.shape[2] = 1;
    while (is_sum && layout.rank > most &&
           (layout.shape[0] == 1 || (i == 1 && layout.stride[0] == 0)))
        layout = layout_drop_axis(&layout, 0);
    return layout;
}

/*
 * How a view is made from a storage of one axis: from offset on, that is reshaped to extents,
 * sliced with steps, and its axes moved. Axes without elements of their own come last, and are
 * repeated.
 */
struct recipe {
    uint32_t order[LAYOUT_RANK]; /* axes by falling strides */
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

static int64_t own_stride(const struct layout *layout, uint32_t axis)
{
    return layout->shape[axis] > 1 ? layout->stride[axis] : 0;
}

/* Returns whether the view can be made so. */
static bool find_recipe(const struct layout *layout, struct recipe *recipe)
{
    int64_t grain = 0; /* elements of the storage in one of the axis */
    bool fits = true;
    recipe->total = 1;
    for (uint32_t axis = 0, at; axis < layout->rank; axis++) {
        for (at = axis;
             at > 0 && own_stride(layout, recipe->order[at - 1]) < own_stride(layout, axis); at--)
            recipe->order[at] = recipe->order[at - 1];
        recipe->order[at] = axis;
    }
    for (uint32_t i = 0; i < layout->rank; i++) {
        const int64_t stride = own_stride(layout, recipe->order[i]), outer = grain;
        recipe->step[i] = recipe->extent[i] = 1;
        if (stride == 0)
            continue;
        grain = common_divisor(stride, grain);
        recipe->step[i] = stride / grain;
        const int64_t span = (layout->shape[recipe->order[i]] - 1) * recipe->step[i] + 1;
        recipe->extent[i] = outer == 0 ? span : outer / grain;
        recipe->total *= recipe->extent[i];
        fits = fits && span <= recipe->extent[i];
    }
    recipe->inner = grain > 0 ? grain : 1;
    recipe->total *= recipe->inner;
    return fits;
}

/* t<i> = the recipe's part of s<storage>, from offset on, with the layout's axes. */
static void put_view(struct writer *writer, const struct recipe *recipe,
                     const struct layout *layout, int i, int storage, int64_t offset)
{
    char name[16], text[SHAPE_TEXT_SIZE], index[VIEW_INDEX_SIZE] = "";
    struct layout extents = {.rank = layout->rank + 1};
    uint32_t order[LAYOUT_RANK];
    bool is_whole = recipe->inner == 1;
    int used = 0;
    for (uint32_t j = 0; j < layout->rank; j++) {
        const uint32_t axis = recipe->order[j];
        const int64_t size = own_stride(layout, axis) > 0 ? layout->shape[axis] : 1;
        extents.shape[j] = recipe->extent[j];
        is_whole = is_whole && size == recipe->extent[j];
        used += sprintf(index + used, ":%" PRId64 ":%" PRId64 ",", (size - 1) * recipe->step[j] + 1,
                        recipe->step[j]);
    }
    extents.shape[layout->rank] = recipe->inner;
    extents.rank -= is_whole;
    snprintf(name, sizeof name, "t%d", i);
    writer_call(writer, name, "get_slice", "s%d [%" PRId64 ":%" PRId64 "]", storage, offset,
                offset + recipe->total);
    writer_call(writer, name, "reshape", "%s %s", name, layout_shape_text(&extents, text));
    if (!is_whole)
        writer_call(writer, name, "get_slice", "%s [%s0]", name, index);
    memcpy(order, recipe->order, sizeof order);
    view_order_axes(writer, name, layout->rank, order);
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->shape[axis] > 1 && layout->stride[axis] == 0)
            writer_call(writer, name, "expand", "%s %" PRIu32 " %" PRId64, name, axis,
                        layout->shape[axis]);
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
    char *bytes = xcalloc((size_t)count, size);
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
    bool made = true;
    for (int i = 0; i < OPERANDS; i++)
        if (candidate->operands[i].present && !candidate->operands[i].scalar &&
            is_first_of_storage(candidate, i))
            made = made && put_shared(writer, candidate, i);
    return made;
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
static char *candidate_transcript(const struct candidate *candidate, const void *expected)
{
    struct writer writer = {0};
    const struct step_traits *traits = &step_traits[candidate->step->kind];
    const struct layout of_out = argument_layout(candidate, OUT);
    const struct layout shape = layout_packed(&of_out);
    char name[WORD_SIZE], words[PARAMETERS_MAX * WORD_SIZE] = "";
    const bool made = traits->operation && put_tensors(&writer, candidate);
    for (const char *letter = traits->operation ? traits->arguments : ""; *letter; letter++) {
        argument_word(candidate, *letter, name);
        strcat(strcat(words, name), " ");
    }
    operand_word(candidate, OUT, name);
    writer_call(&writer, name, made ? traits->operation : "", "%s", words);
    writer_download(&writer, name, candidate->operands[OUT].dtype, &shape, expected);
    char *text = writer_finish(&writer);
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
    (void)error;
    result->count = (size_t)packed_bytes(step->in[0]);
    free(result->bytes);
    result->bytes = xmalloc(result->count);
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

/* Writes the part as a case, unless the device gets it right though it got an earlier one wrong.
 * Returns whether it is wrong. */
static bool try_cut(struct healcl_device *device, const struct candidate *whole,
                    const struct cut *cut, struct failing_case *found)
{
    const struct candidate part = cut_candidate(whole, cut);
    char *transcript = candidate_transcript(&part, NULL);
    const struct source source = {.text = transcript,
                                  .length = transcript ? strlen(transcript) : 0};
    struct plan *plan = NULL;
    struct result expected = {NULL, 0}, actual = {NULL, 0};
    bool wrong = false;
    if (transcript && plan_create(&source, whole->table, NULL, &plan, NULL) == HEALCL_OK &&
        run_plan(NULL, plan, &expected, NULL) == HEALCL_OK && expected.bytes)
        wrong = run_plan(device, plan, &actual, NULL) != HEALCL_OK || !actual.bytes ||
                actual.count != expected.count ||
                memcmp(actual.bytes, expected.bytes, actual.count) != 0;
    plan_free(plan);
    free(transcript);
    free(actual.bytes);
    if (expected.bytes && (wrong || !found->transcript)) {
        free(found->transcript);
        found->transcript = candidate_transcript(&part, expected.bytes);
        found->bytes = strlen(found->transcript);
        describe(&part, found->text, sizeof found->text);
    }
    free(expected.bytes);
    return wrong;
}

/* Cuts an axis as far as the device still gets the rest wrong. */
static void shrink(struct healcl_device *device, const struct candidate *whole, struct cut *cut,
                   int letter, struct failing_case *found)
{
    const int64_t before = cut->size[letter];
    for (cut->size[letter] = 1; cut->size[letter] < before; cut->size[letter] *= 2)
        if (try_cut(device, whole, cut, found))
            return;
    cut->size[letter] = before;
}

void failing_case_find(struct healcl_device *device, const struct failing_step *failing,
                       struct failing_case *found)
{
    struct candidate whole, part;
    struct cut cut;
    memset(found, 0, sizeof *found);
    if (!failing->step->out || layout_elements(&failing->step->out->layout) == 0)
        return;
    candidate_init(&whole, failing);
    cut_init(&cut, &whole, failing->first_wrong);
    for (part = whole; candidate_bytes(&part) > SMALL_BYTES; part = cut_candidate(&whole, &cut))
        if (!cut_longest(&cut))
            return;
    found->fails_again = try_cut(device, &whole, &cut, found);
    for (int letter = 0; found->fails_again && letter < LETTERS; letter++)
        shrink(device, &whole, &cut, letter, found);
}
