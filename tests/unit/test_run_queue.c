/* Operations by call, on the device and on the host reference. */
#include "helper_queue_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "plan/eager.h"

static const int64_t shape[2] = {3, 4};
static const int64_t values[12] = {5, -6, INT64_MAX, 8, 9, 10, 11, -12, 13, 14, 15, INT64_MIN};

static void calls_operations_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on);
    const int64_t q = INT64_C(4611686018427387847);
    int64_t got[12];
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values);
    struct healcl_tensor *out = create_tensor(queue, 2, shape, NULL), *view = NULL;
    OK(healcl_tensor_read(a, got, sizeof got, &error));
    assert_memory_equal(got, values, sizeof got);
    OK(healcl_tensor_read(out, got, sizeof got, &error));
    for (int i = 0; i < 12; i++)
        assert_int_equal(got[i], 0);
    OK(CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), INT(q), TENSOR(out)));
    OK(CALL(queue, "_modsum_ttc", &view, TENSOR(out), TENSOR(a), INT(97), TENSOR(out)));
    OK(healcl_tensor_read(view, got, sizeof got, &error));
    for (int i = 0; i < 12; i++) {
        __extension__ typedef __int128 wide;
        wide square = (wide)values[i] * values[i] % q;
        assert_int_equal(got[i], (int64_t)((square + values[i]) % 97));
    }
    healcl_tensor_release(view);
    /* An out that is left out is made. */
    struct healcl_tensor *made = NULL;
    OK(CALL(queue, "modmul", &made, TENSOR(a), TENSOR(a), INT(q), healcl_no_argument()));
    OK(CALL(queue, "_modsum_ttc", &view, TENSOR(made), TENSOR(a), INT(97), healcl_no_argument()));
    int64_t same[12];
    OK(healcl_tensor_read(view, same, sizeof same, &error));
    OK(healcl_tensor_read(out, got, sizeof got, &error));
    assert_memory_equal(same, got, sizeof got);
    healcl_tensor_release(view);
    healcl_tensor_release(made);
    /* Views share memory, and outlive what they view. */
    struct healcl_index index[2] = {
        {.kind = HEALCL_INDEX_ELLIPSIS},
        {.kind = HEALCL_INDEX_SLICE, .has_start = true, .start = 1, .has_step = true, .step = 2}};
    struct healcl_tensor *columns = NULL, *transposed = NULL;
    OK(CALL(queue, "get_slice", &columns, TENSOR(a), healcl_index_argument(2, index)));
    OK(CALL(queue, "moveaxis", &transposed, TENSOR(columns), INT(0), INT(1)));
    healcl_tensor_release(a);
    healcl_tensor_release(columns);
    struct healcl_tensor_info info = healcl_tensor_describe(transposed);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.shape[0], 2);
    assert_int_equal(info.shape[1], 3);
    assert_int_equal(info.bytes, 48);
    OK(healcl_tensor_read(transposed, got, 48, &error));
    const int64_t expected[6] = {-6, 10, 14, 8, -12, INT64_MIN};
    assert_memory_equal(got, expected, sizeof expected);
    healcl_tensor_release(transposed);
    healcl_tensor_release(out);
    close_queue(queue);
}
ON_BOTH(calls_operations)

static void refuses_wrong_calls_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on), *other = open_queue(on);
    int64_t got[12];
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values);
    struct healcl_tensor *foreign = create_tensor(other, 2, shape, values), *made = a;
