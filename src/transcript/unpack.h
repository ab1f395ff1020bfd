/* Packed transcripts: .json.gz and .json.zst, told by their first bytes. */
#ifndef HEALCL_TRANSCRIPT_UNPACK_H
#define HEALCL_TRANSCRIPT_UNPACK_H

#include "core/status.h"

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

/* How an open file is packed. The file's offset does not move. */
enum packing packing_of(int file);

/*
 * Unpacks a file into a temporary one, which has no name (in TMPDIR, else /tmp) and is gone when
 * it is closed; *unpacked belongs to the caller. Memory stays small however large the file is.
 * Errors: HEALCL_REFUSED for damaged data and for more than UNPACKED_BYTES_MAX,
 * HEALCL_USAGE where the temporary file cannot be written.
 */
MUST_CHECK enum healcl_status unpack(int file, enum packing packing, int *unpacked,
                                     struct healcl_error *error);

/* A few kilobytes can unpack to any size: this much is more than any transcript. */
#define UNPACKED_BYTES_MAX (UINT64_C(1) << 38)

#endif
