#include "plan/memory.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "plan/axes.h"

/* The storage of an operand, NULL for scalars, which are never moved. */
static const struct storage *operand_storage(const struct step *step, int i)
{
    const struct tensor *tensor = step->operands[i];
    return tensor && !tensor->storage->scalars ? tensor->storage : NULL;
}

/* ---------------------------------------------------------------- slices */

/* The first slice, `size` indices long, of an operand that is cut. */
static struct layout slice_of(const struct step *step, const struct slices *slices, int i,
                              int64_t size)
{
    return layout_narrow(&step->operands[i]->layout, (uint32_t)slices->axis[i], 0, size);
}

/* Bytes of its storage that such a slice spans, wherever it begins. */
static uint64_t span_bytes(const struct step *step, const struct slices *slices, int i,
                           int64_t size)
{
    const struct layout slice = slice_of(step, slices, i, size);
    return (uint64_t)layout_span(&slice) * dtype_size(step->operands[i]->storage->dtype);
}

/* Whether a step can be done in slices along a letter. Either out has the letter, or the step adds
 * its terms to out slice by slice. Axes along which moduli vary stay whole. */
static bool may_cut(const struct step *step, const struct step_axes *axes, char letter)
{
    const int moduli = step_moduli(step);
    const bool by_place = isupper((unsigned char)letter);
    if (letter == '*' || step->kind == STEP_UPLOAD || (by_place && step->vendor))
        return false;
    if (!by_place && moduli != NO_INPUT && step_axis(axes, moduli, letter) != NO_AXIS)
        return false;
    return step_axis(axes, STEP_OUT, letter) != NO_AXIS || step_traits[step->kind].adds;
}

/* Whether a step can be cut along the letter. Operands that all slices share are not cut. */
static bool step_cut(const struct step *step, const struct step_axes *axes, char letter,
                     struct slices *slices)
{
    *slices = (struct slices){.size = 0};
    if (!may_cut(step, axes, letter))
        return false;
    for (int i = 0; i < STEP_OPERANDS; i++)
        slices->axis[i] = (int8_t)step_axis(axes, i, letter);
    for (int i = 0; i < STEP_OPERANDS; i++) {
        if (slices->axis[i] < 0)
            continue;
        const struct layout *layout = &step->operands[i]->layout;
        slices->size = layout->shape[slices->axis[i]];
        if (!operand_storage(step, i) || layout->stride[slices->axis[i]] == 0)
            slices->axis[i] = -1;
    }
    /* Storages that are written slice by slice must not be read as a whole. */
    for (int i = 0; i < STEP_INPUTS; i++)
        if (slices->axis[i] < 0 && slices->axis[STEP_OUT] >= 0 &&
            operand_storage(step, i) == step->out->storage)
            return false;
    return slices->size > 1;
}

/* Whether an operand needs its whole storage, and is the first operand that does. */
static bool is_whole(const struct step *step, const struct slices *slices, int i)
{
    if (!operand_storage(step, i) || slices->axis[i] >= 0)
        return false;
    for (int j = 0; j < i; j++)
        if (slices->axis[j] < 0 && operand_storage(step, j) == operand_storage(step, i))
            return false;
    return true;
}

/* Stands for more bytes than any device has. */
#define TOO_MANY_BYTES (UINT64_C(1) << 62)

/* Adds the bytes of one buffer. allocation: the most that a buffer may have. */
static uint64_t add_bytes(uint64_t sum, uint64_t bytes, uint64_t allocation)
{
    return sum >= TOO_MANY_BYTES || bytes > allocation || sum + bytes > TOO_MANY_BYTES
               ? TOO_MANY_BYTES
               : sum + bytes;
}

/* Bytes of the storages that are needed as a whole. With a memory, counts only those that are not
 * on the device. */
static uint64_t whole_bytes(const struct memory *memory, const struct step *step,
                            const struct slices *slices, uint64_t allocation)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct storage *storage = operand_storage(step, i);
        if (is_whole(step, slices, i) && !(memory && memory->states[storage->id].resident))
            bytes = add_bytes(bytes, storage_bytes(storage), allocation);
    }
    return bytes;
}

/* Bytes of one slice of each operand that is cut. */
static uint64_t slice_bytes(const struct step *step, const struct slices *slices, int64_t size,
                            uint64_t allocation)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (slices->axis[i] >= 0)
            bytes = add_bytes(bytes, span_bytes(step, slices, i, size), allocation);
    return bytes;
}

