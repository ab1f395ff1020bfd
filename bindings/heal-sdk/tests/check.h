/* Checks, and tensors from values, for the tests of the backend. */
#ifndef HEALCL_HEAL_SDK_CHECK_H
#define HEALCL_HEAL_SDK_CHECK_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "../tensor.h"

using namespace lattica_hw_api;

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

#define CHECK_THROWS(exception, ...)                                            \
    try {                                                                       \
        __VA_ARGS__;                                                            \
        std::fprintf(stderr, "%s:%d: no %s\n", __FILE__, __LINE__, #exception); \
        std::exit(1);                                                           \
    } catch (const exception &) {                                               \
    }

template <typename T> using Pointer = std::shared_ptr<DeviceTensor<T>>;

template <typename T>
Pointer<T> upload(const std::vector<int64_t> &shape, const std::vector<T> &values)
{
    const torch::Tensor tensor = torch::empty(shape, torch::CppTypeToScalarType<T>::value);
    CHECK(tensor.numel() == static_cast<int64_t>(values.size()));
    std::memcpy(tensor.data_ptr(), values.data(), values.size() * sizeof(T));
    return host_to_device<T>(tensor);
}

template <typename T>
bool holds(const Pointer<T> &tensor, const std::vector<int64_t> &shape,
           const std::vector<T> &values)
{
    const torch::Tensor host = device_to_host<T>(tensor);
    return host.sizes().vec() == shape && host.numel() == static_cast<int64_t>(values.size()) &&
           std::memcmp(host.data_ptr(), values.data(), values.size() * sizeof(T)) == 0;
}

#endif
