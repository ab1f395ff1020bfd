/* Tensors of operations by call: layouts, writing, copies, mapping, memory of the caller's. */
#include "helper_queue_calls.h"

#include <string.h>

#include "opencl/device.h"

#define FAILS(with, text, call)                       \
    do {                                              \
        assert_int_equal(call, with);                 \
        assert_non_null(strstr(error.message, text)); \
    } while (0)

static const int64_t shape[2] = {3, 4};
static const int64_t values[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* Columns 1 and 3, transposed: 2 by 3. */
static struct healcl_tensor *view_of(struct healcl_queue *queue, const struct healcl_tensor *tensor)
{
    struct healcl_index index[2] = {
        {.kind = HEALCL_INDEX_ELLIPSIS},
        {.kind = HEALCL_INDEX_SLICE, .has_start = true, .start = 1, .has_step = true, .step = 2}};
    struct healcl_tensor *columns = NULL, *view = NULL;
    OK(CALL(queue, "get_slice", &columns, TENSOR(tensor), healcl_index_argument(2, index)));
    OK(CALL(queue, "moveaxis", &view, TENSOR(columns), INT(0), INT(1)));
    healcl_tensor_release(columns);
    return view;
}

static struct healcl_tensor *row_of(struct healcl_queue *queue, const struct healcl_tensor *tensor,
                                    int64_t row)
{
    const struct healcl_index index = {.kind = HEALCL_INDEX_INT, .value = row};
    struct healcl_tensor *view = NULL;
    OK(CALL(queue, "get_slice", &view, TENSOR(tensor), healcl_index_argument(1, &index)));
    return view;
}

static void expect(struct healcl_tensor *tensor, size_t count, const int64_t *expected)
{
    int64_t got[12] = {0};
    OK(healcl_tensor_read(tensor, got, count * sizeof *got, &error));
    assert_memory_equal(got, expected, count * sizeof *got);
}

static void reports_layouts_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on);
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values),
                         *b = create_tensor(queue, 2, shape, NULL);
    struct healcl_tensor *view = view_of(queue, a), *row = row_of(queue, a, 2);
    struct healcl_tensor_layout layout = healcl_tensor_layout(view);
    assert_int_equal(layout.rank, 2);
    assert_int_equal(layout.shape[0], 2);
    assert_int_equal(layout.shape[1], 3);
    assert_int_equal(layout.strides[0], 2);
    assert_int_equal(layout.strides[1], 4);
    assert_int_equal(layout.offset, 1);
    assert_int_equal(layout.storage_elements, 12);
    assert_false(layout.contiguous);
    layout = healcl_tensor_layout(row);
    assert_int_equal(layout.offset, 8);
    assert_true(layout.contiguous);
    assert_int_equal(healcl_tensor_layout(NULL).rank, 0);
    healcl_tensor_release(row);
    healcl_tensor_release(view);
    healcl_tensor_release(b);
    healcl_tensor_release(a);
    healcl_queue_close(queue);
}
ON_BOTH(reports_layouts)

static void writes_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on);
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values), *endless = NULL;
    struct healcl_tensor *view = view_of(queue, a), *row = row_of(queue, a, 1);
    const int64_t new_row[4] = {-1, -2, -3, INT64_MIN};
    OK(healcl_tensor_write(row, new_row, sizeof new_row, &error));
    expect(a, 12, (int64_t[]){0, 1, 2, 3, -1, -2, -3, INT64_MIN, 8, 9, 10, 11});
    OK(healcl_tensor_write(view, (int64_t[]){20, 21, 22, 23, 24, 25}, 48, &error));
    expect(a, 12, (int64_t[]){0, 20, 2, 23, -1, 21, -3, 24, 8, 22, 10, 25});
    OK(healcl_tensor_write(a, values, sizeof values, &error));
    expect(view, 6, (int64_t[]){1, 5, 9, 3, 7, 11});
    FAILS(HEALCL_USAGE, "has 96 bytes, not 8", healcl_tensor_write(a, values, 8, &error));
    FAILS(HEALCL_USAGE, "data is NULL", healcl_tensor_write(a, NULL, sizeof values, &error));
    FAILS(HEALCL_USAGE, "tensor is NULL", healcl_tensor_write(NULL, values, 8, &error));
    struct healcl_tensor *one = create_tensor(queue, 1, (int64_t[]){1}, values);
    OK(CALL(queue, "expand", &endless, TENSOR(one), INT(0), INT(12)));
    FAILS(HEALCL_REFUSED, "the output overlaps itself",
          healcl_tensor_write(endless, values, sizeof values, &error));
    struct healcl_tensor *empty = create_tensor(queue, 1, (int64_t[]){0}, NULL), *bytes = NULL;
    OK(healcl_tensor_write(empty, NULL, 0, &error));
    OK(healcl_tensor_create(queue, HEALCL_INT8, 1, (int64_t[]){3}, NULL, &bytes, &error));
    OK(healcl_tensor_write(bytes, "abc", 3, &error));
    char got[3];
    OK(healcl_tensor_read(bytes, got, 3, &error));
    assert_memory_equal(got, "abc", 3);
    struct healcl_tensor *all[] = {bytes, empty, endless, one, row, view, a};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        healcl_tensor_release(all[i]);
    healcl_queue_close(queue);
}
ON_BOTH(writes)

