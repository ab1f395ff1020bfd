/*
 * A stand-in for headers of HEAL's SDK after June 2025, one for each group of functions: names and
 * types of functions that are not as main's, and nothing else of it.
 */
#ifndef OPERATIONS_STAND_IN_H
#define OPERATIONS_STAND_IN_H

#include "../../declare.h"

template <typename T> class DeviceTensor;

namespace lattica_hw_api
{

struct Slice {
    int64_t start, end, step;
    Slice(int64_t from, int64_t to, int64_t by = 1) : start(from), end(to), step(by)
    {
    }
};
using SliceArg = std::variant<int64_t, Slice>;

RETURNS_TENSOR zeros(const std::vector<int64_t> &);
RETURNS_TENSOR empty(const std::vector<int64_t> &);
RETURNS_TENSOR host_to_device(const torch::Tensor &);
template <typename T> torch::Tensor device_to_host(IN(T));
RETURNS_TENSOR contiguous(IN(T));
RETURNS_TENSOR expand(IN(T), int64_t axis, int64_t repeats);
RETURNS_TENSOR squeeze(IN(T), int64_t axis);
RETURNS_TENSOR unsqueeze(IN(T), int64_t axis);
RETURNS_TENSOR flatten(IN(T), int64_t first_axis, int64_t last_axis);
RETURNS_TENSOR moveaxis(IN(T), int64_t from, int64_t to);
RETURNS_TENSOR get_slice(IN(T), const std::vector<SliceArg> &);
RETURNS_TENSOR reshape(IN(T), const std::vector<int64_t> &);

RETURNS_NOTHING set_const_val(IN(T), T);
RETURNS_NOTHING mod_tc(IN(T), T, OUT(T));
RETURNS_NOTHING mod_ct(T, IN(T), OUT(T));
RETURNS_NOTHING modneg_tt(IN(T), IN(T), OUT(T));
RETURNS_NOTHING modneg_tc(IN(T), T, OUT(T));
RETURNS_NOTHING pad_single_axis(IN(T), int64_t pad, int64_t axis, OUT(T));
RETURNS_NOTHING take_along_axis(IN(T), IN(int64_t), int64_t axis, OUT(T));
RETURNS_NOTHING axis_modsum(IN(T), IN(T), int64_t axis, OUT(T));
/* a, b, p, perm, log2p, mu, axis, apply_perm, result */
RETURNS_NOTHING modmul_axis_sum(IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), int64_t, bool, OUT(T));

template <typename T, typename U>
void apply_g_decomp(IN(T), size_t digits, size_t base_bits, OUT(U));
template <typename T, typename U>
void apply_g_decomp_relative_to_full_q(IN(T), IN(T), int digits, int base_bits, OUT(U));
/* a, p, perm, twiddles, log2p, mu, axis, skip_perm, result */
template <typename T, typename U>
void ntt(IN(T), IN(U), IN(U), IN(U), IN(U), IN(U), int64_t axis, bool skip_perm, OUT(U));

} // namespace lattica_hw_api

#endif
