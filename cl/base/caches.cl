/* Requests to the caches of a device. The self-test finds out whether it can run them; -D NO_HINTS
 * leaves them out. */

/* Asks for a line of memory. OpenCL C's prefetch() means nothing to PoCL. An address may lie behind
 * the end of a buffer. */
#ifdef NO_HINTS
#define PREFETCH(address) (void)0
#elif defined __clang__
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) prefetch(address, 1)
#endif

/* How far ahead memory is asked for where it is read in order: two pages. */
enum { AHEAD_BYTES = 8192 };

/*
 * STORE_PAST stores a vector that is a whole line of the cache past the caches: memory that nobody
 * reads soon need not be read before it is written. Where the compiler knows no way, it stores as
 * always. FENCE_PAST ends a work-item that does so: such stores are in no order.
 */
#if defined __has_builtin && !defined NO_HINTS
#if __has_builtin(__builtin_nontemporal_store)
#define STORE_PAST(type, value, out) __builtin_nontemporal_store(value, (global type *)(out))
#define FENCE_PAST() __sync_synchronize()
#endif
#endif
#ifndef STORE_PAST
#define STORE_PAST(type, value, out) (*(global type *)(out) = (value))
#define FENCE_PAST() (void)0
#endif