#define REFUSED(text, call)                       \
    do {                                          \
        assert_int_equal(call, HEALCL_REFUSED);   \
        assert_string_equal(error.message, text); \
    } while (0)
    REFUSED("call 1 (nonsense): unknown operation", CALL(queue, "nonsense", &made, TENSOR(a)));
    assert_null(made);
    REFUSED("call 1 (modmul): takes 4 arguments, not 1", CALL(queue, "modmul", NULL, TENSOR(a)));
    REFUSED("call 1 (moveaxis): argument 'from': axis 2 is outside of rank 2",
            CALL(queue, "moveaxis", NULL, TENSOR(a), INT(2), INT(0)));
    REFUSED("call 1 (modmul): argument 'p': modulus 0 is not positive",
            CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), INT(0), TENSOR(a)));
    REFUSED("call 1 (set_const_val): argument 'a': must be a tensor to write, not NONE",
            CALL(queue, "set_const_val", NULL, healcl_no_argument(), INT(7)));
    REFUSED("call 1 (apply_g_decomp): argument 'g_exp': -1 is negative",
            CALL(queue, "apply_g_decomp", NULL, TENSOR(a), INT(-1), INT(4), healcl_no_argument()));
    assert_int_equal(CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(foreign), INT(7), TENSOR(a)),
                     HEALCL_USAGE);
    assert_string_equal(error.message,
                        "call 1 (modmul): argument 2: the tensor belongs to another queue");
    assert_int_equal(CALL(queue, "free_device_tensor", NULL, TENSOR(a)), HEALCL_USAGE);
    assert_int_equal(CALL(queue, "modmul", NULL, TENSOR(NULL), INT(1)), HEALCL_USAGE);
    assert_int_equal(
        healcl_call(queue, "modmul", 999, (struct healcl_argument[]){INT(1)}, NULL, &error),
        HEALCL_REFUSED);
    assert_int_equal(healcl_tensor_read(a, got, 8, &error), HEALCL_USAGE);
    assert_int_equal(healcl_tensor_read(a, NULL, sizeof got, &error), HEALCL_USAGE);
    assert_int_equal(healcl_tensor_create(queue, HEALCL_INT64, 2, (int64_t[]){INT64_MAX, 2}, values,
                                          &made, &error),
                     HEALCL_REFUSED);
    assert_int_equal(
        healcl_tensor_create(queue, HEALCL_INT64, 1, (int64_t[]){-1}, NULL, &made, &error),
        HEALCL_REFUSED);
    assert_int_equal(
        healcl_tensor_create(queue, HEALCL_INT64, 99, (int64_t[99]){1}, NULL, &made, &error),
        HEALCL_REFUSED);
    assert_int_equal(
        healcl_tensor_create(queue, (enum healcl_dtype)9, 2, shape, values, &made, &error),
        HEALCL_USAGE);
    OK(healcl_tensor_read(a, got, sizeof got, &error)); /* nothing has happened to it */
    assert_memory_equal(got, values, sizeof got);
    close_queue(queue); /* with a tensor left */
    healcl_tensor_release(foreign);
    close_queue(other);
}
ON_BOTH(refuses_wrong_calls)

/* A data error belongs to the next wait, or on the reference to the call, once. */
static void names_the_call_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on);
    const int64_t sizes[1] = {4};
    int64_t got[4];
    struct healcl_tensor *a = create_tensor(queue, 1, sizes, (int64_t[]){1, 2, 3, 4});
    struct healcl_tensor *good = create_tensor(queue, 1, sizes, (int64_t[]){3, 2, 1, 0});
    struct healcl_tensor *bad = create_tensor(queue, 1, sizes, (int64_t[]){0, 1, 4, 2});
    struct healcl_tensor *out = create_tensor(queue, 1, sizes, NULL);
    for (int i = 0; i < 2; i++) {
        OK(CALL(queue, "take_along_axis", NULL, TENSOR(a), TENSOR(good), INT(0), TENSOR(out)));
        enum healcl_status status =
            CALL(queue, "take_along_axis", NULL, TENSOR(a), TENSOR(bad), INT(0), TENSOR(out));
        if (status == HEALCL_OK)
            status = healcl_queue_wait(queue, &error);
        assert_int_equal(status, HEALCL_REFUSED);
        char text[120];
        snprintf(text, sizeof text,
                 "call %d (take_along_axis): argument 'idx': 4 at [2] is outside of axis 0 of "
                 "size 4",
                 i == 0 ? 5 : 8);
        assert_string_equal(error.message, text);
        OK(healcl_queue_wait(queue, &error));
        OK(CALL(queue, "take_along_axis", NULL, TENSOR(a), TENSOR(good), INT(0), TENSOR(out)));
        OK(healcl_queue_wait(queue, &error));
    }
    OK(healcl_tensor_read(out, got, sizeof got, &error));
    assert_memory_equal(got, ((int64_t[]){4, 3, 2, 1}), sizeof got);
    if (!on)
        goto end;
    /* The next wait reports it if a release had to wait. */
    struct healcl_tensor *tensors[EAGER_STEPS_MAX];
    for (int i = 0; i < EAGER_STEPS_MAX; i++)
        tensors[i] = create_tensor(queue, 0, NULL, NULL);
    OK(healcl_queue_wait(queue, &error));
    OK(CALL(queue, "take_along_axis", NULL, TENSOR(a), TENSOR(bad), INT(0), TENSOR(out)));
    for (int i = 0; i < EAGER_STEPS_MAX; i++)
        healcl_tensor_release(tensors[i]);
    assert_int_equal(healcl_queue_wait(queue, &error), HEALCL_REFUSED);
    assert_non_null(strstr(error.message, "(take_along_axis): argument 'idx': 4 at [2]"));
    OK(healcl_queue_wait(queue, &error));