/* Finds the way to cut a step that needs the least memory, with slices of size 1. Returns its
 * bytes. They are at least TOO_MANY_BYTES if each way leaves an operand larger than an
 * allocation. */
static uint64_t best_cut(const struct step *step, uint64_t allocation, struct slices *best)
{
    static const struct slices whole = {.axis = {-1, -1, -1, -1, -1, -1, -1, -1, -1}, .size = 0};
    uint64_t least = whole_bytes(NULL, step, &whole, allocation);
    *best = whole;
    struct step_axes axes;
    struct slices slices;
    if (!step->out)
        return least;
    step_axes(step, &axes);
    for (int i = 0; i < STEP_OPERANDS; i++) { /* each letter of any operand, including out */
        const char *letter = axes.names[i == 0 ? STEP_OUT : i - 1];
        for (; *letter; letter++) {
            const bool can = step_cut(step, &axes, *letter, &slices);
            const uint64_t bytes = can ? whole_bytes(NULL, step, &slices, allocation) +
                                             slice_bytes(step, &slices, 1, allocation)
                                       : least;
            if (bytes < least) {
                least = bytes;
                *best = slices;
            }
        }
    }
    return least;
}

/* Limits slices to a part of the limit, so that little else must be moved to make room for them.
 * They should not become much smaller than that requires. */
static void size_slices(const struct step *step, struct slices *slices, uint64_t limit,
                        uint64_t allocation)
{
    enum { SPARE_SHIFT = 3, BYTES_MIN = 1 << 20 };
    uint64_t whole = whole_bytes(NULL, step, slices, allocation), share = limit >> SPARE_SHIFT;
    uint64_t room = whole + (share > BYTES_MIN ? share : BYTES_MIN);
    room = room < limit - share ? room : limit - share;
    int64_t low = 1, high = slices->size; /* a slice of high + 1 is too large */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (whole + slice_bytes(step, slices, middle, allocation) <= room)
            low = middle;
        else
            high = middle - 1;
    }
    slices->most = low;
}

bool slice_is_read(const struct step *step, const struct slices *slices, int i, int64_t size)
{
    const struct layout slice = slice_of(step, slices, i, size);
    return i != STEP_OUT || step_traits[step->kind].adds ||
           layout_span(&slice) > layout_elements(&slice);
}

/* Whether the host does a step, because no cut makes it fit an allocation. */
static bool is_of_host(const struct step *step, uint64_t bytes)
{
    return bytes >= TOO_MANY_BYTES && step->kind != STEP_VENDOR;
}

uint64_t memory_least(const struct plan *plan, uint64_t allocation, const struct step **step)
{
    uint64_t least = 0;
    *step = NULL;
    for (size_t i = 0; i < plan->step_count; i++) {
        struct slices slices;
        const bool computes = plan->steps[i].kind > STEP_RELEASE;
        uint64_t bytes = computes ? best_cut(&plan->steps[i], allocation, &slices) : 0;
        if (bytes <= least || is_of_host(&plan->steps[i], bytes))
            continue;
        least = bytes;
        *step = &plan->steps[i];
    }
    return least;
}

/* ---------------------------------------------------------------- uses */

/* Walks backwards. Uploads and releases do not count as uses. */
static void list_uses(struct memory *memory)
{
    const struct plan *plan = memory->plan;
    for (size_t id = 0; id < plan->storage_count; id++)
        memory->states[id].first_use = UINT32_MAX;
    for (size_t i = plan->step_count; i-- > 0;) {
        const struct step *step = &plan->steps[i];
        const bool uses = step->kind != STEP_RELEASE && step->kind != STEP_UPLOAD;
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < STEP_OPERANDS; j++) {
                const struct storage *storage = operand_storage(step, j);
                if (storage && pass == 0)
                    memory->uses[i][j] = memory->states[storage->id].first_use;
                else if (storage && uses)
                    memory->states[storage->id].first_use = (uint32_t)i;
            }
    }
}

void memory_reset(struct memory *memory)
{
    for (size_t id = 0; id < memory->plan->storage_count; id++) {
        const uint32_t first = memory->states[id].first_use;
        memory->states[id] = (struct memory_state){.first_use = first, .next_use = first};
    }
    memory->resident = memory->peak = 0;
    memory->resident_count = 0;
    memory->room = memory->limit;
    memory->price = (struct memory_price){0};
}

