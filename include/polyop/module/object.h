// The few names of pybind11 that modules use, for modules that do not include pybind11.
#ifndef POLYOP_MODULE_OBJECT_H
#define POLYOP_MODULE_OBJECT_H

#include "tensor.h"

#ifndef PYBIND11_VERSION_MAJOR

namespace pybind11 {

// What PyboostRunner::Call returns: one tensor, several, or nothing.
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

struct none {};

}  // namespace pybind11

namespace py = pybind11;

#else
#error "polyop: include pybind11 through CustomOpBuilder's sources only; see docs/cpp-modules.md"
#endif

#endif
