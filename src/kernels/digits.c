/* Gadget digits: cl/digits/digits.cl. */
#include "kernels/kernels.h"

/* Axes of the digits of the full modulus: a [l,k,r] has k residues of a value, out [l,digits,r]. */
enum { FULL_Q_K = 1, FULL_Q_DIGITS = 1 };

static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan)
{
    enum dtype dtype = plan->step->in[INPUT_A]->storage->dtype;
    job_begin(job, self, plan->step, plan, 1 /* input */);
    job_define_type(job, "A", dtype);
    job_define(job, "A_UNSIGNED", dtype == DTYPE_INT32 ? "uint" : "ulong");
}

enum { ELEMENTS_MIN = 1024 /* fewer are not worth another kernel */ };

/* A value's digits are along out's last axis. */
static uint32_t digit_axis(const struct step *step)
{
    return step->out->layout.rank - 1;
}

/* The space has the values. Its operands are the output, at the first digit, and a. */
static struct space space_of_values(const struct step *step)
{
    const struct layout first_digits = layout_drop_axis(&step->out->layout, digit_axis(step));
    struct space space;
    space_of_views(&space, &first_digits, &step->in[INPUT_A]->layout);
    return space;
}

static const char *plan_digits(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    (void)device;
    plan->space = space_of_values(step);
    return NULL;
}

/* A vector has eight digits of one value. */
static const char *plan_digit_vectors(const struct step *step, const struct healcl_device *device,
                                      struct variant_plan *plan)
{
    const struct layout *out = &step->out->layout;
    (void)device;
    plan->space = space_of_values(step);
    OBSTACLE_IF(plan->space.end < ELEMENTS_MIN, "there are too few elements");
    OBSTACLE_IF(out->stride[digit_axis(step)] != 1 || out->shape[digit_axis(step)] < LANES,
                "few digits for each value, or not contiguous");
    return NULL;
}

/* The most digits of a value, and the bytes of local memory that a value needs: itself and its
 * position. */
enum { DIGITS_MAX = 1 << 16, DIGITS_LOCAL_BYTES = 2 * sizeof(uint64_t) };

/* A work-group reads its values into local memory, so that neighbours read and write neighbours. */
static const char *plan_local(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    const int64_t digits = step->out->layout.shape[digit_axis(step)];
    const uint64_t local_bytes = (uint64_t)DIGITS_LOCAL_BYTES * device->tuning.local_size;
    plan->space = space_of_values(step);
    OBSTACLE_IF(digits == 0 || digits > DIGITS_MAX, "there are no digits, or too many");
    OBSTACLE_IF(local_bytes > device->info.local_memory_bytes, "there is too little local memory");
    return NULL;
}

/* Whether the digits or residues of one value, `stride` apart, are closer together in memory than
 * those of neighbouring values. Then neighbouring work-items take digits of one value. */
static bool lie_side_by_side(const struct space *space, uint32_t operand, int64_t stride)
{
    uint32_t last = space->rank - 1;
    return space->shape[last] == 1 || stride < space->operand[operand].stride[last];
}

/* Adds a launch with one value for each work-item. */
static enum healcl_status choose_values(struct job *job, size_t local_size,
                                        struct healcl_error *error)
{
    job->space.elements_per_item = 1;
    return job_launch_groups(job, (job->space.end + local_size - 1) / local_size, local_size,
                             error);
}

/* The kernels' parameters after the operands: base_bits, count, out_stride, side_by_side, status.
 * Vectors need no stride, and only the local kernel takes side_by_side, and count as a uint. */
