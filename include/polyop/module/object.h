// pybind11 when a module includes it; else polyop's own version of the few names that modules use.
#ifndef POLYOP_MODULE_OBJECT_H
#define POLYOP_MODULE_OBJECT_H

#include "tensor.h"

#if defined(POLYOP_PYBIND11) || defined(PYBIND11_VERSION_MAJOR)
#ifndef POLYOP_PYBIND11
#define POLYOP_PYBIND11
#endif
#include "pybind.h"
#else

namespace pybind11 {

// The result of PyboostRunner::Call: one tensor, several, or nothing.
class object {
 public:
  object() = default;
  explicit object(ms::Tensor tensor) : tensors_{std::move(tensor)}, single_(true) {}
  explicit object(std::vector<ms::Tensor> tensors) : tensors_(std::move(tensors)) {}
  const std::vector<ms::Tensor>& tensors() const { return tensors_; }
  bool single() const { return single_; }
  bool is_none() const { return tensors_.empty(); }

 private:
  std::vector<ms::Tensor> tensors_;
  bool single_ = false;
};

class none : public object {};

}  // namespace pybind11

namespace polyop {

// Packs the result of PyboostRunner::Call.
inline pybind11::object pack_object(ms::Tensor tensor) { return pybind11::object(std::move(tensor)); }
inline pybind11::object pack_object(std::vector<ms::Tensor> tensors) {
  return pybind11::object(std::move(tensors));
}

}  // namespace polyop

namespace py = pybind11;

#endif

#endif
