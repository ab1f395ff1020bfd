/* The tables and checks of inputs that a step needs. */
#include "kernels/derived.h"

/* A table of one input, with an element for each of a layout. */
static struct table table_of(enum derived_kind kind, int i, const struct layout *layout,
                             size_t size)
{
    return (struct table){.key = {.kind = kind, .layout = *layout},
                          .inputs = {i, NO_INPUT, NO_INPUT},
                          .layout = *layout,
                          .from = SLOT_NONE,
                          .count = layout_elements(layout),
                          .size = size};
}

/* Its key does not depend on the number of axes. */
static int modulus_table(struct launcher *self, int i, const struct layout *layout)
{
    struct table table = table_of(DERIVED_MODULI, i, layout, sizeof(struct modulus));
    table.has_rows = true;
    for (uint32_t axis = layout->rank; axis-- > 0;)
        if (layout->shape[axis] == 1)
            table.key.layout = layout_drop_axis(&table.key.layout, axis);
    if (table.key.layout.rank == 0)
        table.key.layout = layout_insert_axis(&table.key.layout, 0, 1, 1);
    return template_add_table(self, &table);
}

/* struct modulus, or its lanes, for each scalar of the plan. The plan has checked the scalars that
 * are moduli. Any other scalar counts as 1. */
static int scalar_table(struct launcher *self, enum derived_kind kind, size_t size)
{
    struct table table = table_of(kind, NO_INPUT, &(struct layout){.rank = 0}, size);
    table.count = (int64_t)self->plan->constants.count;
    return template_add_table(self, &table);
}

struct layout modulus_operand(const struct step *step, int i)
{
    struct layout operand = step->in[i]->layout, own = layout_own_elements(&operand);
    struct layout packed = layout_packed(&own);
    operand.offset = 0; /* of a scalar: see job_move_scalar */
    if (step->in[i]->storage->scalars)
        return operand;
    for (uint32_t axis = 0, own_axis = 0; axis < operand.rank; axis++)
        if (operand.stride[axis] != 0)
            operand.stride[axis] = packed.stride[own_axis++];
    return operand;
}

int derive_moduli(struct launcher *self, const struct step *step, int i)
{
    struct layout own = layout_own_elements(&step->in[i]->layout);
    return step->in[i]->storage->scalars
               ? scalar_table(self, DERIVED_SCALARS, sizeof(struct modulus))
               : modulus_table(self, i, &own);
}

int derive_modulus_vector(struct launcher *self, const struct step *step, int i)
{
    struct layout vector = step->in[i]->layout;
    while (vector.rank > 1)
        vector = layout_drop_axis(&vector, 0);
    return modulus_table(self, i, &vector);
}

bool moduli_are_periodic(const struct step *step, int i, int64_t *k)
{
    enum { PERIOD_MAX = 4096 };
    const struct layout *input = &step->in[i]->layout;
    struct layout own = layout_own_elements(input);
    bool varies_last = input->rank > 0 && input->stride[input->rank - 1] != 0;
    *k = layout_elements(&own);
    return step->in[i]->storage->scalars ||
           (*k <= PERIOD_MAX && (*k == 1 || (varies_last && own.shape[own.rank - 1] == *k)));
}

struct periodic_moduli derive_periodic_moduli(struct launcher *self, const struct step *step, int i)
{
    struct layout own = layout_own_elements(&step->in[i]->layout);
    const size_t size = sizeof(struct scalar_lanes);
    struct periodic_moduli moduli = {.table = SLOT_NONE, .k = 1, .period = 1};
    if (step->in[i]->storage->scalars) {
        moduli.lanes = scalar_table(self, DERIVED_SCALAR_LANES, size);
        return moduli;
    }
    moduli.k = moduli.period = layout_elements(&own); /* lcm(k, 8) / 8 */
    for (int64_t power = 8; power > 1 && moduli.period % 2 == 0; power /= 2)
        moduli.period /= 2;
    moduli.table = modulus_table(self, i, &own);
    struct table table = table_of(DERIVED_LANE_MODULI, i, &own, size);
    table.count = moduli.period;
    table.from = moduli.table;
    moduli.lanes = template_add_table(self, &table);
    return moduli;
}

/* A table of twiddles [k,n], or [k], which also depends on another tensor. */
static struct table twiddle_table(enum derived_kind kind, const struct step *step, int twiddles,
                                  int other, size_t size)
{
    struct layout layout = step->in[twiddles]->layout;
    if (layout.rank == 1)
        layout = layout_insert_axis(&layout, 1, 1, 1);
    struct table table = table_of(kind, twiddles, &layout, size);
    table.inputs[1] = other;
    table.key.others = step->in[other]->layout;
    table.has_rows = true;
    return table;
}

static int derive_twiddles(struct launcher *self, const struct step *step, int i)
{
    const struct table table = twiddle_table(DERIVED_TWIDDLES, step, i, Q, sizeof(struct twiddle));
    return template_add_table(self, &table);
}

/* An extra axis of the key has q's offset and stride. */
static int derive_scales(struct launcher *self, const struct step *step)
{
    const struct layout *q = &step->in[Q]->layout;
    struct table table =
        twiddle_table(DERIVED_SCALED_TWIDDLES, step, FACTORS, N_INV, sizeof(struct twiddle));
    table.inputs[2] = Q;
    table.key.layout = layout_insert_axis(&table.key.layout, 0, q->offset, q->stride[0]);
    table.has_rows = false;
    table.count = q->shape[0];
    return template_add_table(self, &table);
}

