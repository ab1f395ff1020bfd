/* The extension module lattica_hw, which the runtime of HEAL's SDK imports. It has every function
 * and form of functions.h, whatever the header declares: calls choose a form by their arguments. */
#include <pybind11/stl.h>
#include <torch/extension.h>

#include <limits>

#include "functions.h"

namespace py = pybind11;
using lattica_hw_api::SliceItem;

/* An integer or slice of Python as an item of get_slice. */
template <> struct py::detail::type_caster<SliceItem> {
    PYBIND11_TYPE_CASTER(SliceItem, const_name("int | slice"));

    bool load(handle source, bool)
    {
        const auto part = [&](const char *name, int64_t if_none) {
            const object number = source.attr(name);
            return number.is_none() ? if_none : number.cast<int64_t>();
        };
        if (isinstance<int_>(source))
            value = source.cast<int64_t>();
        else if (isinstance<slice>(source))
            value = std::variant_alternative_t<1, SliceItem>{
                part("start", 0), part("stop", std::numeric_limits<int64_t>::max()),
                part("step", 1)};
        else
            return false;
        return true;
    }
};

template <typename T> static std::string suffix()
{
    return "_" + std::string(std::is_integral<T>::value ? "" : "float") +
           std::to_string(8 * sizeof(T));
}

template <typename T> static void bind_tensor(py::module_ &module)
{
    using Class = DeviceTensor<T>;
    py::class_<Class, std::shared_ptr<Class>>(module,
                                              ("DeviceTensor" + suffix<T>().substr(1)).c_str())
#ifdef HEAL_SDK_TENSOR_HAS_RESHAPE
        .def("reshape", &Class::reshape)
#endif
#ifdef HEAL_SDK_TENSOR_HAS_NUMEL
        .def("numel", &Class::numel)
#endif
        .def("print", &Class::print)
        .def("print_metadata", &Class::print_metadata);
}

/* Other threads of Python go on meanwhile. */
#define BIND_FUNCTION(result, name, suffix, arguments, ...)                          \
    module.def((#name + suffix).c_str(),                                             \
               static_cast<result(*) arguments>(&lattica_hw_api::name<__VA_ARGS__>), \
               py::call_guard<py::gil_scoped_release>());
#define BIND(T, result, name, arguments) BIND_FUNCTION(result, name, suffix<T>(), arguments, T)
#define BIND2(T, U, result, name, arguments) \
    BIND_FUNCTION(result, name, suffix<T>() + suffix<U>(), arguments, T, U)

PYBIND11_MODULE(lattica_hw, module)
{
    module.doc() = "HEAL's functions on the device that HEALCL_DEVICE names, by healcl";
    bind_tensor<int8_t>(module);
    bind_tensor<int32_t>(module);
    bind_tensor<int64_t>(module);
    bind_tensor<double>(module);
    ALL_FUNCTIONS(BIND, BIND2)
}
