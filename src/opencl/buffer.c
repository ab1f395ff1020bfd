/* Device memory: buffers are allocated, pooled and reused. */
#include <string.h>

#include "core/array.h"
#include "core/huge_pages.h"
#include "opencl/internal.h"

enum {
    STEP_BYTES_MIN = 256, /* sizes of buffers are multiples of it */
    STEP_BYTES_MAX = 1 << 16,
    STEPS_SHIFT = 4,   /* up to 16 sizes between two powers of two */
    SLACK_SHIFT = 2,   /* a buffer may be larger than asked for by a quarter */
    SPARE_SHIFT = 5,   /* the pool may add a 32nd of the device's memory to the peak of use */
    SCRATCH_SHIFT = 2, /* scratch memory may take a quarter of a bound */
    HUGE_BYTES_MIN = 1 << 23, /* buffers that are worth huge pages */
    SLAB_BYTES = 1 << 18,
    PART_BYTES_MAX = 1 << 14 /* of a slab */
};

/* Whether OpenCL's code reports a lack of memory. Drivers use CL_OUT_OF_RESOURCES for that, too. */
bool is_out_of_memory(cl_int code)
{
    return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
           code == CL_OUT_OF_HOST_MEMORY;
}

/* Rounds a size up, so that buffers of similar size can reuse each other's memory. Small sizes
 * become multiples of 256. The step doubles with the size, up to 64 KiB, so that at most 16 sizes
 * lie between two powers of two. */
uint64_t device_round_bytes(const struct healcl_device *device, uint64_t bytes)
{
    uint64_t step = STEP_BYTES_MIN;
    while (step < STEP_BYTES_MAX && bytes > step << (STEPS_SHIFT + 1)) /* more than 32 steps */
        step *= 2;
    uint64_t rounded = bytes > step ? (bytes + step - 1) / step * step : step;
    return rounded <= device->info.max_allocation_bytes ? rounded : bytes;
}

/* ---------------------------------------------------------------- pool */

/* Frees memory, or returns it to the caller's allocator. That may give it to others at once, so all
 * commands must have ended; OpenCL itself would defer the release. */
static void release_memory(struct healcl_device *device, cl_mem memory, uint64_t bytes)
{
    if (device->options.release) {
        (void)WAIT_CL(device->cl, clFinish, device->transfer);
        (void)WAIT_CL(device->cl, clFinish, device->compute);
        device->options.release(device->options.memory_context, memory);
    } else {
        (void)device->cl->clReleaseMemObject(memory);
    }
    device->bytes_live -= bytes;
}

/* Frees the memory of a buffer that is in the pool, or would have been put there. */
static void release_pooled(struct healcl_device *device, const struct buffer *pooled)
{
    device->bytes_placed -= pooled->place > 0 ? pooled->allocated : 0;
    release_memory(device, pooled->memory, pooled->allocated);
    if (pooled->slab)
        (void)device->cl->clReleaseMemObject(pooled->slab);
}

/* Frees pooled buffers, the longest unused first, until at most `bytes` bytes are allocated or the
 * pool is empty. Buffers with a place stay unless places_too is set: the plan needs them again, and
 * has declared their size. */
static void trim_pool(struct healcl_device *device, uint64_t bytes, bool places_too)
{
    size_t kept_count = 0;
    if (device->bytes_live <= bytes)
        return;
    for (size_t i = 0; i < device->pool_count; i++) {
        const struct buffer pooled = device->pool[i];
        const bool may_go = pooled.place == 0 || places_too;
        if (may_go && device->bytes_live > bytes) {
            device->bytes_pooled -= pooled.allocated;
            release_pooled(device, &pooled);
        } else {
            device->pool[kept_count++] = pooled;
        }
    }
    device->pool_count = kept_count;
}

/* Stops taking parts from the current slab. Its parts keep it alive: each holds a reference. A
 * driver may reject a slab without references, even if it has live parts. */
static void leave_slab(struct healcl_device *device)
{
    if (device->slab)
        (void)device->cl->clReleaseMemObject(device->slab);
    device->slab = NULL;
}

void device_pool_empty(struct healcl_device *device)
{
    trim_pool(device, 0, true); /* also places' buffers */
    leave_slab(device);
}

