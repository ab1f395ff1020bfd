/* Packed transcripts: unpacked as they are read, refused where they are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "transcript/source.h"
#include "transcript/unpack.h"

enum { TEXT_BYTES = 3 * 1024 * 1024 + 17, PACKED_MAX = 2 * TEXT_BYTES };

/* Text that packs to a fraction of itself, but not to almost nothing, and begins as JSON may. */
static char *make_text(void)
{
    char *text = malloc(TEXT_BYTES);
    assert_non_null(text);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        text[i] = (char)('a' + (state >> 60));
    }
    text[0] = '[';
    return text;
}

static size_t pack_gzip(const char *text, size_t size, char *packed)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)packed;
    stream.avail_out = PACKED_MAX;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t length = stream.total_out;
    deflateEnd(&stream);
    return length;
}

static size_t pack_zstd(const char *text, size_t size, char *packed)
{
    size_t length = ZSTD_compress(packed, PACKED_MAX, text, size, 3);
    assert_false(ZSTD_isError(length));
    return length;
}

typedef size_t pack_function(const char *text, size_t size, char *packed);

static pack_function *const packers[] = {pack_gzip, pack_zstd};

/* Opens these bytes as a source, in a file and in memory, which has to come to the same. No more
 * than most bytes may be written to a file. */
static enum healcl_status open_limited(const char *bytes, size_t size, uint64_t most,
                                       struct source *source, struct healcl_error *error)
{
    char path[] = "/tmp/healcl-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = most < before.rlim_cur ? (rlim_t)most : before.rlim_cur;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct healcl_error told = {0};
    struct source in_memory;
    const enum healcl_status status = source_open(source, path, error);
    assert_int_equal(source_open_memory(&in_memory, bytes, size, &told), status);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    unlink(path);
    if (error)
        assert_string_equal(told.message, error->message);
    assert_int_equal(in_memory.length, source->length);
    if (source->length > 0)
        assert_memory_equal(in_memory.text, source->text, source->length);
    source_close(&in_memory);
    healcl_error_clear(&told);
    return status;
}

static enum healcl_status open_bytes(const char *bytes, size_t size, struct source *source,
                                     struct healcl_error *error)
{
    return open_limited(bytes, size, UINT64_MAX, source, error);
}

static void unpacks_to_the_same_text(void **state)
{
    (void)state;
    char *text = make_text(), *packed = malloc(PACKED_MAX);
    assert_non_null(packed);
    static const size_t sizes[] = {0, 1, 256 * 1024, TEXT_BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t p = 0; p < 2; p++) {
            struct source source;
            size_t length = packers[p](text, sizes[i], packed);
            assert_int_equal(open_bytes(packed, length, &source, NULL), HEALCL_OK);
            assert_int_equal(source.length, sizes[i]);
            if (sizes[i] > 0)
                assert_memory_equal(source.text, text, sizes[i]);
            source_close(&source);
        }
    free(text);
    free(packed);
}

static void refuses_a_cut_file_at_every_length(void **state)
{
    (void)state;
    char *text = make_text(), *packed = malloc(PACKED_MAX);
    assert_non_null(packed);
    for (size_t p = 0; p < 2; p++) {
        size_t length = packers[p](text, 1000, packed);
        for (size_t cut = 4; cut < length; cut++) {
            struct source source;
            struct healcl_error error = {0};
            assert_int_equal(open_bytes(packed, cut, &source, &error), HEALCL_REFUSED);
            assert_non_null(strstr(error.message, p == 0 ? "gzip: " : "zstd: "));
            assert_null(source.text);
            healcl_error_clear(&error);
        }
    }
    free(text);
    free(packed);
}

