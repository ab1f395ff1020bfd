/* Gadget digits: cl/digits/digits.cl. */
#include "kernels/kernels.h"

enum { ELEMENTS_MIN = 1024 /* fewer are not worth another kernel */ };

/* The most digits of a value, and the bytes of local memory that a value needs: itself and its
 * position. */
enum { DIGITS_MAX = 1 << 16, DIGITS_LOCAL_BYTES = 2 * sizeof(uint64_t) };

/* Begins a job with the arguments space, out and a. */
static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan)
{
    enum dtype dtype = plan->step->in[INPUT_A]->storage->dtype;
    job_begin(job, self, plan, 1 /* input */);
    job_define_type(job, "A", dtype);
    job_define(job, "A_UNSIGNED", dtype == DTYPE_INT32 ? "uint" : "ulong");
}

/* Adds the number of digits of a value. Kernels in local memory have checked DIGITS_MAX. */
static void add_digit_count(struct job *job, const struct variant_plan *plan, int64_t digits)
{
    if (plan->variant->style == STYLE_LOCAL)
        job_add_uint(job, (uint32_t)digits);
    else
        job_add_long(job, digits);
}

/* Adds whether the digits or residues of one value, `stride` apart in an operand, are closer
 * together in memory than those of neighbouring values. Then neighbouring work-items take digits of
 * one value. */
static void add_side_by_side(struct job *job, uint32_t operand, int64_t stride)
{
    const struct space *space = &job->space;
    const uint32_t last = space->rank - 1;
    const bool is_one_value = space->shape[last] == 1;
    job_add_uint(job, is_one_value || stride < space->operand[operand].stride[last]);
}

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

static const char *plan_digits(struct variant_plan *plan)
{
    plan->space = space_of_values(plan->step);
    return NULL;
}

/* A vector has eight digits of one value. */
static const char *plan_digit_vectors(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const struct layout *out = &step->out->layout;
    plan->space = space_of_values(step);
    OBSTACLE_IF(plan->space.end < ELEMENTS_MIN, "there are too few elements");
    OBSTACLE_IF(out->stride[digit_axis(step)] != 1 || out->shape[digit_axis(step)] < LANES,
                "few digits for each value, or not contiguous");
    return NULL;
}

/* A work-group reads its values into local memory, so that neighbours read and write neighbours. */
static const char *plan_local(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const struct healcl_device *device = plan->device;
    const int64_t digits = step->out->layout.shape[digit_axis(step)];
    const uint64_t local_bytes = (uint64_t)DIGITS_LOCAL_BYTES * device->tuning.local_size;
    plan->space = space_of_values(step);
    OBSTACLE_IF(digits == 0 || digits > DIGITS_MAX, "there are no digits, or too many");
    OBSTACLE_IF(local_bytes > device->info.local_memory_bytes, "there is too little local memory");
    return NULL;
}

/* The kernels' parameters after the operands: the bits of a digit, the digits of a value, out's
 * stride along them (but for vectors), whether they lie side by side (in local memory only), and
 * the status buffer. */
static enum healcl_status choose_digits(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *out = &step->out->layout;
    const enum kernel_style style = plan->variant->style;
    const int64_t digits = out->shape[digit_axis(step)];
    const int64_t digit_stride = out->stride[digit_axis(step)];
    const int64_t digit_bits = step->value[0];
    struct job job;
    begin(&job, self, plan);
    job.rounds = (uint64_t)digits;
    job_add_long(&job, digit_bits);
    add_digit_count(&job, plan, digits);
    if (style != STYLE_VECTORS)
        job_add_long(&job, digit_stride);
    if (style == STYLE_LOCAL)
        add_side_by_side(&job, OPERAND_OUT, digit_stride);
    job_add_written(&job, SLOT_STATUS);
    if (style == STYLE_LOCAL)
        return job_launch_items(&job, self->device->tuning.local_size, error);
    return job_launch(&job, error);
}

static const struct variant digits_variants[] = {
    {"vectors", STYLE_VECTORS, plan_digit_vectors, choose_digits, OVER_ELEMENTS, "digits/digits",
     "digits_vectors", "cl/digits/digits.cl", "eight or more contiguous digits for each value"},
    {"local", STYLE_LOCAL, plan_local, choose_digits, OVER_ANY_VIEW, "digits/digits",
     "digits_local", "cl/digits/digits.cl", "up to 65536 digits"},
    GENERAL_VARIANTS("elements", plan_digits, choose_digits, OVER_ANY_VIEW, "digits/digits",
                     "digits"),
};

const struct family family_digits = FAMILY_OF(digits, digits, digits_variants);

/* ---------------------------------------------------------------- digits of the full modulus */

/* Axis 1 of a [l,k,r] has the k residues of a value. Axis 1 of out [l,digits,r] has its digits. */
enum { RESIDUES_AXIS = 1, DIGITS_AXIS = 1 };

/*
 * Work-items of digits_full_q keep one word for each modulus in arrays. If they process blocks of
 * values as vectors, each value has such a word. Some devices keep private arrays of a whole
 * work-group on a thread's stack.
 */
enum {
    MODULI_MAX = 1 << 15,
    PRIVATE_BYTES_MAX = 1 << 20,
    PRIVATE_BYTES_VECTORS = (1 + DIGITS_BLOCK) * sizeof(uint64_t) /* for each modulus */
};

