/*
 * A segment is one batch: between its first and its last enqueue nothing waits for the compute
 * queue, however long it is; the host waits only for results. Every OpenCL call that can wait, and
 * every enqueue, is noted in order.
 *
 * Uploads go through a queue of their own, and some drivers order commands on one buffer across
 * queues, so that results would be right without the rules that other drivers need. They are
 * checked here: an upload never writes a buffer that enqueued work may still use, and work waits
 * for the uploads before it.
 */
#include "helper_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "helper_script.h"
#include "tools/random.h"

enum { NOTES_MAX = 1 << 20, USES_MAX = 1 << 18 };

static struct {
    char notes[NOTES_MAX]; /* 'k' a kernel, 'c' a copy, 'w' a wait for the compute queue */
    size_t count;
    uint64_t transfer_waits, uploads;
    /* Arguments of kernels and copies since the last wait: buffers, and values that look like
     * them. */
    cl_mem uses[USES_MAX];
    size_t use_count;
    bool upload_is_pending; /* and enqueued work does not wait for it yet */
} trace;

static struct opencl traced;
static struct healcl_device *device;

static void note(char what)
{
    assert_true(trace.count < NOTES_MAX);
    trace.notes[trace.count++] = what;
}

/* A call that waits for what is enqueued on a queue. */
static void note_wait(cl_command_queue queue)
{
    if (device && queue == device->compute) {
        note('w');
        trace.use_count = 0;
    } else {
        trace.transfer_waits++;
    }
}

static void note_use(cl_mem memory)
{
    assert_true(trace.use_count < USES_MAX);
    trace.uses[trace.use_count++] = memory;
}

/* A new buffer has no uses, though it may have the address of one that is gone. */
static cl_mem CL_API_CALL traced_create(cl_context context, cl_mem_flags flags, size_t size,
                                        void *data, cl_int *code)
{
    cl_mem memory = clCreateBuffer(context, flags, size, data, code);
    for (size_t i = 0; i < trace.use_count; i++)
        if (trace.uses[i] == memory)
            trace.uses[i] = NULL;
    return memory;
}

static cl_int CL_API_CALL traced_argument(cl_kernel kernel, cl_uint index, size_t size,
                                          const void *value)
{
    if (size == sizeof(cl_mem)) {
        cl_mem memory;
        memcpy(&memory, value, sizeof memory);
        note_use(memory);
    }
    return clSetKernelArg(kernel, index, size, value);
}

static cl_int CL_API_CALL traced_unmap(cl_command_queue queue, cl_mem memory, void *address,
                                       cl_uint count, const cl_event *list, cl_event *event)
{
    if (device && queue != device->compute) {
        trace.uploads++;
        trace.upload_is_pending = true;
    }
    return clEnqueueUnmapMemObject(queue, memory, address, count, list, event);
}

static cl_int CL_API_CALL traced_barrier(cl_command_queue queue, cl_uint count,
                                         const cl_event *list, cl_event *event)
{
    if (queue == device->compute && count > 0)
        trace.upload_is_pending = false;
    return clEnqueueBarrierWithWaitList(queue, count, list, event);
}

static cl_int CL_API_CALL traced_kernel(cl_command_queue queue, cl_kernel kernel,
                                        cl_uint dimensions, const size_t *offset,
                                        const size_t *global, const size_t *local, cl_uint count,
                                        const cl_event *list, cl_event *event)
{
    assert_ptr_equal(queue, device->compute);
    assert_false(trace.upload_is_pending);
    note('k');
    return clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, list,
                                  event);
}

static cl_int CL_API_CALL traced_copy(cl_command_queue queue, cl_mem from, cl_mem to,
                                      size_t from_offset, size_t to_offset, size_t size,
                                      cl_uint count, const cl_event *list, cl_event *event)
{
    assert_ptr_equal(queue, device->compute);
    assert_false(trace.upload_is_pending);
    note_use(to);
    note('c');
    return clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, size, count, list, event);
}

static void *CL_API_CALL traced_map(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                    cl_map_flags flags, size_t offset, size_t size, cl_uint count,
                                    const cl_event *list, cl_event *event, cl_int *code)
{
    for (size_t i = 0; i < trace.use_count && queue != device->compute; i++)
        assert_ptr_not_equal(trace.uses[i], memory);
    if (blocking)
        note_wait(queue);
    return clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, count, list, event,
                              code);
}

