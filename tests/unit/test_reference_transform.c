/* ntt and intt of the reference. */
#include "test_reference_fixture.h"

/* Primes below 2^31, 2^62 and 2^63, 1 mod 8192, and a primitive 8192nd root of unity of each. */
static const struct {
    int64_t q, root;
} primes[] = {
    {2147377153, 1202012506},
    {4611686018427322369, 3391169269051246823},
    {9223372036854497281, 892266868729515507},
};
enum { PRIMES = 3, ROOT_ORDER = 8192 };

static int64_t bit_reverse(int64_t i, int64_t n)
{
    int64_t reversed = 0;
    for (; n > 1; n /= 2, i /= 2)
        reversed = 2 * reversed + i % 2;
    return reversed;
}

/* psi[i] = root^bitreverse(i) for a primitive 2n-th root. */
static void powers(int64_t *psi, int64_t n, int64_t root, int64_t q)
{
    int64_t power = 1 % q;
    for (int64_t i = 0; i < n; i++) {
        psi[bit_reverse(i, n)] = power;
        power = slow_multiply(power, root, q);
    }
}

/* The tables of a transform of length n modulo a prime, and of its inverse. */
static void tables(int prime, int64_t n, int64_t *psi, int64_t *ipsi, int64_t *n_inv)
{
    int64_t q = primes[prime].q;
    int64_t root = slow_power(primes[prime].root, ROOT_ORDER / (2 * n), q);
    powers(psi, n, root, q);
    powers(ipsi, n, slow_power(root, q - 2, q), q);
    *n_inv = slow_power(n, q - 2, q);
}

static struct step transform(enum step_kind kind, const struct tensor *a, const struct tensor *q,
                             const struct tensor *psi, const struct tensor *perm,
                             const struct tensor *n_inv, const struct tensor *out)
{
    bool inverse = kind == STEP_INTT;
    struct step step = new_step(kind, form_named(inverse ? "intt" : "ntt", inverse ? 10 : 11), out);
    set_input(&step, 0, "a", a);
    set_input(&step, 1, "q", q);
    set_input(&step, 2, inverse ? "ipsi" : "psi", psi);
    if (perm)
        set_input(&step, 3, "perm", perm);
    if (n_inv)
        set_input(&step, 4, "n_inv", n_inv);
    return step;
}

/* n = 4, q = 17, psi = 2 (2^4 = -1 mod 17): psi in bit-reversed order is 1, 4, 2, 8. */
static void test_by_hand(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(1, 1, 1, 4), VALUES(1, 2, 3, 4));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(1), VALUES(17));
    struct tensor *psi = filled(f, DTYPE_INT64, SHAPE(1, 4), VALUES(1, 4, 2, 8));
    struct tensor *perm = filled(f, DTYPE_INT32, SHAPE(4), VALUES(0, 2, 1, 3));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(1, 1, 1, 4));
    struct step step = transform(STEP_NTT, a, q, psi, NULL, NULL, out);
    run_step(f, &step);
    /* stage 1, w = 4: 1+12, 2+16, 1-12, 2-16 = 13, 1, 6, 3
     * stage 2, w = 2 and 8: 13+2, 13-2, 6+24, 6-24 */
    expect(f, out, VALUES(15, 11, 13, 16));
    step = transform(STEP_NTT, a, q, psi, perm, NULL, out);
    run_step(f, &step);
    expect(f, out, VALUES(15, 13, 11, 16));

    /* The inverse powers are 1, 13, 9, 15, and 1/4 is 13. */
    struct tensor *ipsi = filled(f, DTYPE_INT64, SHAPE(1, 4), VALUES(1, 13, 9, 15));
    struct tensor *n_inv = filled(f, DTYPE_INT64, SHAPE(1), VALUES(13 - 17 * 5));
    struct tensor *back = zeros(f, DTYPE_INT64, SHAPE(1, 1, 1, 4));
    step = transform(STEP_INTT, out, q, ipsi, perm, n_inv, back);
    run_step(f, &step);
    expect(f, back, VALUES(1, 2, 3, 4));
}

