/*
 * Products that a program adds up one after the other, "t = a*b; acc = acc + t", become a
 * STEP_MULTIPLY_ADD of up to STEP_PRODUCTS products. It replaces the last addition. A longer sum
 * goes on from what the last such step has stored. A product that moves down to its addition may
 * pass steps that could be refused if an earlier step of the segment has checked the same moduli.
 * The release of a factor moves down with it.
 *
 * Such sums on two evenly spaced slices become one step, also if the second one has more products.
 * A sum of two tensors that is a factor of the first product, (x+y)*c, becomes part of the step.
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
    FOR_EACH_OPERAND (i, tensor, step) {
        const uint32_t use = number * STEP_OPERANDS + (uint32_t)i;
        self->before[use] = self->run->next[tensor->storage->id];
        self->run->next[tensor->storage->id] = use;
    }
}

/* ---------------------------------------------------------------- what may move */

/* A step that would be done at the later step `to`, for each element of its first axis if `repeats`
 * is set. */
struct move {
    uint32_t from, to;
    bool repeats;
};

/* A tensor, or if `repeats` is set, what it repeats along its first axis. */
static struct tensor without_repeats(const struct tensor *tensor, bool repeats)
{
    return repeats ? (struct tensor){tensor->storage, layout_drop_axis(&tensor->layout, 0)}
                   : *tensor;
}

/* Whether a view that the step reads has the same elements at the later step. */
static bool stays(const struct search *self, const struct tensor *view, struct move move)
{
    int left = USES_MAX;
    for (uint32_t use = self->run->next[view->storage->id];
         use != NONE && use / STEP_OPERANDS > move.from; use = self->before[use]) {
        const uint32_t number = step_of_use(self, use);
        const struct step *step = step_at(self, number);
        if (left-- == 0 ||
            (number != move.to && step->kind != STEP_RELEASE && tensors_overlap(step->out, view)))
            return false;
    }
    const struct tensor *out = step_at(self, move.to)->out;
    return !tensors_overlap(view, out) || tensors_same(view, out);
}

/* Whether nothing else reads the elements of a view after step `to` has read it by `use`. */
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
        if (number <= move.to)
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
    const struct tensor moduli = without_repeats(to->in[2], move.repeats);
    if (step->vendor || !step->in[2] || !tensors_same(step->in[2], &moduli) ||
        step->origins->count + to->origins->count > ORIGINS_MAX)
        return false;
    FOR_EACH_INPUT (i, view, step)
        if (view->storage->scalars ? i != 2 : !stays(self, view, move))
            return false;
    return self->checked[move.from] || pass_none_refuses(step, to);
}

/* Finds the step that wrote input i of step `to`, which has read it by use `read`, if it can be
 * done there instead and nothing else reads what it wrote. repeats: what the input repeats along
 * its first axis. Else returns NONE. */
