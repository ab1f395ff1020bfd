/* The SDK's headers, and the class of tensors where they leave it to the backend. */
#ifndef HEALCL_HEAL_SDK_TENSOR_H
#define HEALCL_HEAL_SDK_TENSOR_H

#include <cstdint>

#include "heal_sdk_headers.h" /* made by CMake: includes the SDK's headers */

#ifndef HEAL_SDK_TENSOR_IS_DEFINED
template <typename T> class DeviceTensor
{
  public:
    void print() const;
    void print_metadata() const;
    int64_t numel() const;
};
#define HEAL_SDK_TENSOR_HAS_NUMEL
#endif

#endif