end:
    close_queue(queue);
}
ON_BOTH(names_the_call)

/* A failing call frees what it has made beside its result; a larger tensor can take that place. */
static void frees_what_fails_on(struct healcl_device *on)
{
    enum { LARGE = 5000 };
    static int64_t data[LARGE], got[LARGE];
    struct healcl_queue *queue = open_queue(on);
    const int64_t sizes[1] = {4}, larger[1] = {LARGE};
    struct healcl_tensor *a = create_tensor(queue, 1, sizes, values);
    struct healcl_tensor *bad = create_tensor(queue, 1, sizes, (int64_t[]){0, 1, 4, 2});
    for (int i = 0; i < LARGE; i++)
        data[i] = i - 7;
    enum healcl_status status = /* copies a first */
        CALL(queue, "take_along_axis", NULL, TENSOR(a), TENSOR(bad), INT(0), TENSOR(a));
    if (status == HEALCL_OK)
        status = healcl_queue_wait(queue, &error);
    assert_int_equal(status, HEALCL_REFUSED);
    for (int i = 0; i < 4; i++) {
        struct healcl_tensor *tensor = create_tensor(queue, 1, larger, i % 2 ? data : NULL);
        OK(CALL(queue, "modsum", NULL, TENSOR(tensor), INT(i), INT(1000003), TENSOR(tensor)));
        OK(healcl_tensor_read(tensor, got, sizeof got, &error));
        for (int e = 0; e < LARGE; e++)
            assert_int_equal(got[e], (i % 2 ? data[e] : 0) + i);
    }
    close_queue(queue);
}
ON_BOTH(frees_what_fails)

/* More steps, different integers and tensors than fit at one time. */
static void goes_on_for_long_on(struct healcl_device *on)
{
    enum { CALLS = 3 * EAGER_STEPS_MAX };
    struct healcl_queue *queue = open_queue(on);
    int64_t got[12], expected[12];
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values), *kept = NULL;
    memcpy(expected, values, sizeof expected);
    for (int i = 0; i < CALLS; i++) {
        struct healcl_tensor *made = NULL;
        const int64_t q = 1000003 + i, more = i % 1000; /* integers come again, others do not */
        OK(CALL(queue, "zeros", &made, healcl_shape_argument(2, shape),
                healcl_dtype_argument(HEALCL_INT64)));
        OK(CALL(queue, "modsum", NULL, TENSOR(a), INT(more), INT(q), TENSOR(made)));
        healcl_tensor_release(a);
        a = made;
        for (int e = 0; e < 12; e++) {
            __extension__ typedef __int128 wide;
            expected[e] = (int64_t)(((wide)expected[e] + more) % q);
        }
        if (i == CALLS / 2)
            OK(CALL(queue, "contiguous", &kept, TENSOR(a)));
    }
    OK(healcl_tensor_read(a, got, sizeof got, &error));
    assert_memory_equal(got, expected, sizeof got);
    healcl_tensor_release(kept);
    healcl_tensor_release(a);
    close_queue(queue);
}
ON_BOTH(goes_on_for_long)