static void test_length_one(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(1, 1, 1, 1), VALUES(-3));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(1), VALUES(17));
    struct tensor *psi = zeros(f, DTYPE_INT64, SHAPE(1, 1));
    struct tensor *perm = zeros(f, DTYPE_INT64, SHAPE(1));
    struct tensor *n_inv = filled(f, DTYPE_INT64, SHAPE(1), VALUES(2));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(1, 1, 1, 1));
    struct step step = transform(STEP_NTT, a, q, psi, perm, NULL, out);
    run_step(f, &step);
    expect(f, out, VALUES(14));
    step = transform(STEP_INTT, a, q, psi, perm, n_inv, out);
    run_step(f, &step);
    expect(f, out, VALUES(11));
}

/* With the bit reversal as perm, out[u] is the polynomial's value at psi^(2u + 1). */
static void test_forward_evaluates_at_odd_powers(void **state)
{
    struct fixture *f = *state;
    enum { N = 16 };
    uint64_t seed = 1;
    int64_t q[PRIMES], psi[PRIMES * N], ipsi[N], n_inv, perm[N], a[PRIMES * N], out[PRIMES * N];
    for (int j = 0; j < PRIMES; j++) {
        q[j] = primes[j].q;
        tables(j, N, psi + j * N, ipsi, &n_inv);
        int64_t root = slow_power(primes[j].root, ROOT_ORDER / (2 * N), q[j]);
        for (int i = 0; i < N; i++) {
            perm[i] = bit_reverse(i, N);
            a[j * N + i] = random_value(&seed, DTYPE_INT64);
        }
        for (int u = 0; u < N; u++) {
            int64_t point = slow_power(root, 2 * u + 1, q[j]), value = 0;
            for (int i = N - 1; i >= 0; i--)
                value = slow_add(slow_multiply(value, point, q[j]), slow_reduce(a[j * N + i], q[j]),
                                 q[j]);
            out[j * N + u] = value;
        }
    }
    struct step step = transform(STEP_NTT, filled(f, DTYPE_INT64, SHAPE(1, 1, PRIMES, N), a),
                                 filled(f, DTYPE_INT64, SHAPE(PRIMES), q),
                                 filled(f, DTYPE_INT64, SHAPE(PRIMES, N), psi),
                                 filled(f, DTYPE_INT64, SHAPE(N), perm), NULL,
                                 zeros(f, DTYPE_INT64, SHAPE(1, 1, PRIMES, N)));
    run_step(f, &step);
    expect(f, step.out, out);
}

/* The product of two polynomials modulo X^n + 1, by transforms and as in school. */
static void test_negacyclic_convolution(void **state)
{
    (void)state;
    enum { N = 32 };
    uint64_t seed = 2;
    for (int prime = 0; prime < PRIMES; prime++) {
        struct fixture *f;
        setup((void **)&f);
        int64_t q = primes[prime].q, psi[N], ipsi[N], n_inv, a[N], b[N], product[N] = {0};
        tables(prime, N, psi, ipsi, &n_inv);
        for (int i = 0; i < N; i++) {
            a[i] = random_value(&seed, DTYPE_INT64);
            b[i] = random_value(&seed, DTYPE_INT64);
        }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                int64_t term = slow_multiply(slow_reduce(a[i], q), slow_reduce(b[j], q), q);
                if (i + j >= N && term > 0)
                    term = q - term;
                product[(i + j) % N] = slow_add(product[(i + j) % N], term, q);
            }

        struct tensor *ta = filled(f, DTYPE_INT64, SHAPE(1, 1, 1, N), a);
        struct tensor *tb = filled(f, DTYPE_INT64, SHAPE(1, 1, 1, N), b);
        struct tensor *tq = filled(f, DTYPE_INT64, SHAPE(1), &q);
        struct tensor *tpsi = filled(f, DTYPE_INT64, SHAPE(1, N), psi);
        struct tensor *tipsi = filled(f, DTYPE_INT64, SHAPE(1, N), ipsi);
        struct tensor *tn_inv = filled(f, DTYPE_INT64, SHAPE(1), &n_inv);
        struct step step = transform(STEP_NTT, ta, tq, tpsi, NULL, NULL, ta);
        run_step(f, &step);
        step = transform(STEP_NTT, tb, tq, tpsi, NULL, NULL, tb);
        run_step(f, &step);
        int64_t x[N], y[N];
        get(f, ta, x);
        get(f, tb, y);
        for (int i = 0; i < N; i++)
            x[i] = slow_multiply(x[i], y[i], q);
        put(f, ta, x);
        step = transform(STEP_INTT, ta, tq, tipsi, NULL, tn_inv, ta);
        run_step(f, &step);
        expect(f, ta, product);
        teardown((void **)&f);
    }
}

