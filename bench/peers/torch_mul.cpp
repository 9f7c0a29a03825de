// The peer of the module rows: an elementwise product as a C++ TORCH_LIBRARY operator with a C++
// autograd::Function on the Autograd key. Built with torch.utils.cpp_extension.
#include <torch/extension.h>

namespace {

at::Tensor mul_cpu(const at::Tensor &x, const at::Tensor &y) {
  at::Tensor a = x.contiguous(), b = y.contiguous(), out = at::empty_like(a);
  const float *p = a.data_ptr<float>(), *q = b.data_ptr<float>();
  float *r = out.data_ptr<float>();
  for (int64_t i = 0; i < a.numel(); ++i) r[i] = p[i] * q[i];
  return out;
}

at::Tensor call(const at::Tensor &x, const at::Tensor &y) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("polyop_peer::mul", "")
                       .typed<at::Tensor(const at::Tensor &, const at::Tensor &)>();
  return op.call(x, y);
}

struct Mul : torch::autograd::Function<Mul> {
  static at::Tensor forward(torch::autograd::AutogradContext *ctx, const at::Tensor &x, const at::Tensor &y) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x, y});
    return call(x, y);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *ctx,
                                                 torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {mul_cpu(grads[0], saved[1]), mul_cpu(grads[0], saved[0])};
  }
};

at::Tensor autograd(const at::Tensor &x, const at::Tensor &y) { return Mul::apply(x, y); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(polyop_peer, m) { m.def("mul(Tensor x, Tensor y) -> Tensor"); }
TORCH_LIBRARY_IMPL(polyop_peer, CPU, m) { m.impl("mul", &mul_cpu); }
TORCH_LIBRARY_IMPL(polyop_peer, Autograd, m) { m.impl("mul", &autograd); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.doc() = "peer"; }
