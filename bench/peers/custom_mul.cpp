// An elementwise product with broadcasting and its gradient, as a C++ operator module.
#include "ms_extension.h"

namespace mindspore::pynative::autograd {

ShapeVector broadcast(const BaseTensorPtr &a, const BaseTensorPtr &b) {
  ShapeVector shape(std::max(a->shape().size(), b->shape().size()), 1);
  for (const auto *from : {&a->shape(), &b->shape()}) {
    for (size_t i = 1; i <= from->size(); ++i) {
      if ((*from)[from->size() - i] != 1) shape[shape.size() - i] = (*from)[from->size() - i];
    }
  }
  return shape;
}

BaseTensorPtr product(const BaseTensorPtr &a, const BaseTensorPtr &b) {
  auto out = std::make_shared<BaseTensor>(a->data_type(), broadcast(a, b));
  custom::CustomLaunchAclnn("aclnnMul", {a, b}, {out});
  return out;
}

class CustomMul : public Function<CustomMul> {
 public:
  static BaseTensorPtr Forward(AutogradContext *ctx, const BaseTensorPtr &x, const BaseTensorPtr &y) {
    const bool for_x = ctx->NeedGrad(x), for_y = ctx->NeedGrad(y);
    if (for_x || for_y) ctx->SaveForBackward({for_x ? y : nullptr, for_y ? x : nullptr});
    return product(x, y);
  }
  static BaseTensorPtrList Backward(AutogradContext *ctx, BaseTensorPtrList grads) {
    const auto saved = ctx->GetSavedTensors();
    return {ctx->NeedsInputGrad(0) ? product(grads[0], saved[0]) : nullptr,
            ctx->NeedsInputGrad(1) ? product(grads[0], saved[1]) : nullptr};
  }
};

BaseTensorPtr mul(const BaseTensorPtr &x, const BaseTensorPtr &y) { return CustomMul::Apply(x, y); }

}  // namespace mindspore::pynative::autograd

PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("mul", &mindspore::pynative::autograd::mul, "x * y"); }