/* The values [l,r] as a space. Its operands are out at the first digit, and a at the first residue.
 */
static struct space space_of_full_q(const struct step *step)
{
    const struct layout first_residues =
        layout_drop_axis(&step->in[INPUT_A]->layout, RESIDUES_AXIS);
    const struct layout first_digits = layout_drop_axis(&step->out->layout, DIGITS_AXIS);
    struct space space;
    space_of_views(&space, &first_digits, &first_residues);
    return space;
}

/* The most work-items of a work-group whose words fit into `bytes` bytes. Each needs a word for
 * each modulus, and one more. The result is the tuned size divided by a power of two, or 0. */
static size_t local_size_for(const struct variant_plan *plan, uint64_t bytes)
{
    const int64_t moduli = plan->step->in[INPUT_A]->layout.shape[RESIDUES_AXIS];
    const uint64_t words_of_item = (uint64_t)moduli + 1;
    size_t local_size = plan->device->tuning.local_size;
    while (local_size > bytes / sizeof(uint64_t) / words_of_item)
        local_size /= 2;
    return local_size;
}

/* Runs every step. The words of a work-group must fit into private memory. */
static const char *plan_full_q(struct variant_plan *plan)
{
    plan->space = space_of_full_q(plan->step);
    plan->local_size = local_size_for(plan, PRIVATE_BYTES_MAX);
    return NULL;
}

/* A work-item computes one digit of a block of values at once. Values must be contiguous along r.
 */
static const char *plan_full_q_vectors(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const int64_t moduli = step->in[INPUT_A]->layout.shape[RESIDUES_AXIS];
    plan->space = space_of_full_q(step);
    plan->local_size = 1;
    OBSTACLE_IF(plan->space.end < ELEMENTS_MIN, "there are too few elements");
    OBSTACLE_IF(moduli > PRIVATE_BYTES_MAX / (int64_t)PRIVATE_BYTES_VECTORS,
                "there are too many moduli for private memory");
    OBSTACLE_IF(plan->space.operand[OPERAND_OUT].stride[plan->space.rank - 1] != 1,
                "values are not contiguous");
    return NULL;
}

/* The words of a work-group must fit into local memory. */
static const char *plan_full_q_local(struct variant_plan *plan)
{
    enum { LOCAL_BYTES_MAX = 48 << 10 }; /* NVIDIA's compilers accept no more */
    const uint64_t local_bytes = plan->device->info.local_memory_bytes;
    const int64_t digits = plan->step->out->layout.shape[DIGITS_AXIS];
    plan->space = space_of_full_q(plan->step);
    plan->local_size =
        local_size_for(plan, local_bytes < LOCAL_BYTES_MAX ? local_bytes : LOCAL_BYTES_MAX);
    OBSTACLE_IF(digits == 0 || digits > DIGITS_MAX, "there are no digits, or too many");
    OBSTACLE_IF(plan->local_size == 0, "there are too many moduli for local memory");
    return NULL;
}

/* The kernels' parameters after the operands: moduli, their CRT inverses, their number k, the bits
 * of a digit, the digits of a value, the strides of out along digits and of a along residues. Then,
 * in local memory only, whether digits and whether residues lie side by side; and the status
 * buffer.
 */
static enum healcl_status choose_full_q(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[INPUT_A]->layout, *out = &step->out->layout;
    const bool is_local = plan->variant->style == STYLE_LOCAL;
    const int64_t k = a->shape[RESIDUES_AXIS], residue_stride = a->stride[RESIDUES_AXIS];
    const int64_t digits = out->shape[DIGITS_AXIS], digit_stride = out->stride[DIGITS_AXIS];
    const int64_t digit_bits = step->value[0];
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
    job.rounds = (uint64_t)(digits + k * (k + 4)); /* the CRT takes about k steps a modulus */
    job_add_buffer(&job, q);
    job_add_buffer(&job, inverses);
    job_add_uint(&job, (uint32_t)k);
    job_add_long(&job, digit_bits);
    add_digit_count(&job, plan, digits);
    JOB_ADD_LONGS(&job, digit_stride, residue_stride);
    if (is_local) {
        job_define(&job, "IN_LOCAL", "");
        add_side_by_side(&job, OPERAND_OUT, digit_stride);
        add_side_by_side(&job, OPERAND_A, residue_stride);
    }
    job_add_written(&job, SLOT_STATUS);
    if (is_local)
        return job_launch_items(&job, plan->local_size, error);
    return job_launch_of(&job, plan->local_size, error);
}

static const struct variant full_q_variants[] = {
    {"vectors", STYLE_VECTORS, plan_full_q_vectors, choose_full_q, OVER_ELEMENTS, "digits/digits",
     "digits_full_q_vectors", "cl/digits/digits.cl",
     "contiguous values, with moduli that fit into private memory"},
    {"local", STYLE_LOCAL, plan_full_q_local, choose_full_q, OVER_ANY_VIEW, "digits/digits",
     "digits_full_q_local", "cl/digits/digits.cl", "moduli that fit into local memory"},
    GENERAL_VARIANTS("elements", plan_full_q, choose_full_q, OVER_ANY_VIEW, "digits/digits",
                     "digits_full_q"),
};

const struct family family_digits_full_q = FAMILY_OF(digits_full_q, digits, full_q_variants);
