/*
 * The backend behind the later headers of HEAL's SDK, on the device that HEALCL_DEVICE names. The
 * tests compute expected values themselves, from the definitions.
 */
#include "check.h"

static int64_t floor_mod(int64_t a, int64_t q)
{
    return (a % q + q) % q;
}

static int64_t power(int64_t base, int64_t exponent, int64_t q)
{
    int64_t result = 1;
    for (int64_t i = 0; i < exponent; i++)
        result = result * base % q;
    return result;
}

/* ---------------------------------------------------------------- memory */

template <typename T> static void views()
{
    const Pointer<T> a = upload<T>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(holds<T>(expand<T>(a, 1, 2), {2, 2, 3}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
    CHECK(holds<T>(squeeze<T>(a, -2), {2, 3}, {1, 2, 3, 4, 5, 6}));
    CHECK(holds<T>(unsqueeze<T>(a, 0), {1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}));
    CHECK(holds<T>(flatten<T>(a, 1, -1), {2, 3}, {1, 2, 3, 4, 5, 6}));
    CHECK(holds<T>(reshape<T>(a, {3, -1}), {3, 2}, {1, 2, 3, 4, 5, 6}));
    const Pointer<T> moved = moveaxis<T>(a, 2, 0);
    CHECK(holds<T>(moved, {3, 2, 1}, {1, 4, 2, 5, 3, 6}));
    CHECK(contiguous<T>(moved) != moved && contiguous<T>(a) == a);
    CHECK(holds<T>(contiguous<T>(moved), {3, 2, 1}, {1, 4, 2, 5, 3, 6}));
    CHECK(holds<T>(get_slice<T>(a, {int64_t{-1}, Slice(0, 1), Slice(0, 3, 2)}), {1, 2}, {4, 6}));
    CHECK(holds<T>(a, {2, 1, 3}, {1, 2, 3, 4, 5, 6})); /* all views were new tensors */
    CHECK(a->numel() == 6 && zeros<T>({0, 3})->numel() == 0 && zeros<T>({})->numel() == 1);
    CHECK(holds<T>(zeros<T>({2}), {2}, {0, 0}));
    CHECK(device_to_host<T>(empty<T>({2, 3})).sizes().vec() == std::vector<int64_t>({2, 3}));
    CHECK_THROWS(std::invalid_argument, reshape<T>(a, {4}));
    CHECK_THROWS(std::invalid_argument, flatten<T>(a, 2, 1));
    CHECK_THROWS(std::invalid_argument, moveaxis<T>(a, 3, 0));
    CHECK_THROWS(std::invalid_argument, get_slice<T>(a, {int64_t{2}}));
    CHECK_THROWS(std::invalid_argument, get_slice<T>(a, {Slice(0, 1, 0)}));
    CHECK_THROWS(std::invalid_argument, contiguous<T>(nullptr));
    set_const_val<T>(get_slice<T>(a, {Slice(0, 2), int64_t{0}, int64_t{1}}), -5);
    CHECK(holds<T>(a, {2, 1, 3}, {1, -5, 3, 4, -5, 6})); /* views share its memory */
}

/* ---------------------------------------------------------------- arithmetic */

template <typename T> static void arithmetic()
{
    const Pointer<T> a = upload<T>({2, 2}, {5, 0, -7, 40}), p = upload<T>({2}, {11, 13});
    Pointer<T> out = zeros<T>({2, 2});
    modneg_tt<T>(a, p, out);
    CHECK(holds<T>(out, {2, 2}, {6, 0, 7, 12}));
    modneg_tc<T>(a, 11, out);
    CHECK(holds<T>(out, {2, 2}, {6, 0, 7, 4}));
    mod_tc<T>(a, 4, out);
    CHECK(holds<T>(out, {2, 2}, {1, 0, -3, 0}));
    Pointer<T> sums = zeros<T>({2});
    mod_ct<T>(100, p, sums);
    CHECK(holds<T>(sums, {2}, {1, 9}));
    axis_modsum<T>(a, p, -2, sums);
    CHECK(holds<T>(sums, {2}, {9, 1}));
    Pointer<T> padded = empty<T>({2, 3});
    pad_single_axis<T>(a, 1, -1, padded);
    CHECK(holds<T>(padded, {2, 3}, {5, 0, 0, -7, 40, 0}));
    take_along_axis<T>(a, upload<int64_t>({1, 2}, {1, -2}), 1, out);
    CHECK(holds<T>(out, {2, 2}, {0, 5, 40, -7}));

    CHECK_THROWS(std::invalid_argument, modneg_tt<T>(a, p, sums));
    CHECK_THROWS(std::invalid_argument, pad_single_axis<T>(a, 2, 1, padded));
    CHECK_THROWS(std::invalid_argument, axis_modsum<T>(a, p, 1, sums));
    CHECK_THROWS(std::out_of_range, take_along_axis<T>(a, upload<int64_t>({1, 2}, {0, 2}), 1, out));
    /* The call itself throws, or the next function that waits. */
    CHECK_THROWS(std::out_of_range, modneg_tt<T>(a, upload<T>({2}, {1, 0}), out);
                 device_to_host<T>(out));
}

/* Data have the layout of axis -1; the other one is a view of it. */
template <typename T> static Pointer<T> layout(const Pointer<T> &tensor, int64_t axis, int64_t to)
{
    return axis == -1 ? tensor : moveaxis<T>(tensor, -1, to);
}

template <typename T> static void sums_of_products(int64_t axis, bool apply_perm)
{
    const int64_t reps = 2, s = 3, k = 2, n = 4;
    const std::vector<T> q = {97, 101}, perm = {2, 0, 3, 1};
    std::vector<T> a(reps * s * k * n), b(s * k * n), out(reps * k * n);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = static_cast<T>(i * i * 7) - 300;
    for (size_t i = 0; i < b.size(); i++)
        b[i] = static_cast<T>(i * 31) + 1000;
    for (size_t i = 0; i < out.size(); i++)
        out[i] = static_cast<T>(i * 500) - 2000;
    const Pointer<T> on_a = layout<T>(upload<T>({reps, s, k, n}, a), axis, -3);
    const Pointer<T> on_b = layout<T>(upload<T>({s, k, n}, b), axis, -3);
    const Pointer<T> on_q = upload<T>({k}, q), whole = upload<T>({reps, k, n}, out);
    const Pointer<T> on_perm = apply_perm ? upload<T>({n}, perm) : nullptr;
    Pointer<T> result = layout<T>(whole, axis, -2);
    modmul_axis_sum<T>(on_a, on_b, on_q, on_perm, on_q, nullptr, axis, apply_perm, result);
    for (int64_t r = 0; r < reps; r++) {
        for (int64_t j = 0; j < k; j++) {
            for (int64_t l = 0; l < n; l++) {
                const int64_t m = apply_perm ? perm[l] : l;
                int64_t sum = out[(r * k + j) * n + m];
                for (int64_t i = 0; i < s; i++)
                    sum += int64_t{a[((r * s + i) * k + j) * n + l]} * b[(i * k + j) * n + m];
                out[(r * k + j) * n + m] = static_cast<T>(floor_mod(sum, q[j]));
            }
        }
    }
    CHECK(holds<T>(whole, {reps, k, n}, out));
    CHECK_THROWS(std::invalid_argument, modmul_axis_sum<T>(on_a, on_b, on_q, nullptr, nullptr,
                                                           nullptr, axis, true, result));
    const Pointer<T> wrong = upload<T>({n}, {0, 1, 2, 4});
    CHECK_THROWS(std::out_of_range,
                 modmul_axis_sum<T>(on_a, on_b, on_q, wrong, nullptr, nullptr, axis, true, result));
}

/* ---------------------------------------------------------------- digits and transforms */

template <typename T, typename U> static void digits()
{
    /* The residues of 0xf4240 less each modulus, and of 0xd431. */
    const Pointer<T> a = upload<T>({1, 3, 2}, {-70, 1, -1, 84, -27, 40}),
                     on_q = upload<T>({3}, {97, 101, 103});
    Pointer<U> out = zeros<U>({1, 5, 2});
    apply_g_decomp_relative_to_full_q<T, U>(a, on_q, 5, 4, out);
    CHECK(holds<U>(out, {1, 5, 2}, {0, 1, 4, 3, 2, 4, 4, 13, 15, 0}));
    CHECK_THROWS(std::invalid_argument,
                 apply_g_decomp_relative_to_full_q<T, U>(a, on_q, 4, 4, out));
    Pointer<U> single = zeros<U>({2, 3});
    apply_g_decomp<T, U>(upload<T>({2}, {27, 5}), 3, 2, single);
    CHECK(holds<U>(single, {2, 3}, {3, 2, 1, 1, 1, 0}));
}

template <typename T, typename U> static void transforms(int64_t axis, bool skip_perm)
{
    const int64_t r = 2, k = 2, n = 8;
    const std::vector<U> q = {97, 193}, perm = {0, 4, 2, 6, 1, 5, 3, 7}; /* the bit reversal */
    const int64_t roots[] = {8, 3}; /* their 8th powers are -1 */
    std::vector<T> a(r * k * n);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = static_cast<T>(static_cast<int64_t>(i * i * 13 % 251) - 125);
    std::vector<U> psi, expected(a.size());
    for (int64_t j = 0; j < k; j++) {
        for (const U index : perm)
            psi.push_back(static_cast<U>(power(roots[j], index, q[j])));
        for (int64_t row = 0; row < r; row++) {
            const int64_t first = (row * k + j) * n;
            for (int64_t u = 0; u < n; u++) {
                const int64_t exponent = 2 * (skip_perm ? perm[u] : u) + 1;
                int64_t sum = 0;
                for (int64_t i = 0; i < n; i++)
                    sum += a[first + i] * power(roots[j], exponent * i, q[j]);
                expected[first + u] = static_cast<U>(floor_mod(sum, q[j]));
            }
        }
    }
    const std::vector<int64_t> shape = {1, r, k, n};
    const Pointer<T> on_a = layout<T>(upload<T>(shape, a), axis, -3);
    const Pointer<U> on_q = upload<U>({k}, q), on_psi = upload<U>({k, n}, psi);
    const Pointer<U> on_perm = upload<U>({n}, perm), whole = empty<U>(shape);
    Pointer<U> result = layout<U>(whole, axis, -3);
    ntt<T, U>(on_a, on_q, skip_perm ? nullptr : on_perm, on_psi, on_q, nullptr, axis, skip_perm,
              result);
    CHECK(holds<U>(whole, shape, expected));
    CHECK_THROWS(std::invalid_argument,
                 ntt<T, U>(on_a, on_q, nullptr, on_psi, nullptr, nullptr, axis, false, result));
    CHECK_THROWS(std::invalid_argument,
                 ntt<T, U>(on_a, on_q, on_perm, on_psi, nullptr, nullptr, 0, false, result));
}

template <typename T> static void compute()
{
    arithmetic<T>();
    digits<T, int8_t>();
    digits<T, T>();
    for (const int64_t axis : {-1, -3}) {
        for (const bool flag : {false, true}) {
            sums_of_products<T>(axis, flag);
            transforms<int8_t, T>(axis, flag);
            transforms<T, T>(axis, flag);
        }
    }
}

int main()
{
    views<int8_t>();
    views<int32_t>();
    views<int64_t>();
    compute<int32_t>();
    compute<int64_t>();
    std::puts("passed");
    return 0;
}
