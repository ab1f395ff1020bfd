/*
 * Products that a program adds up one after the other, "t = a*b; acc = acc + t", become a
 * STEP_MULTIPLY_ADD of up to STEP_PRODUCTS products. It replaces the last addition. A longer sum
 * goes on from what the last such step has stored. A product that moves down to its addition may
 * pass steps that could be refused if an earlier step of the segment has checked the same moduli.
 * The release of a factor moves down with it.
 *
 * A sum of two values that are not negative may be the factor of the first product: x*c + y*c has
 * the same C remainder as (x+y)*c.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/axes.h"
#include "plan/pass.h"

enum {
    MODULI_MAX = 1 << 16,        /* limit of kernels' tables */
    CHECKED_MAX = 8,             /* moduli that are remembered */
    USES_MAX = 256,              /* uses of a storage that a search looks at */
    ORIGINS_MAX = UINT8_MAX / 2, /* of two steps: three can be joined */
    ADDEND = 3
};

#define NONE PASS_NO_STEP

/* Steps and uses are numbered from the segment's first one. Use u is operand u % STEP_OPERANDS of
 * step u / STEP_OPERANDS. Links lead to uses of the same storage, releases included. run->next has
 * the latest use of each storage. */
struct search {
    struct pass_run *run;
    uint32_t count;
    uint32_t *before, *after;
    uint32_t *kept;    /* by step: itself, or the step that does its work */
    uint32_t *checked; /* by step: 1 if an earlier one has checked its moduli */
    const struct tensor *moduli[CHECKED_MAX]; /* latest ones that are checked, or NULL */
    uint32_t moduli_next;
};

static struct step *step_at(const struct search *self, uint32_t number)
{
    return self->run->first + number;
}

/* The step that now does the work of the step of a use. */
static uint32_t step_of_use(const struct search *self, uint32_t use)
{
    uint32_t number = use / STEP_OPERANDS;
    while (self->kept[number] != number)
        number = self->kept[number];
    return number;
}

/* ---------------------------------------------------------------- uses and checks */

static void link_uses(struct search *self)
{
    for (int round = 0; round < 3; round++) /* before and after it is used, run->next is cleared */
        for (uint32_t use = self->count * STEP_OPERANDS; use-- > 0;) {
            const struct tensor *tensor =
                step_at(self, use / STEP_OPERANDS)->operands[use % STEP_OPERANDS];
            if (!tensor)
                continue;
            uint32_t *next = &self->run->next[tensor->storage->id];
            if (round == 1)
                self->after[use] = *next;
            *next = round == 1 ? use : NONE;
        }
}

/* Whether all elements of a view are elements of another view of the storage. */
static bool is_part(const struct layout *view, const struct layout *whole)
{
    const struct layout part = layout_own_elements(view), all = layout_own_elements(whole);
    return layout_same_elements(&part, &all) ||
           (layout_is_contiguous(&all) && part.offset >= all.offset &&
            layout_last(&part) <= layout_last(&all));
}

/* Notes the latest uses, and the moduli that the step checks. */
static void follow(struct search *self, uint32_t number)
{
    const struct step *step = step_at(self, number);
    const int input = step_moduli(step);
    const struct tensor *moduli = input != NO_INPUT ? step->in[input] : NULL;
    bool is_checked = moduli && moduli->storage->scalars;
    for (int i = 0; i < CHECKED_MAX && moduli && !is_checked; i++)
        is_checked = self->moduli[i] && self->moduli[i]->storage == moduli->storage &&
                     is_part(&moduli->layout, &self->moduli[i]->layout);
    if (moduli && !is_checked && !step->vendor && layout_elements(&step->out->layout) > 0)
        self->moduli[self->moduli_next++ % CHECKED_MAX] = moduli;
    self->checked[number] = is_checked;
    for (int i = 0; i < CHECKED_MAX; i++)
        if (self->moduli[i] && step->out && step->out->storage == self->moduli[i]->storage)
            self->moduli[i] = NULL;
    for (uint32_t i = 0; i < STEP_OPERANDS; i++) {
        const uint32_t use = number * STEP_OPERANDS + i;
        if (!step->operands[i])
            continue;
        self->before[use] = self->run->next[step->operands[i]->storage->id];
        self->run->next[step->operands[i]->storage->id] = use;
    }
}

