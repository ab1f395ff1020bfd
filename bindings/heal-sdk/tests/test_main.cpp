/*
 * The backend as the SDK's runtime and tests use it, on the device that HEALCL_DEVICE names.
 */
#include <healcl.h>

#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "check.h"

/* ---------------------------------------------------------------- memory */

template <typename T> static void views()
{
    const Pointer<T> a = upload<T>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(expand<T>(a, 1, 2) == a);
    CHECK(holds<T>(a, {2, 2, 3}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
    CHECK(make_contiguous<T>(a) == a);
    CHECK(unsqueeze<T>(a, -1) == a);
    CHECK(holds<T>(a, {2, 2, 3, 1}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
    CHECK(squeeze<T>(a, 3) == a);
    a->reshape({3, 4});
    CHECK(holds<T>(a, {3, 4}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
    CHECK_THROWS(std::invalid_argument, squeeze<T>(a, 0));
    CHECK_THROWS(std::invalid_argument, unsqueeze<T>(a, 4));
    CHECK_THROWS(std::invalid_argument, expand<T>(a, 0, 2));
    CHECK_THROWS(std::invalid_argument, expand<T>(upload<T>({1, 2}, {1, 2}), 2, 0));
    CHECK_THROWS(std::invalid_argument, a->reshape({5}));
    CHECK_THROWS(std::invalid_argument, squeeze<T>(nullptr, 0));
    CHECK_THROWS(std::invalid_argument, device_to_host<T>(nullptr));
    /* Refused calls have changed nothing. */
    CHECK(holds<T>(a, {3, 4}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
    CHECK(holds<T>(allocate_on_hardware<T>({2, 2}), {2, 2}, {0, 0, 0, 0}));
    CHECK_THROWS(std::invalid_argument, allocate_on_hardware<T>({-1}));
}

static void other_dtype()
{
    const torch::Tensor tensor = torch::empty({2}, torch::CppTypeToScalarType<double>::value);
    CHECK_THROWS(std::invalid_argument, host_to_device<int64_t>(tensor));
}

static void printing()
{
    std::ostringstream text;
    std::streambuf *const before = std::cout.rdbuf(text.rdbuf());
    upload<int64_t>({2, 1}, {7, 8})->print_metadata();
    upload<int64_t>({}, {7})->print_metadata();
    std::cout.rdbuf(before);
    CHECK(text.str() == "shape [2, 1]\nshape []\n");
}

/* ---------------------------------------------------------------- arithmetic */

template <typename T> static void arithmetic()
{
    const Pointer<T> a = upload<T>({2, 2}, {5, 6, -7, 8}), b = upload<T>({2}, {9, 10});
    const Pointer<T> p = upload<T>({2}, {11, 13});
    Pointer<T> out = allocate_on_hardware<T>({2, 2});
    modmul_ttt<T>(a, b, p, out);
    CHECK(holds<T>(out, {2, 2}, {1, 8, -8, 2})); /* the sign is the product's, as in C */
    modmul_ttc<T>(a, b, 11, out);
    CHECK(holds<T>(out, {2, 2}, {1, 5, -8, 3}));
    modmul_tct<T>(a, 3, p, out);
    CHECK(holds<T>(out, {2, 2}, {4, 5, -10, 11}));
    modmul_tcc<T>(a, 3, 11, out);
    CHECK(holds<T>(out, {2, 2}, {4, 7, -10, 2}));
    modsum_ttt<T>(a, b, p, out);
    CHECK(holds<T>(out, {2, 2}, {3, 3, 2, 5}));
    modsum_ttc<T>(a, b, 11, out);
    CHECK(holds<T>(out, {2, 2}, {3, 5, 2, 7}));
    modsum_tct<T>(a, 3, p, out);
    CHECK(holds<T>(out, {2, 2}, {8, 9, -4, 11}));
    modsum_tcc<T>(a, 3, 11, out);
    CHECK(holds<T>(out, {2, 2}, {8, 9, -4, 0}));
    mod_tt<T>(a, p, out);
    CHECK(holds<T>(out, {2, 2}, {5, 6, -7, 8}));
    mod_tc<T>(a, 4, out);
    CHECK(holds<T>(out, {2, 2}, {1, 2, -3, 0}));
    Pointer<T> remainders = allocate_on_hardware<T>({2});
    mod_ct<T>(100, p, remainders);
    CHECK(holds<T>(remainders, {2}, {1, 9}));
    CHECK_THROWS(std::invalid_argument, modmul_ttt<T>(nullptr, b, p, out));
    CHECK_THROWS(std::invalid_argument, modmul_ttt<T>(a, upload<T>({3}, {1, 2, 3}), p, out));

    Pointer<T> sums = allocate_on_hardware<T>({2}), digits = allocate_on_hardware<T>({2, 3});
    axis_modsum<T>(a, p, sums, 0);
    CHECK(holds<T>(sums, {2}, {9, 1}));
    g_decomposition<T>(p, digits, 3, 2);
    CHECK(holds<T>(digits, {2, 3}, {3, 2, 0, 1, 3, 0}));
}

/* n = 2, q = 5: psi = 2, whose square is -1. */
template <typename T> static void transforms()
{
    const Pointer<T> a = upload<T>({1, 2, 1, 1}, {3, 4}), q = upload<T>({1}, {5});
    const Pointer<T> perm = upload<T>({2}, {1, 0});
    const Pointer<T> psi = upload<T>({1, 2}, {1, 2}), inverse = upload<T>({1, 2}, {1, 3});
    const Pointer<T> half = upload<T>({1}, {3});
    Pointer<T> there = allocate_on_hardware<T>({1, 2, 1, 1});
    Pointer<T> back = allocate_on_hardware<T>({1, 2, 1, 1});
    ntt<T>(a, q, perm, psi, nullptr, nullptr, there);
    CHECK(holds<T>(there, {1, 2, 1, 1}, {0, 1}));
    intt<T>(there, q, perm, inverse, half, nullptr, nullptr, back);
    CHECK(holds<T>(back, {1, 2, 1, 1}, {3, 4}));
    intt<T>(there, q, perm, inverse, half, nullptr, nullptr, there); /* in place */
    CHECK(holds<T>(there, {1, 2, 1, 1}, {3, 4}));
}

template <typename T> static void permutations()
{
    const Pointer<T> a = upload<T>({2, 3}, {1, 2, 3, 4, 5, 6});
    const Pointer<T> perms = upload<T>({2, 3}, {2, 1, 0, 0, 2, 1});
    Pointer<T> out = allocate_on_hardware<T>({2, 3});
    permute<T>(a, perms, out, 0, 1);
    CHECK(holds<T>(out, {2, 3}, {3, 2, 1, 4, 6, 5}));
    CHECK_THROWS(std::invalid_argument, permute<T>(a, perms, out, 1, 1));
    const Pointer<T> wrong = upload<T>({2, 3}, {2, 1, 0, 0, 2, 3});
    CHECK_THROWS(std::out_of_range, permute<T>(a, wrong, out, 0, 1));
    permute<T>(a, perms, out, 0, 1); /* the queue goes on */
    CHECK(holds<T>(out, {2, 3}, {3, 2, 1, 4, 6, 5}));
}

/* ---------------------------------------------------------------- threads */

static void work(int64_t number)
{
    for (int64_t i = 0; i < 200; i++) {
        const Pointer<int64_t> a = upload<int64_t>({2}, {number, i});
        Pointer<int64_t> out = allocate_on_hardware<int64_t>({2});
        modsum_tcc<int64_t>(a, 1, 1 << 20, out);
        CHECK(holds<int64_t>(out, {2}, {number + 1, i + 1}));
    }
}

static void threads()
{
    std::thread first(work, 1), second(work, 2);
    first.join();
    second.join();
}

int main()
{
    views<int32_t>();
    views<int64_t>();
    views<double>();
    other_dtype();
    printing();
    arithmetic<int32_t>();
    arithmetic<int64_t>();
    transforms<int32_t>();
    transforms<int64_t>();
    permutations<int32_t>();
    permutations<int64_t>();
    threads();
    std::puts("passed");
    return 0;
}
