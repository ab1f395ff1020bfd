/* Kernel launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "opencl/internal.h"

enum { FLUSH_EVERY = 64 }; /* launches, to let the device start while the host continues */

/*
 * Checks of the arguments that manifests give to their kernels. A manifest may describe a kernel's
 * arguments wrongly. If it gives an integer for a pointer, a driver such as PoCL may crash. The
 * driver is therefore asked about each kernel's arguments before they are first set. Drivers report
 * arguments of programs built from source with -cl-kernel-arg-info, but perhaps not of binaries. A
 * binary is thus used only for the same arguments.
 */

/* ---------------------------------------------------------------- what a kernel takes */

/* The name used in messages. NULL if the code is not an address space. */
static const char *address_name(cl_kernel_arg_address_qualifier code)
{
    switch (code) {
    case CL_KERNEL_ARG_ADDRESS_GLOBAL: return "global ";
    case CL_KERNEL_ARG_ADDRESS_CONSTANT: return "constant ";
    case CL_KERNEL_ARG_ADDRESS_LOCAL: return "local ";
    case CL_KERNEL_ARG_ADDRESS_PRIVATE: return "";
    default: return NULL;
    }
}

enum { WORD_SIZE = 41 }; /* longer types and names are cut */

/* Asks the driver for the type or name of a kernel's argument, for comparing or for a message.
 * Writes "?" if the driver does not answer, or not with printable text. */
static void ask_word(const struct healcl_device *device, cl_kernel id, cl_uint index,
                     cl_kernel_arg_info what, char word[WORD_SIZE])
{
    char text[256] = "";
    cl_int code = device->cl->clGetKernelArgInfo(id, index, what, sizeof text - 1, text, NULL);
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            code = CL_INVALID_VALUE;
    if (code != CL_SUCCESS || !*text)
        strcpy(text, "?");
    snprintf(word, WORD_SIZE, "%.*s", WORD_SIZE - 1, text);
}

/* ---------------------------------------------------------------- what a manifest gives */

/* The size of an integer type of OpenCL C, signed or not, with const or without. 0 for an unknown
 * type. A floating-point type gives 3: it is known, but no element of a tensor has this size.
 * Drivers may write "unsigned int", "unsignedint" or "uint", so prefixes are removed in order. */
static size_t integer_bytes(const char *type)
{
    static const char *const prefixes[] = {"const ", "volatile ", "unsigned", "signed", " ", "u"};
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"char", 1},     {"short", 2}, {"int", 4},  {"long", 8},
                 {"long int", 8}, {"float", 3}, {"half", 3}, {"double", 3}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) /* skips each prefix once */
        if (strncmp(type, prefixes[i], strlen(prefixes[i])) == 0)
            type += strlen(prefixes[i]);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].bytes;
    return 0;
}

/* Whether a kernel's argument of this type takes the memory of a tensor. Its elements must have the
 * size of the tensor's, signed or not, or be vectors of them such as "long4". An unknown type may
 * be anything. */
static bool takes_memory(cl_kernel_arg_address_qualifier space, const char *type, size_t bytes)
{
    char element[WORD_SIZE];
    snprintf(element, sizeof element, "%s", type);
    size_t length = strcspn(element, "*");
    while (length > 0 && strchr(" 0123456789", element[length - 1]))
        length--;
    element[length] = 0;
    const size_t type_size = integer_bytes(element);
    return (space == CL_KERNEL_ARG_ADDRESS_GLOBAL || space == CL_KERNEL_ARG_ADDRESS_CONSTANT) &&
           strncmp(type, "image", 5) != 0 && (type_size == 0 || type_size == bytes);
}

/* Whether a kernel's argument of this type takes a 64-bit integer by value. An unknown type may be
 * one. */
static bool takes_long(cl_kernel_arg_address_qualifier space, const char *type)
{
    const size_t bytes = integer_bytes(type);
    return space == CL_KERNEL_ARG_ADDRESS_PRIVATE && !strchr(type, '*') &&
           strcmp(type, "sampler_t") != 0 && (bytes == 0 || bytes == sizeof(cl_long));
}

enum { GIVEN_SIZE = 160 };

/* Describes what a manifest gives as an argument: "the memory of 'a', int64" or "a long,
 * 'size(a)'". */
static const char *given_text(const struct launch_argument *argument, char text[GIVEN_SIZE])
{
    const char *name = argument->name ? argument->name : "";
    if (argument->buffer)
        snprintf(text, GIVEN_SIZE, "the memory of '%.100s', int%zu", name, 8 * argument->size);
    else
        snprintf(text, GIVEN_SIZE, "a long, '%.120s'", name);
    return text;
}