static uint32_t find_writer(const struct search *self, uint32_t read, uint32_t to, int i,
                            bool repeats)
{
    const struct step *reader = step_at(self, to);
    const struct tensor view = without_repeats(reader->in[i], repeats);
    for (int j = 0; j < STEP_INPUTS; j++)
        if (j != i && tensors_overlap(reader->in[j], &view))
            return NONE;
    uint32_t use = self->before[read];
    for (int left = USES_MAX; use != NONE && left > 0; use = self->before[use], left--) {
        const struct move move = {step_of_use(self, use), to, repeats};
        const struct step *step = step_at(self, move.from);
        if (move.from >= to || step->kind == STEP_RELEASE ||
            !pass_touches(step, step + 1, &view, false))
            continue;
        return step->out && tensors_same(step->out, &view) && may_move(self, move) &&
                       is_dead_behind(self, &view, read, move)
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
    FOR_EACH_OPERAND (i, tensor, step) {
        if (tensor->storage->elements > UINT32_MAX)
            return false;
        views[count++] = tensor->layout;
    }
    layouts_simplify(views, count);
    return views->rank + (step->value[0] > 0) <= STEP_PRODUCT_AXES &&
           layout_elements(&moduli) <= MODULI_MAX;
}

/* Makes an input of a step input `to` of a sum. The step is `behind` origins behind its first. */
static void take_input(struct step *sum, int to, const struct step *step, int from, size_t behind)
{
    sum->in[to] = step->in[from];
    sum->arguments[to] = step->arguments[from];
    sum->arguments[to].origin = (uint8_t)(sum->arguments[to].origin + behind);
}

/* Appends the products of a step, from number `first` on, to those of a sum. Of a product's own
 * factors, that of the earlier storage comes first: sums on other slices then have the same order.
 */
static void take_products(struct step *sum, const struct step *step, int first, size_t behind)
{
    for (int i = first; i < step_products(step); i++) {
        const int to = sum->in[0] ? step_factors(step_products(sum)) : 0, from = step_factors(i);
        const int swaps =
            step->kind == STEP_MODMUL && step->in[0]->storage->id > step->in[1]->storage->id;
        for (int factor = 0; factor < 2; factor++)
            take_input(sum, to + (factor ^ swaps), step, from + factor, behind);
    }
}

/* Gives the sum that joins two steps moduli, as the argument that would be refused first. */
static void take_moduli(struct step *sum, const struct step *first, const struct step *second,
                        const struct tensor *moduli)
{
    const struct origin *one = &first->origins->of[first->arguments[2].origin];
    const struct origin *other = &second->origins->of[second->arguments[2].origin];
    take_input(sum, 2, first, 2, 0);
    if (other->entry < one->entry)
        take_input(sum, 2, second, 2, first->origins->count);
    sum->in[2] = moduli;
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
    const uint32_t from = find_writer(self, to * STEP_OPERANDS + (uint32_t)i, to, i, false);
    if (from == NONE || step_at(self, from)->kind != STEP_MODMUL ||
        addition->in[1 - i]->storage->scalars)
        return HEALCL_OK;
    const struct step *product = step_at(self, from);
    struct step sum = empty_sum(addition);
    take_products(&sum, product, 0, 0);
    take_moduli(&sum, product, addition, addition->in[2]);
    take_input(&sum, ADDEND, addition, 1 - i, product->origins->count);
    return is_supported(&sum) ? join(self, from, to, &sum, error) : HEALCL_OK;
}

/* Lets a sum begin with the products that its addend is made of. */
static enum healcl_status begin_with(struct search *self, uint32_t to, uint32_t use,
                                     struct healcl_error *error)
{
    const uint32_t from = find_writer(self, use, to, ADDEND, false);
    const struct step *addend = from != NONE ? step_at(self, from) : NULL;
    const struct step *sum = step_at(self, to);
    if (!addend || (addend->kind != STEP_MODMUL && addend->kind != STEP_MULTIPLY_ADD) ||
        (addend->kind == STEP_MULTIPLY_ADD && addend->value[0] > 0) ||
        step_products(addend) + step_products(sum) > STEP_PRODUCTS)
        return HEALCL_OK;
    struct step both = empty_sum(sum);
    take_products(&both, addend, 0, 0);
    take_products(&both, sum, 0, addend->origins->count);
    take_moduli(&both, addend, sum, sum->in[2]);
    if (addend->kind == STEP_MULTIPLY_ADD && addend->in[ADDEND])
        take_input(&both, ADDEND, addend, ADDEND, 0);
    return is_supported(&both) ? join(self, from, to, &both, error) : HEALCL_OK;
}

/* Makes (x+y)*c of the first product of a sum, whose factor i is what a modsum left in a tensor. */
static enum healcl_status add_factors(struct search *self, uint32_t to, int i,
                                      struct healcl_error *error)
{
    const struct step *sum = step_at(self, to);
    const struct layout *view = &sum->in[i]->layout, *p = &sum->in[2]->layout;
    const bool repeats = view->rank > 0 && view->stride[0] == 0 && p->stride[0] == 0;
    if (step_products(sum) == STEP_PRODUCTS || step_adds_factors(sum))
        return HEALCL_OK;
    const uint32_t from =
        find_writer(self, self->run->next[sum->in[i]->storage->id], to, i, repeats);
    const struct step *modsum = from != NONE ? step_at(self, from) : NULL;
    if (!modsum || modsum->kind != STEP_MODSUM)
        return HEALCL_OK;
    const size_t behind = modsum->origins->count;
    struct step both = empty_sum(sum);
    for (int j = 0; j < 2; j++) {
        struct layout summand = modsum->in[j]->layout;
        if (repeats)
            summand = layout_insert_axis(&summand, 0, sum->out->layout.shape[0], 0);
        take_input(&both, step_factors(j), modsum, j, 0);
        TRY(plan_view(self->run->plan, modsum->in[j]->storage, &summand, &both.in[step_factors(j)],
                      error));
    }
    take_input(&both, 1, sum, 1 - i, behind);
    take_products(&both, sum, 1, behind);
    take_moduli(&both, modsum, sum, sum->in[2]);
    if (sum->in[ADDEND])
        take_input(&both, ADDEND, sum, ADDEND, behind);
    both.value[0] += both.value[0] > 0;
    return is_supported(&both) ? join(self, from, to, &both, error) : HEALCL_OK;
}

/* Whether two sums are on slices of which the second is behind the first, and neither needs what
 * the other writes. Only the last products of the second sum may be missing in the first one. */
static bool are_parts(const struct step *first, const struct step *second)
{
    if (first->kind != STEP_MULTIPLY_ADD || first->value[0] > 0 || second->value[0] > 0 ||
        second - first > PASS_WINDOW || second->out->layout.rank == MAX_RANK ||
        tensors_overlap(first->out, second->out))
        return false;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *one = first->operands[i], *other = second->operands[i];
        if (i < STEP_OUT &&
            (tensors_overlap(one, second->out) || tensors_overlap(other, first->out)))
            return false;
        if (!one && i < STEP_OUT && i >= step_factors(step_products(first)))
            continue;
        if (!one != !other)
            return false;
        if (one && (one->storage != other->storage || one->layout.offset > other->layout.offset ||
                    !layout_alike(&one->layout, &other->layout, -1)))
            return false;
    }
    return true;
}

