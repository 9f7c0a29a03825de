// Functions of a MindSpore user's module, with their gradients; in the older names, on aclnn operators.
#include "ms_extension.h"

namespace mindspore::pynative {
namespace autograd {

// The shape of two tensors broadcast against each other.
ShapeVector Broadcast(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  const ShapeVector &a = x->shape(), &b = y->shape();
  ShapeVector shape(std::max(a.size(), b.size()), 1);
  for (const ShapeVector *one : {&a, &b}) {
    for (size_t i = 0; i < one->size(); ++i) {
      int64_t &size = shape[shape.size() - one->size() + i];
      if ((*one)[i] != 1) size = (*one)[i];
    }
  }
  return shape;
}

int64_t multiplications = 0;  // done so far by this module

BaseTensorPtr Multiplied(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  auto out = std::make_shared<BaseTensor>(x->data_type(), Broadcast(x, y));
  custom::CustomLaunchAclnn("aclnnMul", {x, y}, {out});
  ++multiplications;
  return out;
}

class Add : public Function<Add> {
 public:
  static BaseTensorPtr Forward(AutogradContext *, const BaseTensorPtr &x, const BaseTensorPtr &y) {
    auto out = std::make_shared<BaseTensor>(x->data_type(), Broadcast(x, y));
    custom::CustomLaunchAclnn("aclnnAdd", {x, y, MakeValue<int64_t>(1)}, {out});
    return out;
  }
  static BaseTensorPtrList Backward(AutogradContext *, BaseTensorPtrList grads) { return {grads[0], grads[0]}; }
};

class Mul : public Function<Mul> {
 public:
  static BaseTensorPtr Forward(AutogradContext *ctx, const BaseTensorPtr &x, const BaseTensorPtr &y) {
    ctx->SaveForBackward({ctx->NeedGrad(x) ? y : nullptr, ctx->NeedGrad(y) ? x : nullptr});
    return Multiplied(x, y);
  }
  static BaseTensorPtrList Backward(AutogradContext *ctx, BaseTensorPtrList grads) {
    const auto saved = ctx->GetSavedTensors();
    return {ctx->NeedsInputGrad(0) ? Multiplied(grads[0], saved[0]) : nullptr,
            ctx->NeedsInputGrad(1) ? Multiplied(grads[0], saved[1]) : nullptr};
  }
};

// The same through the macro, as programs with pyboost kernels write it.
class MacroMul : public Function<MacroMul> {
 public:
  static BaseTensorPtr Forward(AutogradContext *ctx, const BaseTensorPtr &x, const BaseTensorPtr &y) {
    ctx->SaveForBackward({x, y});
    return Product(x, y);
  }
  static BaseTensorPtrList Backward(AutogradContext *ctx, BaseTensorPtrList grads) {
    const auto saved = ctx->GetSavedTensors();
    return {Product(grads[0], saved[1]), Product(grads[0], saved[0])};
  }

