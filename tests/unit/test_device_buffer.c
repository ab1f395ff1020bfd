/* The pool of buffers: what is used again, when, and what is let go. */
#include "helper_device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static struct healcl_device *open_device(void)
{
    struct healcl_device *device = NULL;
    OK(device_open(&helper_opencl, NULL, &device, &error));
    return device;
}

static struct buffer acquire(struct healcl_device *device, uint64_t bytes, bool fresh)
{
    struct buffer buffer;
    OK(device_buffer_acquire(device, bytes, fresh, &buffer, &error));
    assert_int_equal(buffer.bytes, bytes);
    assert_non_null(buffer.memory);
    return buffer;
}

static void uses_buffers_again(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct buffer first = acquire(device, 1000, false);
    cl_mem memory = first.memory;
    device_buffer_release(device, &first);
    assert_null(first.memory);
    device_buffer_release(device, &first); /* an empty one is ignored */
    struct buffer second = acquire(device, 1020, false);
    assert_ptr_equal(second.memory, memory);
    struct buffer third = acquire(device, 1000, false);
    assert_ptr_not_equal(third.memory, memory);
    assert_int_equal(helper.count[CALL_clCreateBuffer], 2);
    device_buffer_release(device, &second);
    device_buffer_release(device, &third);
    healcl_device_close(device);
}

static void takes_what_fits_best(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct buffer large = acquire(device, 11 * MIB, false);
    struct buffer fitting = acquire(device, 10 * MIB, false);
    struct buffer huge = acquire(device, 20 * MIB, false);
    cl_mem memory = fitting.memory, larger = large.memory;
    device_buffer_release(device, &fitting);
    device_buffer_release(device, &large);
    device_buffer_release(device, &huge);
    struct buffer a = acquire(device, 10 * MIB, false);
    assert_ptr_equal(a.memory, memory);
    struct buffer b = acquire(device, 9 * MIB + 1, false);
    assert_ptr_equal(b.memory, larger);
    assert_int_equal(device->bytes_pooled, 20 * MIB);
    device_buffer_release(device, &a);
    device_buffer_release(device, &b);
    healcl_device_close(device);
}

static void fresh_buffers_are_idle(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct buffer buffer = acquire(device, MIB, false);
    cl_mem memory = buffer.memory;
    device_buffer_release(device, &buffer);
    struct buffer fresh = acquire(device, MIB, true);
    assert_ptr_not_equal(fresh.memory, memory);
    OK(device_finish(device, &error)); /* nothing can use the first one any more */
    struct buffer idle = acquire(device, MIB, true);
    assert_ptr_equal(idle.memory, memory);
    device_buffer_release(device, &fresh);
    device_buffer_release(device, &idle);
    healcl_device_close(device);
}

static struct buffer acquire_at(struct healcl_device *device, uint64_t number, uint64_t bytes,
                                bool fresh)
{
    struct buffer buffer;
    const struct buffer_place place = {number, 2 * MIB};
    OK(device_buffer_acquire_at(device, &place, bytes, fresh, &buffer, &error));
    assert_int_equal(buffer.bytes, bytes);
    assert_int_equal(buffer.place, number);
    return buffer;
}

