#include "transcript/unpack.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "core/draft.h"
#include "core/registry.h"

enum { BLOCK_BYTES = 256 * 1024 };

enum packing packing_of_bytes(const void *data, size_t length)
{
    static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (length >= sizeof gzip && memcmp(data, gzip, sizeof gzip) == 0)
        return PACKING_GZIP;
    if (length >= sizeof zstd && memcmp(data, zstd, sizeof zstd) == 0)
        return PACKING_ZSTD;
    return PACKING_NONE;
}

enum packing packing_of(int file)
{
    unsigned char first[4];
    ssize_t count = pread(file, first, sizeof first, 0);
    return count > 0 ? packing_of_bytes(first, (size_t)count) : PACKING_NONE;
}

/* ---------------------------------------------------------------- the temporary file */

struct output {
    int file;
    uint64_t bytes, most;
    const char *unpacker; /* a command, for people */
    bool begun;           /* a byte that is no space was there */
};

/* Of what is packed in file. */
static uint64_t most_bytes(int file)
{
    struct stat about;
    uint64_t packed = fstat(file, &about) == 0 ? (uint64_t)about.st_size : 0;
    if (packed > UNPACKED_BYTES_MAX / UNPACKED_RATIO_MAX)
        return UNPACKED_BYTES_MAX;
    uint64_t most = packed * UNPACKED_RATIO_MAX;
    return most > UNPACKED_BYTES_FREE ? most : UNPACKED_BYTES_FREE;
}

static enum healcl_status output_open(struct output *output, int packed, enum packing packing,
                                      struct healcl_error *error)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int length =
        snprintf(path, sizeof path, "%s/healcl-XXXXXX", folder && *folder ? folder : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "TMPDIR is too long");
    *output = (struct output){.file = nameless_create(path, 0600),
                              .most = most_bytes(packed),
                              .unpacker = packing == PACKING_GZIP ? "gzip -d" : "zstd -d"};
    if (output->file >= 0)
        return HEALCL_OK;
    output->file = temporary_create_unique(path);
    if (output->file < 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot unpack to a temporary file '%.480s': %s", path,
                 strerror(errno));
    (void)unlink(path);
    temporary_forget(path);
    return HEALCL_OK;
}

/* Whether there is a byte that no JSON has, in strings or beside them. */
static bool has_control(const char *data, size_t size)
{
    unsigned char found = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        found |= (unsigned char)((c < ' ') & (c != '\n') & (c != '\r') & (c != '\t'));
    }
    return found;
}

/* Refuses what cannot be part of a transcript, for what follows may be long. The rest is left to
 * the scanner. */
static enum healcl_status output_look(struct output *output, const char *data, size_t size,
                                      struct healcl_error *error)
{
    size_t spaces = 0;
    while (!output->begun && spaces < size && memchr(" \t\r\n", data[spaces], 4))
        spaces++;
    if (!output->begun && spaces < size) {
        unsigned char first = (unsigned char)data[spaces];
        output->begun = true;
        if (first != '[' && first != '{')
            REFUSE(error,
                   "not a transcript: it unpacks to byte 0x%02x where '[' or '{' is expected",
                   first);
    }
    if (has_control(data, size))
        REFUSE(error, "not JSON: it unpacks to control characters");
    return HEALCL_OK;
}

