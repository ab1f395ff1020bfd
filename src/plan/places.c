#include "plan/places.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "plan/memory.h"

#define UNUSED UINT32_MAX /* in place of a storage's first step */

/* Steps [first, last] in which a storage is live. */
struct life {
    uint32_t first, last;
    uint32_t storage;
    uint64_t bytes;
};

/* Lifetimes of the storages in one place, sorted by first step. */
struct shared {
    struct life *lives;
    size_t count, capacity;
};

struct search {
    struct places *places;
    const struct plan *plan;
    const struct places_rule *rule;
    struct life *lives;  /* by storage */
    struct life **order; /* storages that get places, largest first */
    size_t order_count;
    struct shared *shared; /* by place */
    size_t place_capacity, shared_capacity;
    uint64_t looks; /* comparisons with places so far */
};

/* After this many, the remaining storages, the smallest, get no places. That is about a second for
 * plans with hundreds of thousands of storages that are all live at the same time. */
enum { LOOKS_MOST = 1 << 26 };

uint64_t pending_results_most(uint64_t memory_limit)
{
    enum { BYTES = 64 << 20, SHARE = 4 };
    return memory_limit / SHARE < BYTES ? memory_limit / SHARE : BYTES;
}

/* ---------------------------------------------------------------- lives */

static void find_lives(struct search *search)
{
    const struct plan *plan = search->plan;
    for (size_t i = 0; i < plan->storage_count; i++)
        search->lives[i] =
            (struct life){UNUSED, UNUSED, (uint32_t)i, storage_bytes(plan->storages[i])};
    for (uint32_t i = 0; i < plan->step_count; i++)
        FOR_EACH_OPERAND (j, tensor, &plan->steps[i]) {
            if (tensor->storage->scalars)
                continue;
            struct life *life = &search->lives[tensor->storage->id];
            if (plan->steps[i].kind == STEP_RELEASE) {
                life->last = life->first != UNUSED ? i : life->last;
            } else if (life->first == UNUSED) {
                life->first = i;
                life->last = (uint32_t)plan->step_count;
                if (plan->steps[i].side == STEP_ALWAYS && life->bytes >= search->rule->least)
                    search->order[search->order_count++] = life;
            }
        }
}

static void places_lengthen_life(struct search *search, const struct tensor *tensor, uint32_t first,
                                 uint32_t last)
{
    struct life *life = &search->lives[tensor->storage->id];
    life->first = life->first < first ? life->first : first;
    life->last = life->last > last ? life->last : last;
}

/* Results of steps [first, end) wait until the last of these steps. */
static void lengthen_results(struct search *search, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (search->plan->steps[i].kind == STEP_DOWNLOAD)
            places_lengthen_life(search, search->plan->steps[i].in[0], UNUSED, end - 1);
}

/* Extends lifetimes as a segment's transfers require. */
static void lengthen_lives(struct search *search, const struct segment *segment)
{
    const uint64_t most = pending_results_most(search->plan->memory_limit);
    const uint32_t begin = (uint32_t)segment->first_step;
    const uint32_t end = begin + (uint32_t)segment->step_count;
    uint32_t drained = begin;
    uint64_t pending = 0;
    for (uint32_t i = begin; i < end; i++) {
        const struct step *step = &search->plan->steps[i];
        if (step->kind == STEP_UPLOAD)
            places_lengthen_life(search, step->out, begin, 0);
        if (pending > most) {
            lengthen_results(search, drained, i);
            drained = i;
            pending = 0;
        }
        if (step->kind == STEP_DOWNLOAD)
            pending += packed_bytes(step->in[0]);
    }
    lengthen_results(search, drained, end);
}

/* ---------------------------------------------------------------- places */

