/* Gadget digits: cl/digits/digits.cl. */
#include "kernels/kernels.h"

static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan)
{
    enum dtype dtype = plan->step->in[0]->storage->dtype;
    job_begin(job, self, plan->step, plan, 1);
    job_define_type(job, "A", dtype);
    job_define(job, "A_UNSIGNED", dtype == DTYPE_INT32 ? "uint" : "ulong");
}

enum { ELEMENTS_MIN = 1024 /* fewer are not worth another kernel */ };

/* The space has the values. Its operands are the output, at the first digit, and a. */
static const char *plan_digits(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    const struct layout *out = &step->out->layout;
    struct layout out_view = layout_drop_axis(out, out->rank - 1);
    (void)device;
    space_of_views(&plan->space, &out_view, &step->in[0]->layout);
    return NULL;
}

static const char *plan_digit_vectors(const struct step *step, const struct healcl_device *device,
                                      struct variant_plan *plan)
{
    const struct layout *out = &step->out->layout;
    (void)plan_digits(step, device, plan);
    if (plan->space.end < ELEMENTS_MIN)
        return "there are too few elements";
    return out->stride[out->rank - 1] == 1 && out->shape[out->rank - 1] >= LANES
               ? NULL
               : "few digits for each value, or not contiguous";
}

/* The most digits of a value, and the bytes of local memory that a value needs. */
enum { DIGITS_MAX = 1 << 16, DIGITS_LOCAL_BYTES = 2 * sizeof(uint64_t) };

static const char *plan_local(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    int64_t count = step->out->layout.shape[step->out->layout.rank - 1];
    (void)plan_digits(step, device, plan);
    return count == 0 || count > DIGITS_MAX ? "there are no digits, or too many"
           : device->info.local_memory_bytes <
                   (uint64_t)DIGITS_LOCAL_BYTES * device->tuning.local_size
               ? "there is too little local memory"
               : NULL;
}

/* Whether the elements of one value, `stride` apart, are closer together than those of neighbouring
 * values. */
static bool lie_side_by_side(const struct space *space, uint32_t operand, int64_t stride)
{
    uint32_t last = space->rank - 1;
    return space->shape[last] == 1 || stride < space->operand[operand].stride[last];
}

/* Launches work-groups with one value for each work-item. */
static enum healcl_status choose_values(struct job *job, size_t local_size,
                                        struct healcl_error *error)
{
    job->space.elements_per_item = 1;
    return job_launch_groups(job, (job->space.end + local_size - 1) / local_size, local_size,
                             error);
}

static enum healcl_status choose_digits(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *out = &step->out->layout;
    uint32_t digit_axis = out->rank - 1;
    int64_t count = out->shape[digit_axis];
    struct job job;
    begin(&job, self, plan);
    job.rounds = (uint64_t)count;
    job_add_long(&job, step->value[0]);
    if (plan->variant->style == STYLE_LOCAL)
        job_add_uint(&job, (uint32_t)count);
    else
        job_add_long(&job, count);
    if (plan->variant->style != STYLE_VECTORS)
        job_add_long(&job, out->stride[digit_axis]);
    if (plan->variant->style == STYLE_LOCAL)
        job_add_uint(&job, lie_side_by_side(&job.space, 0, out->stride[digit_axis]));
    job_add_written(&job, SLOT_STATUS);
    return plan->variant->style == STYLE_LOCAL
               ? choose_values(&job, self->device->tuning.local_size, error)
               : job_launch(&job, error);
}

static const struct variant digits_variants[] = {
    {"vectors", STYLE_VECTORS, plan_digit_vectors, choose_digits, OVER_ELEMENTS, "digits/digits",
     "digits_vectors", "cl/digits/digits.cl", "eight or more contiguous digits for each value"},
    {"local", STYLE_LOCAL, plan_local, choose_digits, OVER_ANY_VIEW, "digits/digits",
     "digits_local", "cl/digits/digits.cl", "up to 65536 digits"},
    {"single", STYLE_SINGLE, plan_digits, choose_digits, 0, "digits/digits", "digits",
     "cl/digits/digits.cl", "up to 2^31 elements"},
    {"elements", STYLE_GENERAL, plan_digits, choose_digits, OVER_ANY_VIEW, "digits/digits",
     "digits", "cl/digits/digits.cl", "anything"},
};

const struct family family_digits = FAMILY_OF(digits, digits, digits_variants);

/* ---------------------------------------------------------------- digits of the full modulus */

/*
 * Work-items of digits_full_q keep one word for each modulus in arrays. If they process blocks of
 * values as vectors, each value has such a word. Some devices keep private arrays of a whole
 * work-group on a thread's stack.
 */
enum {
    MODULI_MAX = 1 << 15,
    PRIVATE_BYTES_MAX = 1 << 20,
    PRIVATE_BYTES = sizeof(uint64_t),
    PRIVATE_BYTES_VECTORS = PRIVATE_BYTES + DIGITS_BLOCK * sizeof(uint64_t)
};

/* The most work-items whose words, plus one word each, fit into `bytes` bytes. It is a power of
 * two, or 0. */