 private:
  static BaseTensorPtr Product(const BaseTensorPtr &x, const BaseTensorPtr &y) {
    auto out = std::make_shared<BaseTensor>(x->data_type(), Broadcast(x, y));
    device::DeviceContext *device_context = nullptr;
    const size_t stream_id = 0;
    LAUNCH_ACLNN(aclnnMul, device_context, stream_id, x, y, out);
    return out;
  }
};

class BroadcastTo : public Function<BroadcastTo> {
 public:
  static BaseTensorPtr Forward(AutogradContext *, const BaseTensorPtr &x, const std::vector<int64_t> &shape) {
    auto out = std::make_shared<BaseTensor>(x->data_type(), shape);
    custom::CustomLaunchAclnn("aclnnExpand", {x, MakeValue(shape)}, {out});
    return out;
  }
  // as large as the output: it is summed to the shape of the input
  static BaseTensorPtrList Backward(AutogradContext *, BaseTensorPtrList grads) { return {grads[0], nullptr}; }
};

class InplaceMul : public Function<InplaceMul> {
 public:
  static BaseTensorPtr Forward(AutogradContext *ctx, const BaseTensorPtr &x, const BaseTensorPtr &y) {
    ctx->MarkDirty({x});
    custom::CustomLaunchAclnn("aclnnMul", {x, y}, {x});
    ctx->SaveForBackward({y});
    return x;
  }
  static BaseTensorPtrList Backward(AutogradContext *ctx, BaseTensorPtrList grads) {
    return {Multiplied(grads[0], ctx->GetSavedTensors()[0]), nullptr};
  }
};

BaseTensorPtr add(const tensor::BaseTensorPtr &x, const tensor::BaseTensorPtr &y) { return Add::Apply(x, y); }
BaseTensorPtr mul(const tensor::BaseTensorPtr &x, const tensor::BaseTensorPtr &y) { return Mul::Apply(x, y); }
BaseTensorPtr macro_mul(const BaseTensorPtr &x, const BaseTensorPtr &y) { return MacroMul::Apply(x, y); }
BaseTensorPtr broadcast_to(const BaseTensorPtr &x, const std::vector<int64_t> &shape) {
  return BroadcastTo::Apply(x, shape);
}
BaseTensorPtr inplace_mul(const BaseTensorPtr &x, const BaseTensorPtr &y) { return InplaceMul::Apply(x, y); }

// Several calls of Apply in one function.
BaseTensorPtr chain(const BaseTensorPtr &x, const BaseTensorPtr &y) { return Mul::Apply(Mul::Apply(x, y), y); }
BaseTensorPtr square(const BaseTensorPtr &x) { return Mul::Apply(x, x); }
BaseTensorPtr polynomial(const BaseTensorPtr &x, const BaseTensorPtr &y) {  // x*y + x*x
  return Add::Apply(Mul::Apply(x, y), Mul::Apply(x, x));
}

// Apply on what was made from an argument.
BaseTensorPtr mul_cast(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  const auto wide = std::make_shared<BaseTensor>(x->get().cast(kNumberTypeFloat64));
  return Mul::Apply(wide, y);
}
BaseTensorPtr mul_dense(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  const auto dense = std::make_shared<BaseTensor>(x->get().contiguous());
  return Mul::Apply(dense, y);
}
BaseTensorPtr mul_reshaped(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  const auto flat = std::make_shared<BaseTensor>(x->get().reshape({-1}));
  return Mul::Apply(flat, y);
}
BaseTensorPtr mul_then_cast(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  return std::make_shared<BaseTensor>(Mul::Apply(x, y)->get().reshape({-1}).cast(kNumberTypeFloat64));
}

// What is not recorded, alone, before Apply, after it and beside it.
BaseTensorPtr plain(const BaseTensorPtr &x, const BaseTensorPtr &y) { return Multiplied(x, y); }
BaseTensorPtr plain_by_macro(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  auto out = std::make_shared<BaseTensor>(x->data_type(), Broadcast(x, y));
  LAUNCH_ACLNN(aclnnMul, nullptr, 0, x, y, out);
  return out;
}
BaseTensorPtr plain_before(const BaseTensorPtr &x, const BaseTensorPtr &y) { return Mul::Apply(plain(x, y), y); }
BaseTensorPtr plain_after(const BaseTensorPtr &x, const BaseTensorPtr &y) { return plain(Mul::Apply(x, y), y); }
BaseTensorPtr macro_before(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  return Mul::Apply(plain_by_macro(x, y), y);
}
BaseTensorPtr macro_after(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  return plain_by_macro(Mul::Apply(x, y), y);
}
BaseTensorPtrList plain_beside(const BaseTensorPtr &x, const BaseTensorPtr &y) {
  return {Mul::Apply(x, y), plain_by_macro(x, y)};
}

int64_t count_multiplications() { return multiplications; }

}  // namespace autograd
}  // namespace mindspore::pynative

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  using namespace mindspore::pynative::autograd;
  m.def("add", &add, "Return x + y.");
  m.def("mul", &mul, "Return x * y.");
  m.def("macro_mul", &macro_mul);
  m.def("broadcast_to", &broadcast_to);
  m.def("inplace_mul", &inplace_mul);
  m.def("chain", &chain);
  m.def("square", &square);
  m.def("polynomial", &polynomial);
  m.def("mul_cast", &mul_cast);
  m.def("mul_dense", &mul_dense);
  m.def("mul_reshaped", &mul_reshaped);
  m.def("mul_then_cast", &mul_then_cast);
  m.def("plain", &plain);
  m.def("plain_by_macro", &plain_by_macro);
  m.def("plain_before", &plain_before);
  m.def("plain_after", &plain_after);
  m.def("macro_before", &macro_before);
  m.def("macro_after", &macro_after);
  m.def("plain_beside", &plain_beside);
  m.def("count_multiplications", &count_multiplications);
}
