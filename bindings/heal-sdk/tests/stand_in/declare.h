/* Macros with which the stand-ins for headers of HEAL's SDK declare functions. */
#ifndef DECLARE_STAND_IN_H
#define DECLARE_STAND_IN_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include <torch/torch.h>

#define IN(T) const std::shared_ptr<DeviceTensor<T>> &
#define OUT(T) std::shared_ptr<DeviceTensor<T>> &
#define RETURNS_TENSOR template <typename T> std::shared_ptr<DeviceTensor<T>>
#define RETURNS_NOTHING template <typename T> void

#endif
