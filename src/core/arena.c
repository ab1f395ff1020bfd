#include "core/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

enum { DOUBLINGS_MAX = 4 }; /* to 1 MiB */

struct arena {
    struct block *newest;
    unsigned doublings; /* of new blocks: more than one was full when the arena was cleared */
};

struct arena *arena_create(void)
{
    return calloc(1, sizeof(struct arena));
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    struct block *block = arena->newest;
    while (block) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
    free(arena);
}

void arena_clear(struct arena *arena)
{
    struct block *kept = arena->newest;
    if (!kept)
        return;
    arena->doublings += kept->next && arena->doublings < DOUBLINGS_MAX;
    while (kept->next) {
        struct block *next = kept->next;
        kept->next = next->next;
        free(next);
    }
    memset(kept->bytes, 0, kept->used);
    kept->used = 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > (size_t)-1 / 2)
        return NULL;
    size = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    struct block *block = arena->newest;
    if (!block || block->size - block->used < size) {
        const size_t least = (size_t)ARENA_BLOCK_SIZE << arena->doublings;
        const size_t room = size > least ? size : least;
        block = calloc(1, sizeof *block + room);
        if (!block)
            return NULL;
        block->size = room;
        block->next = arena->newest;
        arena->newest = block;
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    return memory;
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
    void *copy = arena_alloc(arena, size);
    return copy ? memcpy(copy, data, size) : NULL;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1);
}
