#include "test_transcript_common.h"

#include "core/copy.h"
#include "transcript/base64.h"
#include "transcript/base64_vector.h"

/* A text without escapes is the same to both checks. */
static void check(const char *text, size_t length, const char *refusal, uint64_t expected)
{
    char *copy = exact_copy(text, length);
    for (int escaped = 0; escaped < (memchr(copy, '\\', length) ? 1 : 2); escaped++) {
        struct healcl_error error = {.detail = NULL};
        uint64_t decoded = 0, characters = 0;
        size_t block;
        const enum healcl_status status =
            escaped ? base64_check_escaped(copy, length, &block, &characters, &decoded, &error)
                    : base64_check(copy, length, base64_good(copy, length), &decoded, &error);
        if (refusal) {
            expect_refusal(status, &error, refusal);
            continue;
        }
        expect_ok(status, &error);
        assert_int_equal(decoded, expected);
        assert_true(!escaped || characters == length);
    }
    free(copy);
}

static void refuse(const char *text, const char *refusal)
{
    check(text, strlen(text), refusal, 0);
}

static void test_round_trip(void **state)
{
    (void)state;
    uint64_t random = 42;
    for (size_t length = 0; length < 300; length++) {
        unsigned char bytes[300];
        char text[512];
        for (size_t i = 0; i < length; i++)
            bytes[i] = (unsigned char)next_random(&random);
        size_t characters = encode_base64(bytes, length, text);
        check(text, characters, NULL, length);

        /* Exactly three bytes for each group, none after. */
        char *copy = exact_copy(text, characters);
        unsigned char *decoded = malloc(characters / 4 * 3 + 8);
        assert_non_null(decoded);
        memset(decoded, 0xa5, characters / 4 * 3 + 8);
        assert_true(base64_decode(copy, characters / 4, true, decoded));
        assert_memory_equal(decoded, bytes, length);
        for (size_t i = length; i < characters / 4 * 3; i++)
            assert_int_equal(decoded[i], 0);
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(decoded[characters / 4 * 3 + i], 0xa5);
        free(decoded);
        free(copy);
    }
}

/* The vector decoder stops before the block of a bad character, and before the end
 * where its stores would pass it; what it has decoded is right. */
static void test_vectors(void **state)
{
    (void)state;
    enum { GROUPS = 300 };
    unsigned char bytes[GROUPS * 3], decoded[GROUPS * 3];
    char text[GROUPS * 4 + 1];
    uint64_t random = 43;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)next_random(&random);
    base64_encode(bytes, sizeof bytes, text);
    const struct base64_vector *vector = base64_vector();
    for (size_t groups = 0; groups <= GROUPS && vector; groups++) {
        memset(decoded, 0xa5, sizeof decoded);
        const size_t done = vector->decode(text, groups, false, decoded);
        assert_true(done <= groups && done + 128 > groups);
        assert_memory_equal(decoded, bytes, done * 3);
        for (size_t i = groups * 3; i < sizeof decoded; i++)
            assert_int_equal(decoded[i], 0xa5);
        assert_true(vector->good(text, groups * 4) + 128 > groups * 4);
        for (size_t place = 0; place < groups * 4; place += 1 + next_random(&random) % 7) {
            const char kept = text[place];
            text[place] = "=-_*:@[`{ /"[next_random(&random) % 10];
            text[place] = (char)(next_random(&random) % 2 ? text[place] : kept ^ 0x80);
            assert_true(vector->decode(text, groups, false, decoded) * 4 <= place);
            assert_true(vector->good(text, groups * 4) <= place);
            assert_int_equal(base64_good(text, groups * 4), place);
            assert_false(base64_decode(text, groups, false, decoded));
            text[place] = kept;
        }
    }
}

/* What goes past the caches, from and to places of any alignment, and no byte beyond. */
static void test_large(void **state)
{
    (void)state;
    enum { BYTES = (int)COPY_PAST_BYTES + 3 * 40 };
    unsigned char *bytes = malloc(BYTES), *out = aligned_alloc(64, BYTES + 136);
    char *text = malloc(BYTES / 3 * 4 + 1);
    uint64_t random = 44;
    assert_true(bytes && out && text && BYTES % 3 == 2);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)next_random(&random);
    base64_encode(bytes, BYTES / 3 * 3, text);
    for (size_t offset = 0; offset < 64; offset++) {
        const size_t groups = BYTES / 3 - offset / 2, count = groups * 3;
        out[offset + count] = 0xa5;
        assert_true(base64_decode(text, groups, true, out + offset));
        assert_memory_equal(out + offset, bytes, count);
        assert_int_equal(out[offset + count], 0xa5);
        memset(out + offset, 0, count);
        copy_bytes(out + offset, bytes + offset % 7, count);
        assert_memory_equal(out + offset, bytes + offset % 7, count);
        assert_int_equal(out[offset + count], 0xa5);
        const char kept = text[offset];
        text[offset] = '!';
        assert_false(base64_decode(text, groups, true, out + offset));
        text[offset] = kept;
    }
    free(text);
    free(out);
    free(bytes);
}

static void test_every_character(void **state)
{
    (void)state;
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int c = 0; c < 256; c++) {
        bool good = c != 0 && strchr(alphabet, c);
        /* In the first block, at a block's border, and among the rest. */
        for (size_t place = 0; place < 300; place += 43) {
            char text[300];
            char wanted[64];
            memset(text, 'A', sizeof text);
            text[place] = (char)c;
            put(wanted, sizeof wanted, "at %zu is not", place);
            check(text, sizeof text, good ? NULL : wanted, 225);
            unsigned char decoded[225];
            assert_int_equal(base64_decode(text, 75, false, decoded), good);
            assert_true(!good || decoded[place / 4 * 3 + 2] ==
                                     (place % 4 < 2 ? 0 : strchr(alphabet, c) - alphabet) *
                                         (place % 4 == 2 ? 64 : 1) % 256);
        }
    }
}

static void test_padding_and_length(void **state)
{
    (void)state;
    check("", 0, NULL, 0);
    check("QQ==", 4, NULL, 1);
    check("QUE=", 4, NULL, 2);
    check("QUFB", 4, NULL, 3);
    refuse("A", "length 1 is not a multiple of 4");
    refuse("QQ=", "length 3 is not a multiple of 4");
    refuse("====", "padding '=' at 0 is not at the end");
    refuse("QQ==QUFB", "padding '=' at 2 is not at the end");
    refuse("Q=QQ", "padding '=' at 1 is not at the end");
    refuse("QU-B", "character '-' at 2 is not in the alphabet");
    unsigned char bytes[6];
    assert_true(base64_decode("QUFBQQ==", 2, true, bytes));
    assert_memory_equal(bytes, "AAAA\0", 6);
    assert_false(base64_decode("QUFBQQ==", 2, false, bytes));
    assert_false(base64_decode("QQ==QUFB", 2, true, bytes));
    assert_false(base64_decode("Q===", 1, true, bytes));
    assert_false(base64_decode("QQ=Q", 1, true, bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_padding_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