static void refuses_too_many_tensors(void **state)
{
    (void)state;
    struct healcl_queue *queue = open_queue(NULL);
    struct healcl_tensor *tensor = NULL;
    const int64_t sizes[1] = {1};
    enum healcl_status status = HEALCL_OK;
    int made = 0;
    for (; status == HEALCL_OK; made++)
        status = healcl_tensor_create(queue, HEALCL_INT8, 1, sizes, NULL, &tensor, &error);
    assert_int_equal(status, HEALCL_REFUSED);
    assert_int_equal(made, EAGER_STORAGES_MAX); /* the integers have one */
    assert_non_null(strstr(error.message, "too many tensors are in use"));
    close_queue(queue);
    OK(healcl_queue_open(NULL, &(struct healcl_plan_options){.memory_limit = 1000}, &queue,
                         &error));
    OK(healcl_tensor_create(queue, HEALCL_INT8, 1, (int64_t[]){900}, NULL, &tensor, &error));
    struct healcl_tensor *second = NULL;
    assert_int_equal(
        healcl_tensor_create(queue, HEALCL_INT8, 1, (int64_t[]){900}, NULL, &second, &error),
        HEALCL_REFUSED);
    healcl_tensor_release(tensor);
    OK(healcl_tensor_create(queue, HEALCL_INT8, 1, (int64_t[]){900}, NULL, &second, &error));
    close_queue(queue);
}

static void reshapes(void **state)
{
    (void)state;
    struct healcl_queue *queue = open_queue(device);
    struct healcl_tensor *a = create_tensor(queue, 2, shape, values), *made = NULL;
    OK(healcl_call(queue, "reshape", 2,
                   (struct healcl_argument[]){TENSOR(a), healcl_shape_argument(1, (int64_t[]){-1})},
                   &made, &error));
    assert_int_equal(healcl_tensor_describe(made).shape[0], 12);
    close_queue(queue);
}

/* Operations are described by the same data that checks calls. */
static void describes_operations(void **state)
{
    (void)state;
    struct healcl_operation_info info;
    size_t number = 0, listed_forms = 0;
    for (; healcl_operation_describe(NULL, number, &info); number++) {
        assert_string_equal(info.name, operations[number].name);
        assert_string_equal(info.family, operations[number].family);
        assert_string_equal(info.meaning, operations[number].meaning);
        assert_int_equal(info.dtypes, operations[number].dtypes.values);
        assert_null(info.manifest);
        assert_true(info.form_count > 0);
        for (uint32_t i = 0; i < info.form_count; i++, listed_forms++) {
            const struct form *form = &forms[listed_forms];
            assert_ptr_equal(form->operation, &operations[number]);
            assert_string_equal(info.forms[i].name, form->name);
            assert_int_equal(info.forms[i].parameter_count, form->parameter_count);
            for (uint32_t j = 0; j < form->parameter_count; j++) {
                const struct healcl_parameter_info *parameter = &info.forms[i].parameters[j];
                const uint32_t accepted = parameter_traits[parameter->kind].accepted;
                assert_string_equal(parameter->name, form->parameters[j].name);
                assert_int_equal(parameter->kind, form->parameters[j].kind);
                assert_int_equal(parameter->optional, accepted >> ARGUMENT_NONE & 1);
            }
        }
    }
    assert_int_equal(number, OPERATION_COUNT);
    assert_int_equal(listed_forms, form_count);
    assert_true(healcl_operation_describe(NULL, OPERATION_NTT, &info));
    assert_string_equal(info.other, "a");
    assert_int_equal(info.other_dtypes, 1u << HEALCL_INT8);
    assert_false(healcl_operation_describe(NULL, SIZE_MAX, &info));
    assert_false(healcl_operation_describe(NULL, 0, NULL));
}

/* ---------------------------------------------------------------- equal calls with other values */

enum { ROWS = 8, N = 1024, K = 2, ELEMENTS = ROWS * N * K, SUMS = N * K, FEW = 2 };

static const int64_t below_62 = (INT64_C(1) << 61) - 1, above_62 = (INT64_C(1) << 62) + 1;

/* What differs between rounds of the same calls. */
struct round {
    int64_t q[K];      /* kernels are chosen by whether they are below 2^60 and 2^62 */
    int64_t index;     /* the largest of two */
    int64_t base_bits; /* of digits */
    int64_t factor, modulus;
};

struct answers {
    int64_t transformed[ELEMENTS], products[SUMS], few[FEW], digits[3 * FEW], scaled[ELEMENTS];
};