/* ---------------------------------------------------------------- what may move */

/* A step that would be done at the later step `to`. Step `by`, which may be `to`, alone reads what
 * it writes, and will be done there too. */
struct move {
    uint32_t from, by, to;
};

/* Whether a view that the step reads has the same elements at the later step. */
static bool stays(const struct search *self, const struct tensor *view, struct move move)
{
    int left = USES_MAX;
    for (uint32_t use = self->run->next[view->storage->id];
         use != NONE && use / STEP_OPERANDS > move.from; use = self->before[use]) {
        const uint32_t number = step_of_use(self, use);
        const struct step *step = step_at(self, number);
        if (left-- == 0 || (number != move.to && number != move.by && step->kind != STEP_RELEASE &&
                            tensors_overlap(step->out, view)))
            return false;
    }
    const struct tensor *out = step_at(self, move.to)->out;
    return !tensors_overlap(view, out) || tensors_same(view, out);
}

/* Whether nothing else reads the elements of a view after step `by` has read it by `use`. */
static bool is_dead_behind(const struct search *self, const struct tensor *view, uint32_t use,
                           struct move move)
{
    const struct pass_run *run = self->run;
    const uint32_t id = view->storage->id;
    for (int left = USES_MAX; left > 0; left--) {
        use = self->after[use];
        if ((use == NONE || use / STEP_OPERANDS > move.to) &&
            tensors_same(view, step_at(self, move.to)->out))
            return true;
        if (use == NONE)
            return id >= run->segment->first_storage &&
                   run->plan->steps + run->uses[id].last < run->end;
        const uint32_t number = step_of_use(self, use);
        const struct step *step = step_at(self, number);
        if (number <= move.by || number == move.to)
            continue;
        if (step->kind == STEP_RELEASE || pass_overwrites(step, view))
            return true;
        if (pass_touches(step, step + 1, view, false))
            return false;
    }
    return false;
}

static bool may_move(const struct search *self, struct move move)
{
    const struct step *step = step_at(self, move.from), *to = step_at(self, move.to);
    if (step->vendor || !step->in[2] || !tensors_same(step->in[2], to->in[2]) ||
        step->origins->count + to->origins->count > ORIGINS_MAX)
        return false;
    for (int i = 0; i < STEP_INPUTS; i++) {
        const struct tensor *view = step->in[i];
        if (view && (view->storage->scalars ? i != 2 : !stays(self, view, move)))
            return false;
    }
    return self->checked[move.from] || pass_none_refuses(step, to);
}

/* Finds the step that wrote input i of step `by`, which has read it by use `read`, if it can be
 * done at step `to` instead and nothing else reads what it wrote. Else returns NONE. */
static uint32_t find_writer(const struct search *self, uint32_t read, uint32_t by, int i,
                            uint32_t to)
{
    const struct step *reader = step_at(self, by), *end = step_at(self, to);
    const struct tensor *view = reader->in[i];
    for (int j = 0; j < STEP_INPUTS; j++)
        if ((j != i && tensors_overlap(reader->in[j], view)) ||
            (by != to && j != ADDEND && tensors_overlap(end->in[j], view)))
            return NONE;
    uint32_t use = self->before[read];
    for (int left = USES_MAX; use != NONE && left > 0; use = self->before[use], left--) {
        const struct move move = {step_of_use(self, use), by, to};
        const struct step *step = step_at(self, move.from);
        if (move.from >= by || step->kind == STEP_RELEASE ||
            !pass_touches(step, step + 1, view, false))
            continue;
        return step->out && tensors_same(step->out, view) && may_move(self, move) &&
                       is_dead_behind(self, view, read, move)
                   ? move.from
                   : NONE;
    }
    return NONE;
}

/* ---------------------------------------------------------------- joining */

/* Whether kernels can have a table of the moduli, and strides of 32 bits for all operands. */
static bool is_supported(const struct step *step)
{
    struct layout views[STEP_OPERANDS];
    const struct layout moduli = layout_own_elements(&step->in[2]->layout);
    uint32_t count = 0;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        if (step->operands[i] && step->operands[i]->storage->elements > UINT32_MAX)
            return false;
        if (step->operands[i])
            views[count++] = step->operands[i]->layout;
    }
    layouts_simplify(views, count);
    return views->rank <= STEP_PRODUCT_AXES && layout_elements(&moduli) <= MODULI_MAX;
}