enum healcl_status memory_init(struct memory *memory, const struct plan *plan, uint64_t limit,
                               const struct memory_mover *mover, struct healcl_error *error)
{
    const struct step *largest;
    *memory =
        (struct memory){.plan = plan, .mover = mover, .limit = limit > 0 ? limit : UINT64_MAX};
    memory->allocation = mover && mover->allocation > 0 ? mover->allocation : UINT64_MAX;
    uint64_t least = memory_least(plan, memory->allocation, &largest);
    if (least > memory->limit) {
        const struct origin *origin = step_origin(largest, NO_INPUT);
        if (least >= TOO_MANY_BYTES)
            REFUSE_FOR(error, LIMIT,
                       "entry %zu (%s): a tensor takes more than the %" PRIu64
                       " bytes that can be allocated at once",
                       origin->entry, origin->name, memory->allocation);
        REFUSE_FOR(error, LIMIT,
                   "entry %zu (%s): needs at least %" PRIu64
                   " bytes of device memory, above the limit of %" PRIu64,
                   origin->entry, origin->name, least, limit);
    }
    memory->states = calloc(plan->storage_count + 1, sizeof *memory->states);
    memory->uses = malloc((plan->step_count + 1) * sizeof *memory->uses);
    memory->residents = malloc((plan->storage_count + 1) * sizeof *memory->residents);
    if (!memory->states || !memory->uses || !memory->residents) {
        memory_release(memory);
        NO_MEMORY(error);
    }
    list_uses(memory);
    memory_reset(memory);
    return HEALCL_OK;
}

void memory_release(struct memory *memory)
{
    free(memory->states);
    free(memory->uses);
    free(memory->residents);
    memset(memory, 0, sizeof *memory);
}

/* ---------------------------------------------------------------- moves */

static enum healcl_status memory_do_move(struct memory *memory, enum memory_move kind,
                                         const struct storage *storage, struct healcl_error *error)
{
    return memory->mover ? memory->mover->move(memory->mover->context, kind, storage, error)
                         : HEALCL_OK;
}

/* Ensures that the contents are also somewhere other than on the device. */
static enum healcl_status memory_spill(struct memory *memory, const struct storage *storage,
                                       struct healcl_error *error)
{
    struct memory_state *state = &memory->states[storage->id];
    if (state->source != MEMORY_DEVICE)
        return HEALCL_OK;
    state->source = MEMORY_HOST;
    memory->price.spilled += storage_bytes(storage);
    return memory_do_move(memory, MEMORY_MOVE_SPILL, storage, error);
}

static enum healcl_status memory_drop(struct memory *memory, const struct storage *storage,
                                      struct healcl_error *error)
{
    struct memory_state *state = &memory->states[storage->id];
    if (!state->resident)
        return HEALCL_OK;
    state->resident = false;
    memory->resident -= storage_bytes(storage);
    const uint32_t moved = memory->residents[--memory->resident_count];
    memory->residents[state->place] = moved;
    memory->states[moved].place = state->place;
    return memory_do_move(memory, MEMORY_MOVE_DROP, storage, error);
}

/* Contents that are never used again need not be kept. */
static enum healcl_status evict(struct memory *memory, const struct storage *storage,
                                struct healcl_error *error)
{
    struct memory_state *state = &memory->states[storage->id];
    if (state->next_use != UINT32_MAX)
        TRY(memory_spill(memory, storage, error));
    else if (state->source == MEMORY_DEVICE)
        state->source = MEMORY_NOWHERE;
    return memory_drop(memory, storage, error);
}

/* The storage on the device whose next use is farthest away, without those of the current step.
 * NULL if there is none. */
static const struct storage *farthest(const struct memory *memory)
{
    const struct storage *found = NULL;
    uint32_t last = (uint32_t)memory->step;
    for (size_t i = 0; i < memory->resident_count; i++) {
        const uint32_t id = memory->residents[i], next_use = memory->states[id].next_use;
        if (next_use < last || (next_use == last && (!found || found->id > id)))
            continue;
        found = memory->plan->storages[id];
        last = next_use;
    }
    return found;
}

enum healcl_status memory_make_room(struct memory *memory, uint64_t bytes,
                                    struct healcl_error *error)
{
    uint64_t wanted = memory->resident > bytes ? memory->resident - bytes : 0;
    const struct storage *storage;
    while (memory->resident > wanted && (storage = farthest(memory)))
        TRY(evict(memory, storage, error));
    return HEALCL_OK;
}

static enum healcl_status memory_upload(struct memory *memory, const struct storage *storage,
                                        struct healcl_error *error)
{
    struct memory_state *state = &memory->states[storage->id];
    state->streamed = state->uploaded;
    if (state->streamed)
        memory->price.streamed_again += storage_bytes(storage);
    state->uploaded = true;
    return memory_do_move(memory, MEMORY_MOVE_UPLOAD, storage, error);
}