static enum healcl_status call_all(struct healcl_queue *queue, const struct round *round,
                                   struct answers *answers)
{
    static int64_t elements[ELEMENTS], weights[ELEMENTS], psi[K * N];
    const struct healcl_argument none = healcl_no_argument(), zero = INT(0);
    struct healcl_tensor *out = NULL, *view = NULL, *line = NULL, *digits = NULL, *scaled = NULL;
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        /* Half of the sums are the largest that kernels for moduli below 2^62 add in two words. */
        const bool is_large = i / (ROWS * K) % 2;
        elements[i] = is_large ? below_62 * 2 - 1 : (int64_t)(i * 0x9e3779b97f4a7c15);
        weights[i] = is_large ? below_62 * 2 - 1 : elements[i] ^ elements[i / 2];
    }
    for (uint64_t i = 0; i < K * N; i++)
        psi[i] = elements[i] & INT64_MAX;
    struct healcl_tensor *a = create_tensor(queue, 4, (const int64_t[]){ROWS, N, 1, K}, elements);
    struct healcl_tensor *b = create_tensor(queue, 3, (const int64_t[]){N, ROWS, K}, weights);
    struct healcl_tensor *q = create_tensor(queue, 1, (const int64_t[]){K}, round->q);
    struct healcl_tensor *twiddles = create_tensor(queue, 2, (const int64_t[]){K, N}, psi);
    struct healcl_tensor *idx =
        create_tensor(queue, 1, (const int64_t[]){FEW}, (const int64_t[]){round->index, -1});
    struct healcl_tensor *few = create_tensor(queue, 1, (const int64_t[]){FEW}, NULL);
    struct healcl_tensor *sums = create_tensor(queue, 3, (const int64_t[]){1, N, K}, NULL);
    OK(CALL(queue, "ntt", &out, TENSOR(a), none, none, TENSOR(q), TENSOR(twiddles), none, zero,
            INT(1)));
    OK(CALL(queue, "reshape", &view, TENSOR(a),
            healcl_shape_argument(4, (const int64_t[]){1, N, ROWS, K})));
    OK(CALL(queue, "modmul_axis_sum", NULL, TENSOR(view), TENSOR(b), TENSOR(q), TENSOR(sums),
            INT(-3)));
    OK(CALL(queue, "reshape", &line, TENSOR(a),
            healcl_shape_argument(1, (const int64_t[]){ELEMENTS})));
    enum healcl_status status =
        CALL(queue, "take_along_axis", NULL, TENSOR(line), TENSOR(idx), zero, TENSOR(few));
    OK(CALL(queue, "apply_g_decomp", &digits, TENSOR(few), INT(3), INT(round->base_bits), none));
    OK(CALL(queue, "modmul", &scaled, TENSOR(a), INT(round->factor), INT(round->modulus), none));
    if (status == HEALCL_OK)
        status = healcl_queue_wait(queue, &error);
    const struct {
        struct healcl_tensor *tensor;
        int64_t *to;
        size_t bytes;
    } reads[] = {{out, answers->transformed, sizeof answers->transformed},
                 {sums, answers->products, sizeof answers->products},
                 {few, answers->few, sizeof answers->few},
                 {digits, answers->digits, sizeof answers->digits},
                 {scaled, answers->scaled, sizeof answers->scaled}};
    for (size_t i = 0; status == HEALCL_OK && i < sizeof reads / sizeof *reads; i++)
        OK(healcl_tensor_read(reads[i].tensor, reads[i].to, reads[i].bytes, &error));
    struct healcl_tensor *all[] = {a,    b,   q,    twiddles, idx,    few,
                                   sums, out, view, line,     digits, scaled};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        healcl_tensor_release(all[i]);
    return status;
}

/* Runs a test on the device as a GPU, with transforms in two passes. */
static void with_gpu(void (*test)(struct healcl_device *))
{
    struct healcl_device *gpu;
    setenv("HEALCL_AS", "gpu", 1);
    setenv("HEALCL_TUNING", "transform_tile=256", 1);
    OK(device_open(helper_loader(), NULL, &gpu, &error));
    unsetenv("HEALCL_AS");
    unsetenv("HEALCL_TUNING");
    test(gpu);
    healcl_device_close(gpu);
}

