/* Packed transcripts: .json.gz and .json.zst, told by their first bytes. */
#ifndef HEALCL_TRANSCRIPT_UNPACK_H
#define HEALCL_TRANSCRIPT_UNPACK_H

#include "core/status.h"

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

enum packing packing_of(const void *data, size_t length);

/*
 * Unpacks memory into a temporary file, which has no name (in TMPDIR, else /tmp) and is gone when
 * it is closed; *unpacked belongs to the caller. It takes any number of members or frames, also
 * empty ones, those of zstd to be skipped, and zeros behind gzip's, as `gzip -t` and `zstd -t` do.
 * Errors: HEALCL_REFUSED for damaged data, for other bytes behind them, for what cannot be a
 * transcript, as soon as that shows, and for more bytes than the limits below; HEALCL_USAGE where
 * the temporary file cannot be written, HEALCL_NO_MEMORY.
 */
enum healcl_status unpack(const void *data, size_t length, enum packing packing, int *unpacked,
                          struct healcl_error *error);

/*
 * A few kilobytes can unpack to any size. This much is more than any transcript; and beyond
 * UNPACKED_BYTES_FREE no transcript is UNPACKED_RATIO_MAX times as large as what it is packed in.
 * Ciphertexts, keys and tables of twiddles hardly shrink, small numbers and permutations by a
 * factor of 10 to 30. What shrinks more is zeros, and those that are beside other data make a
 * factor of 250 only where they are nearly all there is. gzip reaches 1032, zstd 32,000.
 */
#define UNPACKED_BYTES_MAX (UINT64_C(1) << 38)
#define UNPACKED_BYTES_FREE (UINT64_C(1) << 26)
enum { UNPACKED_RATIO_MAX = 250 };

#endif
