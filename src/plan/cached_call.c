/* A cache of planned calls, by their arguments. */
#include "plan/cached_call.h"

#include <string.h>
#include <xxhash.h>

/* ---------------------------------------------------------------- keys */

static bool is_built_in(const struct call *call)
{
    return form_id(call->form) < OPERATION_COUNT;
}

/* Whether planning depends on an integer. Built-in operations take scalars as operands. */
static bool is_looked_at(const struct call *call, enum healcl_parameter_kind kind)
{
    return kind != HEALCL_PARAMETER_HINT &&
           !(is_built_in(call) &&
             (kind == HEALCL_PARAMETER_SCALAR || kind == HEALCL_PARAMETER_MODULUS));
}

static void add_words(struct call_key *key, const void *words, size_t count)
{
    memcpy(key->words + key->count, words, count * sizeof *key->words);
    key->count += count;
}

/* The first argument with a storage; -1: none. */
static int argument_of_storage(const struct call *call, const struct storage *storage)
{
    for (uint32_t i = 0; i < call->form->parameter_count; i++)
        if (call->tensors[i] && call->tensors[i]->storage == storage)
            return (int)i;
    return -1;
}

/* An integer gives its value. A tensor gives its layout, what is constant of its storage, and the
 * first argument with that. */
static void add_argument(struct call_key *key, const struct call *call, uint32_t i)
{
    const struct argument *argument = &call->entry->arguments[i];
    const struct tensor *tensor = call->tensors[i];
    int64_t *words = key->words + key->count;
    words[0] = (int64_t)argument->kind << 32;
    if (!tensor) {
        const bool counts =
            argument->kind == ARGUMENT_INT && is_looked_at(call, call->form->parameters[i].kind);
        words[1] = counts ? argument->integer : 0;
        key->count += 2;
        return;
    }
    const struct layout *layout = &tensor->layout;
    words[0] |= (int64_t)layout->rank | (int64_t)tensor->storage->dtype << 8 |
                (int64_t)argument_of_storage(call, tensor->storage) << 16;
    words[1] = tensor->storage->elements;
    words[2] = layout->offset;
    key->count += 3;
    add_words(key, layout->shape, layout->rank);
    add_words(key, layout->stride, layout->rank);
}

bool call_key(const struct call *call, struct call_key *key)
{
    if (!call->planner->kept || call->planner->outer)
        return false;
    key->words[0] = (int64_t)(intptr_t)call->form;
    key->count = 1;
    for (uint32_t i = 0; i < call->form->parameter_count; i++) {
        const enum argument_kind kind = call->entry->arguments[i].kind;
        if (kind != ARGUMENT_DEVICE_TENSOR && kind != ARGUMENT_INT && kind != ARGUMENT_NONE)
            return false;
        add_argument(key, call, i);
    }
    key->hash = XXH3_64bits(key->words, key->count * sizeof *key->words);
    return true;
}

/* ---------------------------------------------------------------- the cache */

struct cached_call *cached_call_find(const struct cached_calls *all, const struct call_key *key)
{
    struct cached_call *found = all->buckets[key->hash % CACHED_CALLS_MAX];
    while (found && (found->hash != key->hash || found->count != key->count ||
                     memcmp(found->words, key->words, key->count * sizeof *key->words) != 0))
        found = found->next;
    return found;
}

/* The argument that gives operand i of a call's step. -1: the tensor that the call makes does. */
static int source_of(const struct call *call, const struct step *step, int i)
{
    const struct storage *storage = step->operands[i]->storage;
    const int source =
        storage->scalars ? step->arguments[i].parameter : argument_of_storage(call, storage);
    return source >= 0 && call->entry->arguments[source].kind == ARGUMENT_NONE ? -1 : source;
}

