/* Lists the functions that HEAL's SDK declares, from its main of June 2025 to its later headers. */
#ifndef HEALCL_HEAL_SDK_FUNCTIONS_H
#define HEALCL_HEAL_SDK_FUNCTIONS_H

#include <type_traits>
#include <variant>

#include "tensor.h"

#define TENSOR(T) std::shared_ptr<DeviceTensor<T>>
#define IN(T) const std::shared_ptr<DeviceTensor<T>> &
#define OUT(T) std::shared_ptr<DeviceTensor<T>> &

/* Names that a header may lack: its own declaration in lattica_hw_api hides these. */
namespace healcl_undeclared
{
struct Slice {
    int64_t start, stop, step;
};
template <typename T> TENSOR(T) get_slice(IN(T), const std::vector<std::variant<int64_t, Slice>> &);
template <typename T> void reshape();
} // namespace healcl_undeclared

namespace lattica_hw_api
{
using namespace healcl_undeclared;

template <typename Item> Item item_of(TENSOR(int64_t) (*)(IN(int64_t), const std::vector<Item> &));
using SliceItem = decltype(item_of(&get_slice<int64_t>));

/* Headers with a free reshape return views as new tensors. Before, the argument changes. */
constexpr bool views_are_new = !std::is_same<decltype(&reshape<int64_t>), void (*)()>::value;
} // namespace lattica_hw_api

/* The integer in mod_tc and mod_ct. */
#ifdef HEAL_SDK_MOD_TAKES_ELEMENT
#define MOD_INTEGER(T) T
#else
#define MOD_INTEGER(T) int64_t
#endif

/* Functions on int8, int32, int64 and double: X(T, result, name, arguments). */
#define MEMORY_FUNCTIONS(X, T)                                            \
    X(T, TENSOR(T), allocate_on_hardware, (const std::vector<int64_t> &)) \
    X(T, TENSOR(T), zeros, (const std::vector<int64_t> &))                \
    X(T, TENSOR(T), empty, (const std::vector<int64_t> &))                \
    X(T, TENSOR(T), host_to_device, (const torch::Tensor &))              \
    X(T, torch::Tensor, device_to_host, (IN(T)))                          \
    X(T, TENSOR(T), make_contiguous, (IN(T)))                             \
    X(T, TENSOR(T), contiguous, (IN(T)))                                  \
    X(T, TENSOR(T), expand, (IN(T), int64_t, int64_t))                    \
    X(T, TENSOR(T), squeeze, (IN(T), int64_t))                            \
    X(T, TENSOR(T), unsqueeze, (IN(T), int64_t))                          \
    X(T, TENSOR(T), flatten, (IN(T), int64_t, int64_t))                   \
    X(T, TENSOR(T), moveaxis, (IN(T), int64_t, int64_t))                  \
    X(T, TENSOR(T), reshape, (IN(T), const std::vector<int64_t> &))       \
    X(T, TENSOR(T), get_slice, (IN(T), const std::vector<SliceItem> &))   \
    X(T, void, set_const_val, (IN(T), T))                                 \
    X(T, void, pad_single_axis, (IN(T), int64_t, int64_t, OUT(T)))        \
    X(T, void, take_along_axis, (IN(T), IN(int64_t), int64_t, OUT(T)))

/* Functions on int32 and int64. Headers have had several forms of some; all are defined. */
#define FULL_Q_FORM(X, T, I) \
    X(T, void, apply_g_decomp_relative_to_full_q, (IN(T), IN(T), IN(T), I, I, I, IN(T), OUT(T)))
