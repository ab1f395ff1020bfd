/* Requests to the caches of a device. */

/* Asks for a line of memory. OpenCL C's prefetch() means nothing to PoCL. An address may lie behind
 * the end of a buffer. Where a device cannot run what Clang makes of it (docs/DRIVERS.md), -D
 * PREFETCH(address)= leaves it out. */
#ifndef PREFETCH
#ifdef __clang__
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) prefetch(address, 1)
#endif
#endif

/* How far ahead memory is asked for where it is read in order: two pages. */
enum { AHEAD_BYTES = 8192 };

/*
 * STORE_PAST stores a vector that is a whole line of the cache past the caches: memory that nobody
 * reads soon need not be read before it is written. Where the compiler knows no way, it stores as
 * always. FENCE_PAST ends a work-item that does so; where a device cannot run what Clang makes of
 * it (docs/DRIVERS.md), -D 'FENCE_PAST()=' leaves it out.
 */
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define STORE_PAST(type, value, out) __builtin_nontemporal_store(value, (global type *)(out))
#endif
#endif
#ifndef FENCE_PAST
#ifdef STORE_PAST
#define FENCE_PAST() __sync_synchronize() /* such stores are in no order */
#else
#define FENCE_PAST() (void)0
#endif
#endif
#ifndef STORE_PAST
#define STORE_PAST(type, value, out) (*(global type *)(out) = (value))
#endif
