// Tensors for modules that the real pybind11 binds. Their functions are plain Python functions: polyop does
// not trace them, and they have no gradients.
#ifndef POLYOP_MODULE_PYBIND_H
#define POLYOP_MODULE_PYBIND_H

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "../python_abi.h"
#include "value.h"

namespace polyop {

// polyop's functions for Python objects; the first use finds both tables in polyop._core.
inline const polyop_python_functions* python_functions() {
  static const polyop_python_functions* table = [] {
    const auto core = pybind11::module_::import("polyop._core");
    const pybind11::capsule capsule = core.attr("python_functions");
    auto* functions_of_python = capsule.get_pointer<const polyop_python_functions>();
    functions() = functions_of_python->module;
    return functions_of_python;
  }();
  return table;
}

inline ms::Tensor from_object(pybind11::handle object) {
  if (object.is_none()) return {};
  polyop_tensor* result = nullptr;
  const int code = python_functions()->borrow(object.ptr(), &result);
  if (code != 0) throw std::runtime_error(functions()->error());
  return ms::Tensor::adopt(result);
}

inline pybind11::object to_object(const ms::Tensor& tensor) {
  if (!tensor.is_defined()) return pybind11::none();
  PyObject* result = python_functions()->wrap(tensor.get());
  if (result == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(result);
}

// Packs the result of PyboostRunner::Call.
inline pybind11::object pack_object(const ms::Tensor& tensor) { return to_object(tensor); }
inline pybind11::object pack_object(const std::vector<ms::Tensor>& tensors) {
  pybind11::tuple all(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) all[i] = to_object(tensors[i]);
  return std::move(all);
}

}  // namespace polyop

namespace pybind11::detail {

template <>
struct type_caster<ms::Tensor> {
  PYBIND11_TYPE_CASTER(ms::Tensor, const_name("Tensor"));
  bool load(handle source, bool) {
    if (!source.is_none() && polyop::python_functions()->is_tensor(source.ptr()) == 0) return false;
    value = polyop::from_object(source);
    return true;
  }
  static handle cast(const ms::Tensor& tensor, return_value_policy, handle) {
    return polyop::to_object(tensor).release();
  }
};

template <>
struct type_caster<mindspore::tensor::TensorPtr> {
  PYBIND11_TYPE_CASTER(mindspore::tensor::TensorPtr, const_name("Tensor"));
  bool load(handle source, bool) {
    if (!source.is_none() && polyop::python_functions()->is_tensor(source.ptr()) == 0) return false;
    if (!source.is_none()) value = std::make_shared<mindspore::tensor::Tensor>(polyop::from_object(source));
    return true;
  }
  static handle cast(const mindspore::tensor::TensorPtr& tensor, return_value_policy, handle) {
    return polyop::to_object(tensor == nullptr ? ms::Tensor() : tensor->get()).release();
  }
};

}  // namespace pybind11::detail

namespace py = pybind11;

#endif
