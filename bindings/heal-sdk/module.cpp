/* The extension module lattica_hw, which the runtime of HEAL's SDK imports. */
#include <pybind11/stl.h>
#include <torch/extension.h>

#include "lattica_hw_api.h"

#include "functions.h"

namespace py = pybind11;
using namespace lattica_hw_api;

/* Other threads of Python go on meanwhile. */
#define BIND(function, T)                                      \
    module.def((#function "_" + suffix).c_str(), &function<T>, \
               py::call_guard<py::gil_scoped_release>());

template <typename T> static void bind_memory(py::module_ &module, const std::string &suffix)
{
    using Class = DeviceTensor<T>;
    py::class_<Class, std::shared_ptr<Class>>(module, ("DeviceTensor" + suffix).c_str())
        .def("reshape", &Class::reshape)
        .def("print", &Class::print)
        .def("print_metadata", &Class::print_metadata);
    MEMORY_FUNCTIONS(BIND, T)
}

template <typename T> static void bind(py::module_ &module, const std::string &suffix)
{
    bind_memory<T>(module, suffix);
    COMPUTE_FUNCTIONS(BIND, T)
}

PYBIND11_MODULE(lattica_hw, module)
{
    module.doc() = "HEAL's functions on the device that HEALCL_DEVICE names, by healcl";
    bind<int32_t>(module, "32");
    bind<int64_t>(module, "64");
    bind_memory<double>(module, "float64");
}