/* The formulas of the specification, one element at a time: no table, no shared arithmetic. */
static void slow_transform(bool inverse, int64_t *x, int64_t n, const int64_t *psi, int64_t q)
{
    for (int64_t stage = 1; stage < n; stage *= 2) {
        int64_t m = inverse ? n / 2 / stage : stage, t = n / (2 * m);
        for (int64_t i = 0; i < m; i++)
            for (int64_t u = 0; u < t; u++) {
                int64_t *first = &x[2 * i * t + u], *second = first + t;
                int64_t w = slow_reduce(psi[m + i], q);
                int64_t p = inverse ? *second : slow_multiply(*second, w, q);
                int64_t sum = slow_add(*first, p, q);
                int64_t difference = slow_add(*first, q - p, q);
                *first = sum;
                *second = inverse ? slow_multiply(difference, w, q) : difference;
            }
    }
}

/* Any modulus, twiddles and permutation; values and layouts of every kind. */
static void test_formulas_random(void **state)
{
    (void)state;
    uint64_t seed = 3;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 120; round++) {
        struct fixture *f;
        setup((void **)&f);
        enum { L = 2, R = 2, K = 3, N_MAX = 32, COUNT = L * R * K * N_MAX };
        int64_t n = INT64_C(1) << (1 + round % 5);
        bool inverse = round % 2, last = round / 2 % 2, tile = round / 4 % 2, narrow = round % 3;
        enum dtype dtype = round / 8 % 2 ? DTYPE_INT32 : DTYPE_INT64;
        enum dtype a_dtype = narrow ? DTYPE_INT8 : dtype;
        int64_t q[K], psi[K * N_MAX], n_inv[K], perm[N_MAX], a[COUNT], out[COUNT];
        for (int j = 0; j < K; j++) {
            q[j] = random_value(&seed, dtype);
            q[j] = q[j] < 1 ? 1 + (q[j] & 0xffff) : q[j];
            n_inv[j] = random_value(&seed, dtype);
            for (int64_t i = 0; i < n; i++)
                psi[j * n + i] = random_value(&seed, dtype);
        }
        for (int64_t u = 0; u < n; u++) {
            int64_t other = (int64_t)(random_bits(&seed) % (uint64_t)(u + 1));
            perm[u] = perm[other];
            perm[other] = u;
        }

        /* Memory as [l,r,k,n] or [l,n,r,k]; steps see [l,r,k,n]. */
        int64_t k_in = tile ? 1 : K;
        struct tensor *memory, *result;
        if (last) {
            memory = zeros(f, a_dtype, SHAPE(L, R, k_in, n));
            result = zeros(f, dtype, SHAPE(L, R, K, n));
        } else {
            memory = zeros(f, a_dtype, SHAPE(L, n, R, k_in));
            result = zeros(f, dtype, SHAPE(L, n, R, K));
            memory = view(f, memory, layout_move_axis(&memory->layout, 1, 3));
            result = view(f, result, layout_move_axis(&result->layout, 1, 3));
        }
        for (int64_t i = 0; i < L * R * k_in * n; i++)
            a[i] = random_value(&seed, a_dtype);
        put(f, memory, a);
        struct layout input = memory->layout;
        if (tile) {
            input.shape[2] = K;
            input.stride[2] = 0;
        }

        bool permuted = round % 7 != 0;
        struct tensor *tperm = filled(f, DTYPE_INT32, SHAPE(n), perm);
        struct step step = transform(inverse ? STEP_INTT : STEP_NTT, view(f, memory, input),
                                     filled(f, dtype, SHAPE(K), q),
                                     filled(f, dtype, SHAPE(K, n), psi), permuted ? tperm : NULL,
                                     inverse ? filled(f, dtype, SHAPE(K), n_inv) : NULL, result);
        run_step(f, &step);

        for (int64_t row = 0; row < L * R; row++)
            for (int64_t j = 0; j < K; j++) {
                const int64_t *from = &a[(row * k_in + (tile ? 0 : j)) * n];
                int64_t *to = &out[(row * K + j) * n], x[N_MAX];
                for (int64_t u = 0; u < n; u++)
                    x[inverse && permuted ? perm[u] : u] = slow_reduce(from[u], q[j]);
                slow_transform(inverse, x, n, psi + j * n, q[j]);
                for (int64_t u = 0; u < n; u++)
                    to[u] = inverse ? slow_multiply(x[u], slow_reduce(n_inv[j], q[j]), q[j])
                                    : x[permuted ? perm[u] : u];
            }
        expect(f, result, out);
        teardown((void **)&f);
    }
}

