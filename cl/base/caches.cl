/* Hints to the caches of a device. The self-test checks whether the device supports them; -D
 * NO_HINTS omits them. */

/* Prefetches a line of memory. PoCL ignores OpenCL C's prefetch(). The address may be past the end
 * of a buffer. */
#ifdef NO_HINTS
#define PREFETCH(address) (void)0
#elif defined __clang__
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) prefetch(address, 1)
#endif

/* The distance of prefetches from sequential reads, in bytes: two pages. */
enum { AHEAD_BYTES = 8192 };

/*
 * STORE_PAST stores a vector that fills a cache line, and bypasses the caches. Memory that is not
 * read soon then need not be read before it is written. Without support by the compiler it is an
 * ordinary store. FENCE_PAST ends a work-item that uses it: such stores are not ordered.
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
