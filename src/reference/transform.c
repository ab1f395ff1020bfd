/* ntt and intt: negacyclic number-theoretic transforms along the last axis. */
#include "reference/arithmetic.h"
#include "reference/operand.h"

#include <stdlib.h>

/*
 * Cooley-Tukey, natural order in, bit-reversed order out. psi[i] is the twiddle at the bit-reversal
 * of i. x is in [0, q) before, between and after the stages.
 */
static void forward(uint64_t *x, int64_t n, const struct twiddle *psi, uint64_t q)
{
    for (int64_t m = 1; m < n; m *= 2) {
        int64_t half = n / (2 * m);
        for (int64_t i = 0; i < m; i++) {
            uint64_t *low = x + 2 * i * half, *high = low + half;
            for (int64_t u = 0; u < half; u++) {
                uint64_t y = twiddle_multiply(high[u], psi[m + i], q);
                high[u] = mod_subtract(low[u], y, q);
                low[u] = mod_add(low[u], y, q);
            }
        }
    }
}

/* Gentleman-Sande, bit-reversed order in, natural order out, without the factor n_inv. */
static void inverse(uint64_t *x, int64_t n, const struct twiddle *ipsi, uint64_t q)
{
    for (int64_t m = n / 2; m >= 1; m /= 2) {
        int64_t half = n / (2 * m);
        for (int64_t i = 0; i < m; i++) {
            uint64_t *low = x + 2 * i * half, *high = low + half;
            for (int64_t u = 0; u < half; u++) {
                uint64_t difference = mod_subtract(low[u], high[u], q);
                low[u] = mod_add(low[u], high[u], q);
                high[u] = twiddle_multiply(difference, ipsi[m + i], q);
            }
        }
    }
}

/* Operands of a transform other than a, copied and checked. */
struct tables {
    int64_t n;
    int64_t *q;               /* [k], each at least 1 */
    int64_t *perm;            /* [n], or NULL */
    int64_t *n_inv;           /* [k], or NULL: forward */
    int64_t *factors;         /* [k], or NULL */
    struct operand psi;       /* psi or ipsi, [k,n] */
    struct twiddle *twiddles; /* [n], for the current modulus */
    uint64_t *x;              /* [n], the current polynomial */
};

static enum healcl_status tables_init(struct tables *tables, struct reference *reference,
                                      const struct step *step, struct healcl_error *error)
{
    struct operand operand;
    TRY(reference_moduli(&operand, reference, step, 1, error));
    TRY(reference_read_vector(&operand, &tables->q, error));
    TRY(reference_operand(&tables->psi, reference, step->in[2], error));
    if (step->in[3])
        TRY(reference_read_permutation(reference, step, 3, &tables->perm, error));
    if (step->kind == STEP_INTT) {
        TRY(reference_operand(&operand, reference, step->in[4], error));
        TRY(reference_read_vector(&operand, &tables->n_inv, error));
    }
    if (step->kind == STEP_INTT && step->in[STEP_FACTORS]) {
        TRY(reference_operand(&operand, reference, step->in[STEP_FACTORS], error));
        TRY(reference_read_vector(&operand, &tables->factors, error));
    }
    tables->n = step->out->layout.shape[3];
    tables->twiddles = reference_allocate((uint64_t)tables->n, sizeof *tables->twiddles);
    tables->x = reference_allocate((uint64_t)tables->n, sizeof *tables->x);
    NEED_MEMORY(tables->twiddles && tables->x, error);
    return HEALCL_OK;
}

/* Sets twiddles to those of modulus j. */
static void tables_choose(struct tables *tables, int64_t j)
{
    const struct layout *layout = &tables->psi.layout;
    int64_t q = tables->q[j];
    for (int64_t i = 0; i < tables->n; i++) {
        int64_t position = layout->offset + j * layout->stride[0] + i * layout->stride[1];
        uint64_t root = floor_remainder(operand_load(&tables->psi, position), q);
        tables->twiddles[i] = twiddle_init(root, (uint64_t)q);
    }
}

/* Transforms the polynomial at position `from` in a to position `to` in out, modulo q[j]. Reads all
 * of it before writing any of it. */
static void transform_one(const struct tables *tables, int64_t j, const struct operand *a,
                          int64_t from, const struct operand *out, int64_t to)
{
    const int64_t *perm = tables->perm;
    int64_t n = tables->n, q = tables->q[j], stride = out->layout.stride[3];
    uint64_t *x = tables->x;

    if (!tables->n_inv) {
        for (int64_t u = 0; u < n; u++)
            x[u] = floor_remainder(operand_load(a, from + u * a->layout.stride[3]), q);
        forward(x, n, tables->twiddles, (uint64_t)q);
        for (int64_t u = 0; u < n; u++)
            operand_store(out, to + u * stride, (int64_t)x[perm ? perm[u] : u]);
    } else {
        uint64_t n_inv = floor_remainder(tables->n_inv[j], q);
        for (int64_t u = 0; u < n; u++)
            x[perm ? perm[u] : u] =
                floor_remainder(operand_load(a, from + u * a->layout.stride[3]), q);
        inverse(x, n, tables->twiddles, (uint64_t)q);
        int64_t factor = tables->factors ? tables->factors[j] : 1;
        for (int64_t u = 0; u < n; u++) {
            int128 value = (int128)mod_multiply(x[u], n_inv, (uint64_t)q);
            operand_store(out, to + u * stride, c_remainder(value * factor, q));
        }
    }
}

enum healcl_status reference_transform(struct reference *reference, const struct step *step,
                                       struct healcl_error *error)
{
    struct operand out, a;
    TRY(reference_operand(&out, reference, step->out, error));
    TRY(reference_operand(&a, reference, step->in[0], error));
    struct tables tables = {.q = NULL};
    enum healcl_status status = tables_init(&tables, reference, step, error);
    if (status == HEALCL_OK) {
        const int64_t *shape = out.layout.shape;
        const int64_t *in = a.layout.stride, *to = out.layout.stride;
        for (int64_t j = 0; j < shape[2] && status == HEALCL_OK; j++) {
            tables_choose(&tables, j);
            for (int64_t i = 0; i < shape[0] * shape[1] && status == HEALCL_OK; i++) {
                const int64_t l = i / shape[1], r = i % shape[1];
                status = reference_visit(reference, tables.n, error);
                if (status == HEALCL_OK)
                    transform_one(&tables, j, &a,
                                  a.layout.offset + l * in[0] + r * in[1] + j * in[2], &out,
                                  out.layout.offset + l * to[0] + r * to[1] + j * to[2]);
            }
        }
    }
    free(tables.q);
    free(tables.perm);
    free(tables.n_inv);
    free(tables.factors);
    free(tables.twiddles);
    free(tables.x);
    if (status != HEALCL_OK || !step->in[STEP_ADDEND])
        return status;
    struct step_chain chain;
    step_chain_of(step, &chain);
    return reference_elementwise(reference, &chain.step, error);
}