/* The first lifetime in a place whose first step is not before the given one. */
static size_t find_next(const struct shared *shared, uint32_t first)
{
    size_t low = 0, high = shared->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (shared->lives[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether a place is free during a storage's lifetime. *idle: steps since it was last used. */
static bool is_free(const struct shared *shared, const struct life *life, uint32_t *idle)
{
    size_t next = find_next(shared, life->first);
    *idle = next > 0 ? life->first - shared->lives[next - 1].last : UINT32_MAX;
    return (next == 0 || shared->lives[next - 1].last < life->first) &&
           (next == shared->count || life->last < shared->lives[next].first);
}

static enum healcl_status shared_add_life(struct shared *shared, const struct life *life,
                                          struct healcl_error *error)
{
    NEED_MEMORY(ARRAY_GROW(shared->lives, shared->count, &shared->capacity), error);
    size_t next = find_next(shared, life->first);
    memmove(shared->lives + next + 1, shared->lives + next,
            (shared->count - next) * sizeof *shared->lives);
    shared->lives[next] = *life;
    shared->count++;
    return HEALCL_OK;
}

static enum healcl_status add_place(struct search *search, uint64_t bytes,
                                    struct healcl_error *error)
{
    struct places *places = search->places;
    NEED_MEMORY(ARRAY_GROW(places->bytes, places->count, &search->place_capacity), error);
    NEED_MEMORY(ARRAY_GROW(search->shared, places->count, &search->shared_capacity), error);
    search->shared[places->count] = (struct shared){.lives = NULL};
    places->bytes[places->count++] = bytes;
    places->place_bytes += bytes;
    return HEALCL_OK;
}

/* Among places of one size, prefers the most recently used one: it may still be in a cache. */
static enum healcl_status find_place(struct search *search, const struct life *life,
                                     struct healcl_error *error)
{
    struct places *places = search->places;
    uint32_t idle, least = UINT32_MAX;
    size_t best = places->count;
    for (size_t i = places->count; i-- > 0;) { /* smallest first */
        search->looks++;
        if (best < places->count && places->bytes[i] > places->bytes[best])
            break;
        if (is_free(&search->shared[i], life, &idle) && (best == places->count || idle < least)) {
            best = i;
            least = idle;
        }
    }
    if (best == places->count)
        TRY(add_place(search, life->bytes, error));
    places->of[life->storage] = (uint32_t)best;
    return shared_add_life(&search->shared[best], life, error);
}

/* ---------------------------------------------------------------- all of it */

/* Bytes of live storages, all or those without a place, and their peak so far. */
struct live {
    uint64_t bytes, most;
};

static void places_follow(struct live *live, uint64_t bytes, bool stays)
{
    live->bytes = stays ? live->bytes + bytes : live->bytes - bytes;
    live->most = live->bytes > live->most ? live->bytes : live->most;
}

static void find_peaks(struct search *search)
{
    const struct plan *plan = search->plan;
    struct live all = {0, 0}, other = {0, 0};
    for (size_t id = 0; id < plan->storage_count; id++)
        search->lives[id].first = UNUSED;
    for (size_t i = 0; i < plan->step_count; i++)
        FOR_EACH_OPERAND (j, tensor, &plan->steps[i]) {
            if (tensor->storage->scalars)
                continue;
            const uint32_t id = tensor->storage->id;
            const bool stays = plan->steps[i].kind != STEP_RELEASE;
            if (stays == (search->lives[id].first != UNUSED)) /* nothing changes */
                continue;
            search->lives[id].first = stays ? (uint32_t)i : UNUSED;
            places_follow(&all, storage_bytes(tensor->storage), stays);
            if (search->places->of[id] == NO_PLACE)
                places_follow(&other, storage_bytes(tensor->storage), stays);
        }
    search->places->live_bytes = all.most;
    search->places->other_bytes = other.most;
}

/* Sorts by size, largest first, then by first step. */
static int compare_lives(const void *left, const void *right)
{
    const struct life *a = *(struct life *const *)left, *b = *(struct life *const *)right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first)
        return a->first > b->first ? 1 : -1;
    return (a->storage > b->storage) - (a->storage < b->storage);
}

static enum healcl_status places_find(struct search *search, struct healcl_error *error)
{
    const struct plan *plan = search->plan;
    NEED_MEMORY(search->lives && search->order && search->places->of, error);
    memset(search->places->of, 0xff, plan->storage_count * sizeof *search->places->of);
    if (plan->step_count >= UNUSED)
        return HEALCL_OK;
    find_lives(search);
    for (size_t s = 0; s < plan->segment_count; s++)
        lengthen_lives(search, &plan->segments[s]);
    const struct places_rule *rule = search->rule;
    for (size_t i = 0; i < search->order_count && rule->stays; i++)
        if (rule->stays(rule->context, plan->storages[search->order[i]->storage]))
            search->order[i]->last = (uint32_t)plan->step_count;
    qsort(search->order, search->order_count, sizeof *search->order, compare_lives);
    for (size_t i = 0; i < search->order_count && search->looks < LOOKS_MOST; i++)
        TRY(find_place(search, search->order[i], error));
    find_peaks(search);
    return HEALCL_OK;
}

enum healcl_status places_init(struct places *places, const struct plan *plan,
                               const struct places_rule *rule, struct healcl_error *error)
{
    struct search search = {.places = places, .plan = plan, .rule = rule};
    *places = (struct places){.of = malloc((plan->storage_count + 1) * sizeof *places->of)};
    search.lives = calloc(plan->storage_count + 1, sizeof *search.lives);
    search.order = calloc(plan->storage_count + 1, sizeof *search.order);
    enum healcl_status status = places_find(&search, error);
    for (size_t i = 0; i < places->count && search.shared; i++)
        free(search.shared[i].lives);
    free(search.shared);
    free(search.order);
    free(search.lives);
    if (status != HEALCL_OK)
        places_release(places);
    return status;
}

void places_release(struct places *places)
{
    free(places->of);
    free(places->bytes);
    memset(places, 0, sizeof *places);
}
