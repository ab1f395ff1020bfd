/* Packed transcripts: unpacked as they are read, refused where they are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "transcript/source.h"
#include "transcript/unpack.h"

enum { TEXT_BYTES = 3 * 1024 * 1024 + 17, PACKED_MAX = 2 * TEXT_BYTES };

/* Text that packs to a fraction of itself, but not to almost nothing. */
static char *make_text(void)
{
    char *text = malloc(TEXT_BYTES);
    assert_non_null(text);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        text[i] = (char)('a' + (state >> 60));
    }
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

/* Opens a file of these bytes as a source. */
static enum healcl_status open_bytes(const char *bytes, size_t size, struct source *source,
                                     struct healcl_error *error)
{
    char path[] = "/tmp/healcl-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
    enum healcl_status status = source_open(source, path, error);
    unlink(path);
    return status;
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

static void refuses_damaged_data(void **state)
{
    (void)state;
    char *text = make_text(), *packed = malloc(PACKED_MAX);
    assert_non_null(packed);
    size_t length = pack_gzip(text, TEXT_BYTES, packed);
    packed[length / 2] ^= 0x55;
    struct source source;
    assert_int_equal(open_bytes(packed, length, &source, NULL), HEALCL_REFUSED);
    length = pack_zstd(text, 1000, packed);
    packed[5] = (char)0xff;
    assert_int_equal(open_bytes(packed, length, &source, NULL), HEALCL_REFUSED);
    free(text);
    free(packed);
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
    assert_non_null(strstr(error.message, "/nonexistent"));
    healcl_error_clear(&error);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacks_to_the_same_text),
        cmocka_unit_test(refuses_a_cut_file_at_every_length),
        cmocka_unit_test(refuses_damaged_data),
        cmocka_unit_test(says_where_it_cannot_unpack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
