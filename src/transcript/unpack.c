#include "transcript/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { BLOCK_BYTES = 256 * 1024 };

enum packing packing_of(const void *data, size_t length)
{
    static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    static const unsigned char skippable[] = {0x2a, 0x4d, 0x18}; /* after a byte 0x50 to 0x5f */
    const unsigned char *first = data;
    if (length >= sizeof gzip && memcmp(first, gzip, sizeof gzip) == 0)
        return PACKING_GZIP;
    if (length >= sizeof zstd &&
        (memcmp(first, zstd, sizeof zstd) == 0 ||
         (first[0] >> 4 == 5 && memcmp(first + 1, skippable, sizeof skippable) == 0)))
        return PACKING_ZSTD;
    return PACKING_NONE;
}

/* ---------------------------------------------------------------- the temporary file */

struct output {
    int file;
    uint64_t bytes, most;
    const char *folder;
    const char *unpacker; /* a command, for messages */
    bool begun;           /* a byte other than white space has been written */
};

static enum healcl_status fail_to_write(const struct output *output, struct healcl_error *error)
{
    FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot unpack to a temporary file in '%.480s': %s",
             output->folder, strerror(errno));
}

static enum healcl_status output_open(struct output *output, uint64_t packed, enum packing packing,
                                      struct healcl_error *error)
{
    const char *folder = getenv("TMPDIR");
    const uint64_t most = packed > UNPACKED_BYTES_MAX / UNPACKED_RATIO_MAX
                              ? UNPACKED_BYTES_MAX
                              : packed * UNPACKED_RATIO_MAX;
    char path[4096];
    *output = (struct output){.folder = folder && *folder ? folder : "/tmp",
                              .most = most > UNPACKED_BYTES_FREE ? most : UNPACKED_BYTES_FREE,
                              .unpacker = packing == PACKING_GZIP ? "gzip -d" : "zstd -d"};
    int length = snprintf(path, sizeof path, "%s/healcl-XXXXXX", output->folder);
    if (length < 0 || (size_t)length >= sizeof path)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "TMPDIR is too long");
    output->file = mkstemp(path);
    if (output->file < 0)
        return fail_to_write(output, error);
    (void)unlink(path);
    (void)fcntl(output->file, F_SETFD, FD_CLOEXEC);
    return HEALCL_OK;
}

/* Refuses data that cannot be part of a transcript, because much more may follow. The scanner
 * checks the rest. */
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
               "transcript should; if it is a transcript, unpack it first with '%s'",
               (unsigned long long)UNPACKED_BYTES_FREE, UNPACKED_RATIO_MAX, output->unpacker);
    TRY(output_look(output, data, size, error));
    while (size > 0) {
        ssize_t written = write(output->file, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail_to_write(output, error);
        data += written;
        size -= (size_t)written;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- what is packed */

/* The bytes from `at` on are not yet decoded. */
struct input {
    const char *bytes;
    size_t at, length;
};

/* Bytes that a decoder may take at once. */
static size_t input_left(const struct input *input)
{
    const size_t left = input->length - input->at;
    return left < BLOCK_BYTES ? left : BLOCK_BYTES;
}

/* Refuses data after the last member or frame. gzip may be padded with zeros, as on tapes. */
static enum healcl_status check_behind(const struct input *input, enum packing packing,
                                       struct healcl_error *error)
{
    for (size_t at = input->at; at < input->length; at++)
        if (packing != PACKING_GZIP || input->bytes[at] != 0)
            REFUSE(error, "%s: the packed data end at byte %zu, but the file goes on",
                   packing == PACKING_GZIP ? "gzip" : "zstd", input->at);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- decoders */

struct decoder {
    enum packing packing;
    z_stream gzip;
    ZSTD_DStream *zstd;
};

/* Decodes pending input into a block, and sets *size to the bytes written. *ended: a member is
 * complete. */
static enum healcl_status decode_gzip(z_stream *stream, struct input *input, char *block,
                                      size_t *size, bool *ended, struct healcl_error *error)
{
    const size_t left = input_left(input);
    stream->next_in = (Bytef *)(uintptr_t)(input->bytes + input->at);
    stream->avail_in = (uInt)left;
    stream->next_out = (Bytef *)block;
    stream->avail_out = BLOCK_BYTES;
    const int code = inflate(stream, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR)
        NO_MEMORY(error);
    *ended = code == Z_STREAM_END;
    if (code != Z_OK && code != Z_BUF_ERROR && !*ended)
        REFUSE(error, "gzip: %s", stream->msg ? stream->msg : zError(code));
    input->at += left - stream->avail_in;
    *size = BLOCK_BYTES - stream->avail_out;
    if (*ended)
        (void)inflateReset(stream);
    return HEALCL_OK;
}

/* Decodes in the same way. *ended: a frame is complete, which may be a skippable one. */
static enum healcl_status decode_zstd(ZSTD_DStream *stream, struct input *input, void *block,
                                      size_t *size, bool *ended, struct healcl_error *error)
{
    ZSTD_inBuffer in = {input->bytes + input->at, input_left(input), 0};
    ZSTD_outBuffer out = {block, BLOCK_BYTES, 0};
    const size_t code = ZSTD_decompressStream(stream, &out, &in);
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        NO_MEMORY(error);
    if (ZSTD_isError(code))
        REFUSE(error, "zstd: %s", ZSTD_getErrorName(code));
    input->at += in.pos;
    *size = out.pos;
    *ended = code == 0;
    return HEALCL_OK;
}

static enum healcl_status decode_all(struct decoder *decoder, struct input *input,
                                     struct output *output, char *block, struct healcl_error *error)
{
    const bool is_gzip = decoder->packing == PACKING_GZIP;
    for (bool ended = true;;) {
        size_t size = 0;
        const size_t left = input_left(input);
        if (ended && packing_of(input->bytes + input->at, left) != decoder->packing)
            return check_behind(input, decoder->packing, error);
        TRY(is_gzip ? decode_gzip(&decoder->gzip, input, block, &size, &ended, error)
                    : decode_zstd(decoder->zstd, input, block, &size, &ended, error));
        TRY(output_write(output, block, size, error));
        if (left == 0 && size == 0 && !ended)
            REFUSE(error, "%s: the file ends too early", is_gzip ? "gzip" : "zstd");
    }
}

enum healcl_status unpack(const void *data, size_t length, enum packing packing, int *unpacked,
                          struct healcl_error *error)
{
    struct input input = {.bytes = data, .length = length};
    struct output output;
    struct decoder decoder = {.packing = packing};
    TRY(output_open(&output, length, packing, error));
    char *block = malloc(BLOCK_BYTES);
    const bool is_gzip = packing == PACKING_GZIP;
    const bool is_ready = is_gzip ? inflateInit2(&decoder.gzip, 16 + MAX_WBITS) == Z_OK
                                  : (decoder.zstd = ZSTD_createDStream()) != NULL;
    const enum healcl_status status = block && is_ready
                                          ? decode_all(&decoder, &input, &output, block, error)
                                          : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (is_gzip)
        (void)inflateEnd(&decoder.gzip);
    ZSTD_freeDStream(decoder.zstd);
    free(block);
    if (status == HEALCL_OK)
        *unpacked = output.file;
    else
        close(output.file);
    return status;
}
