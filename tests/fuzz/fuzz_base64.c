/* Fuzzes base64: what is accepted decodes to what encodes to the same text, and all bytes encode to
 * what is accepted. */
#include "fuzz.h"

#include "transcript/base64.h"

static void read_back(const char *text, size_t length, uint64_t decoded)
{
    unsigned char *bytes = malloc(length / 4 * 3 + 1);
    char *again = malloc(length + 1);
    EXPECT(bytes && again && base64_length((size_t)decoded) == length);
    base64_decode(text, length / 4, bytes);
    base64_encode(bytes, (size_t)decoded, again);
    /* The bits of the last letter that no byte takes may be anything. */
    EXPECT(length < 4 || memcmp(text, again, length - 4) == 0);
    free(again);
    free(bytes);
}

static void write_and_read(const uint8_t *data, size_t size)
{
    struct healcl_error error = {.detail = NULL};
    size_t length = base64_length(size);
    char *text = malloc(length + 1);
    unsigned char *bytes = malloc(length / 4 * 3 + 1);
    uint64_t decoded = 0;
    EXPECT(text && bytes);
    base64_encode(data, size, text);
    EXPECT(base64_check(text, length, &decoded, &error) == HEALCL_OK && decoded == size);
    base64_decode(text, length / 4, bytes);
    EXPECT(size == 0 || memcmp(bytes, data, size) == 0);
    free(bytes);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct healcl_error error = {.detail = NULL};
    uint64_t decoded = 0;
    enum healcl_status status = base64_check((const char *)data, size, &decoded, &error);
    expect_told(status, &error);
    EXPECT(status != HEALCL_OK || decoded <= size / 4 * 3);
    if (status == HEALCL_OK)
        read_back((const char *)data, size, decoded);
    healcl_error_clear(&error);
    write_and_read(data, size);
    return 0;
}