enum healcl_status derive_transform(struct launcher *self, const struct step *step,
                                    struct transform_tables *tables, struct healcl_error *error)
{
    tables->q = modulus_table(self, Q, &step->in[Q]->layout);
    tables->twiddles = derive_twiddles(self, step, PSI);
    tables->n_inv = step->in[FACTORS] ? derive_scales(self, step)
                    : step->in[N_INV] ? derive_twiddles(self, step, N_INV)
                                      : SLOT_NONE;
    tables->permutation = SLOT_NONE;
    return step->in[PERMUTATION] ? derive_permutation(self, step, &tables->permutation, error)
                                 : HEALCL_OK;
}

int derive_lane_twiddles(struct launcher *self, const struct step *step, int twiddles,
                         uint32_t word_bits)
{
    struct table table = twiddle_table(DERIVED_LANE_TWIDDLES, step, PSI, Q, word_bits / 8);
    const struct layout *layout = &table.layout;
    table.key.size = word_bits;
    table.from = twiddles;
    table.count = layout->shape[0] * (int64_t)ntt_lane_twiddles((uint64_t)layout->shape[1]);
    return template_add_table(self, &table);
}

int derive_pass_twiddles(struct launcher *self, const struct step *step, int twiddles,
                         int64_t beside, uint32_t word_bits)
{
    struct table table = twiddle_table(DERIVED_PASS_TWIDDLES, step, PSI, Q, word_bits / 4);
    table.key.first = beside;
    table.key.size = word_bits;
    table.from = twiddles;
    table.has_rows = beside == 0;
    table.count = table.layout.shape[0] * (beside ? beside : table.layout.shape[1]);
    return template_add_table(self, &table);
}

/* The device computes both permutations together. It needs n elements behind the inverse's n + 1.
 */
static enum healcl_status derive_permutations(struct launcher *self, const struct step *step,
                                              int *slot, int *inverse, struct healcl_error *error)
{
    const struct layout *layout = &step->in[PERMUTATION]->layout;
    struct table table = table_of(DERIVED_PERMUTATION, PERMUTATION, layout, sizeof(uint32_t));
    const int64_t n = layout->shape[0];
    if (n > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument '%s': %lld entries are more than 2^31-1",
                   launcher_refuse(self, step, PERMUTATION), (long long)n);
    table.count = n + 1;
    *slot = template_add_table(self, &table);
    table.key.kind = DERIVED_INVERSE_PERMUTATION;
    table.count = 2 * n + 1;
    table.is_spare = true;
    *inverse = template_add_table(self, &table);
    return HEALCL_OK;
}

enum healcl_status derive_permutation(struct launcher *self, const struct step *step, int *slot,
                                      struct healcl_error *error)
{
    int inverse;
    return derive_permutations(self, step, slot, &inverse, error);
}

enum healcl_status derive_inverse_permutation(struct launcher *self, const struct step *step,
                                              int *slot, struct healcl_error *error)
{
    int permutation;
    TRY(derive_permutations(self, step, &permutation, slot, error));
    self->templates.made->tables[*slot - SLOT_TABLE].is_spare = false;
    return HEALCL_OK;
}

enum healcl_status derive_crt_inverses(struct launcher *self, const struct step *step, int i,
                                       int *slot, struct healcl_error *error)
{
    const struct layout *layout = &step->in[i]->layout;
    struct table table = table_of(DERIVED_CRT_INVERSES, i, layout, sizeof(struct twiddle));
    table.from = derive_modulus_vector(self, step, i);
    TRY(layout_init(&table.layout, 2, (int64_t[]){table.count, table.count}, table.size, error));
    table.count *= table.count;
    *slot = template_add_table(self, &table);
    return HEALCL_OK;
}

/* Elements of input i must be indices of axis value[0] of in[0]. They are in [0, size), or in
 * [-size, size) if negative ones count from the end. */
static void derive_index_check(struct launcher *self, const struct step *step, int i)
{
    struct layout own = layout_own_elements(&step->in[i]->layout);
    struct table table = table_of(DERIVED_INDEX_CHECK, i, &own, 0);
    table.count = 0;
    table.key.size = step->in[0]->layout.shape[step->value[0]];
    table.key.first = step->value[1] != 0 ? -table.key.size : 0;
    (void)template_add_table(self, &table);
}

enum healcl_status derive_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error)
{
    int slot;
    switch (step_check(step, i)) {
    case CHECK_INDEX: derive_index_check(self, step, i); break;
    case CHECK_PERMUTATION: return derive_permutation(self, step, &slot, error);
    case CHECK_COPRIME: return derive_crt_inverses(self, step, i, &slot, error);
    case CHECK_MODULUS:
        if (!step->in[i]->storage->scalars)
            (void)derive_moduli(self, step, i);
        break;
    case CHECK_NONE: break;
    }
    return HEALCL_OK;
}

int derive_weights(struct launcher *self, const struct step *step)
{
    struct table table =
        table_of(DERIVED_WEIGHTS, 1, &step->in[1]->layout, dtype_size(step->in[1]->storage->dtype));
    table.key.size = step->in[0]->layout.shape[1];
    table.count = table.key.size * table.layout.shape[1];
    return template_add_table(self, &table);
}