/* "[]" in pieces that `gzip -t` and `zstd -t` take, and what they do not take, or warn of. */
static void takes_all_members_and_frames(void **state)
{
    (void)state;
#define GZIP(flags, fields) "\x1f\x8b\x08" flags "\0\0\0\0\0\x03" fields
#define OPEN "\x8b\x06\0\xf1\x67\xbb\x2e\x01\0\0\0"  /* "[" */
#define CLOSE "\x8b\x05\0\xc4\xc2\xd8\xc7\x01\0\0\0" /* "]" */
#define NO_BYTES "\x03\0\0\0\0\0\0\0\0\0"
#define FRAME "\x28\xb5\x2f\xfd\x20"
#define ONE(text) FRAME "\x01\x09\0\0" text
#define SKIPPED(digit, bytes) digit "\x2a\x4d\x18" bytes
#define CASE(bytes, message)             \
    {                                    \
        bytes, sizeof bytes - 1, message \
    }
    static const struct {
        const char *bytes;
        size_t size;
        const char *message; /* NULL: it is read */
    } cases[] = {
        CASE(GZIP("\0", OPEN) GZIP("\0", CLOSE), NULL),
        CASE(GZIP("\0", NO_BYTES) GZIP("\0", OPEN) GZIP("\0", NO_BYTES) GZIP("\0", CLOSE), NULL),
        CASE(GZIP("\x1c", "\x02\0BCname\0why\0" OPEN) GZIP("\x01", CLOSE) "\0\0\0\0\0", NULL),
        CASE(GZIP("\x02", "\xa7\x77" OPEN) GZIP("\0", CLOSE), NULL),
        CASE(GZIP("\x02", "\xa8\x77" OPEN), "header crc mismatch"),
        CASE(GZIP("\0", OPEN) GZIP("\x20", CLOSE), "unknown header flags"),
        CASE(GZIP("\0", OPEN) GZIP("\0", CLOSE) "x", "at byte 42, but the file goes on"),
        CASE(GZIP("\0", OPEN) "\0\0\0\0\0" GZIP("\0", CLOSE), "at byte 21, but the file goes on"),
        CASE(GZIP("\0", OPEN) ONE("]"), "at byte 21, but the file goes on"),
        CASE(GZIP("\0", OPEN) GZIP("\0", ""), "gzip: the file ends too early"),
        CASE(ONE("[") ONE("]"), NULL),
        CASE(SKIPPED("P", "\0\0\0\0") ONE("[") SKIPPED("\x5f", "\x02\0\0\0xy") ONE("]"), NULL),
        CASE(FRAME "\0\x01\0\0" ONE("[") FRAME "\0\x01\0\0" ONE("]") SKIPPED("Q", "\x01\0\0\0x"),
             NULL),
        CASE(SKIPPED("P", "\x02\0\0\0[]") "[]", "at byte 10, but the file goes on"),
        CASE(ONE("[") ONE("]") "x", "at byte 20, but the file goes on"),
        CASE(ONE("[") ONE("]") "\0\0\0\0", "at byte 20, but the file goes on"),
        CASE(ONE("[") GZIP("\0", CLOSE), "at byte 10, but the file goes on"),
        CASE(ONE("[") ONE("]") SKIPPED("P", "\x02\0\0\0x"), "zstd: the file ends too early"),
        CASE(ONE("[") FRAME, "zstd: the file ends too early"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct source source;
        struct healcl_error error = {0};
        const enum healcl_status status =
            open_bytes(cases[i].bytes, cases[i].size, &source, &error);
        if (cases[i].message)
            assert_non_null(strstr(error.message, cases[i].message));
        else
            assert_memory_equal(source.text, "[]", 2);
        assert_int_equal(status, cases[i].message ? HEALCL_REFUSED : HEALCL_OK);
        source_close(&source);
        healcl_error_clear(&error);
    }
}

static void says_where_it_cannot_unpack(void **state)
{
    (void)state;
    char packed[256];
    size_t length = pack_zstd("[]", 2, packed);
    struct source source;
    struct healcl_error error = {0};
    char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", "/nonexistent", 1);
    assert_int_equal(open_bytes(packed, length, &source, &error), HEALCL_USAGE);
    assert_non_null(strstr(error.message, "in '/nonexistent': No such file"));
    healcl_error_clear(&error);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
}

/* A packed file: text, and then so many times the same block of one character. */
static char *make_bomb(pack_function *pack, const char *text, char character, size_t block_bytes,
                       size_t blocks, size_t *length)
{
    char *block = malloc(block_bytes), *head = malloc(PACKED_MAX), *one = malloc(PACKED_MAX);
    assert_true(block && head && one);
    memset(block, character, block_bytes);
    size_t head_bytes = pack(text, strlen(text), head);
    size_t one_bytes = pack(block, block_bytes, one);
    char *bomb = malloc(head_bytes + blocks * one_bytes);
    assert_non_null(bomb);
    memcpy(bomb, head, head_bytes);
    for (size_t i = 0; i < blocks; i++)
        memcpy(bomb + head_bytes + i * one_bytes, one, one_bytes);
    *length = head_bytes + blocks * one_bytes;
    free(block);
    free(head);
    free(one);
    return bomb;
}

enum { MIB = 1024 * 1024 };

/* Nothing of 10 GiB is written, and only a block of it unpacked. */
static void refuses_what_begins_as_no_transcript(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *message;
        char character;
    } cases[] = {
        {"", "not a transcript: it unpacks to byte 0x00 where '[' or '{' is expected", 0},
        {" \n\t\r", "not a transcript: it unpacks to byte 0x41 where '[' or '{' is expected", 'A'},
        {" \n[", "not JSON: it unpacks to control characters", 0},
        {"{\"", "not JSON: it unpacks to control characters", '\x1f'},
    };
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct source source;
            struct healcl_error error = {0};
            size_t length;
            char *bomb =
                make_bomb(packers[p], cases[i].begin, cases[i].character, 16 * MIB, 640, &length);
            /* The first few bytes may be a block of their own. */
            assert_int_equal(open_limited(bomb, length, 4, &source, &error), HEALCL_REFUSED);
            assert_string_equal(error.message, cases[i].message);
            healcl_error_clear(&error);
            free(bomb);
        }
}

/* Spaces, which JSON may have any number of: no more is written than is free of the limit. */
static void limits_the_ratio(void **state)
{
    (void)state;
    static const char *const commands[] = {"'gzip -d'", "'zstd -d'"};
    for (size_t p = 0; p < 2; p++) {
        struct source source;
        struct healcl_error error = {0};
        size_t length, blocks = p == 0 ? 16 : 320;
        char *bomb = make_bomb(packers[p], "[", ' ', 16 * MIB, blocks, &length);
        assert_true(length < UNPACKED_BYTES_FREE / UNPACKED_RATIO_MAX);
        assert_int_equal(open_limited(bomb, length, UNPACKED_BYTES_FREE, &source, &error),
                         HEALCL_REFUSED);
        assert_non_null(strstr(error.message, "more than 250 times its size"));
        assert_non_null(strstr(error.message, commands[p]));
        healcl_error_clear(&error);
        free(bomb);
    }
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN); /* of files that become too large */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacks_to_the_same_text),
        cmocka_unit_test(refuses_a_cut_file_at_every_length),
        cmocka_unit_test(takes_all_members_and_frames),
        cmocka_unit_test(says_where_it_cannot_unpack),
        cmocka_unit_test(refuses_what_begins_as_no_transcript),
        cmocka_unit_test(limits_the_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
