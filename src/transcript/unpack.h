/* Packed transcripts, .json.gz and .json.zst, recognised by their first bytes. */
#ifndef HEALCL_TRANSCRIPT_UNPACK_H
#define HEALCL_TRANSCRIPT_UNPACK_H

#include "core/status.h"

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

enum packing packing_of(const void *data, size_t length);

/*
 * Unpacks memory into an unnamed temporary file (in TMPDIR, else /tmp), which disappears when
 * closed. The caller owns *unpacked. Like `gzip -t` and `zstd -t`, it accepts any number of members
 * or frames, empty ones, zstd's skippable frames, and zeros after gzip's members. Errors:
 * HEALCL_REFUSED for damaged data, other trailing bytes, more bytes than the limits below, and for
 * what cannot be a transcript, as early as possible; HEALCL_USAGE if the temporary file cannot be
 * written; HEALCL_NO_MEMORY.
 */
enum healcl_status unpack(const void *data, size_t length, enum packing packing, int *unpacked,
                          struct healcl_error *error);

/*
 * Limits, because a few kilobytes can unpack to any size. No transcript is larger than
 * UNPACKED_BYTES_MAX. Above UNPACKED_BYTES_FREE, no transcript unpacks to UNPACKED_RATIO_MAX times
 * its packed size. Ciphertexts, keys and twiddle tables hardly shrink. Small numbers and
 * permutations shrink by a factor of 10 to 30. Only zeros shrink more; they reach a factor of 250
 * only if there is hardly any other data. gzip reaches 1032, zstd 32,000.
 */
#define UNPACKED_BYTES_MAX (UINT64_C(1) << 38)
#define UNPACKED_BYTES_FREE (UINT64_C(1) << 26)
enum { UNPACKED_RATIO_MAX = 250 };

#endif
