/*
 * What a call costs above clSetKernelArg and clEnqueueNDRangeKernel of the same kernels, for some
 * operations: overhead [DEVICE [ROUNDS [OPS]]]. OPS: a folder with the manifest of key_switch,
 * which is called too.
 */
#include <healcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "opencl_calls.h"

enum { CALLS = 200, ROUNDS = 100, ROWS = 4, COLUMNS = 4, ARGUMENTS = 11 };

static struct healcl_error error;
static struct healcl_queue *queue;

static void need(enum healcl_status status)
{
    if (status == HEALCL_OK)
        return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static double microseconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct healcl_argument create(uint32_t rank, const int64_t *shape, const int64_t *data)
{
    struct healcl_tensor *tensor = NULL;
    need(healcl_tensor_create(queue, HEALCL_INT64, rank, shape, data, &tensor, &error));
    return healcl_tensor_argument(tensor);
}

struct call {
    const char *title, *operation;
    size_t count;
    struct healcl_argument arguments[ARGUMENTS];
    bool makes; /* a tensor, which is released at once */
};

static void repeat(const struct call *call)
{
    for (int i = 0; i < CALLS; i++) {
        struct healcl_tensor *made = NULL;
        need(healcl_call(queue, call->operation, call->count, call->arguments,
                         call->makes ? &made : NULL, &error));
        healcl_tensor_release(made);
    }
}

/* Prints the figures of a call. */
static void measure(const struct call *call, int rounds)
{
    double *above = calloc((size_t)rounds, sizeof *above);
    double *inside = calloc((size_t)rounds, sizeof *inside);
    unsigned long long launches = 0;
    for (int round = 0; above && inside && round < rounds; round++) {
        need(healcl_queue_wait(queue, &error));
        unsigned long long before = opencl_calls.nanoseconds, first = opencl_calls.launches;
        double start = microseconds(CLOCK_MONOTONIC);
        repeat(call);
        double taken = microseconds(CLOCK_MONOTONIC) - start;
        inside[round] = (double)(opencl_calls.nanoseconds - before) / 1e3 / CALLS;
        above[round] = taken / CALLS - inside[round];
        launches = opencl_calls.launches - first;
    }
    if (!above || !inside)
        exit(1);
    qsort(above, (size_t)rounds, sizeof *above, compare);
    qsort(inside, (size_t)rounds, sizeof *inside, compare);
    printf("%-34s %6.2f %10.2f %10.2f %15.2f\n", call->title, (double)launches / CALLS, above[0],
           above[rounds / 2], inside[rounds / 2]);
    free(above);
    free(inside);
}

int main(int argc, char **argv)
{
    struct healcl_device *device = NULL;
    int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    need(healcl_device_open(argc > 1 ? argv[1] : NULL, &device, &error));
    struct healcl_operations *loaded = NULL;
    if (argc > 3)
        need(healcl_operations_load(argv[3], &loaded, &error));
    const struct healcl_limits limits = {.operations = loaded};
    need(healcl_queue_open(device, &limits, &queue, &error));
    int64_t values[ROWS * COLUMNS], moduli[COLUMNS] = {97, 97, 193, 193};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = i * i + 1;
    const int64_t flat[1] = {ROWS * COLUMNS}, shape[2] = {ROWS, COLUMNS};
    struct healcl_argument a = create(2, shape, values), b = create(2, shape, values);
    struct healcl_argument q = create(1, shape + 1, moduli), out = create(2, shape, NULL);
    struct healcl_argument sum = create(1, shape + 1, NULL);
    /* A transform of rows of length 4: 22 is a 4th root of 1 modulo 97. */
    const int64_t one[1] = {1}, row[2] = {1, COLUMNS}, rows[4] = {ROWS, COLUMNS, 1, 1};
    struct healcl_argument p = create(1, one, moduli),
                           psi = create(2, row, (int64_t[]){1, 22, 33, 47});
    struct healcl_argument perm = create(1, shape + 1, (int64_t[]){0, 2, 1, 3});
    struct healcl_argument indices = create(2, shape, (int64_t[ROWS * COLUMNS]){3, 2, 1});
    struct healcl_argument x = create(4, rows, values), y = create(4, rows, NULL);
    struct healcl_argument digits = create(1, shape + 1, values), switched = create(2, row, NULL);
    struct healcl_argument key = create(3, (int64_t[]){1, 1, COLUMNS}, values);
    const struct healcl_argument none = healcl_no_argument(), zero = healcl_int_argument(0);
    const struct healcl_argument five = healcl_int_argument(5), prime = healcl_int_argument(97);
    const struct healcl_index index[2] = {
        {.kind = HEALCL_INDEX_ELLIPSIS},
        {.kind = HEALCL_INDEX_SLICE, .has_start = true, .start = 1, .has_step = true, .step = 2}};
    const struct call calls[] = {
        {"modmul of tensors", "modmul", 4, {a, b, q, out}, false},
        {"modmul with two integers", "modmul", 4, {a, five, prime, out}, false},
        {"modsum with two integers", "modsum", 4, {a, five, prime, out}, false},
        {"modsum in place", "modsum", 4, {out, a, q, out}, false},
        {"axis_modsum", "axis_modsum", 4, {a, zero, q, sum}, false},
        {"take_along_axis", "take_along_axis", 4, {a, indices, healcl_int_argument(1), out}, false},
        {"ntt",
         "ntt",
         11,
         {x, healcl_int_argument(-3), perm, none, p, none, none, psi, y, zero, zero},
         false},
        {"reshape, released", "reshape", 2, {a, healcl_shape_argument(1, flat)}, true},
        {"get_slice, released", "get_slice", 2, {a, healcl_index_argument(2, index)}, true},
        {"zeros, released",
         "zeros",
         2,
         {healcl_shape_argument(2, shape), healcl_dtype_argument(HEALCL_INT64)},
         true},
        {"key_switch, of a manifest",
         "key_switch",
         6,
         {digits, key, p, psi, five, switched},
         false},
    };
    const size_t built_in = sizeof calls / sizeof *calls - 1, count = built_in + (loaded ? 1 : 0);
    printf("microseconds a call %20s %10s %10s %15s\n", "launches", "smallest", "median",
           "OpenCL's, median");
    for (size_t i = 0; i < count; i++) {
        repeat(&calls[i]); /* kernels are built, and run for the first time */
        measure(&calls[i], rounds);
    }
    healcl_queue_close(queue);
    healcl_device_close(device);
    healcl_operations_free(loaded);
    healcl_error_clear(&error);
    return 0;
}
