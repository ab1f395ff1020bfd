/* Gadget digits of the reference. */
#include "test_reference_fixture.h"

static struct step digits(const struct tensor *a, int64_t base_bits, const struct tensor *out)
{
    struct step step = new_step(STEP_DIGITS, form_named("apply_g_decomp", 4), out);
    set_input(&step, 0, "a", a);
    step.value[0] = base_bits;
    return step;
}

static void test_digits_of_int64(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(3), VALUES(0x123, -1, INT64_MIN));
    struct tensor *out = zeros(f, DTYPE_INT8, SHAPE(3, 16));
    struct step step = digits(a, 4, out);
    run_step(f, &step);
    expect(f, out,
           VALUES(3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,                 /* 0x123 */
                  15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* -1 */
                  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8));
    assert_int_equal(f->reference->dropped_digits, 0);

    struct tensor *less = zeros(f, DTYPE_INT64, SHAPE(3, 2));
    step = digits(a, 4, less);
    run_step(f, &step);
    expect(f, less, VALUES(3, 2, 15, 15, 0, 0));
    assert_int_equal(f->reference->dropped_digits, 3);
}

static void test_digits_of_int32(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT32, SHAPE(2), VALUES(-1, INT32_MIN));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(2, 4));
    struct step step = digits(a, 12, out);
    run_step(f, &step);
    expect(f, out, VALUES(4095, 4095, 255, 0, 0, 0, 128, 0));
    assert_int_equal(f->reference->dropped_digits, 0);
}

static void test_wide_digits(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(3), VALUES(-2, INT64_MIN, 255));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(3, 3));
    const int64_t bases[] = {64, 65, 1000, INT64_MAX};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        struct step step = digits(a, bases[i], out);
        run_step(f, &step);
        expect(f, out, VALUES(-2, 0, 0, INT64_MIN, 0, 0, 255, 0, 0));
    }
    struct step step = digits(a, 63, out);
    run_step(f, &step);
    expect(f, out, VALUES(INT64_MAX - 1, 1, 0, 0, 1, 0, 255, 0, 0));

    /* A digit that out's dtype does not hold wraps. */
    struct tensor *narrow = zeros(f, DTYPE_INT8, SHAPE(3, 1));
    step = digits(a, 8, narrow);
    run_step(f, &step);
    expect(f, narrow, VALUES(-2, 0, -1));
    assert_int_equal(f->reference->dropped_digits, 2);
}

static void test_digits_of_views(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT32, SHAPE(2, 2), VALUES(0x21, 0x43, 0x65, 0x87));
    struct tensor *memory = zeros(f, DTYPE_INT32, SHAPE(2, 3, 2));
    /* The digits on the middle axis of memory, and one row of it left alone. */
    struct layout moved = layout_move_axis(&memory->layout, 1, 2);
    struct layout part = layout_narrow(&moved, 2, 1, 2);
    struct step step =
        digits(view(f, a, layout_move_axis(&a->layout, 0, 1)), 4, view(f, memory, part));
    run_step(f, &step);
    expect(f, memory, VALUES(0, 0, 1, 5, 2, 6, 0, 0, 3, 7, 4, 8));
}

static void test_no_digits(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(2), VALUES(1, 2));
    struct step step = digits(a, 4, zeros(f, DTYPE_INT64, SHAPE(2, 0)));
    run_step(f, &step);
    assert_int_equal(f->reference->dropped_digits, 0);
}

static struct step digits_full_q(const struct tensor *a, const struct tensor *q, int64_t base_bits,
                                 const struct tensor *out)
{
    struct step step =
        new_step(STEP_DIGITS_FULL_Q, form_named("apply_g_decomp_relative_to_full_q", 5), out);
    set_input(&step, 0, "a", a);
    set_input(&step, 1, "q", q);
    step.value[0] = base_bits;
    return step;
}

/* 23 = 2 mod 3, 3 mod 5, 2 mod 7 (Sun Tzu); 104 = 2, 4, 6 is the largest value. */
static void test_full_q_by_hand(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(1, 3, 2), VALUES(2, -1, 3, -1, 2 - 7, 13));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(3), VALUES(3, 5, 7));
    struct tensor *out = zeros(f, DTYPE_INT8, SHAPE(1, 2, 2));
    struct step step = digits_full_q(a, q, 4, out);
    run_step(f, &step);
    expect(f, out, VALUES(7, 8, 1, 6));
    assert_int_equal(f->reference->dropped_digits, 0);
    struct tensor *one = zeros(f, DTYPE_INT32, SHAPE(1, 1, 2));
    step = digits_full_q(a, q, 5, one);
    run_step(f, &step);
    expect(f, one, VALUES(23, 8));
    assert_int_equal(f->reference->dropped_digits, 1);
}

/*
 * Residues, not all reduced, of some x in [0, Q), Q of 199 bits, and the digits of those x:
 * computed with Python's unlimited integers.
 */
