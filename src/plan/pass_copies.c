/*
 * Removes copies whose source or target nothing else uses. The step that makes the source then
 * writes the copy's target directly. Or the step that reads the target reads the source, if its
 * kernel looks up single elements anyway; other kernels need rows in order, which the copy may
 * provide. What only an elementwise operation reads is written to that operation's output, which it
 * then processes in place.
 */
#include "plan/pass.h"

/* Whether a view has adjacent elements along the axis along which the step's output has. */
static bool keeps_rows(const struct step *step, const struct layout *out)
{
    for (uint32_t axis = 0; axis < out->rank; axis++)
        if (out->shape[axis] > 1 && step->out->layout.stride[axis] == 1)
            return out->stride[axis] == 1;
    return true;
}

/* Whether a kind of step may write to any view. Transforms and elementwise operations need rows. */
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
    default: return keeps_rows(step, out);
    }
}

static bool reads_anywhere(const struct step *step)
{
    return step->kind == STEP_COPY || step->kind == STEP_GATHER || step->kind == STEP_DIGITS ||
           step->kind == STEP_DIGITS_FULL_Q;
}

/* Lets the writer of a copy's source write the copy's target. */
static enum healcl_status write_through(struct pass_run *run, struct step *writer,
                                        struct step *copy, struct healcl_error *error)
{
    struct tensor out;
    if (layout_elements(&writer->out->layout) != layout_elements(&copy->in[0]->layout) ||
        !pass_move_view(writer->out, copy->in[0], copy->out, &out) ||
        !writes_anywhere(writer, &out.layout) || pass_reads(writer, copy->out) ||
        pass_touches(writer + 1, copy, copy->out, false))
        return HEALCL_OK;
    struct step through = *writer;
    TRY(plan_view(run->plan, out.storage, &out.layout, &through.out, error));
    return pass_join(run, writer, copy, writer, &through, error);
}

/* Whether a storage may be allocated from `first` on without raising the peak of memory. Nothing
 * may be released between `first` and the storage's first use. */
static bool may_live_from(const struct pass_run *run, const struct step *first,
                          const struct storage *storage)
{
    const struct step *then = run->plan->steps + run->uses[storage->id].first;
    for (const struct step *step = first; step < then; step++)
        if (!pass_has_removed(step) && step->kind == STEP_RELEASE)
            return false;
    return true;
}

/* Lets the writer of an elementwise operation's input write it to that operation's output. */
static enum healcl_status write_in_place(struct pass_run *run, struct step *writer,
                                         struct step *reader, int input, struct healcl_error *error)
{
    const struct tensor *in = reader->in[input];
    struct tensor out;
    if (!pass_move_view(writer->out, in, reader->out, &out) ||
        layout_elements(&writer->out->layout) != layout_elements(&in->layout) ||
        !writes_anywhere(writer, &out.layout) || !keeps_rows(writer, &out.layout) ||
        pass_reads(writer, reader->out) || pass_reads(reader, reader->out) ||
        pass_touches(writer + 1, reader, reader->out, false) ||
        !may_live_from(run, writer, reader->out->storage))
        return HEALCL_OK;
    TRY(plan_view(run->plan, out.storage, &out.layout, &writer->out, error));
    reader->in[input] = reader->out;
    run->uses[reader->out->storage->id].count++;
    if (run->uses[reader->out->storage->id].first > writer - run->plan->steps)
        run->uses[reader->out->storage->id].first = (uint32_t)(writer - run->plan->steps);
    pass_note(run, writer);
    return HEALCL_OK;
}

/* The release of a storage in [step, end); NULL if none is near. */
static struct step *find_release(struct step *step, const struct step *end,
                                 const struct storage *storage)
{
    for (const struct step *first = step; step < end && step - first < PASS_WINDOW; step++)
        if (!pass_has_removed(step) && step->kind == STEP_RELEASE && !step->vendor &&
            step->in[0]->storage == storage)
            return step;
    return NULL;
}

/* Whether a copy's source is unchanged until the target's reader. If the source is released before,
 * *early is that release, and *late is the target's release. The source is not larger, so it can be
 * released at *late instead: the two no longer coexist. */
static bool source_stays(const struct pass_run *run, struct step *copy, struct step *reader,
                         struct step **early, struct step **late)
{
    const struct tensor *source = copy->in[0];
    *early = find_release(copy + 1, reader, source->storage);
    *late = NULL;
    if (!*early)
        return !pass_touches(copy + 1, reader, source, true);
    *late = find_release(reader + 1, run->end, copy->out->storage);
    return *late && storage_bytes(source->storage) <= storage_bytes(copy->out->storage) &&
           !pass_touches(copy + 1, *early, source, true);
}

/* Lets the reader of a copy's target read the copy's source. */
static enum healcl_status read_through(struct pass_run *run, struct step *copy, struct step *reader,
                                       struct healcl_error *error)
{
    struct tensor in;
    struct step through = *reader, *early, *late;
    if (!pass_move_view(reader->in[0], copy->out, copy->in[0], &in) ||
        tensors_overlap(reader->out, copy->in[0]) ||
        !source_stays(run, copy, reader, &early, &late))
        return HEALCL_OK;
    if (early) {
        late->in[0] = copy->in[0];
        pass_remove(run, early);
    }
    TRY(plan_view(run->plan, in.storage, &in.layout, &through.in[0], error));
    through.arguments[0] = copy->arguments[0];
    for (int i = 1; i < STEP_INPUTS; i++)
        through.arguments[i].origin = (uint8_t)(through.arguments[i].origin + copy->origins->count);
    return pass_join(run, copy, reader, reader, &through, error);
}

static enum healcl_status try_in_place(struct pass_run *run, struct step *reader,
                                       struct healcl_error *error)
{
    for (int i = 0; i < 2; i++) {
        struct step *writer;
        if (reader->in[i] && !reader->in[i]->storage->scalars &&
            pass_only_reader(run, reader, reader->in[i]->storage, &writer))
            return write_in_place(run, writer, reader, i, error);
    }
    return HEALCL_OK;
}

enum healcl_status pass_copies(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *step = run->first; step < run->end; step++) {
        struct step *writer;
        if (pass_has_removed(step))
            continue;
        if (step_traits[step->kind].chains)
            TRY(try_in_place(run, step, error));
        if (!reads_anywhere(step) || step->in[0]->storage->scalars ||
            !pass_only_reader(run, step, step->in[0]->storage, &writer) ||
            !pass_can_join(writer, step))
            continue;
        if (step->kind == STEP_COPY)
            TRY(write_through(run, writer, step, error));
        if (!pass_has_removed(step) && writer->kind == STEP_COPY)
            TRY(read_through(run, writer, step, error));
    }
    return HEALCL_OK;
}
