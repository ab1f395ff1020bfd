/*
 * What the tests of src/reference share: tensors in memory of the reference's own, and steps built
 * by hand. Brings cmocka.
 */
#ifndef HEALCL_TEST_REFERENCE_FIXTURE_H
#define HEALCL_TEST_REFERENCE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/reference.h"

#define UNUSED __attribute__((unused))

__extension__ typedef __int128 wide;

enum { FIXTURE_STORAGES = 1024, FIXTURE_TENSORS = 4096 };

struct fixture {
    struct plan plan;
    struct reference *reference;
    struct healcl_error error;
    struct storage storages[FIXTURE_STORAGES];
    struct tensor tensors[FIXTURE_TENSORS];
    uint32_t tensor_count;
};

UNUSED static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->plan.storage_count = FIXTURE_STORAGES;
    assert_int_equal(reference_create(&f->plan, &f->reference, &f->error), HEALCL_OK);
    *state = f;
    return 0;
}

UNUSED static int teardown(void **state)
{
    struct fixture *f = *state;
    reference_free(f->reference);
    healcl_error_clear(&f->error);
    free(f);
    return 0;
}

/* Another view of a tensor's storage. */
UNUSED static struct tensor *view(struct fixture *f, const struct tensor *of, struct layout layout)
{
    assert_true(f->tensor_count < FIXTURE_TENSORS);
    struct tensor *tensor = &f->tensors[f->tensor_count++];
    tensor->storage = of->storage;
    tensor->layout = layout;
    return tensor;
}

/* A tensor in C order that is its whole storage, all 0. */
UNUSED static struct tensor *zeros(struct fixture *f, enum dtype dtype, uint32_t rank,
                                   const int64_t *shape)
{
    struct layout layout;
    assert_int_equal(layout_init(&layout, rank, shape, dtype_size(dtype), &f->error), HEALCL_OK);
    uint32_t id = 0;
    while (id < FIXTURE_STORAGES && f->storages[id].origin)
        id++;
    assert_true(id < FIXTURE_STORAGES);
    static const struct origin made = {.name = "test"};
    struct storage *storage = &f->storages[id];
    *storage = (struct storage){
        .id = id, .dtype = dtype, .elements = layout_elements(&layout), .origin = &made};
    struct tensor source = {.storage = storage};
    return view(f, &source, layout);
}

/* The C-order positions of a tensor get these values. */
UNUSED static void put(struct fixture *f, const struct tensor *tensor, const int64_t *values)
{
    void *bytes;
    assert_int_equal(reference_memory(f->reference, tensor->storage, &bytes, &f->error), HEALCL_OK);
    const struct layout *layouts[] = {&tensor->layout};
    struct walk walk;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk)) {
        assert_true(dtype_holds(tensor->storage->dtype, *values));
        dtype_store(tensor->storage->dtype, bytes, walk.position[0], *values++);
    }
}

UNUSED static struct tensor *filled(struct fixture *f, enum dtype dtype, uint32_t rank,
                                    const int64_t *shape, const int64_t *values)
{
    struct tensor *tensor = zeros(f, dtype, rank, shape);
    put(f, tensor, values);
    return tensor;
}

/* The elements of a tensor in C order. */
UNUSED static void get(struct fixture *f, const struct tensor *tensor, int64_t *values)
{
    int64_t count = layout_elements(&tensor->layout);
    void *packed = malloc((size_t)count * 8 + 1);
    assert_non_null(packed);
    assert_int_equal(reference_read(f->reference, tensor, packed, &f->error), HEALCL_OK);
    for (int64_t i = 0; i < count; i++)
        values[i] = dtype_load(tensor->storage->dtype, packed, i);
    free(packed);
}

UNUSED static void expect(struct fixture *f, const struct tensor *tensor, const int64_t *values)
{
    int64_t count = layout_elements(&tensor->layout);
    int64_t *got = malloc((size_t)count * sizeof *got + 1);
    assert_non_null(got);
    get(f, tensor, got);
    for (int64_t i = 0; i < count; i++)
        if (got[i] != values[i])
            fail_msg("element %lld is %lld, not %lld", (long long)i, (long long)got[i],
                     (long long)values[i]);
    free(got);
}

