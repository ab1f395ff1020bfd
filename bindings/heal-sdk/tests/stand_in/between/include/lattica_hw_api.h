/*
 * A stand-in for headers of HEAL's SDK between main's and the later ones: names and types of
 * functions as neither has them, and nothing else of it. Views change their argument.
 */
#ifndef LATTICA_HW_API_STAND_IN_H
#define LATTICA_HW_API_STAND_IN_H

#include "../../declare.h"

template <typename T> struct DeviceTensor {
    void reshape(const std::vector<int64_t> &new_dims);
    void print() const;
    void print_metadata() const;
    int64_t numel() const;
};

namespace lattica_hw_api
{

struct Slice {
    int64_t start, end, step;
};

RETURNS_TENSOR zeros(const std::vector<int64_t> &);
RETURNS_TENSOR host_to_device(const torch::Tensor &);
template <typename T> torch::Tensor device_to_host(IN(T));
RETURNS_TENSOR contiguous(IN(T));
RETURNS_TENSOR get_slice(IN(T), const std::vector<std::variant<int64_t, Slice>> &);
RETURNS_NOTHING axis_modsum(IN(T), IN(T), OUT(T), int64_t axis);
RETURNS_NOTHING apply_g_decomp(IN(T), OUT(T), size_t digits, size_t base_bits);
/* a, q, inverses of q, digits, base_bits, level_bits, inverses of levels, result */
RETURNS_NOTHING apply_g_decomp_relative_to_full_q(IN(T), IN(T), IN(T), int, int, int, IN(T),
                                                  OUT(T));
RETURNS_NOTHING ntt(IN(T), IN(T), IN(T), IN(T), OUT(T));
RETURNS_NOTHING intt(IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T));

} // namespace lattica_hw_api

#endif
