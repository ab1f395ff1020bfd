/* The steps that passes leave of a plan, a line for each. */
#include <inttypes.h>

#include "cli/report.h"
#include "cli/text.h"
#include "plan/memory.h"
#include "plan/plan.h"

/* Entries of the transcript that a step comes from, "23" or "23+25". */
static void print_entries(const struct origins *origins, FILE *stream)
{
    enum { WIDTH = 8 };
    char text[WIDTH + 1];
    int width = 0;
    for (size_t i = 0; i < origins->count; i++)
        width += snprintf(text, sizeof text, i > 0 ? "+%zu" : "%zu", origins->of[i].entry);
    fprintf(stream, "%*s", width < WIDTH ? WIDTH - width : 0, "");
    for (size_t i = 0; i < origins->count; i++)
        fprintf(stream, i > 0 ? "+%zu" : "%zu", origins->of[i].entry);
    fputs("  ", stream);
}

static void print_sizes(const int64_t *sizes, uint32_t rank, FILE *stream)
{
    for (uint32_t axis = 0; axis < rank; axis++)
        fprintf(stream, axis > 0 ? ",%" PRId64 : "%" PRId64, sizes[axis]);
}

/* A view by its storage, offset, shape and strides, "%7+16[3,2 : 8,0]"; of C order its strides go
 * without saying. A scalar is its value. */
static void print_view(const struct tensor *tensor, FILE *stream)
{
    const struct layout *layout = &tensor->layout;
    bool repeats = true;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        repeats &= layout->shape[axis] == 1 || layout->stride[axis] == 0;
    if (tensor->storage->scalars && repeats) {
        fprintf(stream, "%" PRId64, tensor->storage->scalars[layout->offset]);
        return;
    }
    fprintf(stream, "%%%" PRIu32, tensor->storage->id);
    if (layout->offset > 0)
        fprintf(stream, "+%" PRId64, layout->offset);
    putc('[', stream);
    print_sizes(layout->shape, layout->rank, stream);
    if (!layout_is_contiguous(layout)) {
        struct layout strides = *layout;
        for (uint32_t axis = 0; axis < layout->rank; axis++)
            if (layout->shape[axis] == 1)
                strides.stride[axis] = 0; /* whatever it is */
        fputs(" : ", stream);
        print_sizes(strides.stride, layout->rank, stream);
    }
    putc(']', stream);
}

/* What is known of an input's values: "= 0", "< p" of residues, ">= 0". */
static const char *known_of(const struct step *step, int input)
{
    const uint32_t bit = UINT32_C(1) << input;
    return step->zeros & bit         ? " = 0"
           : step->residues & bit    ? " < p"
           : step->nonnegative & bit ? " >= 0"
                                     : "";
}

/* The kind; of a chain its two, and of those with a number that. */
static void print_kind(const struct step *step, FILE *stream)
{
    const struct step_traits *traits = &step_traits[step->kind];
    fputs(step->side == STEP_OF_BODY ? "body of " : "", stream);
    fputs(step->vendor && step->kind == STEP_VENDOR ? step->origins->of->name : traits->id, stream);
    if (step->kind == STEP_CHAIN)
        fprintf(stream, " %s %s", step_traits[step->value[0]].id, step_traits[step->value[1]].id);
    else if (!traits->adds && (step->value[0] != 0 || step->value[1] != 0))
        fprintf(stream, " %" PRId64, step->value[0]);
    if (step->kind != STEP_CHAIN && step->value[1] != 0)
        fprintf(stream, " %" PRId64, step->value[1]);
}

static void print_step(const struct step *step, FILE *stream)
{
    print_entries(step->origins, stream);
    print_kind(step, stream);
    if (step->kind == STEP_RELEASE) {
        fprintf(stream, ": %%%" PRIu32 "\n", step->in[0]->storage->id);
        return;
    }
    const char *before = ": ";
    for (int i = 0; i < STEP_INPUTS; i++) {
        if (!step->in[i])
            continue;
        fputs(before, stream);
        print_view(step->in[i], stream);
        fputs(known_of(step, i), stream);
        before = ", ";
    }
    if (step->out) {
        fprintf(stream, step_adds(step) ? " added to %s " : " -> %s ",
                dtype_name(step->out->storage->dtype));
        print_view(step->out, stream);
        fputs(known_of(step, STEP_INPUTS), stream);
    }
    putc('\n', stream);
}

static void print_exchange(const struct exchange *exchange, FILE *stream)
{
    fprintf(stream, "%8s  exchange: ", "");
    print_view(exchange->sum, stream);
    fputs(" modulo ", stream);
    print_view(exchange->moduli, stream);
    putc('\n', stream);
}

void report_steps(const struct plan *plan, const struct style *style)
{
    for (size_t s = 0; s < plan->segment_count; s++) {
        const struct segment *segment = &plan->segments[s];
        char name[256];
        snprintf(name, sizeof name, "%s", segment_title(segment->name));
        text_clean(name, false);
        fprintf(style->stream, "\n%s\n", name);
        for (size_t i = 0; i < segment->step_count; i++)
            print_step(&plan->steps[segment->first_step + i], style->stream);
        for (size_t i = 0; i < segment->exchange_count; i++)
            print_exchange(&segment->exchanges[i], style->stream);
    }
}