/* contents: whether its previous contents are needed. */
static enum healcl_status bring(struct memory *memory, const struct storage *storage, bool contents,
                                struct healcl_error *error)
{
    struct memory_state *state = &memory->states[storage->id];
    if (state->resident)
        return HEALCL_OK;
    state->resident = true;
    memory->resident += storage_bytes(storage);
    if (memory->peak < memory->resident)
        memory->peak = memory->resident;
    state->place = (uint32_t)memory->resident_count++;
    memory->residents[state->place] = storage->id;
    if (contents && state->source == MEMORY_UPLOAD)
        return memory_upload(memory, storage, error);
    if (!contents || state->source != MEMORY_HOST)
        return HEALCL_OK;
    memory->price.brought_back += storage_bytes(storage);
    return memory_do_move(memory, MEMORY_MOVE_BACK, storage, error);
}

/* ---------------------------------------------------------------- steps */

/* Whether a step needs the contents of an operand's storage. Inputs come before out, because out
 * may share a storage with an input. */
static bool needs_contents(const struct step *step, int operand)
{
    return operand != STEP_OUT || step_traits[step->kind].adds ||
           layout_elements(&step->out->layout) < step->out->storage->elements;
}

/* If there is no room for the upload now, it is done when it is needed. */
static enum healcl_status begin_upload(struct memory *memory, const struct step *step,
                                       struct healcl_error *error)
{
    const struct storage *storage = step->out->storage;
    struct memory_state *state = &memory->states[storage->id];
    state->source = MEMORY_UPLOAD;
    state->upload = step;
    if (memory->resident > memory->room || storage_bytes(storage) > memory->allocation ||
        storage_bytes(storage) > memory->room - memory->resident)
        return memory_do_move(memory, MEMORY_MOVE_CHECK, storage, error);
    return bring(memory, storage, true, error);
}

/* Ensures that the host has the contents. */
static enum healcl_status memory_hold(struct memory *memory, const struct storage *storage,
                                      struct healcl_error *error)
{
    struct memory_state *state = &memory->states[storage->id];
    TRY(memory_spill(memory, storage, error));
    if (state->source == MEMORY_HOST)
        return HEALCL_OK;
    state->source = MEMORY_HOST;
    return memory_do_move(memory, MEMORY_MOVE_HOLD, storage, error);
}

static enum healcl_status begin_release(struct memory *memory, const struct storage *storage,
                                        struct healcl_error *error)
{
    struct memory_state *state = &memory->states[storage->id];
    TRY(memory_drop(memory, storage, error));
    bool is_held = state->source == MEMORY_HOST;
    state->source = MEMORY_NOWHERE;
    return is_held ? memory_do_move(memory, MEMORY_MOVE_FORGET, storage, error) : HEALCL_OK;
}

/* Prepares an operand that moves to the device and back slice by slice. */
static enum healcl_status begin_cut(struct memory *memory, const struct step *step, int i,
                                    struct healcl_error *error)
{
    const struct storage *storage = operand_storage(step, i);
    const struct memory_state *state = &memory->states[storage->id];
    TRY(memory_spill(memory, storage, error));
    TRY(memory_drop(memory, storage, error));
    bool writes = i == STEP_OUT || storage == step->out->storage;
    return writes || state->source != MEMORY_UPLOAD ? memory_hold(memory, storage, error)
                                                    : HEALCL_OK;
}

static void count_slices(struct memory *memory, const struct step *step,
                         const struct slices *slices)
{
    for (int64_t start = 0; start < slices->size; start += slices->most)
        for (int i = 0; i < STEP_OPERANDS; i++) {
            if (slices->axis[i] < 0)
                continue;
            const int64_t left = slices->size - start;
            const int64_t size = left < slices->most ? left : slices->most;
            const uint64_t bytes = span_bytes(step, slices, i, size);
            if (i == STEP_OUT)
                memory->price.spilled += bytes;
            if (memory->states[operand_storage(step, i)->id].source == MEMORY_UPLOAD)
                memory->price.streamed_again += bytes;
            else if (slice_is_read(step, slices, i, size))
                memory->price.brought_back += bytes;
        }
}

/* Ensures that the host has all operands of a step, and the device none. */
static enum healcl_status begin_on_host(struct memory *memory, const struct step *step,
                                        struct slices *slices, struct healcl_error *error)
{
    slices->on_host = true;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct storage *storage = operand_storage(step, i);
        if (!storage)
            continue;
        TRY(memory_hold(memory, storage, error));
        TRY(memory_drop(memory, storage, error));
    }
    return HEALCL_OK;
}

