/*
 * Checks of the arguments that manifests give to their kernels. A manifest may describe a kernel's
 * arguments wrongly. If it gives an integer for a pointer, a driver such as PoCL may crash. The
 * driver is therefore asked about each kernel's arguments before they are first set. Drivers report
 * arguments of programs built from source with -cl-kernel-arg-info, but perhaps not of binaries. A
 * binary is thus used only for the same arguments.
 */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "opencl/internal.h"

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

/* Writes "?" if the driver does not answer, or not with printable text. */
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

/* Bytes of a known integer type; 3 for a known type that is not an integer, because manifests give
 * nothing of this size; 0 for an unknown type. Drivers may write "unsigned int", "unsignedint" or
 * "uint". */
static size_t integer_bytes(const char *type)
{
    static const char *const prefixes[] = {"const ", "volatile ", "unsigned", "signed", " ", "u"};
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"char", 1},     {"short", 2}, {"int", 4},  {"long", 8},
                 {"long int", 8}, {"float", 3}, {"half", 3}, {"double", 3}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(type, prefixes[i], strlen(prefixes[i])) == 0)
            type += strlen(prefixes[i]);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].bytes;
    return 0;
}

/* Elements must have the size of the tensor's, signed or not, or be vectors of such elements. A
 * type that is not known may be anything. */
static bool takes_memory(cl_kernel_arg_address_qualifier address, const char *type, size_t bytes)
{
    char element[WORD_SIZE];
    snprintf(element, sizeof element, "%s", type);
    size_t length = strcspn(element, "*");
    while (length > 0 && strchr(" 0123456789", element[length - 1]))
        length--;
    element[length] = 0;
    const size_t known = integer_bytes(element);
    return (address == CL_KERNEL_ARG_ADDRESS_GLOBAL || address == CL_KERNEL_ARG_ADDRESS_CONSTANT) &&
           strncmp(type, "image", 5) != 0 && (known == 0 || known == bytes);
}

static bool takes_long(cl_kernel_arg_address_qualifier address, const char *type)
{
    const size_t bytes = integer_bytes(type);
    return address == CL_KERNEL_ARG_ADDRESS_PRIVATE && !strchr(type, '*') &&
           strcmp(type, "sampler_t") != 0 && (bytes == 0 || bytes == sizeof(cl_long));
}

enum { GIVEN_SIZE = 160 };

/* A description such as "the memory of 'a', int64" or "a long, 'size(a)'". */
static const char *given_text(const struct launch_argument *argument, char text[GIVEN_SIZE])
{
    const char *name = argument->name ? argument->name : "";
    if (argument->buffer)
        snprintf(text, GIVEN_SIZE, "the memory of '%.100s', int%zu", name, 8 * argument->size);
    else
        snprintf(text, GIVEN_SIZE, "a long, '%.120s'", name);
    return text;
}

static enum healcl_status wrong(struct healcl_device *device)
{
    device->programs->manifest_is_wrong = true;
    return HEALCL_REFUSED;
}

/* *told: whether the driver reports what the kernel expects. */
static enum healcl_status check_argument(struct healcl_device *device, cl_kernel id,
                                         const struct launch *launch, uint32_t i, bool *told,
                                         struct healcl_error *error)
{
    char type[WORD_SIZE], name[WORD_SIZE], given[GIVEN_SIZE];
    const struct launch_argument *argument = &launch->arguments[i];
    cl_kernel_arg_address_qualifier code = 0;
    const cl_int answer = device->cl->clGetKernelArgInfo(id, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                                         sizeof code, &code, NULL);
    const char *address = address_name(code);
    *told = answer == CL_SUCCESS && address;
    if (!*told)
        return HEALCL_OK;
    ask_word(device, id, i, CL_KERNEL_ARG_TYPE_NAME, type);
    if (argument->buffer ? takes_memory(code, type, argument->size) : takes_long(code, type))
        return HEALCL_OK;
    ask_word(device, id, i, CL_KERNEL_ARG_NAME, name);
    FAIL(error, wrong(device),
         "%s: kernel '%s' takes '%s%s %s' as argument %u, but the manifest gives %s",
         launch->manifest.file, launch->kernel, address, type, name, i + 1,
         given_text(argument, given));
}

uint64_t kernel_arguments_hash(const struct launch *launch)
{
    unsigned char memory_of[LAUNCH_ARGUMENTS_MAX]; /* bytes of an element; 0 for a long */
    if (!launch->source)
        return 0;
    for (uint32_t i = 0; i < launch->argument_count; i++)
        memory_of[i] = launch->arguments[i].buffer ? (unsigned char)launch->arguments[i].size : 0;
    return XXH3_64bits_withSeed(launch->kernel, strlen(launch->kernel),
                                XXH3_64bits(memory_of, launch->argument_count));
}

enum healcl_status kernel_check_arguments(struct healcl_device *device, struct kernel *kernel,
                                          const struct launch *launch, struct healcl_error *error)
{
    cl_uint count = launch->argument_count;
    bool told = device->cl->clGetKernelArgInfo != NULL;
    if (kernel->is_checked || kernel->program->loaded)
        return HEALCL_OK;
    kernel->program->may_be_cached = false;
    if (device->cl->clGetKernelInfo(kernel->id, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) !=
        CL_SUCCESS)
        told = false;
    else if (count != launch->argument_count)
        FAIL(error, wrong(device),
             "%s: kernel '%s' takes %u arguments, but the manifest gives %u, tensors' offsets and "
             "strides among them",
             launch->manifest.file, launch->kernel, count, launch->argument_count);
    for (uint32_t i = 0; told && i < count; i++)
        TRY(check_argument(device, kernel->id, launch, i, &told, error));
    if (!told && !device->programs->arguments_unknown) {
        device_log(device, "%s", ARGUMENTS_UNKNOWN);
        device->programs->arguments_unknown = true;
    }
    kernel->is_checked = kernel->program->may_be_cached = true;
    return HEALCL_OK;
}

enum healcl_status kernel_argument_refused(struct healcl_device *device,
                                           const struct launch *launch, uint32_t i, cl_int code,
                                           struct healcl_error *error)
{
    char given[GIVEN_SIZE];
    FAIL(error, wrong(device),
         "%s: kernel '%s' does not take argument %u as the manifest gives it, %s: %s",
         launch->manifest.file, launch->kernel, i + 1, given_text(&launch->arguments[i], given),
         opencl_error_name(code));
}