/* Nothing that was worked out from the elements before, or known of them, counts any more. */
static void forgets_what_was_on(struct healcl_device *on)
{
    enum { N = 4096 };
    static int64_t data[N], got[N];
    struct healcl_queue *queue = open_queue(on);
    struct healcl_tensor *a = create_tensor(queue, 1, (int64_t[]){N}, NULL);
    struct healcl_tensor *out = create_tensor(queue, 1, (int64_t[]){N}, NULL);
    struct healcl_tensor *p = create_tensor(queue, 1, (int64_t[]){1}, (int64_t[]){97});
    for (int64_t q = 89; q < 95; q++) {
        void *mapped = NULL;
        OK(CALL(queue, "mod", NULL, TENSOR(a), TENSOR(p), TENSOR(a))); /* residues */
        for (int i = 0; i < N; i++)
            data[i] = INT64_C(1000003) * (i - 7) - q;
        OK(healcl_tensor_write(a, data, sizeof data, &error));
        if (q % 2) {
            OK(healcl_tensor_write(p, &q, sizeof q, &error));
        } else {
            OK(healcl_tensor_map(p, &mapped, &error));
            memcpy(mapped, &q, sizeof q);
            OK(healcl_tensor_unmap(p, &error));
        }
        OK(CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), TENSOR(p), TENSOR(out)));
        OK(healcl_tensor_read(out, got, sizeof got, &error));
        for (int i = 0; i < N; i++) {
            __extension__ typedef __int128 wide;
            assert_int_equal(got[i], (int64_t)((wide)data[i] * data[i] % q));
        }
    }
    healcl_tensor_release(p);
    healcl_tensor_release(out);
    healcl_tensor_release(a);
    healcl_queue_close(queue);
}
ON_BOTH(forgets_what_was)

static void copies_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on), *other = open_queue(on);
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values),
                         *b = create_tensor(queue, 2, shape, NULL);
    struct healcl_tensor *foreign = create_tensor(other, 2, shape, values), *narrow = NULL;
    OK(healcl_tensor_copy(a, b, &error));
    expect(b, 12, values);
    struct healcl_tensor *view = view_of(queue, a), *wide = view_of(queue, b);
    OK(CALL(queue, "modneg", NULL, TENSOR(a), INT(100), TENSOR(a)));
    OK(healcl_tensor_copy(view, wide, &error));
    expect(b, 12, (int64_t[]){0, 99, 2, 97, 4, 95, 6, 93, 8, 91, 10, 89});
    /* The result is as if all had been read first. */
    struct healcl_tensor *first = row_of(queue, b, 0), *flat = NULL, *low = NULL, *high = NULL;
    struct healcl_index index = {
        .kind = HEALCL_INDEX_SLICE, .has_start = true, .has_stop = true, .stop = 8};
    OK(CALL(queue, "flatten", &flat, TENSOR(b), INT(0), INT(1)));
    OK(CALL(queue, "get_slice", &low, TENSOR(flat), healcl_index_argument(1, &index)));
    index.start = 1;
    index.stop = 9;
    OK(CALL(queue, "get_slice", &high, TENSOR(flat), healcl_index_argument(1, &index)));
    OK(healcl_tensor_copy(low, high, &error));
    expect(b, 12, (int64_t[]){0, 0, 99, 2, 97, 4, 95, 6, 93, 91, 10, 89});
    OK(healcl_tensor_copy(high, low, &error));
    expect(b, 12, (int64_t[]){0, 99, 2, 97, 4, 95, 6, 93, 93, 91, 10, 89});
    FAILS(HEALCL_REFUSED, "(copy): argument 'a': shape [3, 4], but must be [4]",
          healcl_tensor_copy(a, first, &error));
    OK(healcl_tensor_create(queue, HEALCL_INT32, 2, shape, NULL, &narrow, &error));
    FAILS(HEALCL_REFUSED, "(copy): argument 'a': is int64, but must be int32 like out",
          healcl_tensor_copy(a, narrow, &error));
    FAILS(HEALCL_USAGE, "the tensor belongs to another queue",
          healcl_tensor_copy(foreign, a, &error));
    FAILS(HEALCL_USAGE, "from is NULL", healcl_tensor_copy(NULL, a, &error));
    FAILS(HEALCL_USAGE, "to is NULL", healcl_tensor_copy(a, NULL, &error));
    struct healcl_tensor *all[] = {low, high, flat, first, view, wide, narrow, a, b, foreign};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        healcl_tensor_release(all[i]);
    healcl_queue_close(queue);
    healcl_queue_close(other);
}
ON_BOTH(copies)