/* Makes an input of a step input `to` of a sum. The step is `behind` origins behind its first. */
static void take_input(struct step *sum, int to, const struct step *step, int from, size_t behind)
{
    sum->in[to] = step->in[from];
    sum->arguments[to] = step->arguments[from];
    sum->arguments[to].origin = (uint8_t)(sum->arguments[to].origin + behind);
}

/* Appends the products of a step, from number `first` on, to those of a sum. */
static void take_products(struct step *sum, const struct step *step, int first, size_t behind)
{
    for (int i = first; i < step_products(step); i++) {
        const int to = sum->in[0] ? step_factors(step_products(sum)) : 0;
        for (int factor = 0; factor < 2; factor++)
            take_input(sum, to + factor, step, step_factors(i) + factor, behind);
    }
}

/* Gives the sum that joins two steps their moduli, as the argument that would be refused first. */
static void take_moduli(struct step *sum, const struct step *first, const struct step *second)
{
    const struct origin *one = &first->origins->of[first->arguments[2].origin];
    const struct origin *other = &second->origins->of[second->arguments[2].origin];
    take_input(sum, 2, first, 2, 0);
    if (other->entry < one->entry)
        take_input(sum, 2, second, 2, first->origins->count);
}

/* A sum without inputs, in the place of a step. */
static struct step empty_sum(const struct step *step)
{
    struct step sum = *step;
    sum.kind = STEP_MULTIPLY_ADD;
    memset(sum.in, 0, sizeof sum.in);
    sum.residues = sum.nonnegative = 0;
    sum.zeros = 0;
    return sum;
}

/* Lets step `to` do the work of an earlier one. */
static enum healcl_status join(struct search *self, uint32_t from, uint32_t to,
                               const struct step *both, struct healcl_error *error)
{
    struct step *kept = step_at(self, to);
    self->kept[from] = to;
    self->checked[to] &= self->checked[from];
    return pass_join(self->run, step_at(self, from), kept, kept, both, error);
}

/* Lets a modsum, whose input i is a product, add this product to its other input. */
static enum healcl_status add_product(struct search *self, uint32_t to, int i,
                                      struct healcl_error *error)
{
    const struct step *addition = step_at(self, to);
    const uint32_t from = find_writer(self, to * STEP_OPERANDS + (uint32_t)i, to, i, to);
    if (from == NONE || step_at(self, from)->kind != STEP_MODMUL ||
        addition->in[1 - i]->storage->scalars)
        return HEALCL_OK;
    const struct step *product = step_at(self, from);
    struct step sum = empty_sum(addition);
    take_products(&sum, product, 0, 0);
    take_moduli(&sum, product, addition);
    take_input(&sum, ADDEND, addition, 1 - i, product->origins->count);
    return is_supported(&sum) ? join(self, from, to, &sum, error) : HEALCL_OK;
}

/* Finds a modsum, of values that are not negative, which made a factor of product `by`. The product
 * is the addend of sum `to`, which has room for one more. *i becomes the factor. */
static uint32_t find_factor(const struct search *self, uint32_t by, uint32_t to, int *i)
{
    const bool has_room = step_products(step_at(self, to)) + 1 < STEP_PRODUCTS;
    for (*i = 0; *i < 2 && has_room && step_at(self, by)->kind == STEP_MODMUL; ++*i) {
        const uint32_t from = find_writer(self, by * STEP_OPERANDS + (uint32_t)*i, by, *i, to);
        const struct step *step = from != NONE ? step_at(self, from) : NULL;
        if (step && step->kind == STEP_MODSUM && (step->nonnegative & 3) == 3 &&
            !step->in[2]->storage->scalars)
            return from;
    }
    return NONE;
}

/* Makes x*c + y*c of the first product of sum `to`, whose factor i is x+y. */
static enum healcl_status divide_product(struct search *self, uint32_t from, uint32_t to, int i,
                                         struct healcl_error *error)
{
    const struct step *inner = step_at(self, from), *sum = step_at(self, to);
    const size_t behind = inner->origins->count;
    struct step both = empty_sum(sum);
    take_input(&both, i, inner, 0, 0);
    take_input(&both, 1 - i, sum, 1 - i, behind);
    take_products(&both, sum, 0, behind);
    take_input(&both, step_factors(1) + i, inner, 1, 0);
    take_moduli(&both, inner, sum);
    return is_supported(&both) ? join(self, from, to, &both, error) : HEALCL_OK;
}

