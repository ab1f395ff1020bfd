/* Data on their way through staging memory: in which pieces, and what waits for what. */
#include "helper_device.h"

#include <string.h>

enum { HALF = 4096 };

static struct healcl_device *device;

/* Records the calls of a filler or taker. */
static struct {
    uint64_t pieces, bytes, fails_at;
    uint64_t waits[16];     /* calls of clWaitForEvents before piece i */
    uint64_t transfers[16]; /* reads and writes enqueued before piece i */
} seen;

static void open_with(const char *tuning)
{
    setenv("HEALCL_TUNING", tuning, 1);
    memset(&seen, 0, sizeof seen);
    seen.fails_at = UINT64_MAX;
    OK(device_open(&helper_opencl, NULL, &device, &error));
}

static unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)(offset * 31 + offset / 251);
}

static enum healcl_status see(uint64_t offset, uint64_t bytes, struct healcl_error *failure)
{
    assert_int_equal(offset, seen.bytes);
    assert_in_range(seen.pieces, 0, 15);
    seen.waits[seen.pieces] = helper.count[CALL_clWaitForEvents];
    seen.transfers[seen.pieces] =
        helper.count[CALL_clEnqueueWriteBuffer] + helper.count[CALL_clEnqueueReadBuffer];
    if (seen.pieces == seen.fails_at)
        REFUSE(failure, "piece %d", (int)seen.pieces);
    seen.pieces++;
    seen.bytes += bytes;
    return HEALCL_OK;
}

static enum healcl_status fill(void *context, uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *failure)
{
    (void)context;
    TRY(see(offset, bytes, failure));
    for (uint64_t i = 0; i < bytes; i++)
        ((unsigned char *)memory)[i] = byte_at(offset + i);
    return HEALCL_OK;
}

/* context: where in the buffer the download began */
static enum healcl_status take(void *context, uint64_t offset, uint64_t bytes, const void *memory,
                               struct healcl_error *failure)
{
    const uint64_t *first = context;
    TRY(see(offset, bytes, failure));
    for (uint64_t i = 0; i < bytes; i++)
        assert_int_equal(((const unsigned char *)memory)[i], byte_at(*first + offset + i));
    return HEALCL_OK;
}

static struct buffer upload(uint64_t bytes)
{
    struct buffer buffer;
    seen.pieces = seen.bytes = 0;
    OK(device_upload(device, NULL, bytes, &(struct device_filler){fill, NULL}, &buffer, &error));
    assert_int_equal(seen.bytes, bytes);
    return buffer;
}

static void download(const struct buffer *buffer, uint64_t offset, uint64_t bytes)
{
    seen.pieces = seen.bytes = 0;
    OK(device_download(device, buffer, offset, bytes, &(struct device_taker){take, &offset},
                       &error));
    assert_int_equal(seen.bytes, bytes);
}

/* Pieces of a half; and an upload that fits beside others in a half. */
static void hands_out_pieces(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, pieces;
    } cases[] = {{1, 1}, {HALF, 1}, {HALF + 1, 2}, {10 * HALF, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_with("staging_bytes=4096");
        assert_int_equal(device_piece_bytes(device), HALF);
        struct buffer buffer = upload(cases[i].bytes);
        assert_int_equal(seen.pieces, cases[i].pieces);
        download(&buffer, 0, cases[i].bytes);
        assert_int_equal(seen.pieces, cases[i].pieces);
        if (cases[i].bytes > HALF)
            download(&buffer, 100, HALF + 1 - 100);
        assert_int_equal(helper.count[CALL_clEnqueueMapBuffer], i + 1); /* the staging memory */
        device_buffer_release(device, &buffer);
        healcl_device_close(device);
    }
}

/* Shared memory is filled, and handed out, where it is. */
static void maps_shared_memory(void **state)
{
    (void)state;
    open_with("staging_bytes=0");
    struct buffer buffer = upload(300000);
    download(&buffer, 0, 300000);
    assert_int_equal(seen.pieces, 1);
    assert_int_equal(helper.count[CALL_clEnqueueWriteBuffer], 0);
    assert_int_equal(helper.count[CALL_clEnqueueReadBuffer], 0);
    device_buffer_release(device, &buffer);
    buffer = upload(1000); /* a small one is made of the data */
    assert_int_equal(helper.count[CALL_clEnqueueCopyBuffer], 0);
    download(&buffer, 0, 1000);
    device_buffer_release(device, &buffer);
    healcl_device_close(device);
}