/* Notes that the manifest describes its kernel wrongly, and returns the status of the error. The
 * caller then blames the manifest, and does not add the kernel's name to the message. */
static enum healcl_status blame_manifest(struct healcl_device *device)
{
    device->programs->manifest_is_wrong = true;
    return HEALCL_REFUSED;
}

/* Compares one argument of a kernel with what its manifest gives. *reports: false if the driver
 * does not report what the kernel expects; then nothing is checked. */
static enum healcl_status check_argument(struct healcl_device *device, cl_kernel id,
                                         const struct launch *launch, uint32_t i, bool *reports,
                                         struct healcl_error *error)
{
    char type[WORD_SIZE], name[WORD_SIZE], given[GIVEN_SIZE];
    const struct launch_argument *argument = &launch->arguments[i];
    cl_kernel_arg_address_qualifier space = 0;
    const cl_int answer = device->cl->clGetKernelArgInfo(id, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                                         sizeof space, &space, NULL);
    const char *address = address_name(space);
    *reports = answer == CL_SUCCESS && address;
    if (!*reports)
        return HEALCL_OK;
    ask_word(device, id, i, CL_KERNEL_ARG_TYPE_NAME, type);
    if (argument->buffer ? takes_memory(space, type, argument->size) : takes_long(space, type))
        return HEALCL_OK;
    ask_word(device, id, i, CL_KERNEL_ARG_NAME, name);
    FAIL(error, blame_manifest(device),
         "%s: kernel '%s' takes '%s%s %s' as argument %u, but the manifest gives %s",
         launch->manifest.file, launch->kernel, address, type, name, i + 1,
         given_text(argument, given));
}

/* Compares a vendor's kernel with the arguments of its manifest, once. Wrong kinds of arguments
 * crash some drivers. If the driver does not report arguments, warns once. Kernels of cached
 * binaries were checked when they were built. */