static size_t local_size_for(const struct step *step, const struct healcl_device *device,
                             uint64_t bytes)
{
    size_t local_size = device->tuning.local_size;
    uint64_t words = (uint64_t)step->in[0]->layout.shape[1] + 1;
    while (local_size > bytes / sizeof(uint64_t) / words)
        local_size /= 2;
    return local_size;
}

/* Local memory of a work-group. NVIDIA's compilers accept no more, even if a device has more. */
static uint64_t local_bytes(const struct healcl_device *device)
{
    enum { LOCAL_BYTES_MAX = 48 << 10 };
    uint64_t bytes = device->info.local_memory_bytes;
    return bytes < LOCAL_BYTES_MAX ? bytes : LOCAL_BYTES_MAX;
}

static void set_full_q_space(const struct step *step, struct space *space)
{
    struct layout a_view = layout_drop_axis(&step->in[0]->layout, 1);
    struct layout out_view = layout_drop_axis(&step->out->layout, 1);
    space_of_views(space, &out_view, &a_view);
}

/* The words of a work-group must fit into private memory. */
static const char *plan_full_q(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    set_full_q_space(step, &plan->space);
    plan->local_size = local_size_for(step, device, PRIVATE_BYTES_MAX);
    return NULL;
}

static const char *plan_full_q_vectors(const struct step *step, const struct healcl_device *device,
                                       struct variant_plan *plan)
{
    (void)device;
    set_full_q_space(step, &plan->space);
    plan->local_size = 1;
    if (plan->space.end < ELEMENTS_MIN)
        return "there are too few elements";
    if (step->in[0]->layout.shape[1] > PRIVATE_BYTES_MAX / (int64_t)PRIVATE_BYTES_VECTORS)
        return "there are too many moduli for private memory";
    return plan->space.operand[0].stride[plan->space.rank - 1] == 1 ? NULL
                                                                    : "values are not contiguous";
}

static const char *plan_full_q_local(const struct step *step, const struct healcl_device *device,
                                     struct variant_plan *plan)
{
    int64_t count = step->out->layout.shape[1];
    set_full_q_space(step, &plan->space);
    plan->local_size = local_size_for(step, device, local_bytes(device));
    return count == 0 || count > DIGITS_MAX ? "there are no digits, or too many"
           : plan->local_size > 0           ? NULL
                                            : "there are too many moduli for local memory";
}

/* Work-groups are small enough for their words to fit into local or private memory. */
static enum healcl_status choose_full_q(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    const int64_t k = a->shape[1];
    if (k > MODULI_MAX)
        REFUSE_FOR(error, LIMIT,
                   "argument '%s': %lld moduli are more than the %d that devices support",
                   launcher_refuse(self, step, 1), (long long)k, MODULI_MAX);
    int inverses;
    struct job job;
    const int q = derive_modulus_vector(self, step, 1);
    TRY(derive_crt_inverses(self, step, 1, &inverses, error));
    begin(&job, self, plan);
    job_define_number(&job, "LIMBS", (uint32_t)k);
    job.rounds = (uint64_t)(out->shape[1] + k * (k + 4));
    job_add_buffer(&job, q);
    job_add_buffer(&job, inverses);
    job_add_uint(&job, (uint32_t)k);
    job_add_long(&job, step->value[0]);
    if (plan->variant->style == STYLE_LOCAL)
        job_add_uint(&job, (uint32_t)out->shape[1]);
    else
        job_add_long(&job, out->shape[1]);
    JOB_ADD_LONGS(&job, out->stride[1], a->stride[1]);
    if (plan->variant->style == STYLE_LOCAL) {
        job_define(&job, "IN_LOCAL", "");
        job_add_uint(&job, lie_side_by_side(&job.space, 0, out->stride[1]));
        job_add_uint(&job, lie_side_by_side(&job.space, 1, a->stride[1]));
    }
    job_add_written(&job, SLOT_STATUS);
    return plan->variant->style == STYLE_LOCAL ? choose_values(&job, plan->local_size, error)
                                               : job_launch_of(&job, plan->local_size, error);
}

static const struct variant full_q_variants[] = {
    {"vectors", STYLE_VECTORS, plan_full_q_vectors, choose_full_q, OVER_ELEMENTS, "digits/digits",
     "digits_full_q_vectors", "cl/digits/digits.cl",
     "contiguous values, with moduli that fit into private memory"},
    {"local", STYLE_LOCAL, plan_full_q_local, choose_full_q, OVER_ANY_VIEW, "digits/digits",
     "digits_full_q_local", "cl/digits/digits.cl", "moduli that fit into local memory"},
    {"single", STYLE_SINGLE, plan_full_q, choose_full_q, 0, "digits/digits", "digits_full_q",
     "cl/digits/digits.cl", "up to 2^31 elements"},
    {"elements", STYLE_GENERAL, plan_full_q, choose_full_q, OVER_ANY_VIEW, "digits/digits",
     "digits_full_q", "cl/digits/digits.cl", "anything"},
};

const struct family family_digits_full_q = FAMILY_OF(digits_full_q, digits, full_q_variants);
