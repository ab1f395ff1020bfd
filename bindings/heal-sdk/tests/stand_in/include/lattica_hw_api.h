/*
 * A stand-in for the header of HEAL's SDK, so that the backend is built and tested without the SDK:
 * names and types of its functions as of its commit 288b2cc (June 2025), and nothing else of it.
 */
#ifndef LATTICA_HW_API_STAND_IN_H
#define LATTICA_HW_API_STAND_IN_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <torch/torch.h>

template <typename T> struct DeviceTensor {
    void reshape(const std::vector<int64_t> &new_dims);
    void print() const;
    void print_metadata() const;
};

namespace lattica_hw_api
{

#define IN(T) const std::shared_ptr<DeviceTensor<T>> &
#define OUT(T) std::shared_ptr<DeviceTensor<T>> &
#define RETURNS_TENSOR(T) template <typename T> std::shared_ptr<DeviceTensor<T>>
#define RETURNS_NOTHING(T) template <typename T> void

RETURNS_TENSOR(T) allocate_on_hardware(const std::vector<int64_t> &);
RETURNS_TENSOR(T) host_to_device(const torch::Tensor &);
template <typename T> torch::Tensor device_to_host(IN(T));
RETURNS_TENSOR(T) make_contiguous(IN(T));
RETURNS_TENSOR(T) expand(IN(T), int64_t axis, int64_t repeats);
RETURNS_TENSOR(T) squeeze(IN(T), int64_t axis);
RETURNS_TENSOR(T) unsqueeze(IN(T), int64_t axis);

RETURNS_NOTHING(T) modmul_ttt(IN(T), IN(T), IN(T), OUT(T));
RETURNS_NOTHING(T) modmul_ttc(IN(T), IN(T), T, OUT(T));
RETURNS_NOTHING(T) modmul_tct(IN(T), T, IN(T), OUT(T));
RETURNS_NOTHING(T) modmul_tcc(IN(T), T, T, OUT(T));
RETURNS_NOTHING(T) modsum_ttt(IN(T), IN(T), IN(T), OUT(T));
RETURNS_NOTHING(T) modsum_ttc(IN(T), IN(T), T, OUT(T));
RETURNS_NOTHING(T) modsum_tct(IN(T), T, IN(T), OUT(T));
RETURNS_NOTHING(T) modsum_tcc(IN(T), T, T, OUT(T));
RETURNS_NOTHING(T) mod_tt(IN(T), IN(T), OUT(T));
RETURNS_NOTHING(T) mod_tc(IN(T), int64_t, OUT(T));
RETURNS_NOTHING(T) mod_ct(int64_t, IN(T), OUT(T));
RETURNS_NOTHING(T) axis_modsum(IN(T), IN(T), OUT(T), int64_t axis);
RETURNS_NOTHING(T) g_decomposition(IN(T), OUT(T), size_t digits, size_t base_bits);
/* a, p, perm, twiddles, log2p, mu, result */
RETURNS_NOTHING(T) ntt(IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T));
/* a, p, perm, inverse twiddles, inverse of m, log2p, mu, result */
RETURNS_NOTHING(T) intt(IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T));
RETURNS_NOTHING(T) permute(IN(T), IN(T), OUT(T), int64_t elementwise_axis, int64_t perm_axis);

#undef IN
#undef OUT
#undef RETURNS_TENSOR
#undef RETURNS_NOTHING

} // namespace lattica_hw_api

#endif