static enum healcl_status kernel_check_arguments(struct healcl_device *device,
                                                 struct kernel *kernel, const struct launch *launch,
                                                 struct healcl_error *error)
{
    cl_uint count = launch->argument_count;
    bool driver_reports = device->cl->clGetKernelArgInfo != NULL; /* OpenCL 1.0 lacks it */
    if (kernel->is_checked || kernel->program->loaded)
        return HEALCL_OK;
    if (device->cl->clGetKernelInfo(kernel->id, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) !=
        CL_SUCCESS)
        driver_reports = false;
    else if (count != launch->argument_count)
        FAIL(error, blame_manifest(device),
             "%s: kernel '%s' takes %u arguments, but the manifest gives %u, tensors' offsets and "
             "strides included",
             launch->manifest.file, launch->kernel, count, launch->argument_count);
    for (uint32_t i = 0; driver_reports && i < count; i++)
        TRY(check_argument(device, kernel->id, launch, i, &driver_reports, error));
    if (!driver_reports && !device->programs->arguments_unknown) {
        device_log(device, "%s", ARGUMENTS_UNKNOWN);
        device->programs->arguments_unknown = true;
    }
    kernel->is_checked = true;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- arguments */

/* Sets argument i of a kernel object: memory, or a value. If the driver rejects an argument of a
 * vendor's kernel, the manifest is to blame. */
static enum healcl_status set_argument(struct healcl_device *device, const struct launch *launch,
                                       cl_kernel id, uint32_t i, struct healcl_error *error)
{
    const struct launch_argument *argument = &launch->arguments[i];
    const struct buffer *buffer = argument->buffer;
    char given[GIVEN_SIZE];
    cl_int code =
        device->cl->clSetKernelArg(id, i, buffer ? sizeof buffer->memory : argument->size,
                                   buffer ? (const void *)&buffer->memory : argument->value);
    if (launch->manifest.name && (code == CL_INVALID_ARG_SIZE || code == CL_INVALID_ARG_VALUE ||
                                  code == CL_INVALID_ARG_INDEX || code == CL_INVALID_MEM_OBJECT))
        FAIL(error, blame_manifest(device),
             "%s: kernel '%s' does not take argument %u as the manifest gives it, %s: %s",
             launch->manifest.file, launch->kernel, i + 1, given_text(argument, given),
             opencl_error_name(code));
    if (code == CL_SUCCESS)
        return HEALCL_OK;
    (void)opencl_error(error, code, "clSetKernelArg", __FILE__, __LINE__);
    error_prefix(error, "argument %u: ", i);
    return HEALCL_DEVICE;
}

/* Sets the arguments of a launch. A launch with its own kernel object sets only memory that has
 * changed: each memory has a serial number. If setting fails, the next launch tries again. */
static enum healcl_status set_arguments(struct healcl_device *device, const struct launch *launch,
                                        const struct kernel *kernel,
                                        const struct kernel_object *own, struct healcl_error *error)
{
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const struct buffer *buffer = launch->arguments[i].buffer;
        const uint64_t serial = buffer ? buffer->serial : VALUE_SERIAL;
        if (own && own->serials[i] == serial) /* it is set already */
            continue;
        if (own)
            own->serials[i] = UNSET_SERIAL;
        TRY(set_argument(device, launch, own ? own->id : kernel->id, i, error));
        if (own)
            own->serials[i] = serial;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- launches */

/* Adds a span for a launch to the trace, with what describes its kernel. Texts are copied into the
 * trace, which may outlive the kernel. */
static size_t trace_kernel(struct trace *trace, const struct launch *launch,
                           const struct kernel *kernel)
{
    size_t index =
        trace_command(trace, TRACE_COMPUTE, "kernel", trace_keep(trace, kernel->shared->name), 0);
    struct trace_span *span = trace_span(trace, index);
    if (span) {
        span->program = trace_keep(trace, kernel->program->name);
        span->tag = launch->tag;
        span->options = trace_keep(trace, kernel->program->all_options);
        span->groups = launch->groups;
        span->local_size = (uint32_t)launch->local_size;
        trace_manifest_kernel(trace, index, &launch->manifest);
    }
    return index;
}

/* Adds a span for the time before a driver starts a kernel for the first time: PoCL compiles it
 * then. Placed in time once the launch has ended. */
static size_t trace_first_launch(struct trace *trace, const char *kernel)
{
    char name[96];
    if (!trace)
        return 0;
    snprintf(name, sizeof name, "compile %.80s", kernel);
    const char *kept = trace_keep(trace, name);
    return trace_command(trace, TRACE_COMPUTE, "first launch", kept ? kept : kernel, 0);
}

/* Enqueues a launch whose arguments are set, and has it timed if the device is profiling. If the
 * device is out of memory, DEVICE_ATTEMPTS releases pooled buffers, and the launch is tried again.
 */
static enum healcl_status enqueue_timed(struct healcl_device *device, const struct launch *launch,
                                        struct kernel *kernel, cl_kernel id,
                                        struct healcl_error *error)
{
    struct queued_command command = {.timed.tag = launch->tag}; /* to attribute its time by */
    if (device->profiling) {
        command.log = &device->launches;
        command.timed.is_first = !atomic_load(&kernel->shared->launched);
        if (command.timed.is_first && device->event_times)
            command.timed.first_span = trace_first_launch(device->trace, kernel->shared->name);
        if (device->trace)
            command.timed.span = trace_kernel(device->trace, launch, kernel);
    }
    /* The first launch of a kernel waits for all commands, because the driver may compile it then:
     * a cold start on PoCL is shorter. */
    const struct command_use all_memory = {.argument_count = 0},
                             arguments = {.argument_count = launch->argument_count,
                                          .arguments = launch->arguments,
                                          .kernel = kernel,
                                          .groups = launch->groups};
    const size_t work_items = launch->groups * launch->local_size;
    cl_int code = CL_SUCCESS;
    DEVICE_ATTEMPTS(device, code)
    {
        TRY(command_begin(device, &command, kernel->shared->launched ? &arguments : &all_memory,
                          error));
        code = device->cl->clEnqueueNDRangeKernel(device->compute, id, 1, NULL, &work_items,
                                                  &launch->local_size, EVENTS(command));
    }
    if (code != CL_SUCCESS) {
        (void)opencl_error(error, code, "clEnqueueNDRangeKernel", __FILE__, __LINE__);
        if (is_out_of_memory(code))
            error_prefix(error, "%llu bytes are in use: ",
                         (unsigned long long)(device->bytes_live - device->bytes_pooled));
        return HEALCL_DEVICE;
    }
    /* Sets the flag, and counts the launch if no handle has launched the kernel before. */
    device->programs->first_launches += !atomic_exchange(&kernel->shared->launched, true);
    return command_end(device, &command, NULL, error);
}

/* Puts the kernel's name before the message of an error, unless the message already has it, as
 * those about manifests do. Returns the status. */
static enum healcl_status add_kernel_name(const struct healcl_device *device, const char *name,
                                          enum healcl_status status, struct healcl_error *error)
{
    if (status != HEALCL_OK && !device->programs->manifest_is_wrong)
        error_prefix(error, "kernel '%s': ", name);
    return status;
}

/* Sets a launch's arguments and enqueues it. Flushes from time to time, so that the device starts
 * while the host continues. own: the launch's own kernel object, or NULL. */
enum healcl_status device_enqueue(struct healcl_device *device, const struct launch *launch,
                                  struct kernel *kernel, const struct kernel_object *own,
                                  struct healcl_error *error)
{
    const struct launch_observer *observer = device->programs->observer;
    device->programs->manifest_is_wrong = false;
    enum healcl_status status = set_arguments(device, launch, kernel, own, error);
    THEN(status, enqueue_timed(device, launch, kernel, own ? own->id : kernel->id, error));
    if (status != HEALCL_OK)
        return add_kernel_name(device, launch->kernel, status, error);
    if (observer && launch->variant)
        observer->launched(observer->context, launch->kind, launch->variant, launch->kernel,
                           own != NULL);
    if (++device->unflushed_launches >= FLUSH_EVERY) {
        device->unflushed_launches = 0;
        TRY_CALL(error, device->cl, clFlush, device->compute);
    }
    return HEALCL_OK;
}

/* Bytes of a launch's arguments, each rounded up to 8 as drivers may count them. */
size_t launch_argument_bytes(const struct launch *launch)
{
    enum { ALIGNMENT = 8 };
    size_t bytes = 0;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        const size_t size = argument->buffer ? sizeof(cl_mem) : argument->size;
        bytes += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return bytes;
}

/* Checks that the device can run a kernel as it is launched: sizes, and the arguments of a vendor's
 * kernel. The cause UNSUPPORTED lets another kernel or the host run the step. The binary of a
 * kernel that is refused is not cached: a loaded one would not be checked again. */
static enum healcl_status check_launch(struct healcl_device *device, struct kernel *kernel,
                                       const struct launch *launch, struct healcl_error *error)
{
    const size_t bytes = launch_argument_bytes(launch), limit = device->info.max_parameter_bytes;
    if (bytes > limit) /* a driver may reject them only at the launch, with any code */
        FAIL_FOR(error, HEALCL_DEVICE, UNSUPPORTED,
                 "needs %zu bytes of kernel arguments, the device allows %zu", bytes, limit);
    if (launch->local_size == 0 || launch->groups > SIZE_MAX / launch->local_size)
        FAIL(error, HEALCL_DEVICE, "%zu work-groups of %zu work-items are too many", launch->groups,
             launch->local_size);
    if (launch->source && launch->local_size > device->info.max_work_group_size)
        FAIL_FOR(error, HEALCL_DEVICE, UNSUPPORTED,
                 "work-groups of %zu work-items are larger than the device's limit of %zu",
                 launch->local_size, device->info.max_work_group_size);
    if (!launch->source)
        return HEALCL_OK;
    enum healcl_status status = kernel_check_arguments(device, kernel, launch, error);
    if (status != HEALCL_OK)
        kernel->program->may_be_cached = false;
    return status;
}

/* Builds the kernel of a launch, and checks the launch, without enqueueing it. */
enum healcl_status device_attach(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error)
{
    device->programs->manifest_is_wrong = false;
    TRY(device_kernel(device, launch, kernel, error));
    return add_kernel_name(device, launch->kernel, check_launch(device, *kernel, launch, error),
                           error);
}

/* Has the driver compile the kernel of a launch before a run needs it. PoCL compiles a kernel when
 * it first runs, so one work-group of it runs, and what it writes is not used. The board says which
 * kernel the run is compiling, which is left out here, and which kernel this process is. */
enum healcl_status device_compile(struct healcl_device *device, const struct launch *launch,
                                  struct healcl_error *error)
{
    const uint64_t kernel_hash = launch_kernel_hash(launch);
    struct compile_board *board = device->programs->ahead.board;
    if (board && board->run_hash == kernel_hash)
        return HEALCL_OK;
    struct kernel *kernel;
    if (board)
        board->ahead_hash = kernel_hash;
    enum healcl_status status = device_attach(device, launch, &kernel, error);
    if (status == HEALCL_OK && !kernel->shared->launched) {
        struct launch once = *launch;
        /* PoCL compiles a second time for 65535 work-items or more: such a launch runs whole. */
        const bool is_large = launch->groups >= UINT16_MAX / launch->local_size;
        if (!is_large)
            once.groups = 1;
        status = device_enqueue(device, &once, kernel, NULL, error);
        THEN(status, device_finish(device, error));
    }
    if (board)
        board->ahead_hash = 0;
    return status;
}

/* Builds, checks and enqueues a launch. Used where a launch is not repeated, as in the self-test.
 */
enum healcl_status device_launch(struct healcl_device *device, const struct launch *launch,
                                 struct healcl_error *error)
{
    if (launch->groups == 0)
        return HEALCL_OK;
    struct kernel *kernel;
    TRY(device_attach(device, launch, &kernel, error));
    return device_enqueue(device, launch, kernel, NULL, error);
}