/* Whatever is kept of a call, another one like it takes its own integers and contents. */
static void calls_take_their_own_values_on(struct healcl_device *gpu)
{
    static const struct round rounds[] = {{{12289, 40961}, 5, 4, 3, 97},
                                          {{12289, below_62}, 5, 4, 3, 101},
                                          {{INT64_MAX, above_62}, ELEMENTS - 1, 4, 5, 101},
                                          {{40961, 257}, ELEMENTS, 7, below_62, above_62},
                                          {{40961, 257}, 0, 7, below_62, INT64_MAX},
                                          {{below_62, above_62}, 9, 2, -5, below_62}};
    static struct answers got, expected;
    struct healcl_queue *queue = open_queue(gpu), *reference = open_queue(NULL);
    for (int i = 0; i < 2 * (int)(sizeof rounds / sizeof *rounds); i++) {
        const struct round *round = &rounds[i / 2];
        assert_int_equal(call_all(queue, round, &got), call_all(reference, round, &expected));
        assert_memory_equal(&got, &expected, sizeof got);
    }
    close_queue(queue);
    close_queue(reference);
}

static void calls_take_their_own_values(void **state)
{
    (void)state;
    with_gpu(calls_take_their_own_values_on);
}

/* ---------------------------------------------------------------- calls in any order */

enum { ORDER_TENSORS = 4, ORDER_ROWS = 3, ORDER_COLUMNS = 8, ORDER_CALLS = 3000 };

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (*state >> 33) % below;
}

static struct healcl_tensor *draw_tensor(struct healcl_queue *queue, uint64_t *state)
{
    int64_t elements[ORDER_ROWS * ORDER_COLUMNS];
    const bool is_signed = draw(state, 2);
    for (int i = 0; i < ORDER_ROWS * ORDER_COLUMNS; i++)
        elements[i] = (int64_t)draw(state, UINT32_MAX) * (1 << draw(state, 31)) *
                      (is_signed && i % 3 == 0 ? -1 : 1);
    return create_tensor(queue, 2, (int64_t[]){ORDER_ROWS, ORDER_COLUMNS}, elements);
}

static int64_t draw_modulus(uint64_t *state)
{
    static const int64_t all[] = {97, 12289, (INT64_C(1) << 60) - 1, above_62, INT64_MAX};
    return all[draw(state, sizeof all / sizeof *all)];
}

/* Calls a product, sum or remainder of tensors or scalars, in place or not, to an old tensor or
 * to a new one. All may be two rows of other tensors. */
static void call_drawn(struct healcl_queue *queue, uint64_t *state, struct healcl_tensor **tensors,
                       struct healcl_tensor *moduli)
{
    static const char *const names[] = {"modmul", "modsum", "modneg", "modmul", "mod"};
    const int64_t first = (int64_t)draw(state, 2);
    const struct healcl_index rows = {.kind = HEALCL_INDEX_SLICE,
                                      .has_start = true,
                                      .start = first,
                                      .has_stop = true,
                                      .stop = first + ORDER_ROWS - 1};
    struct healcl_tensor *of[ORDER_TENSORS], *made = NULL, **out;
    struct healcl_argument arguments[4];
    const uint64_t name = draw(state, 5), has_b = name % 2 || name == 0;
    const bool is_part = draw(state, 4) == 0, is_new = !is_part && draw(state, 3) == 0;
    for (int i = 0; i < ORDER_TENSORS; i++) {
        of[i] = tensors[i];
        if (is_part)
            OK(CALL(queue, "get_slice", &of[i], TENSOR(tensors[i]),
                    healcl_index_argument(1, &rows)));
    }
    out = &tensors[draw(state, ORDER_TENSORS)];
    size_t count = 0;
    arguments[count++] = TENSOR(of[draw(state, ORDER_TENSORS)]);
    if (has_b)
        arguments[count++] = draw(state, 2) ? TENSOR(of[draw(state, ORDER_TENSORS)])
                                            : INT((int64_t)draw(state, 5) - 2);
    arguments[count++] = draw(state, 2) ? TENSOR(moduli) : INT(draw_modulus(state));
    arguments[count++] = is_new ? healcl_no_argument() : TENSOR(of[out - tensors]);
    OK(healcl_call(queue, names[name], count, arguments, &made, &error));
    for (int i = 0; is_part && i < ORDER_TENSORS; i++)
        healcl_tensor_release(of[i]);
    healcl_tensor_release(is_new ? *out : made);
    *out = is_new ? made : *out;
}

