#include "tools/variants.h"

#include "core/array.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- rows */

static struct variant_row *add_row(struct variants *self, size_t at)
{
    if (!ARRAY_GROW(self->rows, self->count, &self->capacity))
        xmalloc_fail();
    memmove(&self->rows[at + 1], &self->rows[at], (self->count++ - at) * sizeof *self->rows);
    return &self->rows[at];
}

static size_t find_row(const struct variants *self, int kind, const struct variant *variant)
{
    size_t i = 0;
    while (self->rows[i].variant != variant || (int)self->rows[i].kind != kind)
        i++;
    return i;
}

/* The observer of launches. */
static void launched(void *context, int kind, const void *variant, const char *kernel, bool again)
{
    struct variants *self = context;
    size_t i = find_row(self, kind, variant);
    for (; self->rows[i].kernel && strcmp(self->rows[i].kernel, kernel) != 0; i++)
        if (i + 1 == self->count || self->rows[i + 1].variant != variant ||
            (int)self->rows[i + 1].kind != kind) {
            const struct variant_row other = {.kind = (enum step_kind)kind, .variant = variant};
            *add_row(self, i + 1) = other;
        }
    struct variant_row *row = &self->rows[i];
    row->kernel = row->kernel ? row->kernel : xstrdup(kernel);
    row->launches++;
    row->recorded += again;
    row->is_in_call = true;
}

void variants_init(struct variants *self, struct healcl_device *device)
{
    *self = (struct variants){.device = device, .observer = {self, launched}};
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        const struct family *family = family_of((enum step_kind)kind);
        for (size_t i = 0; family && kind != STEP_VENDOR && i < family->count; i++) {
            struct variant_row *row = add_row(self, self->count);
            *row =
                (struct variant_row){.kind = (enum step_kind)kind, .variant = &family->variants[i]};
        }
    }
    device->programs->observer = &self->observer;
}

void variants_release(struct variants *self)
{
    for (size_t i = 0; i < self->count; i++)
        free((char *)(uintptr_t)self->rows[i].kernel);
    free(self->rows);
}

/* ---------------------------------------------------------------- plans */

/* Whether a pass has given the step more work than operations have: factors and addends of
 * transforms, sums of products for one part only. */
static bool is_extended(const struct step *step)
{
    const bool is_transform = step->kind == STEP_NTT || step->kind == STEP_INTT;
    return (is_transform && step->in[STEP_FACTORS]) ||
           (step->kind == STEP_MULTIPLY_ADD && step->value[0] > 0);
}

/* Finds the row of the variant that runs a step; NULL if none does. The bit encodes how its kernels
 * may differ: several launches, known residues, more work, the dtype. */
static struct variant_row *plan_form(const struct variants *self, const struct step *step,
                                     unsigned *form)
{
    struct variant_plan plan;
    if (!family_of(step->kind) || step->kind == STEP_VENDOR ||
        step_is_left_out(step, self->device) || step_obstacle(step, self->device) ||
        layout_elements(&step->out->layout) == 0)
        return NULL;
    plan_variant(step, self->device, &plan);
    *form = 1u << ((plan.launches > 1) + 2 * (step->residues == (step->in[1] ? 3 : 1)) +
                   4 * is_extended(step) + 8 * (int)step->out->storage->dtype);
    return &self->rows[find_row(self, (int)step->kind, plan.variant)];
}

/* Stores why other variants than the running one cannot run a step. */
static void note_obstacles(struct variants *self, const struct step *step)
{
    const struct family *family = family_of(step->kind);
    for (size_t i = 0; i < family->count; i++) {
        const struct variant *variant = &family->variants[i];
        struct variant_row *row = &self->rows[find_row(self, (int)step->kind, variant)];
        const char *obstacle =
            row->kernel ? NULL : variant_obstacle(family, variant, step, self->device);
        row->obstacle = obstacle ? obstacle : row->obstacle;
    }
}

bool variants_are_new(const struct variants *self, const struct plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        unsigned form;
        const struct variant_row *row = plan_form(self, &plan->steps[i], &form);
        if (row && !(row->planned & form))
            return true;
    }
    return false;
}

void variants_end_call(struct variants *self, const struct plan *plan, bool is_right)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        unsigned form;
        struct variant_row *row = plan_form(self, &plan->steps[i], &form);
        if (!row || row->planned & form)
            continue;
        note_obstacles(self, &plan->steps[i]);
        row->planned |= form;
    }
    for (size_t i = 0; i < self->count; i++) {
        struct variant_row *row = &self->rows[i];
        row->calls += row->is_in_call;
        row->failed += row->is_in_call && !is_right;
        row->is_in_call = false;
    }
}

const char *variant_row_reason(const struct variants *self, const struct variant_row *row)
{
    const enum kernel_family of = family_of(row->kind)->preference;
    if (row->variant->style != STYLE_GENERAL &&
        row->variant->style != self->device->tuning.styles[of])
        return "another style than this device's";
    return row->obstacle ? row->obstacle : "earlier variants ran all steps that were tried";
}