static void places_keep_their_buffers(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    uint64_t first = device_places_begin(device, 2), other = device_places_begin(device, 1);
    assert_true(first > 0 && other == first + 2);
    struct buffer a = acquire_at(device, first, MIB, false);
    cl_mem memory = a.memory;
    device_buffer_release(device, &a);
    struct buffer anyone = acquire(device, 2 * MIB, false); /* nobody else gets it */
    struct buffer b = acquire_at(device, first + 1, MIB, false);
    a = acquire_at(device, first, 2 * MIB, false);
    assert_ptr_equal(a.memory, memory);
    assert_ptr_not_equal(anyone.memory, memory);
    assert_ptr_not_equal(b.memory, memory);
    assert_int_equal(device->bytes_placed, 4 * MIB);
    struct buffer second = acquire_at(device, first, MIB, false); /* it is in use: one more */
    assert_ptr_not_equal(second.memory, memory);
    assert_int_equal(device->bytes_placed, 6 * MIB);
    device_buffer_release(device, &second);
    device_buffer_release(device, &a);
    assert_int_equal(helper.count[CALL_clFinish], 0);
    a = acquire_at(device, first, MIB, true); /* it is waited for */
    assert_ptr_equal(a.memory, memory);
    assert_int_equal(helper.count[CALL_clFinish], 1);
    device_buffer_release(device, &b);
    device_buffer_release(device, &a);
    device_places_end(device, first, 2);
    assert_int_equal(device->bytes_placed, 0);
    assert_int_equal(device->placed_peak, 6 * MIB);
    b = acquire(device, 2 * MIB, false); /* like others now */
    assert_ptr_equal(b.memory, memory);
    device_buffer_release(device, &b);
    device_buffer_release(device, &anyone);
    device_pool_empty(device);
    assert_int_equal(device->bytes_live, 0);
    healcl_device_close(device);
}

static void refuses_what_no_allocation_holds(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct buffer buffer;
    device->info.max_allocation_bytes = 100000;
    buffer = acquire(device, 100000, false); /* not rounded up */
    assert_int_equal(buffer.allocated, 100000);
    device_buffer_release(device, &buffer);
    assert_int_equal(device_buffer_acquire(device, 100001, false, &buffer, &error), HEALCL_REFUSED);
    assert_non_null(strstr(error.message, "100001 bytes are more than the 100000 that "));
    assert_null(buffer.memory);
    healcl_device_close(device);
}

static void counts_bytes(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct buffer a = acquire(device, MIB, false), b = acquire(device, 2 * MIB, false);
    assert_int_equal(device->bytes_live, 3 * MIB);
    device_buffer_release(device, &a);
    assert_int_equal(device->bytes_live, 3 * MIB);
    assert_int_equal(device->bytes_pooled, MIB);
    device_pool_empty(device);
    assert_int_equal(device->bytes_live, 2 * MIB);
    device_buffer_release(device, &b);
    device_pool_empty(device);
    assert_int_equal(device->bytes_live, 0);
    assert_int_equal(device->bytes_peak, 3 * MIB);
    assert_int_equal(helper.buffers, 0);
    healcl_device_close(device);
}

/* Requests of ever new sizes, one alive at a time: the pool must not keep them all. */
static void does_not_hoard(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    device->info.global_memory_bytes = 512 * MIB; /* 16 MiB may be spared */
    for (uint64_t mib = 1; mib <= 40; mib++) {
        struct buffer buffer = acquire(device, mib * MIB, false);
        device_buffer_release(device, &buffer);
        uint64_t spare = mib < 16 ? mib : 16;
        assert_true(device->bytes_live <= (mib + spare) * MIB);
    }
    assert_true(device->bytes_peak <= 56 * MIB);
    healcl_device_close(device);
}

static void empties_the_pool_for_room(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct buffer buffer = acquire(device, MIB, false);
    device_buffer_release(device, &buffer);
    helper.fail_code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    helper.fail_at = helper.calls + 1;
    buffer = acquire(device, 3 * MIB, false);
    assert_string_equal(helper.failed, "clCreateBuffer");
    assert_int_equal(device->bytes_live, 3 * MIB);
    assert_int_equal(helper.count[CALL_clFinish], 1);
    device_buffer_release(device, &buffer);
    helper.fail_at = helper.calls + 1;
    helper.fail_after = true;
    assert_int_equal(device_buffer_acquire(device, 5 * MIB, false, &buffer, &error), HEALCL_DEVICE);
    assert_string_equal(error.message,
                        "cannot allocate 5242880 bytes beside 0 bytes in use (--max-device-memory "
                        "needs less): clCreateBuffer failed: "
                        "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)");
    assert_int_equal(error.opencl_code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    helper.fail_at = 0;
    healcl_device_close(device);
}

/* Whether the mapping of an address has been advised so: "hg" among its VmFlags. */
static bool has_huge_pages(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, found = false;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long first, end;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            inside = (uintptr_t)address >= first && (uintptr_t)address < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, " hg") != NULL;
    }
    fclose(maps);
    return found;
}

