// An operator library: schemas, functions for the CPU, Meta functions and a gradient.

// [schemas]
#include <polyop/library.h>

using polyop::Tensor;

POLYOP_LIBRARY(myops, m) {
  m.def("my_op(Tensor self, Tensor other) -> Tensor");
  m.def("my_op_backward(Tensor self) -> (Tensor, Tensor)");
  m.def("soften(Tensor x, *, float width=1.0) -> Tensor");
}
// [/schemas]

// [kernels]
Tensor my_op_cpu(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) throw std::invalid_argument("my_op takes tensors of one shape");
  Tensor result = polyop::empty_like(self);
  polyop::for_floats(self.dtype(), "my_op", [&](auto zero) {
    using T = decltype(zero);  // float or double
    const T *a = self.data_ptr<T>(), *b = other.data_ptr<T>();
    T* out = result.data_ptr<T>();
    for (size_t i = 0; i < result.numel(); ++i) out[i] = a[i] + b[i];
  });
  return result;
}

std::tuple<Tensor, Tensor> my_op_backward_cpu(const Tensor& self) { return {self, self}; }

POLYOP_LIBRARY_IMPL(myops, CPU, m) {
  m.impl("my_op", &my_op_cpu);
  m.impl("my_op_backward", &my_op_backward_cpu);
}
// [/kernels]

// [meta]
Tensor my_op_meta(const Tensor& self, const Tensor&) { return polyop::empty_like(self); }

std::tuple<Tensor, Tensor> my_op_backward_meta(const Tensor& self) {
  return {polyop::empty_like(self), polyop::empty_like(self)};
}

POLYOP_LIBRARY_IMPL(myops, Meta, m) {
  m.impl("my_op", &my_op_meta);
  m.impl("my_op_backward", &my_op_backward_meta);
}
// [/meta]

// [autograd]
Tensor my_op(const Tensor& self, const Tensor& other) {
  static auto op =
      polyop::Dispatcher::singleton().findSchemaOrThrow("myops::my_op", "").typed<decltype(my_op)>();
  return op.call(self, other);
}

std::tuple<Tensor, Tensor> my_op_backward(const Tensor& self) {
  static auto op = polyop::Dispatcher::singleton()
                       .findSchemaOrThrow("myops::my_op_backward", "")
                       .typed<decltype(my_op_backward)>();
  return op.call(self);
}

class MyOp : public polyop::Function<MyOp> {
 public:
  static Tensor forward(polyop::AutogradContext*, const Tensor& self, const Tensor& other) {
    return my_op(self, other);  // in forward and backward: the function for the device
  }
  static polyop::tensor_list backward(polyop::AutogradContext*, polyop::tensor_list grads) {
    const auto [self, other] = my_op_backward(grads[0]);
    return {self, other};
  }
};

Tensor my_op_autograd(const Tensor& self, const Tensor& other) { return MyOp::apply(self, other); }

POLYOP_LIBRARY_IMPL(myops, AutogradCPU, m) { m.impl("my_op", &my_op_autograd); }
// [/autograd]

// [launch]
// Without a Meta function shapes are derived from this one: the loop is skipped then.
Tensor soften_cpu(const Tensor& x, double width) {
  Tensor y = polyop::empty_like(x);
  polyop::launch("soften", {x}, {y}, [&] {
    polyop::for_floats(x.dtype(), "soften", [&](auto zero) {
      using T = decltype(zero);
      for (size_t i = 0; i < y.numel(); ++i) {
        const T value = x.data_ptr<T>()[i];
        y.data_ptr<T>()[i] = value / (T(width) + (value < 0 ? -value : value));
      }
    });
  });
  return y;
}

POLYOP_LIBRARY_IMPL(myops, CPU, m) { m.impl("soften", &soften_cpu); }
// [/launch]