static void maps_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on);
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values), *empty, *made = NULL;
    struct healcl_tensor *row = row_of(queue, a, 1), *view = view_of(queue, a);
    void *data = NULL, *again = NULL;
    int64_t got[12];
    OK(CALL(queue, "modsum", NULL, TENSOR(a), INT(1), INT(1000), TENSOR(a)));
    OK(healcl_tensor_map(row, &data, &error));
    assert_memory_equal(data, ((int64_t[]){5, 6, 7, 8}), 32);
    ((int64_t *)data)[3] = -1;
    const char mapped[] = "is mapped";
    FAILS(HEALCL_USAGE, mapped, CALL(queue, "contiguous", &made, TENSOR(a)));
    FAILS(HEALCL_USAGE, mapped, healcl_tensor_read(a, got, sizeof got, &error));
    FAILS(HEALCL_USAGE, mapped, healcl_tensor_write(a, got, sizeof got, &error));
    FAILS(HEALCL_USAGE, mapped, healcl_tensor_map(a, &again, &error));
    FAILS(HEALCL_USAGE, mapped, healcl_tensor_map(row, &again, &error));
    assert_null(again);
    FAILS(HEALCL_USAGE, "is not mapped", healcl_tensor_unmap(a, &error));
    OK(healcl_tensor_unmap(row, &error));
    FAILS(HEALCL_USAGE, "is not mapped", healcl_tensor_unmap(row, &error));
    expect(a, 12, (int64_t[]){1, 2, 3, 4, 5, 6, 7, -1, 9, 10, 11, 12});
    FAILS(HEALCL_REFUSED, "not contiguous", healcl_tensor_map(view, &data, &error));
    empty = create_tensor(queue, 1, (int64_t[]){0}, NULL);
    OK(healcl_tensor_map(empty, &data, &error));
    assert_non_null(data);
    OK(healcl_tensor_unmap(empty, &error));
    OK(healcl_tensor_map(row, &data, &error));
    healcl_tensor_release(row); /* while it is mapped */
    expect(a, 12, (int64_t[]){1, 2, 3, 4, 5, 6, 7, -1, 9, 10, 11, 12});
    OK(healcl_tensor_map(a, &data, &error));
    healcl_tensor_release(view);
    healcl_tensor_release(empty);
    healcl_tensor_release(a);
    healcl_queue_close(queue);
}
ON_BOTH(maps)

/* ---------------------------------------------------------------- memory of OpenCL */

/* Reads after everything that the library has enqueued. */
static void read_memory(struct healcl_queue *queue, cl_mem memory, size_t offset, size_t bytes,
                        void *data)
{
    cl_int code = CL_SUCCESS;
    cl_device_id id = NULL;
    OK(healcl_queue_wait(queue, &error));
    assert_int_equal(clGetContextInfo(device->context, CL_CONTEXT_DEVICES, sizeof id, &id, NULL),
                     CL_SUCCESS);
    cl_command_queue own = clCreateCommandQueue(device->context, id, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(own, memory, CL_TRUE, offset, bytes, data, 0, NULL, NULL),
                     CL_SUCCESS);
    clReleaseCommandQueue(own);
}

static void lends_memory(void **state)
{
    (void)state;
    enum { LARGE = 100000 };
    static int64_t data[LARGE], got[LARGE];
    struct healcl_queue *queue = open_queue(device), *reference = open_queue(NULL);
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values), *row = row_of(queue, a, 1);
    struct healcl_tensor *on_host = create_tensor(reference, 2, shape, values);
    void *memory = NULL;
    size_t offset = 99;
    for (int i = 0; i < LARGE; i++)
        data[i] = i;
    struct healcl_tensor *large = create_tensor(queue, 1, (int64_t[]){LARGE}, data);
    OK(healcl_tensor_memory(row, &memory, &offset, &error));
    assert_int_equal(offset, 0);
    read_memory(queue, memory, offset, sizeof values, got);
    assert_memory_equal(got, values, sizeof values);
    OK(healcl_tensor_memory(large, &memory, &offset, &error));
    read_memory(queue, memory, offset, sizeof data, got);
    assert_memory_equal(got, data, sizeof data);
    FAILS(HEALCL_USAGE, "the host reference",
          healcl_tensor_memory(on_host, &memory, &offset, &error));
    assert_null(memory);
    FAILS(HEALCL_USAGE, "tensor is NULL", healcl_tensor_memory(NULL, &memory, &offset, &error));
    FAILS(HEALCL_USAGE, "memory is NULL", healcl_tensor_memory(a, NULL, &offset, &error));
    healcl_tensor_release(large);
    healcl_tensor_release(row);
    healcl_tensor_release(a);
    healcl_tensor_release(on_host);
    healcl_queue_close(reference);
    healcl_queue_close(queue);
}

