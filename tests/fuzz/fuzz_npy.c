/* Fuzzes .npy files: as a reader of files sees them, and as the payload of a transcript, in base64
 * and raw. All accept the same files, and a header rewritten from what was read says the same. */
#include "fuzz.h"

#include "transcript/base64.h"
#include "transcript/npy.h"
#include "transcript/payload.h"

static bool read_file(const uint8_t *data, size_t size, struct npy_header *header, uint32_t *start)
{
    struct healcl_error error = {.detail = NULL};
    uint32_t offset = 0;
    enum healcl_status status = npy_read_prefix(data, size, &offset, start, &error);
    if (status == HEALCL_OK && *start > size)
        return false;
    if (status == HEALCL_OK)
        status =
            npy_read_header(data[6], (const char *)data + offset, *start - offset, header, &error);
    expect_told(status, &error);
    healcl_error_clear(&error);
    return status == HEALCL_OK;
}

static void write_anew(const struct npy_header *header)
{
    char text[NPY_HEADER_SIZE];
    uint32_t start = 0;
    struct npy_header again;
    size_t length = npy_write_header(header->dtype, &header->layout, header->fortran_order, text);
    EXPECT(length <= sizeof text && read_file((uint8_t *)text, length, &again, &start));
    EXPECT(start == length && again.dtype == header->dtype && !again.big_endian);
    EXPECT(again.fortran_order == header->fortran_order);
    EXPECT(again.layout.rank == header->layout.rank);
    for (uint32_t i = 0; i < again.layout.rank; i++)
        EXPECT(again.layout.shape[i] == header->layout.shape[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct healcl_error error = {.detail = NULL};
    struct npy_header header;
    struct payload payload, raw;
    uint32_t start = 0;
    char *text = malloc(base64_length(size) + 1);
    EXPECT(text);
    base64_encode(data, size, text);
    bool reads = read_file(data, size, &header, &start);
    if (reads)
        write_anew(&header);
    enum healcl_status status = payload_parse(
        text, base64_length(size), base64_good(text, base64_length(size)), NULL, &payload, &error);
    expect_told(status, &error);
    int64_t count = reads ? layout_elements(&header.layout) : 0;
    bool is_whole = reads && (uint64_t)count == (size - start) / dtype_size(header.dtype) &&
                    (size - start) % dtype_size(header.dtype) == 0;
    EXPECT((status == HEALCL_OK) == is_whole);
    EXPECT(payload_parse_raw((const char *)data, size, &raw, NULL) == status);
    if (status == HEALCL_OK) {
        const size_t bytes = (size_t)count * sizeof(int64_t);
        int64_t *values = malloc(2 * bytes + 1);
        EXPECT(values && payload.dtype == header.dtype && payload.data_offset == start);
        EXPECT(payload_read(&payload, DTYPE_INT64, values, &error) == HEALCL_OK);
        EXPECT(payload_read(&raw, DTYPE_INT64, values + count, &error) == HEALCL_OK);
        EXPECT(memcmp(values, values + count, bytes) == 0);
        free(values);
    }
    free(text);
    healcl_error_clear(&error);
    return 0;
}
