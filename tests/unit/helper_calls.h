/* Scripts of calls on random tensors, run on the program's one device and on the host reference. */
#ifndef HEALCL_TESTS_HELPER_CALLS_H
#define HEALCL_TESTS_HELPER_CALLS_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "helper_one_device.h"
#include "helper_script.h"
#include "tools/random.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

static struct random generator = {0x30fe5};

__attribute__((format(printf, 4, 5))) static inline void call(struct script *script,
                                                              const char *out,
                                                              const char *operation,
                                                              const char *format, ...)
{
    char arguments[256];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    script_call(script, out, operation, arguments);
}

/* Random values of any size and sign. */
static inline void upload(struct script *script, const char *name, enum dtype dtype, uint32_t rank,
                          const int64_t *shape)
{
    int64_t count = 1;
    for (uint32_t axis = 0; axis < rank; axis++)
        count *= shape[axis];
    int64_t *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = random_value(&generator, dtype);
    script_upload(script, name, dtype, rank, shape, values);
    free(values);
}

static inline void run(const struct script *script, struct executor *executor,
                       struct script_results *results, uint64_t *dropped)
{
    OK(script_run(script, executor, results, &error));
    *dropped = executor->dropped_digits;
    executor->class->destroy(executor);
}

/* Runs on both executors, and releases the script. */
static inline void expect_same(struct script *script, const char *what)
{
    struct script_results expected = {0}, results = {0};
    uint64_t expected_dropped, dropped;
    struct executor *executor;
    script_plan(script);
    OK(reference_executor_create(script->plan, &executor, &error));
    run(script, executor, &expected, &expected_dropped);
    OK(device_executor_create(device, script->plan, &executor, &error));
    run(script, executor, &results, &dropped);
    if (!script_same_results(&results, &expected))
        fail_msg("%s: other results", what);
    if (dropped != expected_dropped)
        fail_msg("%s: %" PRIu64 " values had digits dropped, not %" PRIu64, what, dropped,
                 expected_dropped);
    script_results_release(&expected);
    script_results_release(&results);
    script_release(script);
}

#endif