static cl_int CL_API_CALL traced_read(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                      size_t offset, size_t size, void *data, cl_uint count,
                                      const cl_event *list, cl_event *event)
{
    if (blocking)
        note_wait(queue);
    return clEnqueueReadBuffer(queue, memory, blocking, offset, size, data, count, list, event);
}

static cl_int CL_API_CALL traced_write(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                       size_t offset, size_t size, const void *data, cl_uint count,
                                       const cl_event *list, cl_event *event)
{
    if (blocking)
        note_wait(queue);
    return clEnqueueWriteBuffer(queue, memory, blocking, offset, size, data, count, list, event);
}

static cl_int CL_API_CALL traced_finish(cl_command_queue queue)
{
    note_wait(queue);
    return clFinish(queue);
}

static cl_int CL_API_CALL traced_wait(cl_uint count, const cl_event *list)
{
    cl_command_queue queue = NULL;
    for (cl_uint i = 0; i < count; i++)
        if (clGetEventInfo(list[i], CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL) ==
            CL_SUCCESS)
            note_wait(queue);
    return clWaitForEvents(count, list);
}

static int open_device(void **state)
{
    (void)state;
    setenv("HEALCL_CACHE_DIR", "", 1);
    traced = *helper_loader();
    traced.clEnqueueNDRangeKernel = traced_kernel;
    traced.clEnqueueCopyBuffer = traced_copy;
    traced.clEnqueueMapBuffer = traced_map;
    traced.clEnqueueReadBuffer = traced_read;
    traced.clEnqueueWriteBuffer = traced_write;
    traced.clCreateBuffer = traced_create;
    traced.clSetKernelArg = traced_argument;
    traced.clEnqueueUnmapMemObject = traced_unmap;
    traced.clEnqueueBarrierWithWaitList = traced_barrier;
    traced.clFinish = traced_finish;
    traced.clWaitForEvents = traced_wait;
    return device_open(&traced, NULL, &device, &error) == HEALCL_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    healcl_device_close(device);
    return 0;
}

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

