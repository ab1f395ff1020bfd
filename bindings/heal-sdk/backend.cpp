/*
 * The functions that HEAL's SDK declares, over libhealcl: docs/HEAL-SDK.md.
 *
 * All tensors are on one queue of the device that the environment's HEALCL_DEVICE names;
 * "reference" is the host reference. Functions may be called from any thread.
 */
#include <healcl.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "functions.h"

namespace
{

/* ---------------------------------------------------------------- errors */

/* Throws what an error of libhealcl is in C++. */
[[noreturn]] void fail(healcl_error &error)
{
    const healcl_status status = error.status;
    const bool about_data = error.cause == HEALCL_CAUSE_DATA;
    std::string message = error.message;
    if (error.detail)
        message += std::string("\n") + error.detail;
    healcl_error_clear(&error);
    if (status == HEALCL_NO_MEMORY)
        throw std::bad_alloc();
    if (about_data)
        throw std::out_of_range(message);
    if (status == HEALCL_REFUSED || status == HEALCL_USAGE)
        throw std::invalid_argument(message);
    throw std::runtime_error(message);
}

/* ---------------------------------------------------------------- the queue */

struct Session {
    std::mutex lock; /* around every function of libhealcl but releases */
    healcl_queue *queue = nullptr;

    Session()
    {
        const char *selector = std::getenv("HEALCL_DEVICE");
        const bool on_host = selector && std::strcmp(selector, "reference") == 0;
        healcl_device *device = nullptr;
        healcl_plan_options options{};
        healcl_error error{};
        options.expand = HEALCL_EXPAND_SPECIFICATION; /* which is the header's */
        if (!on_host && healcl_device_open(nullptr, &device, &error) != HEALCL_OK)
            fail(error);
        const healcl_status status = healcl_queue_open(device, &options, &queue, &error);
        healcl_device_close(device); /* the queue has what it needs of it */
        if (status != HEALCL_OK)
            fail(error);
    }

