// An operator whose gradient, in C++, calls another operator of the library, and two without a gradient.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {
at::Tensor call(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<at::Tensor(const at::Tensor&)>().call(
      x);
}

struct Cubed : torch::autograd::Function<Cubed> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({x});
    return call("torchlib_cubed::cubed", x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    return {grads[0] * call("torchlib_cubed::slope", ctx->get_saved_variables()[0])};
  }
};
}  // namespace

TORCH_LIBRARY(torchlib_cubed, m) {
  m.def("cubed(Tensor x) -> Tensor");
  m.def("slope(Tensor x) -> Tensor");
  m.def("muladd(Tensor a, Tensor b, float c) -> Tensor");
}

TORCH_LIBRARY_IMPL(torchlib_cubed, CPU, m) {
  m.impl("cubed", [](const at::Tensor& x) { return x * x * x; });
  m.impl("slope", [](const at::Tensor& x) { return 3 * x * x; });
  m.impl("muladd", [](const at::Tensor& a, const at::Tensor& b, double c) { return a * b + c; });
}

TORCH_LIBRARY_IMPL(torchlib_cubed, Autograd, m) {
  m.impl("cubed", [](const at::Tensor& x) { return Cubed::apply(x); });
}

TORCH_LIBRARY_IMPL(torchlib_cubed, Meta, m) {
  m.impl("cubed", [](const at::Tensor& x) { return at::empty_like(x); });
  m.impl("slope", [](const at::Tensor& x) { return at::empty_like(x); });
  m.impl("muladd", [](const at::Tensor& a, const at::Tensor&, double) { return at::empty_like(a); });
}
