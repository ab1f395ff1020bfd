/* The tables and checks of inputs that a step needs. */
#include "kernels/derived.h"

/* A table that depends on input i alone, with one element for each element of a layout. */
static struct table table_of(enum derived_kind kind, int i, const struct layout *layout,
                             size_t element_bytes)
{
    return (struct table){.key = {.kind = kind, .layout = *layout},
                          .inputs = {i, NO_INPUT, NO_INPUT},
                          .layout = *layout,
                          .computed_from = SLOT_NONE,
                          .count = layout_elements(layout),
                          .element_bytes = element_bytes};
}

/* Adds a table of struct modulus for elements of input i. Its key drops axes of size 1, but keeps
 * at least one axis. So steps with views of different rank share the table. */
static int modulus_table(struct launcher *self, int i, const struct layout *layout)
{
    struct table table = table_of(DERIVED_MODULI, i, layout, sizeof(struct modulus));
    table.longer_serves = true;
    for (uint32_t axis = layout->rank; axis-- > 0;)
        if (layout->shape[axis] == 1)
            table.key.layout = layout_drop_axis(&table.key.layout, axis);
    if (table.key.layout.rank == 0)
        table.key.layout = layout_insert_axis(&table.key.layout, 0, 1, 1);
    return template_add_table(self, &table);
}

/* Adds a table of struct modulus, or its lanes, for each scalar of the plan. The plan has checked
 * the scalars that are moduli. Any other scalar counts as 1. */
static int scalar_table(struct launcher *self, enum derived_kind kind, size_t element_bytes)
{
    struct table table = table_of(kind, NO_INPUT, &(struct layout){.rank = 0}, element_bytes);
    table.count = (int64_t)self->plan->constants.count;
    return template_add_table(self, &table);
}

/* The table has each distinct modulus once, in C order. So axes along which moduli change get the
 * strides of a contiguous tensor, and axes that repeat them keep stride 0. */
struct layout modulus_operand(const struct step *step, int i)
{
    struct layout operand = step->in[i]->layout;
    operand.offset = 0; /* a scalar's offset is added by job_move_scalar */
    if (is_scalar(step, i))
        return operand;
    const struct layout distinct = layout_own_elements(&operand), packed = layout_packed(&distinct);
    for (uint32_t axis = 0, packed_axis = 0; axis < operand.rank; axis++)
        if (operand.stride[axis] != 0)
            operand.stride[axis] = packed.stride[packed_axis++];
    return operand;
}

int derive_moduli(struct launcher *self, const struct step *step, int i)
{
    if (is_scalar(step, i))
        return scalar_table(self, DERIVED_SCALARS, sizeof(struct modulus));
    const struct layout distinct = layout_own_elements(&step->in[i]->layout);
    return modulus_table(self, i, &distinct);
}

int derive_modulus_vector(struct launcher *self, const struct step *step, int i)
{
    struct layout vector = step->in[i]->layout;
    while (vector.rank > 1)
        vector = layout_drop_axis(&vector, 0);
    return modulus_table(self, i, &vector);
}

/* Whether moduli vary along the last axis only, with a period that a table of vectors can have. A
 * scalar counts as a period of 1. */
bool moduli_are_periodic(const struct step *step, int i)
{
    enum { PERIOD_MAX = 4096 };
    if (is_scalar(step, i))
        return true;
    const struct layout *moduli = &step->in[i]->layout;
    const struct layout distinct = layout_own_elements(moduli);
    const int64_t k = layout_elements(&distinct);
    if (k == 1)
        return true;
    const uint32_t last = moduli->rank - 1;
    const bool vary_along_last_only = moduli->stride[last] != 0 && moduli->shape[last] == k;
    return k <= PERIOD_MAX && vary_along_last_only;
}

/* Adds two tables of moduli [k]: one of struct modulus, and one of vectors of eight. Vectors
 * begin at every eighth element, so that they repeat after lcm(k, 8) elements. */