struct cached_call *cached_call_add(const struct call *call, const struct call_key *key,
                                    const struct step *step)
{
    struct cached_calls *all = call->planner->kept;
    const size_t bytes = key->count * sizeof *key->words;
    struct cached_call *made = arena_alloc(all->arena, sizeof *made + bytes);
    struct cached_call **bucket = &all->buckets[key->hash % CACHED_CALLS_MAX];
    if (!made)
        return NULL;
    *made = (struct cached_call){
        .next = *bucket, .hash = key->hash, .step = *step, .count = key->count};
    made->step.call = ++all->serial;
    made->step.residues = made->step.nonnegative = 0;
    made->step.zeros = 0;
    memcpy(made->words, key->words, bytes);
    FOR_EACH_OPERAND (i, tensor, step) {
        struct tensor *operand = arena_copy(all->arena, tensor, sizeof *tensor);
        if (!operand)
            return NULL;
        made->step.operands[i] = operand; /* other calls change it */
        made->sources[i] = (int8_t)source_of(call, step, i);
    }
    if (made->sources[STEP_OUT] < 0)
        made->out = call->result->layout;
    *bucket = made;
    return made;
}

/* ---------------------------------------------------------------- planning */

void cached_call_keep(const struct call *call, const struct call_key *key, size_t first)
{
    const struct plan *plan = call->planner->plan;
    struct cached_calls *all = call->planner->kept;
    struct step *step = &plan->steps[first];
    uint64_t *latest = &all->latest[key->hash % CACHED_CALLS_MAX];
    const bool is_again = *latest == key->hash;
    *latest = key->hash;
    for (size_t i = first; i < plan->step_count; i++)
        plan->steps[i].is_new = !is_again;
    if (!is_again || plan->step_count != first + 1 || !step->out || step->payload ||
        step->kind == STEP_FILL) /* it has the value of a scalar */
        return;
    all->count++;
    struct cached_call *kept = cached_call_add(call, key, step);
    if (kept)
        kept->bytes = step_scratch_bytes(step) +
                      (kept->sources[STEP_OUT] < 0 ? storage_bytes(step->out->storage) : 0);
}

/* Sets the operands of a cached step to those of the call. */
static enum healcl_status set_operands(struct call *call, struct cached_call *kept,
                                       struct healcl_error *error)
{
    struct planner *planner = call->planner;
    const struct plan *plan = planner->plan;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        struct tensor *operand = (struct tensor *)(uintptr_t)kept->step.operands[i];
        const int source = kept->sources[i];
        if (!operand)
            continue;
        if (!operand->storage->scalars) {
            operand->storage = (source < 0 ? call->result : call->tensors[source])->storage;
            continue;
        }
        const int64_t value = call->entry->arguments[source].integer;
        const struct tensor *scalar;
        const size_t latest = (size_t)operand->layout.offset;
        if (latest < plan->constants.count && plan->constants.values[latest] == value)
            continue;
        TRY(planner_constant(planner, value, &scalar, error));
        operand->layout.offset = scalar->layout.offset;
    }
    return HEALCL_OK;
}

bool cached_call_repeat(struct call *call, const struct call_key *key, enum healcl_status *status,
                        struct healcl_error *error)
{
    struct planner *planner = call->planner;
    struct cached_call *kept = cached_call_find(planner->kept, key);
    if (!kept || kept->bytes > planner->memory_limit - planner->bytes_live ||
        (kept->step.vendor && !planner->kept->runs_again(&kept->step, planner->kept->device)))
        return false; /* planning it anew reports that */
    if (kept->sources[STEP_OUT] < 0 &&
        planner_new_tensor(call, kept->step.out->storage->dtype, kept->out.rank, kept->out.shape,
                           &call->result, NULL) != HEALCL_OK)
        return false;
    *status = set_operands(call, kept, error);
    if (*status == HEALCL_OK) {
        kept->step.origins = planner->origins;
        *status = planner_append_step(planner, &kept->step, error);
    }
    if (kept->step.vendor)
        values_forget(&planner->values, kept->step.out->storage);
    return true;
}
