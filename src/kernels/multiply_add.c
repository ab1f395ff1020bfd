/* Products that are added one after the other: cl/core/multiply_add.cl, cl/modular. */
#include <string.h>

#include "kernels/kernels.h"

_Static_assert((int)PRODUCTS == STEP_PRODUCTS && (int)PRODUCT_AXES == STEP_PRODUCT_AXES,
               "cl/base/geometry.h and plan/plan.h differ");

/* Layouts of out, of moduli in their table, of factors, and of parts. */
enum { OF_MODULI = 1, OF_FACTORS = 2, OF_PARTS = OF_FACTORS + FACTORS_ALL, LAYOUTS };

/* Operand k of the sum, in the order of inputs without the moduli; NULL: it is missing. */
static const struct tensor *factor_of(const struct step *step, int k)
{
    return step->in[k < INPUT_P ? k : k + 1];
}

/* The longest axis of whole vectors along which moduli are equal. The rank if none exists. */
static uint32_t find_vector_axis(const struct layout *moduli)
{
    uint32_t longest = moduli->rank;
    for (uint32_t axis = 0; axis < moduli->rank; axis++)
        if (moduli->stride[axis] == 0 && moduli->shape[axis] % LANES == 0 &&
            (longest == moduli->rank || moduli->shape[axis] >= moduli->shape[longest]))
            longest = axis;
    return longest;
}

enum last_axis { LAST_AXIS_ANY, LAST_AXIS_OF_VECTORS };

/* Sets the views of out, moduli, factors and parts, simplified together. The view of parts has
 * stride 1 along the axis value[1], counted from the last, of which value[0] factors have a part
 * only. So that axis is not joined with others. */
static void set_layouts(const struct step *step, const struct layout *moduli,
                        struct layout layouts[LAYOUTS])
{
    const struct layout *out = &step->out->layout;
    const bool has_parts = step->value[0] > 0;
    layouts[0] = layouts[OF_PARTS] = *out;
    layouts[OF_MODULI] = *moduli;
    for (int k = 0; k < FACTORS_ALL; k++)
        layouts[OF_FACTORS + k] = factor_of(step, k) ? factor_of(step, k)->layout : *out;
    memset(layouts[OF_PARTS].stride, 0, sizeof layouts->stride);
    if (has_parts)
        layouts[OF_PARTS].stride[out->rank - step->value[1]] = 1;
    layouts_simplify(layouts, LAYOUTS);
}

/* The factors as kernels take them: see struct factors. Strides begin with the last axis. */
static struct factors factors_of(const struct step *step, const struct layout layouts[LAYOUTS])
{
    const uint32_t rank = layouts->rank;
    struct factors factors = {.has = 0};
    for (uint32_t i = 0; i < rank; i++)
        if (layouts[OF_PARTS].stride[i] != 0)
            factors.has |= (rank - 1 - i) << FACTORS_AXIS;
    for (int k = 0; k < FACTORS_ALL; k++) {
        const struct layout *view = &layouts[OF_FACTORS + k];
        const bool exists = factor_of(step, k) != NULL;
        /* Products from value[0] on exist at one index of the axis of parts only. */
        const bool is_part = step->value[0] > 0 && k + 1 >= step_factors((int)step->value[0]);
        factors.has |= (uint32_t)exists << k | (uint32_t)is_part << (FACTORS_PART + k);
        factors.offset[k] = view->offset;
        for (uint32_t i = 0; i < rank; i++)
            factors.stride[(uint32_t)k * PRODUCT_AXES + i] = (uint32_t)view->stride[rank - 1 - i];
    }
    return factors;
}

/* Sets the space of a plan, and its factors. moduli: their layout in a table. LAST_AXIS_OF_VECTORS:
 * makes an axis of whole vectors, along which moduli are equal, the last one. Returns false if no
 * such axis exists. */
