/*
 * Tests open devices again and again, and each of them would build the same programs again: 36 ms
 * for one that is in PoCL's cache, 100 for another. These functions stand in front of OpenCL's:
 * healcl takes those that the process has. So in a process all contexts that healcl makes of a
 * device are one, and a program that was built there with the same texts and options stands for
 * those that are built later. Above that nothing changes: handles make, build and release programs
 * of their own, and tests count that.
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <xxhash.h>

typedef void(CL_CALLBACK *context_notify)(const char *, const void *, size_t, void *);
typedef void(CL_CALLBACK *program_notify)(cl_program, void *);

/* Begins a function of that name. OpenCL's own is next_NAME(). */
#define IN_FRONT_OF(type, function, parameters)          \
    static __typeof__(&function) next_##function(void)   \
    {                                                    \
        __typeof__(&function) next;                      \
        void *const found = dlsym(RTLD_NEXT, #function); \
        if (!found)                                      \
            abort();                                     \
        memcpy(&next, &found, sizeof next);              \
        return next;                                     \
    }                                                    \
    type CL_API_CALL function parameters

/* ---------------------------------------------------------------- what there is */

enum { CONTEXTS_MAX = 8, PROGRAMS_MAX = 4096 };

static struct {
    cl_device_id device;
    cl_context context;
} contexts[CONTEXTS_MAX];
static size_t context_count;

/* Programs that were built, which live as long as the process. */
static struct {
    uint64_t hash;
    cl_program id;
} built[PROGRAMS_MAX];
static size_t built_count;

/* Programs that were made of source. One that is made later may have the id of one that was
 * released. */
static struct made {
    cl_program id, stands_for; /* NULL: itself */
    uint64_t hash;             /* of its texts and context */
} made[PROGRAMS_MAX];
static size_t made_count;

static mtx_t lock;
static once_flag once = ONCE_FLAG_INIT;

static void make_lock(void)
{
    if (mtx_init(&lock, mtx_plain) != thrd_success)
        abort();
}

static void begin(void)
{
    call_once(&once, make_lock);
    mtx_lock(&lock);
}

static void end(void)
{
    mtx_unlock(&lock);
}

static struct made *find_made(cl_program id)
{
    for (size_t i = 0; i < made_count; i++)
        if (made[i].id == id)
            return &made[i];
    return NULL;
}

static void note_made(cl_program id, uint64_t hash)
{
    begin();
    struct made *program = find_made(id);
    if (!program && made_count < PROGRAMS_MAX)
        program = &made[made_count++];
    if (program)
        *program = (struct made){.id = id, .hash = hash};
    end();
}

/* The one that was built: itself, or another one like it. */
static cl_program stand_in(cl_program id)
{
    begin();
    const struct made *program = find_made(id);
    if (program && program->stands_for)
        id = program->stands_for;
    end();
    return id;
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
    return text ? XXH3_64bits_withSeed(text, strlen(text), seed) : seed;
}

/* ---------------------------------------------------------------- in front of OpenCL */

IN_FRONT_OF(cl_context, clCreateContext,
            (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
             context_notify notify, void *data, cl_int *code))
{
    begin();
    cl_context context = NULL;
    const bool shares = count == 1 && devices && !notify && properties; /* as healcl does */
    for (size_t i = 0; shares && i < context_count; i++)
        if (contexts[i].device == *devices)
            context = contexts[i].context;
    const bool found = context != NULL;
    if (found)
        *code = clRetainContext(context);
    else
        context = next_clCreateContext()(properties, count, devices, notify, data, code);
    if (!found && context && shares && context_count < CONTEXTS_MAX &&
        clRetainContext(context) == CL_SUCCESS) {
        contexts[context_count].device = *devices;
        contexts[context_count++].context = context;
    }
    end();
    return context;
}

IN_FRONT_OF(cl_program, clCreateProgramWithSource,
            (cl_context context, cl_uint count, const char **texts, const size_t *lengths,
             cl_int *code))
{
    cl_program id = next_clCreateProgramWithSource()(context, count, texts, lengths, code);
    uint64_t hash = XXH3_64bits(&context, sizeof context);
    for (cl_uint i = 0; i < count; i++)
        hash = lengths && lengths[i] ? XXH3_64bits_withSeed(texts[i], lengths[i], hash)
                                     : hash_text(texts[i], hash);
    if (id)
        note_made(id, hash);
    return id;
}

IN_FRONT_OF(cl_program, clCreateProgramWithBinary,
            (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
             const unsigned char **binaries, cl_int *codes, cl_int *code))
{
    cl_program id =
        next_clCreateProgramWithBinary()(context, count, devices, lengths, binaries, codes, code);
    if (id)
        note_made(id, 0); /* which stands for nothing */
    return id;
}

IN_FRONT_OF(cl_int, clBuildProgram,
            (cl_program id, cl_uint count, const cl_device_id *devices, const char *options,
             program_notify notify, void *data))
{
    begin();
    struct made *program = find_made(id);
    uint64_t hash = program ? program->hash : 0;
    if (count != 1 || notify)
        hash = 0;
    if (hash) {
        hash = hash_text(options, hash);
        hash = hash_text(getenv("POCL_EXTRA_BUILD_FLAGS"), hash);
        hash = XXH3_64bits_withSeed(devices, sizeof *devices, hash);
    }
    for (size_t i = 0; hash && i < built_count; i++)
        if (built[i].hash == hash) {
            program->stands_for = built[i].id;
            end();
            return CL_SUCCESS;
        }
    end();
    cl_int code = next_clBuildProgram()(id, count, devices, options, notify, data);
    begin();
    if (hash && code == CL_SUCCESS && built_count < PROGRAMS_MAX &&
        clRetainProgram(id) == CL_SUCCESS) {
        built[built_count].hash = hash;
        built[built_count++].id = id;
    }
    end();
    return code;
}

IN_FRONT_OF(cl_kernel, clCreateKernel, (cl_program id, const char *name, cl_int *code))
{
    return next_clCreateKernel()(stand_in(id), name, code);
}

IN_FRONT_OF(cl_int, clGetProgramInfo,
            (cl_program id, cl_program_info what, size_t size, void *value, size_t *needed))
{
    return next_clGetProgramInfo()(stand_in(id), what, size, value, needed);
}

IN_FRONT_OF(cl_int, clGetProgramBuildInfo,
            (cl_program id, cl_device_id device, cl_program_build_info what, size_t size,
             void *value, size_t *needed))
{
    return next_clGetProgramBuildInfo()(stand_in(id), device, what, size, value, needed);
}