static enum healcl_status output_write(struct output *output, const char *data, size_t size,
                                       struct healcl_error *error)
{
    output->bytes += size;
    if (output->bytes > UNPACKED_BYTES_MAX)
        REFUSE(error, "unpacks to more than %llu bytes", (unsigned long long)UNPACKED_BYTES_MAX);
    if (output->bytes > output->most)
        REFUSE(error,
               "unpacks to more than %llu bytes, and to more than %d times its size, as no "
               "transcript should; if it is one, unpack it first, with '%s'",
               (unsigned long long)UNPACKED_BYTES_FREE, UNPACKED_RATIO_MAX, output->unpacker);
    TRY(output_look(output, data, size, error));
    while (size > 0) {
        ssize_t written = write(output->file, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot unpack to a temporary file: %s",
                     strerror(errno));
        data += written;
        size -= (size_t)written;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- gzip */

/* zlib goes on from one member of the file to the next, and ignores garbage behind the last as
 * gzip(1) does. */
static enum healcl_status unpack_gzip(gzFile input, struct output *output, char *block,
                                      struct healcl_error *error)
{
    for (;;) {
        int count = gzread(input, block, BLOCK_BYTES);
        if (count > 0) {
            TRY(output_write(output, block, (size_t)count, error));
            continue;
        }
        int code;
        const char *reason = gzerror(input, &code);
        if (code == Z_MEM_ERROR)
            NO_MEMORY(error);
        if (count < 0 || code != Z_OK)
            REFUSE(error, "gzip: %s", code == Z_BUF_ERROR ? "the file ends too early" : reason);
        return HEALCL_OK;
    }
}

static enum healcl_status gzip(int file, struct output *output, char *block,
                               struct healcl_error *error)
{
    int copy = dup(file); /* gzclose closes what it was given */
    if (copy < 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot unpack: %s", strerror(errno));
    gzFile input = gzdopen(copy, "rb");
    if (!input) {
        close(copy);
        NO_MEMORY(error);
    }
    enum healcl_status status = unpack_gzip(input, output, block, error);
    int code = gzclose_r(input);
    if (status == HEALCL_OK && code != Z_OK)
        REFUSE(error, "gzip: the file ends too early");
    return status;
}

/* ---------------------------------------------------------------- zstd */

static enum healcl_status unpack_zstd(ZSTD_DStream *stream, int file, struct output *output,
                                      char *block, char *packed, struct healcl_error *error)
{
    size_t expected = 0; /* 0 at the end of a frame */
    for (;;) {
        ssize_t count = read(file, packed, BLOCK_BYTES);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            FAIL_FOR(error, HEALCL_USAGE, FILE, "%s", strerror(errno));
        if (count == 0 && expected != 0)
            REFUSE(error, "zstd: the file ends too early");
        if (count == 0)
            return HEALCL_OK;
        ZSTD_inBuffer in = {packed, (size_t)count, 0};
        ZSTD_outBuffer out = {block, BLOCK_BYTES, 0};
        do { /* a full output block may mean that more waits inside of the decoder */
            out.pos = 0;
            expected = ZSTD_decompressStream(stream, &out, &in);
            if (ZSTD_getErrorCode(expected) == ZSTD_error_memory_allocation)
                NO_MEMORY(error);
            if (ZSTD_isError(expected))
                REFUSE(error, "zstd: %s", ZSTD_getErrorName(expected));
            TRY(output_write(output, block, out.pos, error));
        } while (in.pos < in.size || (out.pos == out.size && expected != 0));
    }
}

static enum healcl_status zstd(int file, struct output *output, char *block,
                               struct healcl_error *error)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    char *packed = malloc(BLOCK_BYTES);
    enum healcl_status status = HEALCL_OK;
    if (!stream || !packed)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK)
        status = unpack_zstd(stream, file, output, block, packed, error);
    free(packed);
    ZSTD_freeDStream(stream);
    return status;
}

/* ---------------------------------------------------------------- both */

enum healcl_status unpack(int file, enum packing packing, int *unpacked, struct healcl_error *error)
{
    struct output output;
    TRY(output_open(&output, file, packing, error));
    char *block = malloc(BLOCK_BYTES);
    enum healcl_status status = HEALCL_OK;
    if (!block)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK)
        status = packing == PACKING_GZIP ? gzip(file, &output, block, error)
                                         : zstd(file, &output, block, error);
    free(block);
    if (status != HEALCL_OK) {
        close(output.file);
        return status;
    }
    *unpacked = output.file;
    return HEALCL_OK;
}
