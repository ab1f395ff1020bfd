/*
 * STORE_PAST stores a vector that is a whole line of the cache past the caches: memory that nobody
 * reads soon need not be read before it is written. Where the compiler knows no way, it stores as
 * always. FENCE_PAST ends a work-item that does so.
 */
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define STORE_PAST(type, value, out) __builtin_nontemporal_store(value, (global type *)(out))
#define FENCE_PAST() __sync_synchronize() /* such stores are in no order */
#endif
#endif
#ifndef STORE_PAST
#define STORE_PAST(type, value, out) (*(global type *)(out) = (value))
#define FENCE_PAST() (void)0
#endif
