/* A stand-in for what the backend takes of torch: a packed tensor in host memory. */
#ifndef TORCH_STAND_IN_H
#define TORCH_STAND_IN_H

#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

namespace torch
{

enum class ScalarType { Char, Int, Long, Double };

template <typename T> struct CppTypeToScalarType;
template <> struct CppTypeToScalarType<int8_t> {
    static constexpr ScalarType value = ScalarType::Char;
};
template <> struct CppTypeToScalarType<int32_t> {
    static constexpr ScalarType value = ScalarType::Int;
};
template <> struct CppTypeToScalarType<int64_t> {
    static constexpr ScalarType value = ScalarType::Long;
};
template <> struct CppTypeToScalarType<double> {
    static constexpr ScalarType value = ScalarType::Double;
};

struct Sizes {
    std::vector<int64_t> items;
    std::vector<int64_t> vec() const
    {
        return items;
    }
};

class Tensor
{
  public:
    Tensor(const std::vector<int64_t> &shape, ScalarType scalar_type)
        : shape_{shape}, type_(scalar_type)
    {
        data_ = std::make_shared<std::vector<int64_t>>(static_cast<size_t>(numel()));
    }

    ScalarType scalar_type() const
    {
        return type_;
    }
    const Sizes &sizes() const
    {
        return shape_;
    }
    Tensor cpu() const
    {
        return *this;
    }
    Tensor contiguous() const
    {
        return *this;
    }
    void *data_ptr() const
    {
        return data_->data();
    }
    int64_t numel() const
    {
        int64_t product = 1;
        for (const int64_t size : shape_.items)
            product *= size;
        return product;
    }

  private:
    Sizes shape_;
    ScalarType type_;
    std::shared_ptr<std::vector<int64_t>>
        data_; /* 8 bytes for each element, of which 1 or 4 may be used */
};

inline Tensor empty(const std::vector<int64_t> &shape, ScalarType type)
{
    return Tensor(shape, type);
}

inline std::ostream &operator<<(std::ostream &stream, const Tensor &tensor)
{
    return stream << "a tensor of " << tensor.numel() << " elements";
}

} // namespace torch

#endif
