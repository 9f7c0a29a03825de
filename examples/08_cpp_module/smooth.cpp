// Two operators of a C++ module: one made of aclnn operators, one with its own kernels.
// [mul]
#include "ms_extension.h"

using namespace mindspore::pynative::autograd;

ShapeVector BroadcastShape(const BaseTensorPtr &a, const BaseTensorPtr &b) {
  ShapeVector shape(std::max(a->shape().size(), b->shape().size()), 1);
  for (const auto &from : {a->shape(), b->shape()}) {
    for (size_t i = 1; i <= from.size(); ++i) {
      if (from[from.size() - i] != 1) shape[shape.size() - i] = from[from.size() - i];
    }
  }
  return shape;
}

BaseTensorPtr Product(const BaseTensorPtr &a, const BaseTensorPtr &b) {
  auto out = std::make_shared<BaseTensor>(a->data_type(), BroadcastShape(a, b));
  custom::CustomLaunchAclnn("aclnnMul", {a, b}, {out});
  return out;
}

class Mul : public Function<Mul> {
 public:
  static BaseTensorPtr Forward(AutogradContext *ctx, const BaseTensorPtr &x, const BaseTensorPtr &y) {
    ctx->SaveForBackward({ctx->NeedGrad(x) ? y : nullptr, ctx->NeedGrad(y) ? x : nullptr});
    return Product(x, y);
  }
  // One gradient for each argument of Forward; polyop sums it to a broadcast argument's shape.
  static BaseTensorPtrList Backward(AutogradContext *ctx, BaseTensorPtrList grads) {
    auto saved = ctx->GetSavedTensors();
    return {ctx->NeedsInputGrad(0) ? Product(grads[0], saved[0]) : nullptr,
            ctx->NeedsInputGrad(1) ? Product(grads[0], saved[1]) : nullptr};
  }
};

BaseTensorPtr mul(const BaseTensorPtr &x, const BaseTensorPtr &y) { return Mul::Apply(x, y); }
// [/mul]

// [smooth]
#include <cmath>

// The same loop for float32 and float64.
template <typename Loop>
void ForFloats(ms::TypeId type, Loop loop) {
  if (type == ms::kNumberTypeFloat32) return loop(float());
  if (type == ms::kNumberTypeFloat64) return loop(double());
  throw std::invalid_argument("smooth_abs needs float32 or float64");
}

// sqrt(x * x + width * width), and x / y for its gradient, as loops over the data.
class SmoothAbs : public ms::Function<SmoothAbs> {
 public:
  static ms::Tensor Forward(ms::AutogradContext *ctx, const ms::Tensor &x, double width) {
    const ms::Tensor in = x.contiguous();
    ms::Tensor y(in.data_type(), in.shape());
    polyop::launch("smooth_abs", {in}, {y}, [&] {  // skipped while shapes are inferred
      ForFloats(in.data_type(), [&](auto one) {
        using T = decltype(one);
        const T *from = in.data<T>();
        T *to = y.data<T>();
        for (size_t i = 0; i < in.numel(); ++i) to[i] = std::sqrt(from[i] * from[i] + T(width * width));
      });
    });
    ctx->SaveForBackward({in, y});
    return y;
  }

  static std::vector<ms::Tensor> Backward(ms::AutogradContext *ctx, std::vector<ms::Tensor> grads) {
    const auto saved = ctx->GetSavedTensors();
    const ms::Tensor grad = grads[0].contiguous();
    ms::Tensor dx(grad.data_type(), grad.shape());
    polyop::launch("smooth_abs_grad", {saved[0], saved[1], grad}, {dx}, [&] {
      ForFloats(dx.data_type(), [&](auto one) {
        using T = decltype(one);
        const T *x = saved[0].data<T>(), *y = saved[1].data<T>(), *g = grad.data<T>();
        T *to = dx.data<T>();
        for (size_t i = 0; i < dx.numel(); ++i) to[i] = g[i] * x[i] / y[i];
      });
    });
    return {dx, ms::Tensor()};  // the width is a number and has no gradient
  }
};

ms::Tensor smooth_abs(const ms::Tensor &x, double width) { return SmoothAbs::Apply(x, width); }
// [/smooth]

// [bind]
PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("mul", &mul, "x * y, with broadcasting.", py::arg("x"), py::arg("y"));
  m.def("smooth_abs", &smooth_abs, "sqrt(x * x + width * width)", py::arg("x"), py::arg("width") = 1.0);
}
// [/bind]
