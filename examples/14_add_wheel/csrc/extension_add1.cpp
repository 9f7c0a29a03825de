// The gradient: my_op_backward is bound to my_op.
#include "function.h"

using polyop::Tensor;

Tensor my_op_impl(const Tensor& self, const Tensor& other) {
  static auto op =
      polyop::Dispatcher::singleton().findSchemaOrThrow("myops::my_op", "").typed<decltype(my_op_impl)>();
  return op.call(self, other);
}

std::tuple<Tensor, Tensor> my_op_backward_impl(const Tensor& self) {
  static auto op = polyop::Dispatcher::singleton()
                       .findSchemaOrThrow("myops::my_op_backward", "")
                       .typed<decltype(my_op_backward_impl)>();
  return op.call(self);
}

class MyAddFunction : public polyop::autograd::Function<MyAddFunction> {
 public:
  static Tensor forward(polyop::AutogradContext*, const Tensor& self, const Tensor& other) {
    return my_op_impl(self, other);
  }
  static polyop::tensor_list backward(polyop::AutogradContext*, polyop::tensor_list grad_outputs) {
    const auto [self, other] = my_op_backward_impl(grad_outputs[0]);
    return {self, other};
  }
};

Tensor my_op_impl_autograd(const Tensor& self, const Tensor& other) {
  return MyAddFunction::apply(self, other);
}

POLYOP_LIBRARY_IMPL(myops, Autograd, m) { m.impl("my_op", &my_op_impl_autograd); }