static enum healcl_status begin_slices(struct memory *memory, const struct step *step,
                                       struct slices *slices, uint64_t *cut_bytes,
                                       struct healcl_error *error)
{
    if (is_of_host(step, best_cut(step, memory->allocation, slices)))
        return begin_on_host(memory, step, slices, error);
    size_slices(step, slices, memory->limit, memory->allocation);
    *cut_bytes = slice_bytes(step, slices, slices->most, memory->allocation);
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (slices->axis[i] >= 0)
            TRY(begin_cut(memory, step, i, error));
    count_slices(memory, step, slices);
    return HEALCL_OK;
}

static enum healcl_status begin_work(struct memory *memory, const struct step *step,
                                     struct slices *slices, struct healcl_error *error)
{
    uint64_t cut_bytes = 0;
    if (whole_bytes(NULL, step, slices, memory->allocation) > memory->limit)
        TRY(begin_slices(memory, step, slices, &cut_bytes, error));
    if (slices->on_host)
        return HEALCL_OK;
    const uint64_t needed = whole_bytes(memory, step, slices, memory->allocation) + cut_bytes;
    const uint64_t left = memory->room > memory->resident ? memory->room - memory->resident : 0;
    if (needed > left)
        TRY(memory_make_room(memory, needed - left, error));
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct storage *storage = operand_storage(step, i);
        if (storage && slices->axis[i] < 0)
            TRY(bring(memory, storage, needs_contents(step, i), error));
    }
    if (memory->peak < memory->resident + cut_bytes)
        memory->peak = memory->resident + cut_bytes;
    return HEALCL_OK;
}

enum healcl_status memory_begin_step(struct memory *memory, size_t number, struct slices *slices,
                                     struct healcl_error *error)
{
    const struct step *step = &memory->plan->steps[number];
    memory->step = number;
    *slices = (struct slices){.size = 0};
    memset(slices->axis, -1, sizeof slices->axis);
    switch (step->kind) {
    case STEP_UPLOAD: return begin_upload(memory, step, error);
    case STEP_RELEASE: return begin_release(memory, step->in[0]->storage, error);
    case STEP_DOWNLOAD: /* A result is read from where it is. */
        return memory->states[step->in[0]->storage->id].resident
                   ? HEALCL_OK
                   : memory_hold(memory, step->in[0]->storage, error);
    default: return begin_work(memory, step, slices, error);
    }
}

/* Sets each operand's next use to the first one after this step. */
static void advance_next_uses(struct memory *memory, const struct step *step)
{
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (operand_storage(step, i))
            memory->states[operand_storage(step, i)->id].next_use = memory->uses[memory->step][i];
}

void memory_skip_step(struct memory *memory, size_t number)
{
    memory->step = number;
    advance_next_uses(memory, &memory->plan->steps[number]);
}

enum healcl_status memory_end_step(struct memory *memory, const struct slices *slices,
                                   struct healcl_error *error)
{
    const struct step *step = &memory->plan->steps[memory->step];
    if (step->kind == STEP_UPLOAD || step->kind == STEP_RELEASE)
        return HEALCL_OK;
    if (step->out && slices->axis[STEP_OUT] < 0 && !slices->on_host) {
        struct memory_state *state = &memory->states[step->out->storage->id];
        if (state->source == MEMORY_HOST)
            TRY(memory_do_move(memory, MEMORY_MOVE_FORGET, step->out->storage, error));
        state->source = MEMORY_DEVICE;
    }
    advance_next_uses(memory, step);
    return HEALCL_OK;
}

enum healcl_status memory_predict(const struct plan *plan, uint64_t limit,
                                  struct memory_price *price, uint64_t *peak,
                                  struct healcl_error *error)
{
    struct memory memory;
    TRY(memory_init(&memory, plan, limit, NULL, error));
    enum healcl_status status = HEALCL_OK;
    for (size_t i = 0; i < plan->step_count && status == HEALCL_OK; i++) {
        struct slices slices;
        if (plan->steps[i].side == STEP_OF_KERNEL) {
            memory_skip_step(&memory, i);
            continue;
        }
        status = memory_begin_step(&memory, i, &slices, error);
        THEN(status, memory_end_step(&memory, &slices, error));
    }
    *price = memory.price;
    *peak = memory.peak;
    memory_release(&memory);
    return status;
}
