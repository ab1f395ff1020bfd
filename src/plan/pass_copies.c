/*
 * Copies whose source or target is only theirs. What makes the source writes it where the copy
 * would; or what reads the target reads the source, where kernels look up element by element anyway
 * (others are made for rows in order, which a copy may have given them).
 */
#include "plan/pass.h"

/* Whether a kind of step may write anywhere. Transforms and elementwise operations want rows. */
static bool writes_anywhere(const struct step *step, const struct layout *out)
{
    switch (step->kind) {
    case STEP_COPY:
    case STEP_FILL:
    case STEP_GATHER:
    case STEP_DIGITS:
    case STEP_DIGITS_FULL_Q:
    case STEP_AXIS_MODSUM:
    case STEP_MODMUL_AXIS_SUM: return true;
    case STEP_UPLOAD:
    case STEP_DOWNLOAD:
    case STEP_RELEASE: return false;
    default: break;
    }
    for (uint32_t axis = 0; axis < out->rank; axis++)
        if (out->shape[axis] > 1 && step->out->layout.stride[axis] == 1)
            return out->stride[axis] == 1;
    return true;
}

static bool reads_anywhere(const struct step *step)
{
    return step->kind == STEP_COPY || step->kind == STEP_GATHER || step->kind == STEP_DIGITS ||
           step->kind == STEP_DIGITS_FULL_Q;
}

/* The writer of a copy's source writes its target. */
MUST_CHECK static enum healcl_status write_through(struct pass_run *run, struct step *writer,
                                                   struct step *copy, struct healcl_error *error)
{
    struct tensor out;
    if (layout_elements(&writer->out->layout) != layout_elements(&copy->in[0]->layout) ||
        !pass_move_view(writer->out, copy->in[0], copy->out, &out) ||
        !writes_anywhere(writer, &out.layout) || pass_reads(writer, copy->out) ||
        pass_touches(writer + 1, copy, copy->out, false))
        return HEALCL_OK;
    struct step through = *writer;
    TRY(step_join_origins(run->plan, &through, writer, copy, error));
    TRY(pass_tensor(run, &out, &through.out, error));
    pass_moves(run, copy, writer);
    pass_remove(run, copy);
    *writer = through;
    return HEALCL_OK;
}

/* The reader of a copy's target reads its source. */
MUST_CHECK static enum healcl_status read_through(struct pass_run *run, struct step *copy,
                                                  struct step *reader, struct healcl_error *error)
{
    struct tensor in;
    struct step through = *reader;
    if (!pass_move_view(reader->in[0], copy->out, copy->in[0], &in) ||
        pass_overlap(reader->out, copy->in[0]) || pass_touches(copy + 1, reader, copy->in[0], true))
        return HEALCL_OK;
    TRY(step_join_origins(run->plan, &through, copy, reader, error));
    TRY(pass_tensor(run, &in, &through.in[0], error));
    through.arguments[0] = copy->arguments[0];
    for (int i = 1; i < STEP_INPUTS; i++)
        through.arguments[i].origin = (uint8_t)(through.arguments[i].origin + copy->origins->count);
    pass_moves(run, copy, reader);
    pass_remove(run, copy);
    *reader = through;
    return HEALCL_OK;
}

enum healcl_status pass_copies(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *step = run->first; step < run->end; step++) {
        struct step *writer;
        if (pass_has_removed(step) || !step->in[0] || step->in[0]->storage->scalars ||
            (step->kind != STEP_COPY && !reads_anywhere(step)) ||
            !pass_only_reader(run, step, step->in[0]->storage, &writer) ||
            !pass_can_join(writer, step))
            continue;
        if (step->kind == STEP_COPY)
            TRY(write_through(run, writer, step, error));
        if (!pass_has_removed(step) && reads_anywhere(step) && writer->kind == STEP_COPY)
            TRY(read_through(run, writer, step, error));
    }
    return HEALCL_OK;
}