/* How many bytes to keep allocated at most, pool included. It is the peak use so far, which the
 * device could hold, plus the same again, but at most a 32nd of the device's memory. */
static uint64_t allocation_target(const struct healcl_device *device)
{
    uint64_t pool_limit = device->info.global_memory_bytes >> SPARE_SHIFT;
    return device->used_peak + (device->used_peak < pool_limit ? device->used_peak : pool_limit);
}

/* Raises the peaks of the memory in use (without the pool) and of the memory allocated (with it).
 */
static void note_use(struct healcl_device *device)
{
    uint64_t used = device->bytes_live - device->bytes_pooled;
    if (device->used_peak < used)
        device->used_peak = used;
    if (device->bytes_peak < device->bytes_live)
        device->bytes_peak = device->bytes_live;
}

/* Moves a buffer out of the pool, to *taken. The others keep their order, by which the longest
 * unused one is known. */
static void take_out(struct healcl_device *device, struct buffer *pooled, struct buffer *taken)
{
    size_t following = device->pool_count - (size_t)(pooled - device->pool) - 1;
    *taken = *pooled;
    device->bytes_pooled -= pooled->allocated;
    memmove(pooled, pooled + 1, following * sizeof *pooled);
    device->pool_count--;
}

/* Whether enqueued commands no longer use a pooled buffer: the compute queue was found empty since
 * the buffer was released. */
static bool is_idle(const struct healcl_device *device, const struct buffer *pooled)
{
    return pooled->released_at < device->finish_count;
}

enum pooled_kind { WHOLE_BUFFER, PART_OF_SLAB };

/* Whether a pooled buffer can be reused for `bytes` bytes. It may be up to a quarter larger than
 * needed. fresh: commands must no longer use it. Buffers with a place are reserved for it. */
static bool can_reuse(const struct healcl_device *device, const struct buffer *pooled,
                      uint64_t bytes, bool fresh, enum pooled_kind kind)
{
    const uint64_t slack = bytes >> SLACK_SHIFT;
    if (kind != (pooled->slab ? PART_OF_SLAB : WHOLE_BUFFER) || pooled->place > 0)
        return false;
    if (fresh && !is_idle(device, pooled))
        return false;
    return pooled->allocated >= bytes && pooled->allocated - bytes <= slack;
}

/* Takes the smallest buffer that can be reused out of the pool, the most recent one if several are
 * equally small. Returns false if there is none. */
static bool take_pooled(struct healcl_device *device, uint64_t bytes, bool fresh,
                        enum pooled_kind kind, struct buffer *taken)
{
    struct buffer *best = NULL;
    for (size_t i = device->pool_count; i-- > 0;) {
        struct buffer *pooled = &device->pool[i];
        if (!can_reuse(device, pooled, bytes, fresh, kind))
            continue;
        if (!best || pooled->allocated < best->allocated)
            best = pooled;
        if (best->allocated == bytes)
            break; /* no other can fit better */
    }
    if (best)
        take_out(device, best, taken);
    return best != NULL;
}

/* ---------------------------------------------------------------- memory */

/* Asks for huge pages for a large buffer in a CPU's memory. Kernels that traverse it then take up
 * to a fifth less time. The buffer is mapped only to learn its address. This is only a hint: a
 * device without mapping does without. */