enum { MODULI = 6, COUNT = 7 };
static const int64_t moduli[] = {9223372036854497281, 4611686018427322369, 2147377153, 1, 5,
                                 1099511627776};
/* clang-format off */
static const int64_t residues[] = {
    /* mod q[0] */
    -9223372036854497281, -9223372036854497280, 9223372036854497280, -3074457345618165761,
    1497156916096311600, 5655586438565471279, 35651459,
    /* mod q[1] */
    4611686018427322369, 4611686018427322370, -1, 3074457345618214912, 955377840590531253,
    3730093097205018916, 16776963,
    /* mod q[2] */
    0, 1, 2147377152, 1431584768, -1737788815, -1770240344, 89455547,
    /* mod q[3] */
    1, 1, 1, 0, 0, 1, 0,
    /* mod q[4] */
    -5, -4, 4, -4, -4, 4, 2,
    /* mod q[5] */
    -1099511627776, 1, -1, -366503875926, 2156747253901, 1681667647848, 3,
};
/* clang-format on */
static const struct {
    int64_t base_bits, kept;
    uint64_t dropped;
    const int64_t *digits; /* [kept, COUNT] */
} known[] = {
    {8, 25, 0,
     VALUES(0, 1, 255, 170, 141, 104, 3, 0, 0, 255, 170, 104, 233, 0, 0, 0, 255, 170, 39, 51, 0, 0,
            0, 255, 170, 40, 139, 0, 0, 0, 255, 170, 246, 135, 0, 0, 0, 4, 1, 16, 254, 0, 0, 0, 160,
            224, 251, 26, 0, 0, 0, 221, 73, 28, 26, 0, 0, 0, 103, 205, 127, 69, 64, 0, 0, 66, 192,
            217, 207, 0, 0, 0, 88, 114, 45, 237, 0, 0, 0, 208, 69, 95, 146, 0, 0, 0, 95, 117, 162,
            89, 0, 0, 0, 14, 175, 232, 35, 0, 0, 0, 24, 178, 20, 212, 0, 0, 0, 242, 80, 120, 63, 0,
            0, 0, 145, 219, 0, 153, 0, 0, 0, 14, 4, 113, 115, 0, 0, 0, 24, 8, 82, 91, 0, 0, 0, 252,
            84, 222, 3, 0, 0, 0, 159, 53, 168, 32, 0, 0, 0, 0, 0, 101, 219, 0, 0, 0, 252, 84, 31,
            46, 0, 0, 0, 254, 170, 63, 187, 0, 0, 0, 79, 26, 48, 27, 0)},
    {60, 4, 0,
     VALUES(0, 1, 981790216324907007, 711570573643917994, 935359997031180429, 728174147883231592, 3,
            0, 0, 108339265938925181, 804727425050873044, 94164537814390769, 955385002988467281,
            1024, 0, 0, 864867033539318258, 288289011179772752, 1109478556036038776,
            1070484535221918015, 0, 0, 0, 327663, 109221, 197617, 113586, 0)},
    {64, 4, 0,
     VALUES(0, 1, -2476974297495633921, 5323256592071305898, 2088281501638027405,
            1881095652490078568, 3, 0, 0, -1002035112409808281, 5814902987099914445,
            8652796568164751743, 4599339987076239173, 64, 0, 0, -73182806815535471,
            -6173308960175029029, 4548465924626346240, -4958785209146575975, 0, 0, 0, 79, 26, 48,
            27, 0)},
    {65, 4, 0,
     VALUES(0, 1, -2476974297495633921, 5323256592071305898, 2088281501638027405,
            1881095652490078568, 3, 0, 0, -501017556204904141, -6315920543304818586,
            4326398284082375871, -6923702043316656222, 32, 0, 0, -18295701703883868,
            -6155013258471145162, 1137116481156586560, -1239696302286643994, 0, 0, 0, 9, 3, 6, 3,
            0)},
    {200, 2, 0,
     VALUES(0, 1, -2476974297495633921, 5323256592071305898, 2088281501638027405,
            1881095652490078568, 3, 0, 0, 0, 0, 0, 0, 0)},
    {7, 10, 5,
     VALUES(0, 1, 127, 42, 13, 104, 3, 0, 0, 127, 85, 81, 82, 0, 0, 0, 127, 42, 29, 79, 0, 0, 0,
            127, 85, 65, 89, 0, 0, 0, 127, 42, 98, 120, 0, 0, 0, 31, 53, 30, 80, 0, 0, 0, 1, 0, 68,
            63, 0, 0, 0, 80, 112, 125, 13, 0, 0, 0, 93, 73, 28, 26, 0, 0, 0, 79, 26, 126, 10, 0)},
};

