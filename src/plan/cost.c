/* Costs of steps: bytes read and written, elements visited, memory needed, and work of kernels. */
#include <string.h>

#include "core/numbers.h"
#include "plan/plan.h"

/* ---------------------------------------------------------------- saturating arithmetic */

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return b > 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* ---------------------------------------------------------------- bytes */

static uint64_t elements(const struct tensor *tensor)
{
    return (uint64_t)layout_elements(&tensor->layout);
}

/* Counts each distinct element once, however often it is repeated. */
static uint64_t tensor_bytes(const struct tensor *tensor)
{
    const struct layout own = layout_own_elements(&tensor->layout);
    return (uint64_t)layout_elements(&own) * dtype_size(tensor->storage->dtype);
}

enum check_kind step_check(const struct step *step, int input)
{
    const struct step_traits *traits = &step_traits[step->kind];
    const char *name = traits->inputs[input] ? traits->inputs[input] : "";
    if (!step->in[input])
        return CHECK_NONE;
    if (traits->moduli > 0 && input == traits->moduli)
        return step->kind == STEP_DIGITS_FULL_Q ? CHECK_COPRIME : CHECK_MODULUS;
    return strcmp(name, "perm") == 0  ? CHECK_PERMUTATION
           : strcmp(name, "idx") == 0 ? CHECK_INDEX
                                      : CHECK_NONE;
}

bool step_adds(const struct step *step)
{
    return step_traits[step->kind].adds && step->value[0] == 0;
}

struct layout step_factor(const struct step *step)
{
    const struct layout *b = &step->in[1]->layout;
    const struct layout *a = &step->in[0]->layout;
    return b->rank == a->rank ? *b : layout_insert_axis(b, 0, a->shape[0], 0);
}

/* Whether the reps of successive batch elements are evenly strided. */
static bool goes_on(const struct layout *layout)
{
    return layout->shape[1] == 1 || layout->stride[0] == layout->shape[1] * layout->stride[1];
}

/* Removes the batch axis from a view, or merges it into reps. Returns the distance. */
static int64_t take_batch(struct layout *layout, bool as_reps)
{
    const int64_t batch = layout->shape[0], distance = layout->stride[0];
    *layout = layout_drop_axis(layout, 0);
    if (!as_reps)
        return distance;
    if (layout->shape[0] == 1)
        layout->stride[0] = distance;
    layout->shape[0] *= batch;
    return 0;
}

const struct tensor *step_weights(const struct step *step, int64_t digit)
{
    return step->in[digit == 0 ? 1 : 3 + digit];
}

struct layout layout_of_weights(const struct layout *a)
{
    struct layout weights = *a;
    weights.offset = 0;
    memcpy(weights.stride, (int64_t[]){0, a->shape[2], 1, 0}, 4 * sizeof *weights.stride);
    return weights;
}

static struct product_sum digits_of(const struct step *step)
{
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    const int64_t s = step->in[1]->layout.shape[0], digits = out->shape[0];
    struct product_sum sum = {.out = *out,
                              .a = *a,
                              .batch = digits,
                              .a_distance = s * a->stride[1],
                              .b_distance = s * a->shape[2],
                              .last_terms = a->shape[1] - (digits - 1) * s};
    sum.out_distance = take_batch(&sum.out, false);
    sum.a.shape[1] = s;
    sum.b = layout_of_weights(&sum.a);
    return sum;
}

struct product_sum step_product_sum(const struct step *step)
{
    if (step->kind == STEP_BASE_CONVERSION)
        return digits_of(step);
    struct product_sum sum = {
        .out = step->out->layout, .a = step->in[0]->layout, .b = step_factor(step), .batch = 1};
    if (sum.a.rank > 4) {
        const bool as_reps = goes_on(&sum.out) && goes_on(&sum.a) && goes_on(&sum.b);
        sum.batch = as_reps ? 1 : sum.a.shape[0];
        sum.out_distance = take_batch(&sum.out, as_reps);
        sum.a_distance = take_batch(&sum.a, as_reps);
        sum.b_distance = take_batch(&sum.b, as_reps);
    }
    sum.last_terms = sum.a.shape[1];
    return sum;
}

/* Whether an input equals an earlier one, as in squares. */
static bool is_read_already(const struct step *step, int i)
{
    const struct tensor *input = step->in[i];
    for (int j = 0; j < i; j++)
        if (step->in[j] && tensors_same(step->in[j], input))
            return true;
    return false;
}