/* Returns a sum over all elements at several times. */
static uint64_t call_in_any_order(struct healcl_device *on, uint64_t state)
{
    uint64_t sum = 0;
    struct healcl_queue *queue = open_queue(on);
    struct healcl_tensor *tensors[ORDER_TENSORS];
    int64_t q[ORDER_COLUMNS];
    for (int i = 0; i < ORDER_COLUMNS; i++)
        q[i] = draw_modulus(&state);
    struct healcl_tensor *moduli = create_tensor(queue, 1, (int64_t[]){ORDER_COLUMNS}, q);
    for (int i = 0; i < ORDER_TENSORS; i++)
        tensors[i] = draw_tensor(queue, &state);
    for (int i = 0; i < ORDER_CALLS; i++) {
        call_drawn(queue, &state, tensors, moduli);
        struct healcl_tensor **changed = &tensors[draw(&state, ORDER_TENSORS)];
        if (draw(&state, 8) == 0) {
            healcl_tensor_release(*changed);
            *changed = draw_tensor(queue, &state);
        }
        if (draw(&state, 64) == 0) {
            q[draw(&state, ORDER_COLUMNS)] = draw_modulus(&state);
            OK(healcl_tensor_write(moduli, q, sizeof q, &error));
        }
        for (int j = 0; i % 32 == 0 && j < ORDER_TENSORS; j++) {
            int64_t got[ORDER_ROWS * ORDER_COLUMNS];
            OK(healcl_tensor_read(tensors[j], got, sizeof got, &error));
            for (int k = 0; k < ORDER_ROWS * ORDER_COLUMNS; k++)
                sum = 31 * sum + (uint64_t)got[k];
        }
    }
    for (int i = 0; i < ORDER_TENSORS; i++)
        healcl_tensor_release(tensors[i]);
    healcl_tensor_release(moduli);
    close_queue(queue);
    return sum;
}

/* A call is like an earlier one, but for its tensors, aliases, scalars, moduli or known values. */
static void calls_come_in_any_order_on(struct healcl_device *on)
{
    for (uint64_t seed = 1; seed < 4; seed++)
        assert_int_equal(call_in_any_order(on, seed), call_in_any_order(NULL, seed));
}

static void calls_come_in_any_order(void **state)
{
    (void)state;
    calls_come_in_any_order_on(device);
    with_gpu(calls_come_in_any_order_on);
}

/* ---------------------------------------------------------------- threads */

enum { THREADS = 4, ROUNDS = 40 };

struct worker {
    struct healcl_device *on;
    int number;
    bool right;
};

static void *work(void *context)
{
    struct worker *worker = context;
    struct healcl_queue *queue = NULL;
    struct healcl_tensor *a = NULL;
    struct healcl_error failure = {0};
    int64_t got[12];
    const int64_t q = 1009 + worker->number;
    enum healcl_status status = healcl_queue_open(worker->on, NULL, &queue, &failure);
    if (status == HEALCL_OK)
        status = healcl_tensor_create(queue, HEALCL_INT64, 2, shape, values, &a, &failure);
    int64_t expected[12];
    memcpy(expected, values, sizeof expected);
    for (int i = 0; i < ROUNDS && status == HEALCL_OK; i++) {
        struct healcl_argument arguments[] = {TENSOR(a), INT(3), INT(q), TENSOR(a)};
        status = healcl_call(queue, "modmul", 4, arguments, NULL, &failure);
        for (int e = 0; e < 12; e++) {
            __extension__ typedef __int128 wide;
            expected[e] = (int64_t)((wide)expected[e] * 3 % q);
        }
    }
    if (status == HEALCL_OK)
        status = healcl_tensor_read(a, got, sizeof got, &failure);
    worker->right = status == HEALCL_OK && memcmp(got, expected, sizeof got) == 0;
    if (status != HEALCL_OK)
        print_error("%s\n", failure.message);
    healcl_error_clear(&failure);
    close_queue(queue);
    return NULL;
}

static void serves_threads_on(struct healcl_device *on)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){on, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].right);
    }
}
ON_BOTH(serves_threads)

/* ---------------------------------------------------------------- the order of expand */

/* Expands a tensor of these sizes: new sizes, or a refusal that reports it. */
struct expansion {
    uint32_t rank;
    int64_t sizes[3], numbers[2], expanded[3];
    const char *refusal;
};

