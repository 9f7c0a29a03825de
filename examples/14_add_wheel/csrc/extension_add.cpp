// Forward and backward for the CPU, and for Meta tensors, which have a shape and no data.
#include <algorithm>

#include "function.h"

using polyop::Tensor;

// [forward]
// The result needs new memory: Tensor(self) would be self under another name.
Tensor my_op_impl_cpu(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) throw std::invalid_argument("my_op takes tensors of one shape");
  Tensor result = polyop::empty_like(self);
  polyop::for_floats(self.dtype(), "my_op", [&](auto zero) {
    using T = decltype(zero);  // float or double
    std::transform(self.data_ptr<T>(), self.data_ptr<T>() + self.numel(), other.data_ptr<T>(),
                   result.data_ptr<T>(), [](T x, T y) { return x + y; });
  });
  return result;
}
// [/forward]

std::tuple<Tensor, Tensor> my_op_backward_impl_cpu(const Tensor& self) { return {self, self}; }

POLYOP_LIBRARY_IMPL(myops, CPU, m) {
  m.impl("my_op", &my_op_impl_cpu);
  m.impl("my_op_backward", &my_op_backward_impl_cpu);
}

Tensor my_op_impl_meta(const Tensor& self, const Tensor&) { return polyop::empty_like(self); }

std::tuple<Tensor, Tensor> my_op_backward_impl_meta(const Tensor& self) {
  return {polyop::empty_like(self), polyop::empty_like(self)};
}

POLYOP_LIBRARY_IMPL(myops, Meta, m) {
  m.impl("my_op", &my_op_impl_meta);
  m.impl("my_op_backward", &my_op_backward_impl_meta);
}