struct periodic_moduli derive_periodic_moduli(struct launcher *self, const struct step *step, int i)
{
    const size_t lanes_bytes = sizeof(struct scalar_lanes);
    struct periodic_moduli moduli = {.table = SLOT_NONE, .k = 1, .period = 1};
    if (is_scalar(step, i)) {
        moduli.lanes = scalar_table(self, DERIVED_SCALAR_LANES, lanes_bytes);
        return moduli;
    }
    const struct layout distinct = layout_own_elements(&step->in[i]->layout);
    /* lcm(k, 8) / 8 = k / gcd(k, 8): at most three factors of 2 are divided out. */
    moduli.k = moduli.period = layout_elements(&distinct);
    for (int64_t power = LANES; power > 1 && moduli.period % 2 == 0; power /= 2)
        moduli.period /= 2;
    moduli.table = modulus_table(self, i, &distinct);
    struct table lanes = table_of(DERIVED_LANE_MODULI, i, &distinct, lanes_bytes);
    lanes.count = moduli.period;
    lanes.computed_from = moduli.table;
    moduli.lanes = template_add_table(self, &lanes);
    return moduli;
}

/* A table of twiddles for input `factors`, [k,n] or [k]. It also depends on another input with an
 * element for each of the k rows. */
static struct table twiddle_table(enum derived_kind kind, const struct step *step, int factors,
                                  int other, size_t element_bytes)
{
    struct layout layout = step->in[factors]->layout;
    if (layout.rank == 1) /* as [k,1] */
        layout = layout_insert_axis(&layout, 1, 1, 1);
    struct table table = table_of(kind, factors, &layout, element_bytes);
    table.inputs[1] = other;
    table.key.others = step->in[other]->layout;
    table.longer_serves = true;
    return table;
}

static int derive_twiddles(struct launcher *self, const struct step *step, int i)
{
    const struct table table = twiddle_table(DERIVED_TWIDDLES, step, i, Q, sizeof(struct twiddle));
    return template_add_table(self, &table);
}

/* Twiddles [k] of n_inv times factors. They depend on three tensors, but a key has two layouts. An
 * extra axis of the first layout therefore has q's offset and stride. */
static int derive_scales(struct launcher *self, const struct step *step)
{
    const struct layout *q = &step->in[Q]->layout;
    struct table table = twiddle_table(DERIVED_SCALED_TWIDDLES, step, FACTORS,
                                       step->in[N_INV] ? N_INV : Q, sizeof(struct twiddle));
    table.inputs[2] = Q;
    table.key.layout = layout_insert_axis(&table.key.layout, 0, q->offset, q->stride[0]);
    table.longer_serves = false; /* that extra axis comes first */
    table.count = q->shape[0];
    return template_add_table(self, &table);
}

/* Adds the tables of a transform: q, twiddles, n_inv (with factors, if any) and the permutation. */
enum healcl_status derive_transform(struct launcher *self, const struct step *step,
                                    struct transform_tables *tables, struct healcl_error *error)
{
    tables->q = modulus_table(self, Q, &step->in[Q]->layout);
    tables->twiddles = derive_twiddles(self, step, PSI);
    tables->n_inv = tables->twiddles; /* stand-ins */
    tables->permutation = tables->q;
    if (step->in[FACTORS])
        tables->n_inv = derive_scales(self, step);
    else if (step->in[N_INV])
        tables->n_inv = derive_twiddles(self, step, N_INV);
    if (step->in[PERMUTATION])
        return derive_permutation(self, step, PERMUTATION_AS_GIVEN, &tables->permutation, error);
    return HEALCL_OK;
}

/* Adds a table of a transform's twiddles in the order of cl/ntt/rows.cl, for words of `word_bits`
 * bits. The device computes it from the table `twiddles`. */
int derive_lane_twiddles(struct launcher *self, const struct step *step, int twiddles,
                         uint32_t word_bits)
{
    struct table table = twiddle_table(DERIVED_LANE_TWIDDLES, step, PSI, Q, word_bits / 8);
    const int64_t k = table.layout.shape[0], n = table.layout.shape[1];
    table.key.word_bits = word_bits;
    table.computed_from = twiddles;
    table.count = k * (int64_t)ntt_lane_twiddles((uint64_t)n); /* words */
    return template_add_table(self, &table);
}

/* Adds a table of a transform's twiddles for cl/ntt/registers.cl: all [k,n], or with `beside`
 * only the first ones of each modulus, side by side as [beside,k]. */
int derive_pass_twiddles(struct launcher *self, const struct step *step, int twiddles,
                         int64_t beside, uint32_t word_bits)
{
    const size_t two_words = 2 * word_bits / 8; /* a factor and its quotient */
    struct table table = twiddle_table(DERIVED_PASS_TWIDDLES, step, PSI, Q, two_words);
    const int64_t k = table.layout.shape[0], n = table.layout.shape[1];
    table.key.beside = beside;
    table.key.word_bits = word_bits;
    table.computed_from = twiddles;
    table.longer_serves = beside == 0; /* else k is the last axis: more moduli change all rows */
    table.count = k * (beside ? beside : n);
    return template_add_table(self, &table);
}