/* Lets a sum begin with the products that its addend is made of. */
static enum healcl_status begin_with(struct search *self, uint32_t to, uint32_t use,
                                     struct healcl_error *error)
{
    const uint32_t from = find_writer(self, use, to, ADDEND, to);
    const struct step *addend = from != NONE ? step_at(self, from) : NULL;
    const struct step *sum = step_at(self, to);
    int i = 0;
    if (!addend || (addend->kind != STEP_MODMUL && addend->kind != STEP_MULTIPLY_ADD) ||
        step_products(addend) + step_products(sum) > STEP_PRODUCTS)
        return HEALCL_OK;
    const uint32_t inner = find_factor(self, from, to, &i);
    const size_t behind = addend->origins->count;
    struct step both = empty_sum(sum);
    take_products(&both, addend, 0, 0);
    take_products(&both, sum, 0, behind);
    take_moduli(&both, addend, sum);
    if (addend->kind == STEP_MULTIPLY_ADD && addend->in[ADDEND])
        take_input(&both, ADDEND, addend, ADDEND, 0);
    if (!is_supported(&both))
        return HEALCL_OK;
    TRY(join(self, from, to, &both, error));
    return inner != NONE ? divide_product(self, inner, to, i, error) : HEALCL_OK;
}

/* Moves releases behind the last steps that now use their storages. */
static enum healcl_status move_releases(struct search *self, struct healcl_error *error)
{
    const struct pass_run *run = self->run;
    const uint32_t first = (uint32_t)(run->first - run->plan->steps);
    struct step *steps = calloc(self->count + 1, sizeof *steps);
    uint32_t *next = self->before, count = 0; /* lists of releases behind each step */
    NEED_MEMORY(steps, error);
    memset(next, 0xff, self->count * sizeof *next);
    for (uint32_t i = self->count; i-- > 0;) {
        const struct step *step = step_at(self, i);
        const uint32_t last =
            step->kind == STEP_RELEASE ? run->uses[step->in[0]->storage->id].last - first : 0;
        self->kept[i] = last > i && last < self->count ? last : i;
        if (self->kept[i] == i)
            continue;
        next[i] = next[last];
        next[last] = i;
    }
    for (uint32_t i = 0; i < self->count; i++)
        for (uint32_t j = self->kept[i] == i ? i : NONE; j != NONE; j = next[j])
            steps[count++] = *step_at(self, j);
    memcpy(run->first, steps, self->count * sizeof *steps);
    free(steps);
    return HEALCL_OK;
}

static enum healcl_status fuse_sums(struct search *self, struct healcl_error *error)
{
    for (uint32_t number = 0; number < self->count; number++) {
        const struct step *step = step_at(self, number);
        follow(self, number);
        for (int i = 2; i-- > 0 && step->kind == STEP_MODSUM && !step->vendor;) {
            TRY(add_product(self, number, i, error));
            if (step->kind == STEP_MULTIPLY_ADD)
                TRY(begin_with(self, number, number * STEP_OPERANDS + 1 - (uint32_t)i, error));
        }
    }
    return self->run->changes > 0 ? move_releases(self, error) : HEALCL_OK;
}

enum healcl_status pass_sums(struct pass_run *run, struct healcl_error *error)
{
    const size_t count = (size_t)(run->end - run->first), uses = count * STEP_OPERANDS;
    const struct step *addition = run->first;
    while (addition < run->end && addition->kind != STEP_MODSUM)
        addition++;
    if (addition == run->end || uses >= NONE)
        return HEALCL_OK;
    uint32_t *memory = calloc(2 * uses + 2 * count + 1, sizeof *memory);
    NEED_MEMORY(memory, error);
    struct search self = {.run = run,
                          .count = (uint32_t)count,
                          .before = memory,
                          .after = memory + uses,
                          .kept = memory + 2 * uses,
                          .checked = memory + 2 * uses + count};
    for (uint32_t i = 0; i < count; i++)
        self.kept[i] = i;
    link_uses(&self);
    enum healcl_status status = fuse_sums(&self, error);
    free(memory);
    return status;
}