/* A gather need not read elements that no index selects. */
static uint64_t bytes_not_gathered(const struct step *step)
{
    uint64_t needed = times(elements(step->out), dtype_size(step->in[0]->storage->dtype));
    uint64_t all = tensor_bytes(step->in[0]);
    return needed < all ? all - needed : 0;
}

uint64_t step_bytes(const struct step *step)
{
    if (step->kind == STEP_RELEASE)
        return 0;
    uint64_t bytes = step->out ? tensor_bytes(step->out) : 0;
    if (step_adds(step))
        bytes *= 2;
    FOR_EACH_INPUT (i, tensor, step)
        if (!is_read_already(step, i))
            bytes += tensor_bytes(tensor);
    return step->kind == STEP_GATHER ? bytes - bytes_not_gathered(step) : bytes;
}

/* ---------------------------------------------------------------- work and memory */

uint64_t step_visits(const struct step *step)
{
    const uint64_t out = step->out ? elements(step->out) : 0;
    uint64_t visits = 0;
    switch (step_traits[step->kind].visits) {
    case VISITS_OUT: return out;
    case VISITS_FIRST: return plus(out, elements(step->in[0]));
    case VISITS_ALL:
        FOR_EACH_OPERAND (i, tensor, step)
            visits = plus(visits, elements(tensor));
        return visits;
    case VISITS_STAGES:
        return out > 0 ? times(out, log2_of((uint64_t)step->out->layout.shape[3]) + 1) : 0;
    case VISITS_FULL_Q: break;
    }
    /* Each of the l*r values passes over k words for each of its k residues, and stores each digit
     * once. Before that, the moduli are compared in pairs. */
    const int64_t *a = step->in[0]->layout.shape;
    uint64_t values = times((uint64_t)a[0], (uint64_t)a[2]), k = (uint64_t)a[1];
    return plus(out, times(plus(values, 1), times(k, k)));
}

uint64_t step_scratch_bytes(const struct step *step)
{
    if (step->kind == STEP_DOWNLOAD) {
        const struct tensor *tensor = step->in[0];
        return layout_is_contiguous(&tensor->layout)
                   ? 0
                   : times(elements(tensor), dtype_size(tensor->storage->dtype));
    }
    if (step->kind == STEP_DIGITS_FULL_Q) {
        /* A device needs [k,k] pairs of words for inverses and four words for each modulus. The
         * host reference needs [k,k+1] words for the parts of the CRT, and six more for each
         * modulus. */
        uint64_t k = (uint64_t)step->in[1]->layout.shape[0];
        return times(times(k, plus(k, 4)), 2 * sizeof(uint64_t));
    }
    return 0;
}

/* ---------------------------------------------------------------- what kernels do */

const char *const segment_work_names[WORKS] = {
    [WORK_PRODUCTS] = "products",       [WORK_SUMMED_PRODUCTS] = "summed_products",
    [WORK_BUTTERFLIES] = "butterflies", [WORK_DIGITS] = "digits",
    [WORK_CRT_DIGITS] = "crt_digits",
};

static void add_work(const struct step *step, enum segment_work kind, uint64_t work[WORKS])
{
    uint64_t amount = elements(step->out);
    if (kind == WORK_SUMMED_PRODUCTS)
        amount = elements(step->in[0]);
    else if (kind == WORK_BUTTERFLIES)
        amount = times(amount / 2, log2_of((uint64_t)step->out->layout.shape[3]));
    if (kind < WORKS)
        work[kind] = plus(work[kind], amount);
}

void step_add_cost(const struct step *step, struct segment_cost *cost)
{
    if (step->kind <= STEP_RELEASE || step->side == STEP_OF_BODY)
        return;
    cost->launches++;
    cost->bytes = plus(cost->bytes, step_bytes(step));
    for (int i = 0; i < 2 && step->kind == STEP_CHAIN; i++)
        add_work(step, step_traits[step->value[i]].work, cost->work);
    for (int i = step_adds_factors(step);
         step->kind == STEP_MULTIPLY_ADD && i < step_products(step); i++)
        add_work(step, WORK_PRODUCTS, cost->work);
    if (step->kind == STEP_NTT && step->in[STEP_ADDEND])
        add_work(step, WORK_PRODUCTS, cost->work);
    add_work(step, step_traits[step->kind].work, cost->work);
}
