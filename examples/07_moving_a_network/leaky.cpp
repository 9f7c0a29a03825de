// An operator that the new framework lacks, with its gradient: a C++ module.
// [function]
#include "ms_extension.h"

namespace mindspore::pynative::autograd {

class LeakyRelu : public Function<LeakyRelu> {
 public:
  static BaseTensorPtr Forward(AutogradContext *ctx, const BaseTensorPtr &x, double slope) {
    auto out = std::make_shared<BaseTensor>(x->data_type(), x->shape());
    custom::CustomLaunchAclnn("aclnnLeakyRelu", {x, MakeValue<double>(slope)}, {out});
    ctx->SaveForBackward({x});
    ctx->saved_data["slope"] = MakeValue<double>(slope);
    return out;
  }

  static BaseTensorPtrList Backward(AutogradContext *ctx, BaseTensorPtrList grads) {
    const auto x = ctx->GetSavedTensors()[0];
    auto dx = std::make_shared<BaseTensor>(x->data_type(), x->shape());
    const auto slope = ctx->saved_data["slope"];
    custom::CustomLaunchAclnn("aclnnLeakyReluBackward", {grads[0], x, slope, MakeValue<bool>(false)}, {dx});
    return {dx, nullptr};  // one for each argument of Forward; a number has none
  }
};

BaseTensorPtr leaky_relu(const BaseTensorPtr &x, double slope) { return LeakyRelu::Apply(x, slope); }

}  // namespace mindspore::pynative::autograd

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("leaky_relu", &mindspore::pynative::autograd::leaky_relu, "x, or slope * x where x is negative");
}
// [/function]
