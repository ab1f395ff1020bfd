#include "tools/failing_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/axes.h"
#include "tools/results.h"
#include "tools/writer.h"
#include "tools/xmalloc.h"

enum { SMALL_BYTES = 64 << 20 }; /* a larger case is not useful to send */

/* ---------------------------------------------------------------- operands */

/* A step, and the remaining parts of its tensors. */
struct candidate {
    const struct failing_step *failing;
    const struct step *step;
    struct step_axes axes;
    struct layout layouts[STEP_OPERANDS];
};

static bool is_scalar(const struct candidate *candidate, int i)
{
    const struct tensor *tensor = step_operand(candidate->step, i);
    return tensor && tensor->storage == candidate->failing->plan->constants.storage;
}

/* Whether the operand is uploaded. */
static bool is_tensor(const struct candidate *candidate, int i)
{
    return step_operand(candidate->step, i) && !is_scalar(candidate, i);
}

static enum dtype dtype_of(const struct candidate *candidate, int i)
{
    return step_operand(candidate->step, i)->storage->dtype;
}

/* Returns its storage. */
static const char *image_of(const struct candidate *candidate, int i)
{
    const struct storage *storage = step_operand(candidate->step, i)->storage;
    return storage == candidate->step->out->storage
               ? candidate->failing->out_before
               : candidate->failing->reference->memories[storage->id].bytes;
}

static struct candidate whole_of(const struct failing_step *failing)
{
    struct candidate whole = {.failing = failing, .step = failing->step};
    step_axes(whole.step, &whole.axes);
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (step_operand(whole.step, i))
            whole.layouts[i] = step_operand(whole.step, i)->layout;
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
    const int64_t inside = step_operand(candidate->step, i)->storage->elements - start;
    char storage[16], name[16];
    layout.offset -= start;
    const int64_t count = view_end(&layout);
    char *bytes = xcalloc((size_t)count, size);
    memcpy(bytes, image_of(candidate, i) + (size_t)start * size,
           (size_t)(inside < count ? inside : count) * size);
    const struct layout flat = layout_of_shape(1, &count);
    snprintf(storage, sizeof storage, "s%d", i);
    snprintf(name, sizeof name, "t%d", i);
    writer_upload(writer, storage, dtype_of(candidate, i), &flat, false, bytes);
    free(bytes);
    return view_put(writer, name, storage, &layout);
}

/* ---------------------------------------------------------------- writing the operation */

enum { WORD_SIZE = 32 };

static void operand_word(const struct candidate *candidate, int i, char word[WORD_SIZE])
{
    if (!step_operand(candidate->step, i))
        snprintf(word, WORD_SIZE, "none");
    else if (is_scalar(candidate, i))
        snprintf(word, WORD_SIZE, "%" PRId64,
                 candidate->failing->plan->constants.values[candidate->layouts[i].offset]);
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
        if (!step_operand(candidate->step, i))
            continue;
        operand_word(candidate, i, word);
        used += snprintf(description + used, size - (size_t)used, "%s %s%s%s%s",
                         i == STEP_OUT ? "out" : step_input_name(candidate->step, i),
                         is_scalar(candidate, i) ? word : dtype_name(dtype_of(candidate, i)),
                         is_scalar(candidate, i) ? "" : " ",
                         is_scalar(candidate, i) ? "" : layout_shape_text(&layout, shape),
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
        planned_init(&planned, transcript, whole->failing->plan->table, NULL, NULL) == HEALCL_OK &&
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

void failing_case_find(struct healcl_device *device, const struct failing_step *failing,
                       struct failing_case *found)
{
    struct cut cut;
    memset(found, 0, sizeof *found);
    if (!step_traits[failing->step->kind].operation || !failing->step->out ||
        layout_elements(&failing->step->out->layout) == 0)
        return;
    const struct candidate whole = whole_of(failing);
    struct candidate part = whole;
    cut_init(&cut, &whole, failing->first_wrong);
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