/* A piece is filled when the one before the last is on the device: the last one may be under way.
 */
static void fills_while_it_writes(void **state)
{
    (void)state;
    open_with("staging_bytes=4096");
    struct buffer buffer = upload(6 * HALF);
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(seen.transfers[i], i);
        assert_int_equal(seen.waits[i], i < 2 ? 0 : i - 1);
    }
    device_buffer_release(device, &buffer);
    healcl_device_close(device);
}

/* A piece is taken when the read of the next one has been enqueued, and not waited for. */
static void takes_while_it_reads(void **state)
{
    (void)state;
    open_with("staging_bytes=4096");
    struct buffer buffer = upload(6 * HALF);
    OK(device_finish(device, &error));
    uint64_t transfers = helper.count[CALL_clEnqueueWriteBuffer];
    uint64_t waits = helper.count[CALL_clWaitForEvents] + 2; /* for the last uploads */
    download(&buffer, 0, 6 * HALF);
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(seen.transfers[i] - transfers, i < 5 ? i + 2 : 6);
        assert_int_equal(seen.waits[i] - waits, i + 1);
    }
    device_buffer_release(device, &buffer);
    healcl_device_close(device);
}

/* Uploads that fit into a half side by side wait for nothing. */
static void puts_small_ones_side_by_side(void **state)
{
    (void)state;
    open_with("staging_bytes=4096");
    struct buffer buffers[10];
    for (int i = 0; i < 10; i++) /* 4 in a half */
        buffers[i] = upload(1000);
    assert_int_equal(helper.count[CALL_clWaitForEvents], 1);
    for (int i = 0; i < 10; i++) {
        download(&buffers[i], 0, 1000);
        device_buffer_release(device, &buffers[i]);
    }
    healcl_device_close(device);
}

static void copies_memory(void **state)
{
    (void)state;
    static unsigned char bytes[5 * HALF + 3], read[sizeof bytes];
    static const char *const tunings[] = {"staging_bytes=0", "staging_bytes=4096"};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = byte_at(i);
    for (size_t i = 0; i < 2; i++) {
        struct buffer buffer;
        open_with(tunings[i]);
        OK(device_upload_memory(device, NULL, sizeof bytes, bytes, &buffer, &error));
        memset(read, 0, sizeof read);
        OK(device_read(device, &buffer, 0, sizeof read, read, &error));
        assert_memory_equal(read, bytes, sizeof bytes);
        OK(device_read(device, &buffer, 5, 0, read, &error));
        device_buffer_release(device, &buffer);
        OK(device_upload_memory(device, NULL, 0, NULL, &buffer, &error));
        device_buffer_release(device, &buffer);
        healcl_device_close(device);
    }
}

/* An error of a filler or taker comes back, nothing is left, and the device works. */
static void passes_errors_on(void **state)
{
    (void)state;
    static const char *const tunings[] = {"staging_bytes=0", "staging_bytes=4096"};
    for (size_t i = 0; i < 2; i++) {
        struct buffer buffer;
        uint64_t first = 0;
        open_with(tunings[i]);
        seen.fails_at = 2 * i; /* mapped memory is one piece */
        assert_int_equal(device_upload(device, NULL, 4 * HALF, &(struct device_filler){fill, NULL},
                                       &buffer, &error),
                         HEALCL_REFUSED);
        assert_string_equal(error.message, i == 0 ? "piece 0" : "piece 2");
        assert_null(buffer.memory);
        healcl_error_clear(&error);
        seen.fails_at = UINT64_MAX;
        buffer = upload(4 * HALF);
        seen.pieces = seen.bytes = 0;
        seen.fails_at = i;
        assert_int_equal(device_download(device, &buffer, 0, 4 * HALF,
                                         &(struct device_taker){take, &first}, &error),
                         HEALCL_REFUSED);
        assert_string_equal(error.message, i == 0 ? "piece 0" : "piece 1");
        healcl_error_clear(&error);
        seen.fails_at = UINT64_MAX;
        download(&buffer, 0, 4 * HALF);
        device_buffer_release(device, &buffer);
        healcl_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(hands_out_pieces),
        DEVICE_TEST(maps_shared_memory),
        DEVICE_TEST(fills_while_it_writes),
        DEVICE_TEST(takes_while_it_reads),
        DEVICE_TEST(puts_small_ones_side_by_side),
        DEVICE_TEST(copies_memory),
        DEVICE_TEST(passes_errors_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
