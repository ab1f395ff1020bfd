/*
 * Memory that runs out: functions in the place of those that allocate, arenas' too (core/arena.h),
 * which rarely allocate again. The linker's --wrap puts them there (tests/CMakeLists.txt).
 */
#ifndef HEALCL_TESTS_HELPER_MEMORY_H
#define HEALCL_TESTS_HELPER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum memory_way {
    MEMORY_WORKS,
    MEMORY_IS_NOTED,   /* it works, and the call stack of each allocation is noted */
    MEMORY_FAILS_ONCE, /* allocation number `at` fails, from 1 on */
    MEMORY_FAILS_ON    /* and all that follow */
};

/* Allocations are counted from here. */
void memory_begin(enum memory_way way, size_t at);

/* They work again. Returns how many there were. */
size_t memory_end(void);

/* The first allocation of each stack of calls that the last MEMORY_IS_NOTED has met and none
 * before; with each_one of all, whatever has led to them. They stay until the next one. */
const size_t *memory_firsts(size_t *count);
void memory_note_each(bool each_one);

#endif