/* Every kind of work, many times over; tensors come and go. */
static void write_long_segment(struct script *script, int rounds)
{
    enum { LARGE = 20000 }; /* 160 kB: mapped, not copied aside */
    int64_t *values = malloc(LARGE * sizeof *values);
    assert_non_null(values);
    struct random random = {0xba7c4};
    for (int i = 0; i < LARGE; i++)
        values[i] = random_value(&random, DTYPE_INT64);
    script_segment_start(script, "long");
    script_upload(script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
    script_upload(script, "psi", DTYPE_INT64, 2, VALUES(2, 8), values);
    script_upload(script, "n_inv", DTYPE_INT64, 1, VALUES(2), values);
    script_upload(script, "perm", DTYPE_INT64, 1, VALUES(8), VALUES(0, 4, 2, 6, 1, 5, 3, 7));
    script_upload(script, "idx", DTYPE_INT32, 4, VALUES(1, 8, 1, 1),
                  VALUES(7, 6, 5, 4, -5, -6, -7, -8));
    script_upload(script, "a", DTYPE_INT64, 4, VALUES(1, 8, 2, 2), values);
    for (int round = 0; round < rounds; round++) {
        if (round % 16 == 0) {
            script_upload(script, "large", DTYPE_INT64, 1, VALUES(LARGE), values);
            script_call(script, "large", "_mod_tc", "large 12289 large");
            if (round % 32 == 0) /* its memory may be used again: not by an upload, for now */
                script_free(script, "large");
        }
        script_call(script, "b", "empty", "(1,8,2,2) :int64");
        script_call(script, "b", "_modmul_ttt", "a a q b");
        script_call(script, "b", "ntt", "b perm none q psi b 0 0");
        script_call(script, "b", "intt", "b perm none q none none psi n_inv b 0");
        script_call(script, "a", "take_along_axis", "b idx 1 a");
        script_call(script, "sum", "empty", "(8,2,2) :int64");
        script_call(script, "sum", "axis_modsum", "b 0 q sum");
        script_call(script, "digits", "zeros", "(8,2,2,3) :int8");
        script_call(script, "digits", "apply_g_decomp", "sum 3 2 digits");
        script_call(script, "part", "get_slice", "a [0,0:8:2]");
        script_call(script, "part", "_modsum_tcc", "part -5 1009 part"); /* in place */
        script_call(script, "turned", "moveaxis", "sum 0 2");
        script_call(script, "flat", "flatten", "turned 0 2"); /* copies */
        script_free(script, "b");
        if (round % 7 == 0) /* the tables are computed again */
            script_call(script, "q", "_modsum_tcc", "q 80 100000 q");
    }
    free(values);
}

static struct segment_result times; /* of the last run; whoever wants it split says so */

/* Runs the segment of a script, as if its plan had been made within a memory limit; the notes of it
 * are left in trace. */
static void run_traced_within(struct script *script, uint64_t memory_limit)
{
    struct script_results results = {0}, expected = {0};
    struct executor *executor = NULL;
    script_plan(script);
    script->plan->memory_limit = memory_limit;
    OK(script_run_on(script, NULL, &expected, &error));
    struct result_sink sink = script_sink(&results);
    for (int run = 0; run < 2; run++) { /* also when everything has been compiled */
        OK(device_executor_create(device, script->plan, &executor, &error));
        OK(device_set_profiling(device, run == 0, &error));
        trace.count = 0;
        assert_int_equal(script->plan->segment_count, 1);
        executor->times.is_split = times.is_split;
        OK(executor->class->run_segment(executor, &script->plan->segments[0], &sink, &error));
        times = executor->times;
        trace.notes[trace.count] = 0;
        assert_true(run == 0 || script_same_results(&results, &expected));
        executor->class->destroy(executor);
        if (run == 0)
            script_results_release(&results);
    }
    script_results_release(&results);
    script_results_release(&expected);
}

static void run_traced(struct script *script)
{
    run_traced_within(script, INT64_MAX);
}

static size_t count_notes(char kind)
{
    size_t count = 0;
    for (size_t i = 0; i < trace.count; i++)
        count += trace.notes[i] == kind;
    return count;
}

static size_t count_kernels(void)
{
    return count_notes('k');
}

/* Counts waits before the last kernel, and after it. */
static void count_waits(int *within, int *behind)
{
    char *last = strrchr(trace.notes, 'k');
    *within = *behind = 0;
    for (char *next = trace.notes; *next; next++)
        *(next < last ? within : behind) += *next == 'w';
}

static void segment_is_one_batch(void **state)
{
    (void)state;
    static const int lengths[] = {1, 10, 300};
    int kernels_before = 0;
    for (int i = 0; i < 3; i++) {
        struct script script = {0};
        int within, behind, kernels = 0;
        write_long_segment(&script, lengths[i]);
        script_segment_end(&script);
        run_traced(&script);
        count_waits(&within, &behind);
        for (size_t j = 0; j < trace.count; j++)
            kernels += trace.notes[j] == 'k';
        print_message("%d rounds: %d kernels, %d waits within, %d behind\n", lengths[i], kernels,
                      within, behind);
        assert_true(kernels > kernels_before + 7 * lengths[i]); /* some variants need few */
        assert_int_equal(within, 0);
        assert_int_equal(behind, 1); /* for the status */
        kernels_before = kernels;
        script_release(&script);
    }
    assert_true(trace.transfer_waits > 0 && trace.uploads > 20); /* the large ones are mapped */
}

/* Results are waited for once, after everything, wherever they stand. */
static void results_come_last(void **state)
{
    (void)state;
    enum { RESULTS = 20 };
    struct script script = {0};
    int within, behind;
    write_long_segment(&script, 3);
    for (int i = 0; i < RESULTS; i++) {
        script_download(&script, "a");
        script_call(&script, "a", "_modsum_tcc", "a 1 1009 a");
    }
    script_segment_end(&script);
    run_traced(&script);
    count_waits(&within, &behind);
    assert_int_equal(within, 0);
    assert_true(behind < RESULTS / 2); /* one for each slab that they lie in */
    script_release(&script);
}

/* A result waits in its tensor as long as that is left as it is, freed or not; one that is written
 * again, or of which a result is a small part, is copied. */
static void results_wait_in_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t kernels, copies; /* large results are copied by kernels */
    } shapes[] = {{"(16) :int64", 5, 3}, {"(0) :int64", 0, 0}, {"(40000) :int32", 8, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct script script = {0};
        script_segment_start(&script, "s");
        script_call(&script, "a", "zeros", shapes[i].name); /* a kernel only where it is large */
        script_call(&script, "a", "_modsum_tcc", "a 5 1009 a");
        script_call(&script, "b", "empty", shapes[i].name);
        script_call(&script, "b", "_modsum_tcc", "a 1 1009 b");
        script_download(&script, "a");
        script_download(&script, "b");
        script_download(&script, "a");
        script_call(&script, "a", "_modsum_tcc", "a 1 1009 a"); /* its two results are copied */
        script_download(&script, "a");
        script_free(&script, "b");
        script_call(&script, "c", "empty", shapes[i].name);
        script_call(&script, "c", "_modsum_tcc", "a 2 1009 c"); /* not where b waits */
        script_call(&script, "part", "get_slice", "c [0:1]");
        script_download(&script, "part");
        script_free(&script, "a");
        script_call(&script, "d", "empty", shapes[i].name);
        script_call(&script, "d", "_modsum_tcc", "c 7 1009 d");
        script_download(&script, "d");
        script_segment_end(&script);
        run_traced(&script);
        if (shapes[i].kernels > 0) {
            assert_int_equal(count_kernels(), shapes[i].kernels);
            assert_int_equal(count_notes('c'), shapes[i].copies);
        }
        script_release(&script);
    }
}