    ~Session()
    {
        healcl_queue_close(queue);
    }

    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
};

/* Opened by the first call, closed when the process ends; tensors may be released after that. */
Session &session()
{
    static Session opened;
    return opened;
}

/* Calls a function of libhealcl with the queue and an error, and throws where it fails. */
template <typename Function> void locked(const Function &function)
{
    Session &on = session();
    healcl_error error{};
    healcl_status status;
    {
        const std::lock_guard<std::mutex> guard(on.lock);
        status = function(on.queue, &error);
    }
    if (status != HEALCL_OK)
        fail(error);
}

/* ---------------------------------------------------------------- tensors */

template <typename T> using Pointer = std::shared_ptr<DeviceTensor<T>>;

/* The backend's form of the SDK's DeviceTensor, which has no members. A view replaces the
 * handle. */
template <typename T> struct Tensor : DeviceTensor<T> {
    explicit Tensor(healcl_tensor *made) : handle(made)
    {
    }

    ~Tensor()
    {
        healcl_tensor_release(handle); /* any thread may */
    }

    healcl_tensor *handle;
};

/* Doubles are only moved: their bits are integers. */
template <typename T> healcl_dtype dtype_of()
{
    if (sizeof(T) == sizeof(int8_t))
        return HEALCL_INT8;
    return sizeof(T) == sizeof(int32_t) ? HEALCL_INT32 : HEALCL_INT64;
}

template <typename T> healcl_tensor *handle_of(const DeviceTensor<T> &tensor)
{
    return static_cast<const Tensor<T> &>(tensor).handle;
}

template <typename T> Pointer<T> create(const std::vector<int64_t> &dims, const void *data)
{
    healcl_tensor *handle = nullptr;
    locked([&](healcl_queue *queue, healcl_error *error) {
        return healcl_tensor_create(queue, dtype_of<T>(), static_cast<uint32_t>(dims.size()),
                                    dims.data(), data, &handle, error);
    });
    return std::make_shared<Tensor<T>>(handle);
}

/* ---------------------------------------------------------------- calls */

template <typename T> healcl_argument argument(const Pointer<T> &tensor)
{
    if (!tensor)
        throw std::invalid_argument("a tensor is a null pointer");
    return healcl_tensor_argument(handle_of(*tensor));
}

healcl_argument argument(const healcl_argument &made)
{
    return made;
}

healcl_argument argument(int64_t integer)
{
    return healcl_int_argument(integer);
}

/* A tensor that may be missing. */
template <typename T> healcl_argument optional(const Pointer<T> &tensor)
{
    return tensor ? argument(tensor) : healcl_no_argument();
}

template <typename... Arguments>
void call_into(const char *operation, healcl_tensor **result, const Arguments &...arguments)
{
    const healcl_argument list[] = {argument(arguments)...};
    locked([&](healcl_queue *queue, healcl_error *error) {
        return healcl_call(queue, operation, sizeof...(arguments), list, result, error);
    });
}

/* An operation with an out among its arguments. */
template <typename... Arguments> void call(const char *operation, const Arguments &...arguments)
{
    call_into(operation, nullptr, arguments...);
}

/* A tensor becomes a view of itself. */
template <typename T> void become(DeviceTensor<T> &tensor, healcl_tensor *view)
{
    Tensor<T> &self = static_cast<Tensor<T> &>(tensor);
    healcl_tensor_release(self.handle);
    self.handle = view;
}

template <typename T, typename... Arguments>
Pointer<T> view(const Pointer<T> &tensor, const char *operation, const Arguments &...arguments)
{
    healcl_tensor *result = nullptr;
    call_into(operation, &result, tensor, arguments...);
    if (lattica_hw_api::views_are_new)
        return std::make_shared<Tensor<T>>(result);
    become(*tensor, result);
    return tensor;
}

healcl_argument shape_argument(const std::vector<int64_t> &dims)
{
    return healcl_shape_argument(static_cast<uint32_t>(dims.size()), dims.data());
}

/* Data errors belong to the call itself. */
void wait()
{
    locked(healcl_queue_wait);
}

std::vector<int64_t> shape_of(const healcl_tensor *handle)
{
    const healcl_tensor_info info = healcl_tensor_describe(handle);
    return std::vector<int64_t>(info.shape, info.shape + info.rank);
}

template <typename T> torch::Tensor read(const DeviceTensor<T> &tensor)
{
    healcl_tensor *const handle = handle_of(tensor);
    torch::Tensor values = torch::empty(shape_of(handle), torch::CppTypeToScalarType<T>::value);
    locked([&](healcl_queue *, healcl_error *error) {
        return healcl_tensor_read(handle, values.data_ptr(),
                                  static_cast<size_t>(values.numel()) * sizeof(T), error);
    });
    return values;
}

} // namespace

/* ---------------------------------------------------------------- DeviceTensor */

#ifdef HEAL_SDK_TENSOR_HAS_RESHAPE
template <typename T> void DeviceTensor<T>::reshape(const std::vector<int64_t> &new_dims)
{
    healcl_tensor *result = nullptr;
    call_into("reshape", &result, healcl_tensor_argument(handle_of(*this)),
              shape_argument(new_dims));
    become(*this, result);
}
#endif

#ifdef HEAL_SDK_TENSOR_HAS_NUMEL
template <typename T> int64_t DeviceTensor<T>::numel() const
{
    int64_t product = 1;
    for (const int64_t size : shape_of(handle_of(*this)))
        product *= size;
    return product;
}
#endif

template <typename T> void DeviceTensor<T>::print() const
{
    std::cout << read(*this) << '\n';
}

template <typename T> void DeviceTensor<T>::print_metadata() const
{
    const char *separator = "shape [";
    for (const int64_t size : shape_of(handle_of(*this))) {
        std::cout << separator << size;
        separator = ", ";
    }
    std::cout << (*separator == 's' ? "shape []" : "]") << '\n';
}