static void test_full_q_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct fixture *f;
        setup((void **)&f);
        struct step step =
            digits_full_q(filled(f, DTYPE_INT64, SHAPE(1, MODULI, COUNT), residues),
                          filled(f, DTYPE_INT64, SHAPE(MODULI), moduli), known[i].base_bits,
                          zeros(f, DTYPE_INT64, SHAPE(1, known[i].kept, COUNT)));
        run_step(f, &step);
        expect(f, step.out, known[i].digits);
        assert_int_equal(f->reference->dropped_digits, known[i].dropped);
        teardown((void **)&f);
    }
}

/* What 60 moduli that are coprime in pairs lack to 2^62. */
static const int64_t sixty[] = {1,   3,   5,   9,   11,  15,  17,  21,  23,  27,  33,  35,
                                41,  45,  51,  57,  63,  65,  71,  75,  83,  87,  101, 105,
                                111, 113, 117, 131, 135, 141, 143, 153, 167, 171, 177, 183,
                                185, 195, 201, 203, 215, 227, 231, 233, 245, 255, 261, 273,
                                281, 287, 293, 297, 315, 317, 321, 327, 357, 363, 371, 377};

/* 60 moduli of 62 bits: x = Q - 1 is -1 for each of them, and x mod q is recovered from digits. */
static void test_full_q_of_sixty_moduli(void **state)
{
    struct fixture *f = *state;
    enum { K = 60, KEPT = 126, BITS = 30 };
    int64_t q[K], a[K], found[KEPT], limit = INT64_C(1) << 62;
    for (int j = 0; j < K; j++) {
        q[j] = limit - sixty[j];
        a[j] = -1;
    }
    struct step step = digits_full_q(filled(f, DTYPE_INT64, SHAPE(1, K, 1), a),
                                     filled(f, DTYPE_INT64, SHAPE(K), q), BITS,
                                     zeros(f, DTYPE_INT64, SHAPE(1, KEPT, 1)));
    run_step(f, &step);
    assert_int_equal(f->reference->dropped_digits, 0);
    get(f, step.out, found);
    for (int j = 0; j < K; j++) {
        int64_t x = 0;
        for (int i = KEPT - 1; i >= 0; i--)
            x = slow_add(slow_multiply(x, INT64_C(1) << BITS, q[j]), found[i], q[j]);
        assert_int_equal(x, q[j] - 1);
    }
}

static void test_full_q_of_views_in_place(void **state)
{
    struct fixture *f = *state;
    /* [l, r, k] in memory, seen as [l, k, r]; the digits replace the residues. */
    struct tensor *memory =
        filled(f, DTYPE_INT64, SHAPE(2, 2, 3), VALUES(2, 3, 2, 2, 4, 6, 0, 0, 0, 1, 1, 1));
    struct tensor *a = view(f, memory, layout_move_axis(&memory->layout, 1, 2));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(3), VALUES(3, 5, 7));
    struct step step = digits_full_q(a, q, 3, a);
    run_step(f, &step);
    expect(f, memory, VALUES(7, 2, 0, 0, 5, 1, 0, 0, 0, 1, 0, 0));
}

static void test_full_q_refusals(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT64, SHAPE(1, 4, 1));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(4), VALUES(35, 6, 11, 9));
    struct tensor *out = filled(f, DTYPE_INT64, SHAPE(1, 2, 1), VALUES(8, 8));
    struct step step = digits_full_q(a, q, 4, out);
    expect_refusal(f, &step, "argument 'q': the moduli at [1] and [3] are not coprime");
    put(f, q, VALUES(35, 6, 7, 9));
    expect_refusal(f, &step, "argument 'q': the moduli at [0] and [2] are not coprime");
    put(f, q, VALUES(4, 6, 0, 9));
    expect_refusal(f, &step, "argument 'q': 0 at [2] is below 1");
    expect(f, out, VALUES(8, 8));
    step = digits_full_q(a, q, 4, zeros(f, DTYPE_INT64, SHAPE(1, 0, 1)));
    run_step(f, &step);
}

static void test_full_q_without_moduli(void **state)
{
    struct fixture *f = *state;
    struct tensor *out = filled(f, DTYPE_INT64, SHAPE(1, 2, 1), VALUES(8, 8));
    struct step step = digits_full_q(zeros(f, DTYPE_INT64, SHAPE(1, 0, 1)),
                                     zeros(f, DTYPE_INT64, SHAPE(0)), 4, out);
    run_step(f, &step);
    expect(f, out, VALUES(0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_digits_of_int64, setup, teardown),
        cmocka_unit_test_setup_teardown(test_digits_of_int32, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wide_digits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_digits_of_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_digits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_q_by_hand, setup, teardown),
        cmocka_unit_test(test_full_q_known_answers),
        cmocka_unit_test_setup_teardown(test_full_q_of_sixty_moduli, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_q_of_views_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_q_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_q_without_moduli, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