static void adopts_memory(void **state)
{
    (void)state;
    cl_int code = CL_SUCCESS;
    int64_t got[12];
    struct healcl_queue *queue = open_queue(device), *reference = open_queue(NULL);
    struct healcl_tensor *a = NULL, *p = create_tensor(queue, 1, (int64_t[]){1}, (int64_t[]){7});
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   sizeof values, (void *)(intptr_t)values, &code);
    cl_mem read_only = clCreateBuffer(device->context, CL_MEM_READ_ONLY, 4096, NULL, &code);
    const enum healcl_dtype dtype = HEALCL_INT64;
    OK(healcl_tensor_adopt(queue, dtype, 2, shape, memory, &a, &error));
    expect(a, 12, values);
    OK(CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), TENSOR(p), TENSOR(a)));
    read_memory(queue, memory, 0, sizeof got, got);
    assert_memory_equal(got, ((int64_t[]){0, 1, 4, 2, 2, 4, 1, 0, 1, 4, 2, 2}), sizeof got);
    struct healcl_tensor *none = NULL;
    FAILS(HEALCL_REFUSED, "the memory has 96 bytes, fewer than the 104 of the tensor",
          healcl_tensor_adopt(queue, dtype, 1, (int64_t[]){13}, memory, &none, &error));
    FAILS(HEALCL_REFUSED, "the memory is read-only or write-only",
          healcl_tensor_adopt(queue, dtype, 2, shape, read_only, &none, &error));
    FAILS(HEALCL_USAGE, "the host reference",
          healcl_tensor_adopt(reference, dtype, 2, shape, memory, &none, &error));
    FAILS(HEALCL_USAGE, "memory is NULL",
          healcl_tensor_adopt(queue, dtype, 2, shape, NULL, &none, &error));
    assert_null(none);
    cl_uint references = 0;
    clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof references, &references, NULL);
    assert_int_equal(references, 2);
    healcl_tensor_release(a);
    OK(healcl_queue_wait(queue, &error));
    clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof references, &references, NULL);
    assert_int_equal(references, 1);
    healcl_tensor_release(p);
    healcl_queue_close(reference);
    healcl_queue_close(queue);
    clReleaseMemObject(memory);
    clReleaseMemObject(read_only);
}

/* The owner's changes between two calls count. */
static void sees_changes_of_lent_memory(void **state)
{
    (void)state;
    cl_int code = CL_SUCCESS;
    int64_t got[12];
    struct healcl_queue *queue = open_queue(device);
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values), *p = NULL;
    struct healcl_tensor *out = create_tensor(queue, 2, shape, NULL);
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, 8, NULL, &code);
    OK(healcl_tensor_adopt(queue, HEALCL_INT64, 1, (int64_t[]){1}, memory, &p, &error));
    for (int64_t q = 5; q < 9; q++) {
        cl_device_id id = NULL;
        clGetContextInfo(device->context, CL_CONTEXT_DEVICES, sizeof id, &id, NULL);
        cl_command_queue own = clCreateCommandQueue(device->context, id, 0, &code);
        clEnqueueWriteBuffer(own, memory, CL_TRUE, 0, sizeof q, &q, 0, NULL, NULL);
        clReleaseCommandQueue(own);
        OK(CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), TENSOR(p), TENSOR(out)));
        OK(healcl_tensor_read(out, got, sizeof got, &error));
        for (int i = 0; i < 12; i++)
            assert_int_equal(got[i], values[i] * values[i] % q);
    }
    healcl_tensor_release(p);
    healcl_tensor_release(out);
    healcl_tensor_release(a);
    healcl_queue_close(queue);
    clReleaseMemObject(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_layouts),
        cmocka_unit_test(writes),
        cmocka_unit_test(forgets_what_was),
        cmocka_unit_test(copies),
        cmocka_unit_test(maps),
        cmocka_unit_test(lends_memory),
        cmocka_unit_test(adopts_memory),
        cmocka_unit_test(sees_changes_of_lent_memory),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