static bool set_views(struct variant_plan *plan, const struct layout *moduli,
                      enum last_axis last_axis)
{
    struct layout layouts[LAYOUTS];
    set_layouts(plan->step, moduli, layouts);
    if (last_axis == LAST_AXIS_OF_VECTORS) {
        const uint32_t rank = layouts->rank, axis = find_vector_axis(&layouts[OF_MODULI]);
        if (axis == rank)
            return false;
        for (int i = 0; i < LAYOUTS; i++)
            layouts[i] = layout_move_axis(&layouts[i], axis, rank - 1);
    }
    space_init(&plan->space, layouts);
    space_set_operand(&plan->space, OPERAND_OUT, layouts);
    space_set_operand(&plan->space, OPERAND_Q, &layouts[OF_MODULI]);
    plan->factors = factors_of(plan->step, layouts);
    return true;
}

static const char *plan_elements(struct variant_plan *plan)
{
    const struct layout moduli = modulus_operand(plan->step, INPUT_P);
    (void)set_views(plan, &moduli, LAST_AXIS_ANY);
    return NULL;
}

/* For vectors of eight elements along the last axis. Their moduli may repeat along rows of whole
 * vectors: then the kernel takes them from a table of vectors, and moduli are no operand of the
 * space. Otherwise all elements of a vector must have the same modulus. */
static const char *plan_vectors(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const struct layout moduli = modulus_operand(step, INPUT_P);
    struct layout without_moduli = {.rank = step->out->layout.rank}; /* all strides are 0 */
    memcpy(without_moduli.shape, step->out->layout.shape, sizeof without_moduli.shape);
    RETURN_OBSTACLE(double_vectors_obstacle(plan->device));
    (void)set_views(plan, &without_moduli, LAST_AXIS_ANY);
    const bool rows_are_vectors = plan->space.shape[plan->space.rank - 1] % LANES == 0;
    plan->is_periodic = moduli_are_periodic(step, INPUT_P) && rows_are_vectors;
    OBSTACLE_IF(!plan->is_periodic && !set_views(plan, &moduli, LAST_AXIS_OF_VECTORS),
                "moduli neither repeat nor are equal along an axis of a multiple of eight");
    return NULL;
}

/* The kernels' parameters: space, out, the factors, their views, moduli, and on vectors also lanes
 * of periodic moduli with their period; 0: moduli are equal along the last axis. With all of these,
 * the space goes into memory: some devices allow few bytes of arguments. */
static enum healcl_status choose(struct launcher *self, const struct variant_plan *plan,
                                 struct healcl_error *error)
{
    enum { GRANULE = 4096 }; /* elements: the least work of a work-item on vectors */
    const struct step *step = plan->step;
    const int table = derive_moduli(self, step, INPUT_P);
    struct periodic_moduli moduli = {.lanes = table}; /* an unused argument needs a stand-in */
    struct job job;
    job_begin(&job, self, plan, 0 /* inputs */);
    job_move_scalar(&job, OPERAND_Q, step, INPUT_P);
    for (int k = 0; k < FACTORS_ALL; k++) /* a missing one needs a stand-in */
        job_add_input(&job, factor_of(step, k) ? factor_of(step, k) : step->in[INPUT_A]);
    job_add_value(&job, &plan->factors, sizeof plan->factors);
    job_add_buffer(&job, table);
    if (plan->variant->style != STYLE_VECTORS)
        return job_launch(&job, error);
    job_put_space_in_memory(&job);
    if (plan->is_periodic)
        moduli = derive_periodic_moduli(self, step, INPUT_P);
    job_add_buffer(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    job.granule = GRANULE;
    return job_launch(&job, error);
}

static const struct variant multiply_add_variants[] = {
    {"vectors", STYLE_VECTORS, plan_vectors, choose, MULTIPLIED, "vectors", "multiply_add_vectors",
     "cl/modular/multiply_add.cl",
     "an axis of a multiple of eight elements, along which moduli repeat or are equal"},
    GENERAL_VARIANTS("elements", plan_elements, choose, OVER_ANY_VIEW, "core/multiply_add",
                     "multiply_add"),
};

const struct family family_multiply_add =
    FAMILY_OF(multiply_add, elementwise, multiply_add_variants);