static void check_expansion(enum healcl_expand reading, const struct expansion *expansion)
{
    const struct healcl_plan_options options = {.expand = reading};
    struct healcl_queue *queue = NULL;
    OK(healcl_queue_open(NULL, &options, &queue, &error));
    struct healcl_tensor *a = create_tensor(queue, expansion->rank, expansion->sizes, NULL),
                         *view = NULL;
    const enum healcl_status status = CALL(queue, "expand", &view, TENSOR(a),
                                           INT(expansion->numbers[0]), INT(expansion->numbers[1]));
    if (expansion->refusal) {
        assert_int_equal(status, HEALCL_REFUSED);
        assert_non_null(strstr(error.message, expansion->refusal));
        healcl_error_clear(&error);
    } else {
        OK(status);
        const struct healcl_tensor_info info = healcl_tensor_describe(view);
        assert_int_equal(info.rank, expansion->rank);
        assert_memory_equal(info.shape, expansion->expanded, info.rank * sizeof *info.shape);
    }
    healcl_queue_close(queue);
}

static void reads_expand(void **state)
{
    (void)state;
    static const struct {
        enum healcl_expand reading;
        struct expansion expansion;
    } cases[] = {
        /* one is valid */
        {HEALCL_EXPAND_VALID, {2, {1, 3}, {0, 2}, {2, 3}, NULL}},
        {HEALCL_EXPAND_SPECIFICATION, {2, {1, 3}, {0, 2}, {2, 3}, NULL}},
        {HEALCL_EXPAND_SDK, {2, {1, 3}, {0, 2}, {0}, "'axis': axis 2 is outside of rank 2"}},
        {HEALCL_EXPAND_VALID, {2, {3, 1}, {2, 1}, {3, 2}, NULL}},
        {HEALCL_EXPAND_SPECIFICATION, {2, {3, 1}, {2, 1}, {0}, "'axis': axis 2 is outside"}},
        {HEALCL_EXPAND_SDK, {2, {3, 1}, {2, 1}, {3, 2}, NULL}},
        {HEALCL_EXPAND_VALID, {3, {1, 4, 1}, {2, -1}, {1, 4, 2}, NULL}},
        {HEALCL_EXPAND_VALID, {3, {1, 4, 1}, {-1, 2}, {1, 4, 2}, NULL}},
        {HEALCL_EXPAND_VALID, {3, {4, 1, 7}, {2, 1}, {4, 2, 7}, NULL}},
        {HEALCL_EXPAND_SPECIFICATION, {3, {4, 1, 7}, {2, 1}, {0}, "axis 2 has size 7, not 1"}},
        /* both are */
        {HEALCL_EXPAND_VALID, {3, {5, 1, 1}, {1, 2}, {5, 2, 1}, NULL}},
        {HEALCL_EXPAND_SPECIFICATION, {3, {5, 1, 1}, {1, 2}, {5, 2, 1}, NULL}},
        {HEALCL_EXPAND_SDK, {3, {5, 1, 1}, {1, 2}, {5, 1, 1}, NULL}},
        {HEALCL_EXPAND_VALID, {3, {5, 1, 1}, {1, 1}, {5, 1, 1}, NULL}},
        /* none is: the specification's tells why */
        {HEALCL_EXPAND_VALID, {2, {3, 4}, {0, 2}, {0}, "'axis': axis 0 has size 3, not 1"}},
        {HEALCL_EXPAND_VALID, {2, {1, 4}, {0, 0}, {0}, "'repeats': 0 is below 1"}},
        {HEALCL_EXPAND_SDK, {2, {1, 4}, {0, 0}, {0}, "'repeats': 0 is below 1"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_expansion(cases[i].reading, &cases[i].expansion);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_operations),
        cmocka_unit_test(refuses_wrong_calls),
        cmocka_unit_test(names_the_call),
        cmocka_unit_test(goes_on_for_long),
        cmocka_unit_test(reshapes),
        cmocka_unit_test(refuses_too_many_tensors),
        cmocka_unit_test(serves_threads),
        cmocka_unit_test(frees_what_fails),
        cmocka_unit_test(describes_operations),
        cmocka_unit_test(reads_expand),
        cmocka_unit_test(calls_take_their_own_values),
        cmocka_unit_test(calls_come_in_any_order),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
