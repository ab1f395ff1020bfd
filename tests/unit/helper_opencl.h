/*
 * OpenCL as tests want it: the loader's functions, with every call counted, every object's life
 * followed, and one call (or every one from it on) made to fail.
 */
#ifndef HEALCL_TESTS_HELPER_OPENCL_H
#define HEALCL_TESTS_HELPER_OPENCL_H

#include "opencl/opencl.h"

enum opencl_call {
#define HELPER_CALL(function) CALL_##function,
    OPENCL_FUNCTIONS(HELPER_CALL)
#undef HELPER_CALL
        CALL_COUNT
};

struct helper_opencl {
    /* The calls that can fail are numbered from 1; those that release something always work. */
    uint64_t fail_at; /* 0: none */
    bool fail_after;  /* also every call after that one, as when a device is lost */
    bool skips_polls; /* clGetEventInfo has no number: how often it is called depends on times */
    cl_int fail_code;
    uint64_t calls;     /* so far, of those that can fail */
    const char *failed; /* the first function that was made to fail, or NULL */
    uint64_t count[CALL_COUNT];
    long contexts, queues, programs, kernels, buffers, events, maps; /* alive */
};

extern struct helper_opencl helper;
extern const struct opencl helper_opencl;

/* The loader's own functions, but there is one platform alone, as for helper_opencl too: tests hold
 * whatever else is installed. It is the one whose name contains the environment's
 * HEALCL_TEST_PLATFORM; without it PoCL, else the first one with a CPU, else the first with a
 * device. Forgets HEALCL_DEVICE, which may name another. */
const struct opencl *helper_loader(void);

/* Like helper_opencl, but event times do not advance, as with rusticl. */
struct opencl helper_opencl_without_times(void);

/* Like helper_opencl, but barriers and markers have no times, as with NVIDIA's driver. */
struct opencl helper_opencl_without_barrier_times(void);

/* Forgets everything; nothing fails. */
void helper_reset(void);

/* Whether no object is alive. Prints what is. */
bool helper_balanced(void);

#endif
