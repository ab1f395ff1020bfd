/*
 * A stand-in for the header of HEAL's SDK, so that the backend is built and tested without the SDK:
 * names and types of its functions as of its commit 288b2cc (June 2025), and nothing else of it.
 */
#ifndef LATTICA_HW_API_STAND_IN_H
#define LATTICA_HW_API_STAND_IN_H

#include "../../declare.h"

template <typename T> struct DeviceTensor {
    void reshape(const std::vector<int64_t> &new_dims);
    void print() const;
    void print_metadata() const;
};

namespace lattica_hw_api
{

RETURNS_TENSOR allocate_on_hardware(const std::vector<int64_t> &);
RETURNS_TENSOR host_to_device(const torch::Tensor &);
template <typename T> torch::Tensor device_to_host(IN(T));
RETURNS_TENSOR make_contiguous(IN(T));
RETURNS_TENSOR expand(IN(T), int64_t axis, int64_t repeats);
RETURNS_TENSOR squeeze(IN(T), int64_t axis);
RETURNS_TENSOR unsqueeze(IN(T), int64_t axis);

RETURNS_NOTHING modmul_ttt(IN(T), IN(T), IN(T), OUT(T));
RETURNS_NOTHING modmul_ttc(IN(T), IN(T), T, OUT(T));
RETURNS_NOTHING modmul_tct(IN(T), T, IN(T), OUT(T));
RETURNS_NOTHING modmul_tcc(IN(T), T, T, OUT(T));
RETURNS_NOTHING modsum_ttt(IN(T), IN(T), IN(T), OUT(T));
RETURNS_NOTHING modsum_ttc(IN(T), IN(T), T, OUT(T));
RETURNS_NOTHING modsum_tct(IN(T), T, IN(T), OUT(T));
RETURNS_NOTHING modsum_tcc(IN(T), T, T, OUT(T));
RETURNS_NOTHING mod_tt(IN(T), IN(T), OUT(T));
RETURNS_NOTHING mod_tc(IN(T), int64_t, OUT(T));
RETURNS_NOTHING mod_ct(int64_t, IN(T), OUT(T));
RETURNS_NOTHING axis_modsum(IN(T), IN(T), OUT(T), int64_t axis);
RETURNS_NOTHING g_decomposition(IN(T), OUT(T), size_t digits, size_t base_bits);
/* a, p, perm, twiddles, log2p, mu, result */
RETURNS_NOTHING ntt(IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T));
/* a, p, perm, inverse twiddles, inverse of m, log2p, mu, result */
RETURNS_NOTHING intt(IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T));
RETURNS_NOTHING permute(IN(T), IN(T), OUT(T), int64_t elementwise_axis, int64_t perm_axis);

} // namespace lattica_hw_api

#endif
