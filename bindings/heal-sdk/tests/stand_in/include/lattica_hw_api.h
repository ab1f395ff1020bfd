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
#define MADE(T) template <typename T> std::shared_ptr<DeviceTensor<T>>
#define DONE(T) template <typename T> void

MADE(T) allocate_on_hardware(const std::vector<int64_t> &);
MADE(T) host_to_device(const torch::Tensor &);
template <typename T> torch::Tensor device_to_host(IN(T));
MADE(T) make_contiguous(IN(T));
MADE(T) expand(IN(T), int64_t axis, int64_t repeats);
MADE(T) squeeze(IN(T), int64_t axis);
MADE(T) unsqueeze(IN(T), int64_t axis);

DONE(T) modmul_ttt(IN(T), IN(T), IN(T), OUT(T));
DONE(T) modmul_ttc(IN(T), IN(T), T, OUT(T));
DONE(T) modmul_tct(IN(T), T, IN(T), OUT(T));
DONE(T) modmul_tcc(IN(T), T, T, OUT(T));
DONE(T) modsum_ttt(IN(T), IN(T), IN(T), OUT(T));
DONE(T) modsum_ttc(IN(T), IN(T), T, OUT(T));
DONE(T) modsum_tct(IN(T), T, IN(T), OUT(T));
DONE(T) modsum_tcc(IN(T), T, T, OUT(T));
DONE(T) mod_tt(IN(T), IN(T), OUT(T));
DONE(T) mod_tc(IN(T), int64_t, OUT(T));
DONE(T) mod_ct(int64_t, IN(T), OUT(T));
DONE(T) axis_modsum(IN(T), IN(T), OUT(T), int64_t axis);
DONE(T) g_decomposition(IN(T), OUT(T), size_t digits, size_t base_bits);
/* a, p, perm, twiddles, log2p, mu, result */
DONE(T) ntt(IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T));
/* a, p, perm, inverse twiddles, inverse of m, log2p, mu, result */
DONE(T) intt(IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T));
DONE(T) permute(IN(T), IN(T), OUT(T), int64_t elementwise_axis, int64_t perm_axis);

#undef IN
#undef OUT
#undef MADE
#undef DONE

} // namespace lattica_hw_api

#endif