/* Adds the tables of a permutation and of its inverse, uint [n+1] each, and returns the slot of
 * one. The device computes both together: the inverse shows it whether entries repeat. For that it
 * needs n elements of scratch memory, which follow the inverse's n + 1. */
enum healcl_status derive_permutation(struct launcher *self, const struct step *step,
                                      enum permutation_use use, int *slot,
                                      struct healcl_error *error)
{
    const struct layout *layout = &step->in[PERMUTATION]->layout;
    struct table table = table_of(DERIVED_PERMUTATION, PERMUTATION, layout, sizeof(uint32_t));
    const int64_t n = layout->shape[0];
    if (n > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument '%s': %lld entries are more than 2^31-1",
                   launcher_refuse(self, step, PERMUTATION), (long long)n);
    const int64_t with_kind = n + 1; /* the last element gives the permutation's kind */
    table.count = with_kind;
    const int as_given = template_add_table(self, &table);
    table.key.kind = DERIVED_INVERSE_PERMUTATION;
    table.count = with_kind + n;
    table.only_for_filling = true;
    const int inverse = template_add_table(self, &table);
    *slot = use == PERMUTATION_INVERTED ? inverse : as_given;
    self->templates.current->tables[*slot - SLOT_TABLE].only_for_filling = false;
    return HEALCL_OK;
}

/* Adds a table [k,k] with the inverse of each modulus modulo each other one, for the Chinese
 * remainder theorem. */
enum healcl_status derive_crt_inverses(struct launcher *self, const struct step *step, int i,
                                       int *slot, struct healcl_error *error)
{
    const struct layout *moduli = &step->in[i]->layout;
    const int64_t k = layout_elements(moduli);
    struct table table = table_of(DERIVED_CRT_INVERSES, i, moduli, sizeof(struct twiddle));
    table.computed_from = derive_modulus_vector(self, step, i);
    TRY(layout_init(&table.layout, 2, (int64_t[]){k, k}, table.element_bytes, error));
    table.count = k * k;
    *slot = template_add_table(self, &table);
    return HEALCL_OK;
}

/* Elements of input i must be indices of axis value[0] of the first input. With value[1], negative
 * ones count from the end. The check is a table without elements: it is made again when the indices
 * were written. */
static void derive_index_check(struct launcher *self, const struct step *step, int i)
{
    const struct layout distinct = layout_own_elements(&step->in[i]->layout);
    const bool allows_negative = step->value[1] != 0;
    struct table table = table_of(DERIVED_INDEX_CHECK, i, &distinct, 0);
    table.count = 0;
    table.key.index_end = step->in[INPUT_A]->layout.shape[step->value[0]];
    table.key.index_min = allows_negative ? -table.key.index_end : 0;
    (void)template_add_table(self, &table);
}

/* Adds what reports values of input i that the step refuses, such as a modulus of 0. */
enum healcl_status derive_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error)
{
    int unused_slot;
    switch (step_check(step, i)) { /* most values are checked while a table is filled from them */
    case CHECK_INDEX: derive_index_check(self, step, i); break;
    case CHECK_PERMUTATION:
        return derive_permutation(self, step, PERMUTATION_AS_GIVEN, &unused_slot, error);
    case CHECK_COPRIME: return derive_crt_inverses(self, step, i, &unused_slot, error);
    case CHECK_MODULUS:
        if (!step->in[i]->storage->scalars)
            (void)derive_moduli(self, step, i);
        break;
    case CHECK_NONE: break;
    }
    return HEALCL_OK;
}

/* Adds a table with the weights of all digits of a base conversion, [terms,k]. Kernels then see
 * them as one factor b. */
int derive_weights(struct launcher *self, const struct step *step)
{
    const struct layout *a = &step->in[INPUT_A]->layout; /* [reps,terms,k,n] */
    const struct tensor *b_0 = step->in[INPUT_B];        /* [s,k,n], constant along n */
    struct table table =
        table_of(DERIVED_WEIGHTS, INPUT_B, &b_0->layout, dtype_size(b_0->storage->dtype));
    table.key.terms = a->shape[1];
    table.count = table.key.terms * b_0->layout.shape[1];
    return template_add_table(self, &table);
}
