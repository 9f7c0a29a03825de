// A project for Ascend and PyTorch: operators with their gradients, and an operator of every kind of
// argument.
#include "function.h"
#include "pytorch_npu_helper.hpp"
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

at::Tensor product_npu(const at::Tensor& self, const at::Tensor& other, const at::Scalar& factor) {
  at::Tensor result = at::empty_like(self);
  EXEC_NPU_CMD(aclnnMul, self, other, result);
  EXEC_NPU_CMD_EXT(aclnnMuls, result, factor, result);
  return result;
}

at::Tensor product_meta(const at::Tensor& self, const at::Tensor&, const at::Scalar&) {
  return at::empty_like(self);
}

at::Tensor product_impl(const at::Tensor& self, const at::Tensor& other, const at::Scalar& factor) {
  static auto op = torch::Dispatcher::singleton()
                       .findSchemaOrThrow("rehearsed::product", "")
                       .typed<decltype(product_impl)>();
  return op.call(self, other, factor);
}

class Product : public torch::autograd::Function<Product> {
 public:
  static at::Tensor forward(AutogradContext* ctx, at::Tensor self, at::Tensor other, at::Scalar factor) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({self, other});
    ctx->saved_data["factor"] = factor;
    return product_impl(self, other, factor);
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list gradients) {
    auto saved = ctx->get_saved_variables();
    auto factor = ctx->saved_data["factor"].toScalar();
    return {product_impl(gradients[0], saved[1], factor), product_impl(gradients[0], saved[0], factor),
            at::Tensor()};
  }
};

at::Tensor product_autograd(const at::Tensor& self, const at::Tensor& other, const at::Scalar& factor) {
  return Product::apply(self, other, factor);
}

TORCH_LIBRARY_IMPL(rehearsed, PrivateUse1, m) { m.impl("product", &product_npu); }
TORCH_LIBRARY_IMPL(rehearsed, AutogradPrivateUse1, m) { m.impl("product", &product_autograd); }
TORCH_LIBRARY_IMPL(rehearsed, Meta, m) { m.impl("product", &product_meta); }

at::Tensor older_npu(const at::Tensor& self) {
  at::Tensor result = at::empty_like(self);
  EXEC_NPU_CMD_SYNC(aclnnNeg, self, result);
  return result;
}
at::Tensor older_autograd(const at::Tensor& self) {
  at::AutoDispatchBelowADInplaceOrView guard;
  static auto op =
      torch::Dispatcher::singleton().findSchemaOrThrow("rehearsed::older", "").typed<decltype(older_npu)>();
  return op.call(self) + 100;
}
TORCH_LIBRARY_IMPL(rehearsed, XLA, m) { m.impl("older", &older_npu); }
TORCH_LIBRARY_IMPL(rehearsed, AutogradXLA, m) { m.impl("older", &older_autograd); }

void mix(at::TensorList xs, const c10::optional<at::Tensor>& bias, const at::Scalar& factor,
         at::IntArrayRef shift, std::vector<bool> flags, std::vector<double> weights, const std::string& text,
         at::Tensor& out) {
  int64_t mode = 7;
  double eps = 0.125;
  bool negate = false;
  int8_t cube_math_type = 3;
  EXEC_NPU_CMD_SYNC(aclnnMix, xs, bias, factor, shift, flags, weights, mode, eps, negate, text, at::kFloat,
                    out, cube_math_type);
}
