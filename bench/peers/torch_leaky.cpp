// The peer of the PyTorch rows: the same kernel as a C++ TORCH_LIBRARY operator with a C++
// autograd::Function on the Autograd key. Built with torch.utils.cpp_extension.
#include <torch/extension.h>

#include "leaky.h"

namespace {

at::Tensor forward_cpu(const at::Tensor &x) {
  at::Tensor in = x.contiguous(), out = at::empty_like(in);
  leaky_forward(in.data_ptr<float>(), out.data_ptr<float>(), in.numel());
  return out;
}

at::Tensor backward_cpu(const at::Tensor &x, const at::Tensor &grad) {
  at::Tensor in = x.contiguous(), g = grad.contiguous(), out = at::empty_like(in);
  leaky_backward(in.data_ptr<float>(), g.data_ptr<float>(), out.data_ptr<float>(), in.numel());
  return out;
}

at::Tensor call(const at::Tensor &x) {
  static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("polyop_peer::leaky", "").typed<at::Tensor(const at::Tensor &)>();
  return op.call(x);
}

struct Leaky : torch::autograd::Function<Leaky> {
  static at::Tensor forward(torch::autograd::AutogradContext *ctx, const at::Tensor &x) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x});
    return call(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *ctx, torch::autograd::variable_list grads) {
    return {backward_cpu(ctx->get_saved_variables()[0], grads[0])};
  }
};

at::Tensor autograd(const at::Tensor &x) { return Leaky::apply(x); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(polyop_peer, m) { m.def("leaky(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(polyop_peer, CPU, m) { m.impl("leaky", &forward_cpu); }
TORCH_LIBRARY_IMPL(polyop_peer, Autograd, m) { m.impl("leaky", &autograd); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.doc() = "peer"; }