/* Results take at most a quarter of short memory before they are handed out. */
static void results_come_before_memory_ends(void **state)
{
    (void)state;
    enum { RESULTS = 20, BYTES = 128, AT_ONCE = 5 };
    for (int limited = 0; limited < 2; limited++) {
        struct script script = {0};
        int within, behind;
        script_segment_start(&script, "s");
        script_call(&script, "a", "zeros", "(16) :int64");
        for (int i = 0; i < RESULTS; i++) {
            script_call(&script, "a", "_modsum_tcc", "a 1 1009 a");
            script_download(&script, "a");
        }
        script_segment_end(&script);
        run_traced_within(&script, limited ? 4 * AT_ONCE * BYTES - 1 : INT64_MAX);
        count_waits(&within, &behind);
        if (limited)
            assert_true(within >= RESULTS / AT_ONCE - 1);
        else
            assert_int_equal(within, 0);
        script_release(&script);
    }
}

/* A scalar modulus takes no launch beside the operation's, on whichever kernel. */
static void scalars_take_no_launch(void **state)
{
    (void)state;
    enum { OPERATIONS = 40 };
    static const char *const shapes[] = {"(16) :int64", "(5) :int64", "(5000,2) :int32"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int distinct = 0; distinct < 2; distinct++) {
            struct script script = {0};
            char arguments[64];
            script_segment_start(&script, "s");
            script_call(&script, "a", "zeros", shapes[i]);
            for (int64_t j = 0; j < OPERATIONS; j++) {
                int64_t p = distinct ? ((int64_t)1 << (j % 62 + 1)) + j : 1009;
                snprintf(arguments, sizeof arguments, "a %d %" PRId64 " a", INT32_MAX, p);
                script_call(&script, "a", j % 2 ? "_modmul_tcc" : "_modsum_tcc", arguments);
                script_download(&script, "a");
            }
            script_segment_end(&script);
            run_traced(&script);
            assert_int_equal(count_kernels(), OPERATIONS);
            script_release(&script);
        }
}

/* Tables are worked out once for as long as their tensor stays as it is. */
static void tables_are_kept(void **state)
{
    (void)state;
    static const int uses[] = {1, 2, 50};
    size_t kernels[3];
    for (int i = 0; i < 3; i++) {
        struct script script = {0};
        script_segment_start(&script, "s");
        script_upload(&script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
        script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(2, 4), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
        script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(4), VALUES(0, 2, 1, 3));
        script_call(&script, "a", "zeros", "(1,4,1,2) :int64");
        for (int use = 0; use < uses[i]; use++)
            script_call(&script, "a", "ntt", "a perm none q psi a 0 0");
        script_segment_end(&script);
        run_traced(&script);
        kernels[i] = 0;
        for (size_t j = 0; j < trace.count; j++)
            kernels[i] += trace.notes[j] == 'k';
        script_release(&script);
    }
    assert_true(kernels[1] - kernels[0] <= 3); /* load, forward, store */
    assert_int_equal(kernels[2] - kernels[0], 49 * (kernels[1] - kernels[0]));
}