static void ask_for_huge_pages(struct healcl_device *device, cl_mem memory, uint64_t bytes)
{
    const struct opencl *cl = device->cl;
    cl_int code = CL_SUCCESS;
    if (!(device->info.type & CL_DEVICE_TYPE_CPU) || bytes < HUGE_BYTES_MIN)
        return;
    void *start =
        cl->clEnqueueMapBuffer(device->transfer, memory, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                               (size_t)bytes, 0, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return;
    huge_pages_ask(start, (size_t)bytes);
    (void)cl->clEnqueueUnmapMemObject(device->transfer, memory, start, 0, NULL, NULL);
    (void)WAIT_CL(cl, clFinish, device->transfer);
}

void device_limit_memory(struct healcl_device *device, uint64_t bytes,
                         enum healcl_status (*make_room)(void *context, uint64_t bytes,
                                                         struct healcl_error *error),
                         void *context)
{
    device->bound = (struct memory_bound){bytes, make_room, context};
}

/* The most bytes that the scratch memory of one launch should take: a quarter of the limit on the
 * device's memory, or as much as one allocation may have. */
uint64_t device_scratch_bytes(const struct healcl_device *device)
{
    uint64_t quarter = device->bound.bytes >> SCRATCH_SHIFT,
             most = device->info.max_allocation_bytes;
    return quarter > 0 && quarter < most ? quarter : most;
}

/* Whether allocating `bytes` more bytes would exceed the limit on the device's memory. */
static bool is_beyond_bound(const struct healcl_device *device, uint64_t bytes)
{
    const uint64_t limit = device->bound.bytes, used = device->bytes_live;
    const uint64_t left = limit > used ? limit - used : 0;
    return limit > 0 && bytes > left;
}

/* Frees pooled buffers, places' too, until at most `bytes` bytes are allocated or the pool is
 * empty. Waits for commands, so that the memory is free at once. */
static enum healcl_status trim_idle_pool(struct healcl_device *device, uint64_t bytes,
                                         struct healcl_error *error)
{
    if (device->pool_count == 0)
        return HEALCL_OK;
    TRY_CL(error, "clFinish", device_finish_compute(device));
    trim_pool(device, bytes, true);
    return HEALCL_OK;
}

/* Makes room for `bytes` more bytes below the limit on the device's memory. First frees pooled
 * buffers. If that is not enough, has the executor move tensors to the host, and frees the buffers
 * that become pooled by that. */
static enum healcl_status keep_bound(struct healcl_device *device, uint64_t bytes,
                                     struct healcl_error *error)
{
    const struct memory_bound *bound = &device->bound;
    const uint64_t most_before = bound->bytes > bytes ? bound->bytes - bytes : 0;
    if (!is_beyond_bound(device, bytes))
        return HEALCL_OK;
    TRY(trim_idle_pool(device, most_before, error));
    if (!is_beyond_bound(device, bytes))
        return HEALCL_OK;
    TRY(bound->make_room(bound->context, device->bytes_live - most_before, error));
    return trim_idle_pool(device, most_before, error);
}

/* Allocates memory by OpenCL, with a copy of `bytes` bytes of data if that is not NULL, or by the
 * caller's allocator, which takes no data. */
static cl_mem create_buffer(struct healcl_device *device, uint64_t bytes, void *data, cl_int *code)
{
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (data ? CL_MEM_COPY_HOST_PTR : 0);
    if (!device->options.allocate)
        return device->cl->clCreateBuffer(device->context, flags, (size_t)bytes, data, code);
    cl_mem memory = device->options.allocate(device->options.memory_context, (size_t)bytes);
    *code = memory ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return memory;
}

/* Refuses a buffer that is larger than the device can allocate at once. The cause LIMIT lets the
 * host run a step that needs such memory, such as a table. */
static enum healcl_status check_allocation(struct healcl_device *device, uint64_t bytes,
                                           struct healcl_error *error)
{
    const uint64_t limit = device->info.max_allocation_bytes;
    if (bytes <= limit)
        return HEALCL_OK;
    REFUSE_FOR(error, LIMIT, "%llu bytes are more than the %llu that %s can allocate at once",
               (unsigned long long)bytes, (unsigned long long)limit, device->info.name);
}

/* Allocates memory for a buffer. First trims the pool, and makes room below a limit on memory. If
 * the device is out of memory, empties the pool and tries again. data: the initial contents,
 * `bytes` bytes, or NULL. */
static enum healcl_status create_memory(struct healcl_device *device, uint64_t bytes, void *data,
                                        cl_mem *memory, struct healcl_error *error)
{
    uint64_t pool_target = allocation_target(device);
    trim_pool(device, pool_target > bytes ? pool_target - bytes : 0, false);
    TRY(keep_bound(device, bytes, error));
    cl_int code = CL_SUCCESS;
    DEVICE_ATTEMPTS(device, code)
    {
        *memory = create_buffer(device, bytes, data, &code);
        if (code == CL_SUCCESS) {
            device->bytes_live += bytes;
            if (!data)
                ask_for_huge_pages(device, *memory, bytes);
            return HEALCL_OK;
        }
    }
    *memory = NULL;
    (void)opencl_error(error, code, "clCreateBuffer", __FILE__, __LINE__);
    error_prefix(error, "cannot allocate %llu bytes beside %llu bytes in use%s: ",
                 (unsigned long long)bytes, (unsigned long long)device->bytes_live,
                 device->bound.bytes > 0 ? "" : " (--max-device-memory needs less)");
    return HEALCL_DEVICE;
}

/* The whole slab of a part, as a buffer: one command can read or map all its parts. Not owned by
 * the caller: it lives as long as its parts. */
struct buffer device_buffer_slab(const struct buffer *part)
{
    return (struct buffer){.bytes = SLAB_BYTES, .memory = part->slab, .slab = part->slab};
}

/* How many bytes a part of at least `bytes` bytes takes of a slab, rounded up to the device's
 * alignment of sub-buffers. Returns 0 if it must not be a part: it is too large, or the device has
 * no sub-buffers, or the caller's allocator provides memory. */
static uint64_t part_bytes(const struct healcl_device *device, uint64_t bytes)
{
    const uint64_t alignment = device->info.base_alignment_bits / 8;
    if (!device->cl->clCreateSubBuffer || device->lacks_sub_buffers || device->options.allocate)
        return 0;
    if (device->info.max_allocation_bytes < SLAB_BYTES)
        return 0;
    uint64_t rounded = device_round_bytes(device, bytes);
    if (alignment > STEP_BYTES_MIN) /* both are powers of two */
        rounded = (rounded + alignment - 1) / alignment * alignment;
    return rounded <= PART_BYTES_MAX ? rounded : 0;
}

/* Creates memory by OpenCL, outside of the pool. If the device is out of memory, empties the pool
 * and tries again. host: the initial contents if flags has CL_MEM_COPY_HOST_PTR, or NULL. *memory
 * is NULL after an error. */
enum healcl_status device_create_memory(struct healcl_device *device, cl_mem_flags flags,
                                        uint64_t bytes, void *host, cl_mem *memory,
                                        struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    DEVICE_ATTEMPTS(device, code)
    {
        *memory = device->cl->clCreateBuffer(device->context, flags, (size_t)bytes, host, &code);
        if (code != CL_SUCCESS)
            *memory = NULL;
    }
    TRY_CL(error, "clCreateBuffer", code);
    return HEALCL_OK;
}

/* Takes part_bytes bytes of a slab, and begins a new slab if the current one is full. If the device
 * rejects sub-buffers, notes that and succeeds with part->memory unchanged: the caller then
 * allocates a buffer. */
static enum healcl_status create_part(struct healcl_device *device, uint64_t bytes,
                                      struct buffer *part, struct healcl_error *error)
{
    if (!device->slab || device->slab_used + bytes > SLAB_BYTES) {
        leave_slab(device); /* it is freed with its last part */
        TRY(device_create_memory(device, CL_MEM_READ_WRITE, SLAB_BYTES, NULL, &device->slab,
                                 error));
        device->slab_used = 0;
    }
    const cl_buffer_region region = {.origin = (size_t)device->slab_used, .size = (size_t)bytes};
    cl_int code = CL_SUCCESS;
    cl_mem memory = device->cl->clCreateSubBuffer(device->slab, CL_MEM_READ_WRITE,
                                                  CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    device->lacks_sub_buffers = code != CL_SUCCESS && !is_out_of_memory(code);
    if (device->lacks_sub_buffers)
        return HEALCL_OK;
    TRY_CL(error, "clCreateSubBuffer", code);
    code = device->cl->clRetainMemObject(device->slab);
    if (code != CL_SUCCESS)
        (void)device->cl->clReleaseMemObject(memory);
    TRY_CL(error, "clRetainMemObject", code);
    *part = (struct buffer){.allocated = bytes,
                            .memory = memory,
                            .serial = ++device->last_serial,
                            .slab = device->slab,
                            .slab_offset = device->slab_used};
    device->slab_used += bytes;
    device->bytes_live += bytes;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- places */

/* Reserves `count` numbers of places for a plan, and returns the first. 0 is not a place. Peak use
 * by places is counted anew. */
uint64_t device_places_begin(struct healcl_device *device, uint64_t count)
{
    uint64_t first = device->last_place + 1;
    device->last_place += count;
    device->placed_peak = device->bytes_placed;
    return first;
}

/* Ends a plan's places. Their buffers, which are all in the pool, may then be used for anything. */
void device_places_end(struct healcl_device *device, uint64_t first, uint64_t count)
{
    for (size_t i = 0; i < device->pool_count; i++) {
        struct buffer *pooled = &device->pool[i];
        if (pooled->place < first || pooled->place - first >= count)
            continue;
        pooled->place = 0;
        device->bytes_placed -= pooled->allocated;
    }
}

/* Called with the code of a call that may lack memory. Returns true if the call should be tried
 * again: the device was out of memory, and the pool's memory is free now. Waits for the compute
 * queue after any failure. */
bool device_recovers(struct healcl_device *device, cl_int code)
{
    if (code == CL_SUCCESS)
        return false;
    if (is_out_of_memory(code)) {
        device_log(device, "memory is full: %llu pooled bytes are released",
                   (unsigned long long)device->bytes_pooled);
        device_pool_empty(device);
        /* Kernel objects are made anew: some drivers keep memory alive that is an argument. */
        device->choices_epoch++;
    }
    return device_finish_compute(device) == CL_SUCCESS && is_out_of_memory(code);
}

/* ---------------------------------------------------------------- buffers */

/* Returns a buffer of at least `bytes` bytes, from the pool or newly allocated. fresh: commands
 * must no longer use it, because the host fills it without waiting for them. */
enum healcl_status device_buffer_acquire(struct healcl_device *device, uint64_t bytes, bool fresh,
                                         struct buffer *buffer, struct healcl_error *error)
{
    memset(buffer, 0, sizeof *buffer);
    TRY(check_allocation(device, bytes, error));
    struct buffer acquired = {.allocated = device_round_bytes(device, bytes)};
    bool taken = take_pooled(device, acquired.allocated, fresh, WHOLE_BUFFER, &acquired);
    /* Rather than exceed the limit on memory, waits until pooled buffers are fresh. */
    if (!taken && fresh && device->pool_count > 0 && is_beyond_bound(device, acquired.allocated)) {
        TRY_CL(error, "clFinish", device_finish_compute(device));
        taken = take_pooled(device, acquired.allocated, fresh, WHOLE_BUFFER, &acquired);
    }
    if (!taken) {
        TRY(create_memory(device, acquired.allocated, NULL, &acquired.memory, error));
        acquired.serial = ++device->last_serial;
    }
    note_use(device);
    *buffer = acquired;
    buffer->bytes = bytes;
    return HEALCL_OK;
}

/* Returns the buffer of a place, for a tensor that the plan has put there. The first tensor of a
 * place gets a new buffer as large as the place. place: NULL for none. */
enum healcl_status device_buffer_acquire_at(struct healcl_device *device,
                                            const struct buffer_place *place, uint64_t bytes,
                                            bool fresh, struct buffer *buffer,
                                            struct healcl_error *error)
{
    memset(buffer, 0, sizeof *buffer);
    for (size_t i = device->pool_count; place && i-- > 0;) {
        if (device->pool[i].place != place->number)
            continue;
        if (fresh && !is_idle(device, &device->pool[i]))
            TRY_CL(error, "clFinish", device_finish_compute(device));
        take_out(device, &device->pool[i], buffer);
        buffer->bytes = bytes;
        note_use(device);
        return HEALCL_OK;
    }
    TRY(device_buffer_acquire(device, place ? place->bytes : bytes, fresh, buffer, error));
    buffer->bytes = bytes;
    if (!place)
        return HEALCL_OK;
    buffer->place = place->number;
    device->bytes_placed += buffer->allocated;
    if (device->placed_peak < device->bytes_placed)
        device->placed_peak = device->bytes_placed;
    return HEALCL_OK;
}

/* Returns a small buffer, if possible as a part of a slab: one transfer then reads many of them
 * together. */
enum healcl_status device_buffer_acquire_part(struct healcl_device *device, uint64_t bytes,
                                              struct buffer *buffer, struct healcl_error *error)
{
    uint64_t slab_bytes = part_bytes(device, bytes);
    struct buffer part = {0};
    memset(buffer, 0, sizeof *buffer);
    /* Kernels write these buffers in order: they need not be fresh (false). */
    if (slab_bytes == 0)
        return device_buffer_acquire(device, bytes, false, buffer, error);
    if (!take_pooled(device, slab_bytes, false, PART_OF_SLAB, &part))
        TRY(create_part(device, slab_bytes, &part, error));
    if (!part.memory) /* the device has no sub-buffers */
        return device_buffer_acquire(device, bytes, false, buffer, error);
    note_use(device);
    *buffer = part;
    buffer->bytes = bytes;
    return HEALCL_OK;
}

/* Creates a buffer with a copy of data, which has device_round_bytes(bytes) bytes. A pooled buffer
 * cannot take data without a command, so that one of this size is freed instead, and the pool does
 * not grow. */
enum healcl_status device_buffer_of(struct healcl_device *device, uint64_t bytes, void *data,
                                    struct buffer *buffer, struct healcl_error *error)
{
    struct buffer created = {.bytes = bytes, .allocated = device_round_bytes(device, bytes)},
                  replaced;
    memset(buffer, 0, sizeof *buffer);
    TRY(check_allocation(device, bytes, error));
    if (take_pooled(device, created.allocated, false, WHOLE_BUFFER, &replaced)) /* fresh or not */
        release_memory(device, replaced.memory, replaced.allocated);
    TRY(create_memory(device, created.allocated, data, &created.memory, error));
    created.serial = ++device->last_serial;
    device->commands++;
    note_use(device);
    *buffer = created;
    return HEALCL_OK;
}

/* Takes the buffer whose memory has this serial number out of the pool, if it is still there. A
 * step can thus get the same scratch memory again: then the kernel's arguments need not be set
 * anew. */
bool device_buffer_take(struct healcl_device *device, uint64_t serial, uint64_t bytes,
                        struct buffer *buffer)
{
    size_t i = 0;
    while (i < device->pool_count && device->pool[i].serial != serial)
        i++;
    if (serial == 0 || i == device->pool_count || device->pool[i].place > 0 ||
        device->pool[i].allocated < bytes)
        return false;
    take_out(device, &device->pool[i], buffer);
    buffer->bytes = bytes;
    note_use(device);
    return true;
}

/* Makes a buffer of memory that the caller owns. Checks that it can replace one of ours: a buffer
 * of this context, large enough, readable and writable. */
enum healcl_status device_buffer_adopt(struct healcl_device *device, uint64_t bytes, cl_mem memory,
                                       struct buffer *buffer, struct healcl_error *error)
{
    cl_mem_object_type type = 0;
    cl_context context = NULL;
    size_t size = 0;
    cl_mem_flags flags = 0;
    const struct opencl *cl = device->cl;
    TRY_CALL(error, cl, clGetMemObjectInfo, memory, CL_MEM_TYPE, sizeof type, &type, NULL);
    TRY_CALL(error, cl, clGetMemObjectInfo, memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    TRY_CALL(error, cl, clGetMemObjectInfo, memory, CL_MEM_SIZE, sizeof size, &size, NULL);
    TRY_CALL(error, cl, clGetMemObjectInfo, memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (type != CL_MEM_OBJECT_BUFFER)
        REFUSE(error, "the memory is an image, not a buffer");
    if (context != device->context)
        REFUSE(error, "the memory belongs to another context than the device's");
    if (size < bytes)
        REFUSE(error, "the memory has %zu bytes, fewer than the %llu of the tensor", size,
               (unsigned long long)bytes);
    if (flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY))
        REFUSE(error, "the memory is read-only or write-only");
    TRY_CALL(error, device->cl, clRetainMemObject, memory);
    *buffer = (struct buffer){
        .bytes = bytes, .memory = memory, .serial = ++device->last_serial, .is_adopted = true};
    return HEALCL_OK;
}

/* Returns a buffer to the pool, and empties *buffer. Memory of the caller only loses a reference.
 * If the pool cannot grow for lack of host memory, frees the buffer. */
void device_buffer_release(struct healcl_device *device, struct buffer *buffer)
{
    buffer->released_at = device->finish_count;
    if (buffer->is_adopted) {
        (void)device->cl->clReleaseMemObject(buffer->memory);
    } else if (buffer->memory &&
               !ARRAY_GROW(device->pool, device->pool_count, &device->pool_capacity)) {
        release_pooled(device, buffer);
    } else if (buffer->memory) {
        device->pool[device->pool_count++] = *buffer;
        device->bytes_pooled += buffer->allocated;
        trim_pool(device, allocation_target(device), false); /* places keep theirs */
    }
    memset(buffer, 0, sizeof *buffer);
}
