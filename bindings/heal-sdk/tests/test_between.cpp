/*
 * The backend behind headers that are neither main's nor the later ones: forms that both lack, and
 * a class with numel.
 */
#include "check.h"

template <typename T> static void views()
{
    const Pointer<T> a = upload<T>({2, 3}, {1, 2, 3, 4, 5, 6});
    a->reshape({3, 2});
    CHECK(get_slice<T>(a, {Slice{0, 3, 2}, int64_t{1}}) == a);
    CHECK(a->numel() == 2 && holds<T>(a, {2}, {2, 6}));
    CHECK(contiguous<T>(a) == a && holds<T>(a, {2}, {2, 6}));
}

template <typename T> static void forms()
{
    const Pointer<T> a = upload<T>({2, 1, 2}, {27, 5, 3, 4}), p = upload<T>({2}, {31, 7});
    Pointer<T> sums = zeros<T>({1, 2}), digits = zeros<T>({2, 3}), places = zeros<T>({1, 2, 1});
    axis_modsum<T>(a, p, sums, 0);
    CHECK(holds<T>(sums, {1, 2}, {30, 2}));
    apply_g_decomp<T>(p, digits, 3, 2);
    CHECK(holds<T>(digits, {2, 3}, {3, 3, 1, 3, 1, 0}));
    /* 97 * 101 has 14 bits; x = 9000 = 35 * 256 + 40. */
    const Pointer<T> q = upload<T>({2}, {97, 101}), x = upload<T>({1, 2, 1}, {76, 11});
    apply_g_decomp_relative_to_full_q<T>(x, q, q, 2, 8, 56, nullptr, places);
    CHECK(holds<T>(places, {1, 2, 1}, {40, 35}));
}

/* n = 2, q = 5, psi = 2. */
template <typename T> static void transforms()
{
    const Pointer<T> a = upload<T>({1, 2, 1, 1}, {3, 4}), q = upload<T>({1}, {5});
    const Pointer<T> perm = upload<T>({2}, {1, 0}), half = upload<T>({1}, {3});
    Pointer<T> there = zeros<T>({1, 2, 1, 1});
    ntt<T>(a, q, perm, upload<T>({1, 2}, {1, 2}), there);
    CHECK(holds<T>(there, {1, 2, 1, 1}, {0, 1}));
    intt<T>(there, q, perm, upload<T>({1, 2}, {1, 3}), half, there);
    CHECK(holds<T>(there, {1, 2, 1, 1}, {3, 4}));
}

int main()
{
    views<int8_t>();
    views<int32_t>();
    views<int64_t>();
    forms<int32_t>();
    forms<int64_t>();
    transforms<int32_t>();
    transforms<int64_t>();
    std::puts("passed");
    return 0;
}