/* Shapes and values as literals: SHAPE(2, 3) is the rank and the sizes. */
#define VALUES(...) ((const int64_t[]){__VA_ARGS__})
#define SHAPE(...) \
    (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), VALUES(__VA_ARGS__)

/* The form of an operation with that many parameters, for the names of arguments. */
UNUSED static const struct form *form_named(const char *name, uint32_t parameters)
{
    for (size_t i = 0; i < form_count; i++)
        if (strcmp(forms[i].name, name) == 0 && forms[i].parameter_count == parameters)
            return &forms[i];
    fail_msg("no form %s", name);
    return NULL;
}

UNUSED static struct step new_step(enum step_kind kind, const struct form *form,
                                   const struct tensor *out)
{
    static struct {
        struct origins origins;
        struct origin origin;
    } pool[64]; /* more than a test has steps at a time */
    static int next;
    next = (next + 1) % 64;
    struct origin *origin = &pool[next].origin;
    struct origins *origins = &pool[next].origins;
    *origin = (struct origin){.name = form ? form->name : "", .form = form};
    *origins = (struct origins){.count = 1, .of = origin};
    return (struct step){.kind = kind, .origins = origins, .out = out};
}

/* Input i of a step is a tensor, given as that parameter of its form. */
UNUSED static void set_input(struct step *step, int i, const char *parameter,
                             const struct tensor *tensor)
{
    step->in[i] = tensor;
    const struct form *form = step->origins->of->form;
    if (form) {
        int index = form_parameter(form, parameter);
        assert_true(index >= 0);
        step->arguments[i].parameter = (uint8_t)index;
    }
}

UNUSED static void run_step(struct fixture *f, const struct step *step)
{
    if (reference_step(f->reference, step, &f->error) != HEALCL_OK)
        fail_msg("refused: %s", f->error.message);
}

UNUSED static void expect_refusal(struct fixture *f, const struct step *step, const char *message)
{
    assert_int_equal(reference_step(f->reference, step, &f->error), HEALCL_REFUSED);
    assert_string_equal(f->error.message, message);
}

/* splitmix64 (Steele, Lea and Flood, 2014): a fixed sequence for each seed. */
UNUSED static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Any value of a dtype, the extremes often. */
UNUSED static int64_t random_value(uint64_t *state, enum dtype dtype)
{
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MIN + 1};
    uint64_t bits = random_bits(state);
    int64_t value = (int64_t)random_bits(state);
    if (bits % 8 < 6)
        value >>= bits / 8 % 64;
    else
        value = extremes[bits / 8 % 6];
    switch (dtype) {
    case DTYPE_INT8: return (int8_t)value;
    case DTYPE_INT32: return (int32_t)value;
    case DTYPE_INT64: break;
    }
    return value;
}

/* Slow modular arithmetic that shares nothing with the reference's: for x, y in [0, q). */
UNUSED static int64_t slow_add(int64_t x, int64_t y, int64_t q)
{
    return (int64_t)(((wide)x + y) % q);
}

UNUSED static int64_t slow_multiply(int64_t x, int64_t y, int64_t q)
{
    int64_t product = 0;
    for (int bit = 62; bit >= 0; bit--) {
        product = slow_add(product, product, q);
        if (y >> bit & 1)
            product = slow_add(product, x, q);
    }
    return product;
}

UNUSED static int64_t slow_power(int64_t x, int64_t exponent, int64_t q)
{
    int64_t power = 1 % q;
    for (int bit = 62; bit >= 0; bit--) {
        power = slow_multiply(power, power, q);
        if (exponent >> bit & 1)
            power = slow_multiply(power, x, q);
    }
    return power;
}

UNUSED static int64_t slow_reduce(int64_t x, int64_t q)
{
    int64_t remainder = x % q;
    return remainder < 0 ? remainder + q : remainder;
}

#endif