static enum healcl_status look_for_huge_pages(void *context, uint64_t offset, uint64_t bytes,
                                              void *memory, struct healcl_error *failure)
{
    bool *huge = context;
    (void)offset;
    (void)failure;
    *huge = has_huge_pages((char *)memory + bytes / 2);
    return HEALCL_OK;
}

/* A large buffer of a CPU; what has been mapped can be used. (A small one may lie in memory that
 * was advised so for another.) */
static void asks_for_huge_pages(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct buffer buffer = {.bytes = 0};
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0 ||
        !(device->info.type & CL_DEVICE_TYPE_CPU) ||
        strcmp(device->info.platform, "Portable Computing Language") != 0)
        print_message("skipped: no huge pages, or a driver that keeps buffers elsewhere\n");
    else {
        bool huge = false;
        OK(device_upload(device, NULL, 32 * MIB,
                         &(struct device_filler){look_for_huge_pages, &huge}, &buffer, &error));
        assert_true(huge);
    }
    OK(device_finish(device, &error));
    device_buffer_release(device, &buffer);
    healcl_device_close(device);
}

/* The first buffer that is made, and how many references to it are held. Once there are none a
 * driver may refuse it, as Intel's does, though parts of it exist. */
static cl_mem first_buffer;
static int references;

static cl_mem CL_API_CALL create_followed(cl_context context, cl_mem_flags flags, size_t size,
                                          void *data, cl_int *code)
{
    cl_mem memory = helper_opencl.clCreateBuffer(context, flags, size, data, code);
    if (!first_buffer) {
        first_buffer = memory;
        references = 1;
    }
    return memory;
}

static cl_int CL_API_CALL retain_followed(cl_mem memory)
{
    references += memory == first_buffer;
    return helper_opencl.clRetainMemObject(memory);
}

static cl_int CL_API_CALL release_followed(cl_mem memory)
{
    references -= memory == first_buffer;
    return helper_opencl.clReleaseMemObject(memory);
}

static void parts_hold_their_slab(void **state)
{
    (void)state;
    enum { PART_BYTES = 1 << 14, PARTS = 20 }; /* more than a slab has */
    struct opencl cl = helper_opencl;
    struct healcl_device *device = NULL;
    struct buffer parts[PARTS];
    first_buffer = NULL;
    cl.clCreateBuffer = create_followed;
    cl.clRetainMemObject = retain_followed;
    cl.clReleaseMemObject = release_followed;
    OK(device_open(&cl, NULL, &device, &error));
    for (int i = 0; i < PARTS; i++)
        OK(device_buffer_acquire_part(device, PART_BYTES, &parts[i], &error));
    assert_ptr_equal(parts[0].slab, first_buffer);
    assert_ptr_not_equal(parts[PARTS - 1].slab, first_buffer);
    for (int i = 1; i < PARTS; i++)
        device_buffer_release(device, &parts[i]);
    device_pool_empty(device);
    assert_int_equal(references, 1); /* the first part's */
    const struct buffer slab = device_buffer_slab(&parts[0]);
    char data[8];
    OK(device_read(device, &slab, parts[0].slab_offset, sizeof data, data, &error));
    device_buffer_release(device, &parts[0]);
    device_pool_empty(device);
    assert_int_equal(references, 0);
    healcl_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(uses_buffers_again),
        DEVICE_TEST(takes_what_fits_best),
        DEVICE_TEST(fresh_buffers_are_idle),
        DEVICE_TEST(places_keep_their_buffers),
        DEVICE_TEST(refuses_what_no_allocation_holds),
        DEVICE_TEST(counts_bytes),
        DEVICE_TEST(does_not_hoard),
        DEVICE_TEST(empties_the_pool_for_room),
        DEVICE_TEST(asks_for_huge_pages),
        DEVICE_TEST(parts_hold_their_slab),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
