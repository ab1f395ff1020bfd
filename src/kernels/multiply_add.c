/* Products that are added one after the other: cl/core/multiply_add.cl, cl/modular. */
#include <string.h>

#include "kernels/kernels.h"

_Static_assert((int)PRODUCTS == STEP_PRODUCTS && (int)PRODUCT_AXES == STEP_PRODUCT_AXES,
               "cl/base/geometry.h and plan/plan.h differ");

/* The layouts of a step: out, moduli and factors, with as few axes as possible. */
enum { OF_OUT, OF_MODULI, OF_FACTORS, LAYOUTS = OF_FACTORS + FACTORS_ALL };

/* The input that is factor k. */
static int input_of(int k)
{
    return k < 2 ? k : k + 1;
}

/* moduli: as operand 3 of the space; NULL: the space does not have it. */
static void find_layouts(const struct step *step, const struct layout *moduli,
                         struct layout layouts[LAYOUTS])
{
    layouts[OF_OUT] = step->out->layout;
    layouts[OF_MODULI] = step->out->layout;
    layouts[OF_MODULI].offset = 0;
    memset(layouts[OF_MODULI].stride, 0, sizeof layouts[OF_MODULI].stride);
    if (moduli)
        layouts[OF_MODULI] = *moduli;
    for (int k = 0; k < FACTORS_ALL; k++) {
        const struct tensor *tensor = step->in[input_of(k)];
        layouts[OF_FACTORS + k] = tensor ? tensor->layout : step->out->layout;
    }
    layouts_simplify(layouts, LAYOUTS);
}

static void set_plan(const struct step *step, const struct layout layouts[LAYOUTS],
                     struct variant_plan *plan)
{
    struct factors *factors = &plan->factors;
    *factors = (struct factors){.has = 0};
    space_init(&plan->space, &layouts[OF_OUT]);
    space_set_operand(&plan->space, 0, &layouts[OF_OUT]);
    space_set_operand(&plan->space, 3, &layouts[OF_MODULI]);
    for (int k = 0; k < FACTORS_ALL; k++) {
        const struct layout *view = &layouts[OF_FACTORS + k];
        if (!step->in[input_of(k)])
            continue;
        factors->has |= 1u << k;
        factors->offset[k] = view->offset;
        for (uint32_t axis = 0; axis < view->rank; axis++)
            factors->stride[k][view->rank - 1 - axis] = (uint32_t)view->stride[axis];
    }
}

static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan)
{
    const struct step *step = plan->step;
    job_begin(job, self, step, plan, 0);
    if (is_scalar(step, 2)) {
        job->space.operand[3].offset = step->in[2]->layout.offset;
        job->moved[3] = 2;
    }
    for (int k = 0; k < FACTORS_ALL; k++) /* a missing one needs a stand-in */
        job_add_input(job, step->in[step->in[input_of(k)] ? input_of(k) : 0]);
    job_add_value(job, &plan->factors, sizeof plan->factors);
}

static const char *plan_elements(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    struct layout layouts[LAYOUTS];
    const struct layout moduli = modulus_operand(step, 2);
    (void)device;
    find_layouts(step, &moduli, layouts);
    set_plan(step, layouts, plan);
    return NULL;
}

static enum healcl_status choose_elements(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    struct job job;
    begin(&job, self, plan);
    job_add_buffer(&job, derive_moduli(self, plan->step, 2));
    return job_launch(&job, error);
}

/* Makes the longest axis of whole vectors along which moduli are equal the last one. */
static bool find_equal_moduli(struct layout layouts[LAYOUTS])
{
    const struct layout *moduli = &layouts[OF_MODULI];
    uint32_t longest = moduli->rank;
    for (uint32_t axis = 0; axis < moduli->rank; axis++)
        if (moduli->stride[axis] == 0 && moduli->shape[axis] % LANES == 0 &&
            (longest == moduli->rank || moduli->shape[axis] >= moduli->shape[longest]))
            longest = axis;
    if (longest == moduli->rank)
        return false;
    for (int i = 0; i < LAYOUTS; i++)
        layouts[i] = layout_move_axis(&layouts[i], longest, layouts[i].rank - 1);
    return true;
}

static const char *plan_vectors(const struct step *step, const struct healcl_device *device,
                                struct variant_plan *plan)
{
    struct layout layouts[LAYOUTS];
    int64_t k;
    const char *obstacle = double_vectors_obstacle(device);
    if (obstacle)
        return obstacle;
    find_layouts(step, NULL, layouts);
    plan->is_periodic = moduli_are_periodic(step, 2, &k) &&
                        layouts[OF_OUT].shape[layouts[OF_OUT].rank - 1] % LANES == 0;
    if (!plan->is_periodic) {
        const struct layout moduli = modulus_operand(step, 2);
        find_layouts(step, &moduli, layouts);
        if (!find_equal_moduli(layouts))
            return "moduli neither repeat nor are equal along an axis of a multiple of eight";
    }
    set_plan(step, layouts, plan);
    return NULL;
}

static enum healcl_status choose_vectors(struct launcher *self, const struct variant_plan *plan,
                                         struct healcl_error *error)
{
    enum { GRANULE = 4096 };
    const int table = derive_moduli(self, plan->step, 2);
    struct periodic_moduli moduli = {.lanes = table}; /* an unused argument needs a stand-in */
    struct job job;
    begin(&job, self, plan);
    if (plan->is_periodic)
        moduli = derive_periodic_moduli(self, plan->step, 2);
    job_add_buffer(&job, table);
    job_add_buffer(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    job.granule = GRANULE;
    return job_launch(&job, error);
}

static const struct variant multiply_add_variants[] = {
    {"vectors", STYLE_VECTORS, plan_vectors, choose_vectors, MULTIPLIED, "vectors",
     "multiply_add_vectors", "cl/modular/multiply_add.cl",
     "an axis of a multiple of eight elements, along which moduli repeat or are equal"},
    {"single", STYLE_SINGLE, plan_elements, choose_elements, 0, "core/multiply_add", "multiply_add",
     "cl/core/multiply_add.cl", "up to 2^31 elements"},
    {"elements", STYLE_GENERAL, plan_elements, choose_elements, OVER_ANY_VIEW, "core/multiply_add",
     "multiply_add", "cl/core/multiply_add.cl", "anything"},
};

const struct family family_multiply_add =
    FAMILY_OF(multiply_add, elementwise, multiply_add_variants);
