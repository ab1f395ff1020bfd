/* Sums modulo q: cl/sum.cl. */
#include "run/launch.h"

enum healcl_status launch_axis_modsum(struct device_executor *self, const struct step *step,
                                      struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout;
    uint32_t axis = (uint32_t)step->value[0];
    struct layout a_view = layout_drop_axis(a, axis), q_view;
    const struct buffer *q;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    /* q varies along the last axis only: there the vector has its elements in order. */
    q_view = layout_packed(&step->out->layout);
    for (uint32_t i = 0; i < q_view.rank; i++)
        q_view.stride[i] = i + 1 == q_view.rank;

    struct job job;
    job_init(&job, self, step, "core", "axis_modsum");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_set_operand(&job, 1, &a_view);
    job_set_operand(&job, 2, &q_view);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(job_add_tensor(&job, step->out, error));
    TRY(job_add_tensor(&job, step->in[0], error));
    job_add_table(&job, q);
    job_add_long(&job, a->shape[axis]);
    job_add_long(&job, a->stride[axis]);
    return job_launch(&job, error);
}

enum healcl_status launch_modmul_axis_sum(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    const struct buffer *q, *perm;
    TRY(derive_modulus_vector(self, step, 2, &q, error));
    perm = q; /* some buffer must stand for one that is not used */
    if (step->in[3])
        TRY(derive_permutation(self, step, 3, &perm, error));

    /* The space is [reps,k,n]; out and b go along n by m, a by l. */
    struct layout out_view = *out, a_view = layout_drop_axis(a, 1);
    struct layout b_rows = layout_drop_axis(b, 0), b_view = layout_insert_axis(&b_rows, 0, 1, 0);
    struct layout q_view = {.rank = 3, .stride = {0, 1, 0}};
    out_view.stride[2] = 0;
    b_view.stride[2] = 0;

    struct job job;
    job_init(&job, self, step, "core", "modmul_axis_sum");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, out);
    job_set_operand(&job, 0, &out_view);
    job_set_operand(&job, 1, &a_view);
    job_set_operand(&job, 2, &b_view);
    job_set_operand(&job, 3, &q_view);
    job_add_space(&job);
    TRY(job_add_tensor(&job, step->out, error));
    TRY(job_add_tensor(&job, step->in[0], error));
    TRY(job_add_tensor(&job, step->in[1], error));
    job_add_table(&job, q);
    job_add_table(&job, perm);
    job_add_uint(&job, step->in[3] != NULL);
    job_add_long(&job, a->shape[1]);
    job_add_long(&job, a->stride[1]);
    job_add_long(&job, b->stride[0]);
    job_add_long(&job, out->stride[2]);
    job_add_long(&job, b->stride[2]);
    return job_launch(&job, error);
}