/* Tables of small uploads are the host's work, where the device takes them without a command; those
 * of what a step has written are not. */
static void small_tables_take_no_launch(void **state)
{
    (void)state;
    size_t kernels[2];
    for (int written = 0; written < 2; written++) {
        struct script script = {0};
        script_segment_start(&script, "s");
        script_upload(&script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
        script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(2, 4), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
        script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(4), VALUES(0, 2, 1, 3));
        script_upload(&script, "i", DTYPE_INT64, 1, VALUES(4), VALUES(0, -2, 1, 3));
        script_call(&script, "a", "empty", "(1,4,1,2) :int64");
        script_call(&script, "a", "set_const_val", "a 5");
        script_call(&script, "b", "empty", "(4) :int64");
        if (written) {
            script_call(&script, "q", "_modsum_tcc", "q 0 100 q");
            script_call(&script, "i", "_modsum_tcc", "i 0 100 i");
        }
        script_call(&script, "a", "ntt", "a perm none q psi a 0 0");
        script_call(&script, "b", "take_along_axis", "perm i 0 b");
        script_download(&script, "a");
        script_download(&script, "b");
        script_segment_end(&script);
        run_traced(&script);
        kernels[written] = count_kernels();
        script_release(&script);
    }
    const bool takes_copies = device_copies_upload(device, sizeof(int64_t));
    print_message("%zu launches, %zu of moduli and indices that are written\n", kernels[0],
                  kernels[1]);
    if (takes_copies)
        assert_true(kernels[0] <= 5); /* a fill, a transform of up to three, a gather */
    /* What writes, one launch for the transform's tables, and a check. */
    assert_int_equal(kernels[1], kernels[0] + 2 + (takes_copies ? 2 : 0));
}

/* The status is read, but not written again, if kernels have noted nothing. */
static void clear_status_is_left(void **state)
{
    (void)state;
    struct script script = {0};
    script_segment_start(&script, "s");
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
    script_call(&script, "a", "empty", "(4,2) :int64");
    script_call(&script, "a", "set_const_val", "a 100");
    script_call(&script, "a", "_mod_tt", "a q a"); /* checks q */
    script_download(&script, "a");
    script_segment_end(&script);
    run_traced(&script);
    assert_null(strchr(strrchr(trace.notes, 'k'), 'c'));
    script_release(&script);
}

/* Transfers and kernels wait for each other, and the time is theirs. */
static void a_split_segment_waits(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        struct script script = {0};
        int within, behind;
        write_long_segment(&script, 1);
        script_download(&script, "sum");
        script_call(&script, "a", "_modsum_tcc", "a 1 1009 a");
        script_download(&script, "a");
        script_segment_end(&script);
        times.is_split = split;
        run_traced(&script);
        count_waits(&within, &behind);
        assert_int_equal(within, split ? 2 : 0); /* after the uploads and the first result */
        assert_int_equal(times.compute_nanoseconds > 0, split);
        assert_true(times.decode_nanoseconds > 0);
        assert_true(times.decode_nanoseconds + times.compute_nanoseconds <= times.nanoseconds);
        script_release(&script);
    }
    times.is_split = false;
}

int main(void)
{
    unsetenv("HEALCL_AS"); /* the device itself reports which calls transfers make */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_is_one_batch),
        cmocka_unit_test(results_come_last),
        cmocka_unit_test(results_wait_in_tensors),
        cmocka_unit_test(results_come_before_memory_ends),
        cmocka_unit_test(scalars_take_no_launch),
        cmocka_unit_test(tables_are_kept),
        cmocka_unit_test(small_tables_take_no_launch),
        cmocka_unit_test(clear_status_is_left),
        cmocka_unit_test(a_split_segment_waits),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