/* Joins a sum with an earlier one on another slice, if possible. */
static enum healcl_status join_parts(struct search *self, uint32_t to, struct healcl_error *error)
{
    const struct step *second = step_at(self, to), *first = NULL;
    struct move move = {.to = to};
    uint32_t use = self->before[to * STEP_OPERANDS + STEP_OUT];
    bool found = false;
    for (int left = USES_MAX; use != NONE && left > 0 && !found; use = self->before[use], left--) {
        move.from = step_of_use(self, use);
        first = step_at(self, move.from);
        found = use % STEP_OPERANDS == STEP_OUT && are_parts(first, second) &&
                may_move(self, move) && !pass_touches(first + 1, second, first->out, false);
    }
    if (!found)
        return HEALCL_OK;
    struct step both = empty_sum(second);
    FOR_EACH_OPERAND (i, other, second) {
        struct layout view = first->operands[i] ? first->operands[i]->layout : other->layout;
        view = layout_insert_axis(&view, 0, 2, other->layout.offset - view.offset);
        TRY(plan_view(self->run->plan, other->storage, &view, &both.operands[i], error));
        if (i < STEP_OUT)
            both.arguments[i].origin = (uint8_t)(both.arguments[i].origin + first->origins->count);
    }
    take_moduli(&both, first, second, both.in[2]);
    if (step_products(first) < step_products(second)) {
        both.value[0] = step_products(first);
        both.value[1] = both.out->layout.rank;
    }
    return is_supported(&both) ? join(self, move.from, to, &both, error) : HEALCL_OK;
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
        const bool is_whole = step->kind == STEP_MULTIPLY_ADD; /* an earlier round has made it */
        follow(self, number);
        for (int i = 2; i-- > 0 && step->kind == STEP_MODSUM && !step->vendor;) {
            TRY(add_product(self, number, i, error));
            if (step->kind == STEP_MULTIPLY_ADD)
                TRY(begin_with(self, number, number * STEP_OPERANDS + 1 - (uint32_t)i, error));
        }
        if (is_whole)
            TRY(join_parts(self, number, error));
        for (int i = 0; i < 2 && is_whole; i++)
            TRY(add_factors(self, number, i, error));
    }
    return self->run->changes > 0 ? move_releases(self, error) : HEALCL_OK;
}

enum healcl_status pass_sums(struct pass_run *run, struct healcl_error *error)
{
    const size_t count = (size_t)(run->end - run->first), uses = count * STEP_OPERANDS;
    const struct step *addition = run->first;
    while (addition < run->end && addition->kind <= STEP_COPY)
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