template struct DeviceTensor<int8_t>;
template struct DeviceTensor<int32_t>;
template struct DeviceTensor<int64_t>;
template struct DeviceTensor<double>;

/* ---------------------------------------------------------------- functions */

namespace lattica_hw_api
{

#define ALLOCATION(name)                                                    \
    template <typename T> Pointer<T> name(const std::vector<int64_t> &dims) \
    {                                                                       \
        return create<T>(dims, nullptr);                                    \
    }

ALLOCATION(allocate_on_hardware)
ALLOCATION(zeros)
ALLOCATION(empty)

template <typename T> Pointer<T> host_to_device(const torch::Tensor &tensor)
{
    if (tensor.scalar_type() != torch::CppTypeToScalarType<T>::value)
        throw std::invalid_argument("the tensor has another dtype than the function");
    const torch::Tensor values = tensor.cpu().contiguous();
    return create<T>(values.sizes().vec(), values.data_ptr());
}

template <typename T> torch::Tensor device_to_host(const Pointer<T> &memory)
{
    if (!memory)
        throw std::invalid_argument("a tensor is a null pointer");
    return read(*memory);
}

template <typename T> Pointer<T> contiguous(const Pointer<T> &tensor)
{
    if (tensor && healcl_tensor_layout(handle_of(*tensor)).contiguous)
        return tensor;
    return view(tensor, "contiguous");
}

template <typename T> Pointer<T> make_contiguous(const Pointer<T> &tensor)
{
    return contiguous(tensor);
}

template <typename T> Pointer<T> expand(const Pointer<T> &tensor, int64_t axis, int64_t repeats)
{
    return view(tensor, "expand", axis, repeats);
}

template <typename T> Pointer<T> squeeze(const Pointer<T> &tensor, int64_t axis)
{
    return view(tensor, "squeeze", axis);
}

template <typename T> Pointer<T> unsqueeze(const Pointer<T> &tensor, int64_t axis)
{
    return view(tensor, "unsqueeze", axis);
}

template <typename T>
Pointer<T> flatten(const Pointer<T> &tensor, int64_t first_axis, int64_t last_axis)
{
    return view(tensor, "flatten", first_axis, last_axis);
}

template <typename T> Pointer<T> moveaxis(const Pointer<T> &tensor, int64_t from, int64_t to)
{
    return view(tensor, "moveaxis", from, to);
}

template <typename T>
Pointer<T> reshape(const Pointer<T> &tensor, const std::vector<int64_t> &new_dims)
{
    return view(tensor, "reshape", shape_argument(new_dims));
}

template <typename T>
Pointer<T> get_slice(const Pointer<T> &tensor, const std::vector<SliceItem> &items)
{
    std::vector<healcl_index> index;
    const auto append = [&](const auto &item) {
        if constexpr (std::is_integral<std::decay_t<decltype(item)>>::value) {
            index.push_back({HEALCL_INDEX_INT, item, false, false, false, 0, 0, 0});
        } else {
            const auto &[start, stop, step] = item;
            index.push_back({HEALCL_INDEX_SLICE, 0, true, true, true, start, stop, step});
        }
    };
    for (const SliceItem &item : items)
        std::visit(append, item);
    return view(tensor, "get_slice",
                healcl_index_argument(static_cast<uint32_t>(index.size()), index.data()));
}

template <typename T> void set_const_val(const Pointer<T> &tensor, T value)
{
    int64_t bits = static_cast<int64_t>(value);
    if (std::is_floating_point<T>::value)
        std::memcpy(&bits, &value, sizeof value);
    call("set_const_val", tensor, bits);
}

#define MODULAR(name)                                                                        \
    template <typename T>                                                                    \
    void name##_ttt(const Pointer<T> &a, const Pointer<T> &b, const Pointer<T> &p,           \
                    Pointer<T> &result)                                                      \
    {                                                                                        \
        call(#name, a, b, p, result);                                                        \
    }                                                                                        \
    template <typename T>                                                                    \
    void name##_ttc(const Pointer<T> &a, const Pointer<T> &b, T p, Pointer<T> &result)       \
    {                                                                                        \
        call(#name, a, b, p, result);                                                        \
    }                                                                                        \
    template <typename T>                                                                    \
    void name##_tct(const Pointer<T> &a, T b, const Pointer<T> &p, Pointer<T> &result)       \
    {                                                                                        \
        call(#name, a, b, p, result);                                                        \
    }                                                                                        \
    template <typename T> void name##_tcc(const Pointer<T> &a, T b, T p, Pointer<T> &result) \
    {                                                                                        \
        call(#name, a, b, p, result);                                                        \
    }

MODULAR(modmul)
MODULAR(modsum)

template <typename T> void mod_tt(const Pointer<T> &a, const Pointer<T> &b, Pointer<T> &result)
{
    call("mod", a, b, result);
}

template <typename T> void mod_tc(const Pointer<T> &a, MOD_INTEGER(T) b, Pointer<T> &result)
{
    call("mod", a, b, result);
}

template <typename T> void mod_ct(MOD_INTEGER(T) a, const Pointer<T> &b, Pointer<T> &result)
{
    call("mod", a, b, result);
}

template <typename T> void modneg_tt(const Pointer<T> &a, const Pointer<T> &p, Pointer<T> &result)
{
    call("modneg", a, p, result);
}

template <typename T> void modneg_tc(const Pointer<T> &a, T p, Pointer<T> &result)
{
    call("modneg", a, p, result);
}

template <typename T>
void axis_modsum(const Pointer<T> &a, const Pointer<T> &p, Pointer<T> &result, int64_t axis)
{
    call("axis_modsum", a, axis, p, result);
}

template <typename T>
void axis_modsum(const Pointer<T> &a, const Pointer<T> &p, int64_t axis, Pointer<T> &result)
{
    call("axis_modsum", a, axis, p, result);
}

/* An index out of range is to be an exception of the call itself: functions with indices wait. */
template <typename T>
void modmul_axis_sum(const Pointer<T> &a, const Pointer<T> &b, const Pointer<T> &p,
                     const Pointer<T> &perm, const Pointer<T> &log2p, const Pointer<T> &mu,
                     int64_t axis, bool apply_perm, Pointer<T> &result)
{
    call("modmul_axis_sum", a, b, p, optional(log2p), optional(mu), optional(perm), result,
         apply_perm, axis);
    if (apply_perm)
        wait();
}

template <typename T>
void permute(const Pointer<T> &a, const Pointer<T> &perms, Pointer<T> &result,
             int64_t elementwise_axis, int64_t perm_axis)
{
    call("permute", a, perms, result, elementwise_axis, perm_axis);
    wait();
}

template <typename T>
void take_along_axis(const Pointer<T> &a, const Pointer<int64_t> &indices, int64_t axis,
                     Pointer<T> &result)
{
    call("take_along_axis", a, indices, axis, result);
    wait();
}

template <typename T>
void pad_single_axis(const Pointer<T> &a, int64_t pad, int64_t axis, Pointer<T> &result)
{
    call("pad_single_axis", a, pad, axis, result);
}

/* ---------------------------------------------------------------- digits */

template <typename T, typename U>
void apply_g_decomp(const Pointer<T> &a, size_t power, size_t base_bits, Pointer<U> &result)
{
    call("apply_g_decomp", a, static_cast<int64_t>(power), static_cast<int64_t>(base_bits), result);
}

template <typename T, typename U>
void apply_g_decomp(const Pointer<T> &a, Pointer<U> &result, size_t power, size_t base_bits)
{
    apply_g_decomp<T, U>(a, power, base_bits, result);
}

template <typename T>
void apply_g_decomp(const Pointer<T> &a, Pointer<T> &result, size_t power, size_t base_bits)
{
    apply_g_decomp<T, T>(a, power, base_bits, result);
}

template <typename T>
void g_decomposition(const Pointer<T> &a, Pointer<T> &result, size_t power, size_t base_bits)
{
    apply_g_decomp<T, T>(a, power, base_bits, result);
}

#define FULL_Q(Integer)                                                                          \
    template <typename T, typename U>                                                            \
    void apply_g_decomp_relative_to_full_q(const Pointer<T> &a, const Pointer<T> &q,             \
                                           Integer power, Integer base_bits, Pointer<U> &result) \
    {                                                                                            \
        call("apply_g_decomp_relative_to_full_q", a, q, power, base_bits, result);               \
    }                                                                                            \
    template <typename T>                                                                        \
    void apply_g_decomp_relative_to_full_q(                                                      \
        const Pointer<T> &a, const Pointer<T> &q, const Pointer<T> &q_inv, Integer power,        \
        Integer base_bits, Integer level_bits, const Pointer<T> &level_inv, Pointer<T> &result)  \
    {                                                                                            \
        call("apply_g_decomp_relative_to_full_q", a, q, optional(q_inv), power, base_bits,       \
             level_bits, optional(level_inv), result);                                           \
    }

FULL_Q(int)
FULL_Q(int64_t)

/* ---------------------------------------------------------------- transforms */

template <typename T, typename U>
void ntt(const Pointer<T> &a, const Pointer<U> &p, const Pointer<U> &perm,
         const Pointer<U> &twiddles, const Pointer<U> &log2p, const Pointer<U> &mu, int64_t axis,
         bool skip_perm, Pointer<U> &result)
{
    const healcl_argument pairs = healcl_no_argument();
    const int64_t tile = 0;
    call("ntt", a, axis, optional(perm), pairs, p, optional(log2p), optional(mu), twiddles, result,
         tile, skip_perm);
}

template <typename T>
void ntt(const Pointer<T> &a, const Pointer<T> &p, const Pointer<T> &perm,
         const Pointer<T> &twiddles, const Pointer<T> &log2p, const Pointer<T> &mu,
         Pointer<T> &result)
{
    ntt<T, T>(a, p, perm, twiddles, log2p, mu, -3, false, result);
}

template <typename T>
void ntt(const Pointer<T> &a, const Pointer<T> &p, const Pointer<T> &perm,
         const Pointer<T> &twiddles, Pointer<T> &result)
{
    ntt<T, T>(a, p, perm, twiddles, nullptr, nullptr, -3, false, result);
}

template <typename T>
void intt(const Pointer<T> &a, const Pointer<T> &p, const Pointer<T> &perm,
          const Pointer<T> &inv_twiddles, const Pointer<T> &m_inv, const Pointer<T> &log2p,
          const Pointer<T> &mu, Pointer<T> &result)
{
    const healcl_argument pairs = healcl_no_argument();
    const int64_t tile = 0;
    call("intt", a, perm, pairs, p, optional(log2p), optional(mu), inv_twiddles, m_inv, result,
         tile);
}

template <typename T>
void intt(const Pointer<T> &a, const Pointer<T> &p, const Pointer<T> &perm,
          const Pointer<T> &inv_twiddles, const Pointer<T> &m_inv, Pointer<T> &result)
{
    intt<T>(a, p, perm, inv_twiddles, m_inv, nullptr, nullptr, result);
}

#define INSTANTIATE(T, result, name, arguments) template result name<T> arguments;
#define INSTANTIATE2(T, U, result, name, arguments) template result name<T, U> arguments;
ALL_FUNCTIONS(INSTANTIATE, INSTANTIATE2)

} // namespace lattica_hw_api