static void test_round_trip_of_4096(void **state)
{
    struct fixture *f = *state;
    enum { N = 4096, K = PRIMES };
    static int64_t a[2 * K * N], psi[K * N], ipsi[K * N], perm[N];
    uint64_t seed = 4;
    int64_t q[K], n_inv[K];
    for (int j = 0; j < K; j++) {
        q[j] = primes[j].q;
        tables(j, N, psi + j * N, ipsi + j * N, &n_inv[j]);
    }
    for (int i = 0; i < N; i++)
        perm[i] = bit_reverse(i, N);
    for (int i = 0; i < 2 * K * N; i++)
        a[i] = slow_reduce(random_value(&seed, DTYPE_INT64), q[i / N % K]);
    struct tensor *x = filled(f, DTYPE_INT64, SHAPE(2, 1, K, N), a);
    struct tensor *tq = filled(f, DTYPE_INT64, SHAPE(K), q);
    struct tensor *tperm = filled(f, DTYPE_INT64, SHAPE(N), perm);
    struct step step =
        transform(STEP_NTT, x, tq, filled(f, DTYPE_INT64, SHAPE(K, N), psi), tperm, NULL, x);
    run_step(f, &step);
    step = transform(STEP_INTT, x, tq, filled(f, DTYPE_INT64, SHAPE(K, N), ipsi), tperm,
                     filled(f, DTYPE_INT64, SHAPE(K), n_inv), x);
    run_step(f, &step);
    expect(f, x, a);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(1, 1, 2, 2), VALUES(1, 2, 3, 4));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(2), VALUES(0, -1));
    struct tensor *psi = filled(f, DTYPE_INT64, SHAPE(2, 2), VALUES(1, 2, 1, 2));
    struct tensor *perm = filled(f, DTYPE_INT64, SHAPE(2), VALUES(0, 0));
    struct tensor *n_inv = filled(f, DTYPE_INT64, SHAPE(2), VALUES(1, 1));
    struct step step = transform(STEP_NTT, a, q, psi, perm, NULL, a);
    expect_refusal(f, &step, "argument 'q': 0 at [0] is below 1");
    put(f, q, VALUES(5, 5));
    expect_refusal(f, &step, "argument 'perm': 0 at [1] repeats an earlier entry");
    put(f, perm, VALUES(0, 2));
    step = transform(STEP_INTT, a, q, psi, perm, n_inv, a);
    expect_refusal(f, &step, "argument 'perm': 2 at [1] is outside of [0, 2)");
    expect(f, a, VALUES(1, 2, 3, 4));

    struct tensor *none = zeros(f, DTYPE_INT64, SHAPE(1, 0, 2, 2));
    step = transform(STEP_NTT, none, q, psi, perm, NULL, none);
    run_step(f, &step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(test_length_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forward_evaluates_at_odd_powers, setup, teardown),
        cmocka_unit_test(test_negacyclic_convolution),
        cmocka_unit_test(test_formulas_random),
        cmocka_unit_test_setup_teardown(test_round_trip_of_4096, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
