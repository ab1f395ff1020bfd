/*
 * A device that lies, preloaded (LD_PRELOAD): after launches it waits, and changes elements of
 * what they have written. The environment's LIES says which:
 *
 *     lane L W         every element of 8 bytes whose number is L modulo W, of all outputs
 *     lane_of K L W    the same of kernels whose name contains K
 *     modulus K J M    of kernels whose name contains K: elements whose number is J modulo M
 *     element K J M    of these elements one alone, another one each time
 *     rarely N         one launch in N: one element
 *     stuck O          byte O of the fourth launch's output has bit 3 set, always
 *
 * A kernel's output is its first buffer, but for short transforms the second one, after scratch
 * memory. LIES_AFTER: how many launches there are before the first lie. LIES_SEED draws other lies.
 * LIES_NAMES makes standard error get the name and the size of each output.
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 4096 };

static struct {
    cl_kernel kernel;
    cl_mem buffers[2]; /* arguments number 1 and 2, after the space */
} kernels[KERNELS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long launches, told, state;

static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

static size_t slot_of(cl_kernel kernel)
{
    size_t slot = ((size_t)kernel >> 4) % KERNELS;
    while (kernels[slot].kernel && kernels[slot].kernel != kernel)
        slot = (slot + 1) % KERNELS;
    kernels[slot].kernel = kernel;
    return slot;
}

typedef cl_int argument_function(cl_kernel, cl_uint, size_t, const void *);

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    static argument_function *set;
    if (!set)
        *(void **)&set = find("clSetKernelArg");
    cl_mem memory = NULL;
    if (value && size == sizeof memory)
        memcpy(&memory, value, sizeof memory);
    cl_mem_object_type type;
    pthread_mutex_lock(&lock);
    if (index == 1 || index == 2)
        kernels[slot_of(kernel)].buffers[index - 1] =
            memory && (size_t)memory > 4096 &&
                    clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, NULL) == CL_SUCCESS
                ? memory
                : NULL;
    pthread_mutex_unlock(&lock);
    return set(kernel, index, size, value);
}

static unsigned long long draw(void)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return state >> 33;
}

/* Changes the low bits: residues stay residues, nearly always. */
static void lie(const char *lies, const char *name, cl_mem memory, long long *elements,
                size_t count)
{
    char what[32] = "", kernel[64] = "";
    unsigned long long a = 0, b = 1;
    static cl_mem stuck;
    if (sscanf(lies, "lane %llu %llu", &a, &b) == 2 ||
        (sscanf(lies, "lane_of %63s %llu %llu", kernel, &a, &b) == 3 && strstr(name, kernel)) ||
        (sscanf(lies, "modulus %63s %llu %llu", kernel, &a, &b) == 3 && strstr(name, kernel))) {
        for (size_t i = a; i < count; i += b)
            elements[i] ^= 1;
    } else if (sscanf(lies, "element %63s %llu %llu", kernel, &a, &b) == 3 &&
               strstr(name, kernel)) {
        if (count > a)
            elements[draw() % ((count - a + b - 1) / b) * b + a] ^= 1;
    } else if (sscanf(lies, "rarely %llu", &a) == 1 && count > 0 && draw() % a == 0) {
        elements[draw() % count] ^= 1;
    } else if (sscanf(lies, "%31s %llu", what, &a) == 2 && strcmp(what, "stuck") == 0) {
        if (!stuck && told >= 3 && a < count * sizeof *elements)
            stuck = memory;
        if (stuck == memory)
            ((char *)elements)[a] |= 8;
        told++;
    }
}

typedef cl_int launch_function(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                               const size_t *, cl_uint, const cl_event *, cl_event *);

static void corrupt(cl_command_queue queue, cl_kernel kernel, const char *lies)
{
    char name[128] = "";
    size_t bytes = 0;
    if (clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) != CL_SUCCESS)
        return;
    pthread_mutex_lock(&lock);
    cl_mem memory = kernels[slot_of(kernel)].buffers[strstr(name, "ntt_whole") ? 1 : 0];
    pthread_mutex_unlock(&lock);
    if (!memory || clFinish(queue) != CL_SUCCESS ||
        clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL) != CL_SUCCESS)
        return;
    if (getenv("LIES_NAMES"))
        fprintf(stderr, "%s %zu\n", name, bytes);
    char *elements = malloc(bytes + 8);
    if (elements &&
        clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, bytes, elements, 0, NULL, NULL) == 0) {
        lie(lies, name, memory, (long long *)elements, bytes / 8);
        (void)clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, bytes, elements, 0, NULL, NULL);
    }
    free(elements);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    static launch_function *launch;
    const char *lies = getenv("LIES"), *after = getenv("LIES_AFTER"), *seed = getenv("LIES_SEED");
    if (!launch)
        *(void **)&launch = find("clEnqueueNDRangeKernel");
    if (state == 0)
        state = seed ? strtoull(seed, NULL, 10) + 1 : 1;
    const cl_int code =
        launch(queue, kernel, dimensions, offset, global, local, wait_count, wait, event);
    if (code == CL_SUCCESS && lies && launches++ >= (after ? strtoull(after, NULL, 10) : 0))
        corrupt(queue, kernel, lies);
    return code;
}