#define COMPUTE_FUNCTIONS(X, T)                                                                    \
    X(T, void, modmul_ttt, (IN(T), IN(T), IN(T), OUT(T)))                                          \
    X(T, void, modmul_ttc, (IN(T), IN(T), T, OUT(T)))                                              \
    X(T, void, modmul_tct, (IN(T), T, IN(T), OUT(T)))                                              \
    X(T, void, modmul_tcc, (IN(T), T, T, OUT(T)))                                                  \
    X(T, void, modsum_ttt, (IN(T), IN(T), IN(T), OUT(T)))                                          \
    X(T, void, modsum_ttc, (IN(T), IN(T), T, OUT(T)))                                              \
    X(T, void, modsum_tct, (IN(T), T, IN(T), OUT(T)))                                              \
    X(T, void, modsum_tcc, (IN(T), T, T, OUT(T)))                                                  \
    X(T, void, mod_tt, (IN(T), IN(T), OUT(T)))                                                     \
    X(T, void, mod_tc, (IN(T), MOD_INTEGER(T), OUT(T)))                                            \
    X(T, void, mod_ct, (MOD_INTEGER(T), IN(T), OUT(T)))                                            \
    X(T, void, modneg_tt, (IN(T), IN(T), OUT(T)))                                                  \
    X(T, void, modneg_tc, (IN(T), T, OUT(T)))                                                      \
    X(T, void, modmul_axis_sum, (IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), int64_t, bool, OUT(T))) \
    X(T, void, g_decomposition, (IN(T), OUT(T), size_t, size_t))                                   \
    X(T, void, permute, (IN(T), IN(T), OUT(T), int64_t, int64_t))                                  \
    X(T, void, axis_modsum, (IN(T), IN(T), OUT(T), int64_t))                                       \
    X(T, void, axis_modsum, (IN(T), IN(T), int64_t, OUT(T)))                                       \
    X(T, void, apply_g_decomp, (IN(T), OUT(T), size_t, size_t))                                    \
    FULL_Q_FORM(X, T, int)                                                                         \
    FULL_Q_FORM(X, T, int64_t)                                                                     \
    X(T, void, ntt, (IN(T), IN(T), IN(T), IN(T), OUT(T)))                                          \
    X(T, void, ntt, (IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T)))                            \
    X(T, void, intt, (IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T)))                                  \
    X(T, void, intt, (IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), IN(T), OUT(T)))

/* Functions with two element types: X(T, U, result, name, arguments). */
#define DIGIT_FUNCTIONS(X, T, U)                                                       \
    X(T, U, void, apply_g_decomp, (IN(T), OUT(U), size_t, size_t))                     \
    X(T, U, void, apply_g_decomp, (IN(T), size_t, size_t, OUT(U)))                     \
    X(T, U, void, apply_g_decomp_relative_to_full_q, (IN(T), IN(T), int, int, OUT(U))) \
    X(T, U, void, apply_g_decomp_relative_to_full_q, (IN(T), IN(T), int64_t, int64_t, OUT(U)))
#define NTT_FUNCTIONS(X, T, U) \
    X(T, U, void, ntt, (IN(T), IN(U), IN(U), IN(U), IN(U), IN(U), int64_t, bool, OUT(U)))

/* All functions with all element types. */
#define ALL_FUNCTIONS(X, X2)              \
    MEMORY_FUNCTIONS(X, int8_t)           \
    MEMORY_FUNCTIONS(X, int32_t)          \
    MEMORY_FUNCTIONS(X, int64_t)          \
    MEMORY_FUNCTIONS(X, double)           \
    COMPUTE_FUNCTIONS(X, int32_t)         \
    COMPUTE_FUNCTIONS(X, int64_t)         \
    DIGIT_FUNCTIONS(X2, int32_t, int8_t)  \
    DIGIT_FUNCTIONS(X2, int64_t, int8_t)  \
    DIGIT_FUNCTIONS(X2, int32_t, int32_t) \
    DIGIT_FUNCTIONS(X2, int64_t, int64_t) \
    NTT_FUNCTIONS(X2, int8_t, int32_t)    \
    NTT_FUNCTIONS(X2, int8_t, int64_t)    \
    NTT_FUNCTIONS(X2, int32_t, int32_t)   \
    NTT_FUNCTIONS(X2, int64_t, int64_t)

/* Repeats the header's declarations, and adds those that it lacks. */
namespace lattica_hw_api
{
#define DECLARE(T, result, name, arguments) template <typename T> result name arguments;
#define DECLARE2(T, U, result, name, arguments) \
    template <typename T, typename U> result name arguments;
MEMORY_FUNCTIONS(DECLARE, T)
COMPUTE_FUNCTIONS(DECLARE, T)
DIGIT_FUNCTIONS(DECLARE2, T, U)
NTT_FUNCTIONS(DECLARE2, T, U)
} // namespace lattica_hw_api

#endif