static enum healcl_status choose_digits(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const enum kernel_style style = plan->variant->style;
    const int64_t count = step->out->layout.shape[digit_axis(step)];
    const int64_t out_stride = step->out->layout.stride[digit_axis(step)];
    struct job job;
    begin(&job, self, plan);
    job.rounds = (uint64_t)count;
    job_add_long(&job, step->value[0]);
    if (style == STYLE_LOCAL)
        job_add_uint(&job, (uint32_t)count);
    else
        job_add_long(&job, count);
    if (style != STYLE_VECTORS)
        job_add_long(&job, out_stride);
    if (style == STYLE_LOCAL)
        job_add_uint(&job, lie_side_by_side(&job.space, OPERAND_OUT, out_stride));
    job_add_written(&job, SLOT_STATUS);
    return style == STYLE_LOCAL ? choose_values(&job, self->device->tuning.local_size, error)
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

/* The most work-items whose words fit into `bytes` bytes. Each needs a word for each modulus, and
 * one more. The result is the tuned size divided by a power of two, or 0. */
static size_t local_size_for(const struct step *step, const struct healcl_device *device,
                             uint64_t bytes)
{
    size_t local_size = device->tuning.local_size;
    const uint64_t words = (uint64_t)step->in[INPUT_A]->layout.shape[FULL_Q_K] + 1;
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

/* The space has the values [l,r]. Its operands are out at the first digit, and a at the first
 * residue. */
static void set_full_q_space(const struct step *step, struct space *space)
{
    struct layout first_residues = layout_drop_axis(&step->in[INPUT_A]->layout, FULL_Q_K);
    struct layout first_digits = layout_drop_axis(&step->out->layout, FULL_Q_DIGITS);
    space_of_views(space, &first_digits, &first_residues);
}

/* The words of a work-group must fit into private memory. */
static const char *plan_full_q(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    set_full_q_space(step, &plan->space);
    plan->local_size = local_size_for(step, device, PRIVATE_BYTES_MAX);
    return NULL;
}

/* A work-item computes one digit of a block of values at once. Values must be contiguous along r.
 */
static const char *plan_full_q_vectors(const struct step *step, const struct healcl_device *device,
                                       struct variant_plan *plan)
{
    (void)device;
    set_full_q_space(step, &plan->space);
    plan->local_size = 1;
    const int64_t k = step->in[INPUT_A]->layout.shape[FULL_Q_K];
    OBSTACLE_IF(plan->space.end < ELEMENTS_MIN, "there are too few elements");
    OBSTACLE_IF(k > PRIVATE_BYTES_MAX / (int64_t)PRIVATE_BYTES_VECTORS,
                "there are too many moduli for private memory");
    OBSTACLE_IF(plan->space.operand[OPERAND_OUT].stride[plan->space.rank - 1] != 1,
                "values are not contiguous");
    return NULL;
}

/* The words of a work-group must fit into local memory. */
static const char *plan_full_q_local(const struct step *step, const struct healcl_device *device,
                                     struct variant_plan *plan)
{
    const int64_t digits = step->out->layout.shape[FULL_Q_DIGITS];
    set_full_q_space(step, &plan->space);
    plan->local_size = local_size_for(step, device, local_bytes(device));
    OBSTACLE_IF(digits == 0 || digits > DIGITS_MAX, "there are no digits, or too many");
    return plan->local_size == 0 ? "there are too many moduli for local memory" : NULL;
}

/* Work-groups are small enough for their words to fit into local or private memory. The kernels'
 * parameters after the operands: q, inverses, moduli, base_bits, count, out_stride, a_stride, then
 * for local memory digits_side_by_side and limbs_side_by_side, and status. */
static enum healcl_status choose_full_q(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[INPUT_A]->layout, *out = &step->out->layout;
    const bool is_local = plan->variant->style == STYLE_LOCAL;
    const int64_t k = a->shape[FULL_Q_K], count = out->shape[FULL_Q_DIGITS];
    const int64_t out_stride = out->stride[FULL_Q_DIGITS], a_stride = a->stride[FULL_Q_K];
    if (k > MODULI_MAX)
        REFUSE_FOR(error, LIMIT,
                   "argument '%s': %lld moduli are more than the %d that devices support",
                   launcher_refuse(self, step, Q), (long long)k, MODULI_MAX);
    int inverses;
    struct job job;
    const int q = derive_modulus_vector(self, step, Q);
    TRY(derive_crt_inverses(self, step, Q, &inverses, error));
    begin(&job, self, plan);
    job_define_number(&job, "LIMBS", (uint32_t)k);
    job.rounds = (uint64_t)(count + k * (k + 4)); /* the CRT takes about k steps for each modulus */
    job_add_buffer(&job, q);
    job_add_buffer(&job, inverses);
    job_add_uint(&job, (uint32_t)k);
    job_add_long(&job, step->value[0]);
    if (is_local)
        job_add_uint(&job, (uint32_t)count);
    else
        job_add_long(&job, count);
    JOB_ADD_LONGS(&job, out_stride, a_stride);
    if (is_local) {
        job_define(&job, "IN_LOCAL", "");
        job_add_uint(&job, lie_side_by_side(&job.space, OPERAND_OUT, out_stride));
        job_add_uint(&job, lie_side_by_side(&job.space, OPERAND_A, a_stride));
    }
    job_add_written(&job, SLOT_STATUS);
    return is_local ? choose_values(&job, plan->local_size, error)
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
