// What went wrong once, or could.
#include "ms_extension/all.h"

using ms::Tensor;
using Tensors = std::vector<Tensor>;

Tensor times(const Tensor &a, const Tensor &b) {
  Tensor out(a.data_type(), a.shape());
  polyop::launch_aclnn("aclnnMul", a, b, out);
  return out;
}

// Takes its argument by value.
struct ByValue : ms::Function<ByValue> {
  static Tensor Forward(ms::AutogradContext *ctx, Tensor x) {
    ctx->SaveForBackward({x});
    return times(x, x);
  }
  static Tensors Backward(ms::AutogradContext *ctx, Tensors grads) {
    const Tensor x = ctx->GetSavedTensors()[0];
    Tensor twice = times(grads[0], x), dx(x.data_type(), x.shape());
    polyop::launch_aclnn("aclnnAdd", twice, twice, int64_t{1}, dx);
    ctx->SaveForBackward({});  // nobody should have to keep what was saved
    ctx->saved_data.clear();
    return {dx};
  }
};
Tensor by_value(Tensor x) { return ByValue::Apply(ByValue::Apply(std::move(x))); }

// Gives its argument back; the gradient is reversed.
struct Reverse : ms::Function<Reverse> {
  static Tensor Forward(ms::AutogradContext *, const Tensor &x) { return x; }
  static Tensors Backward(ms::AutogradContext *, Tensors grads) {
    Tensor dx(grads[0].data_type(), grads[0].shape());
    polyop::launch_aclnn("aclnnNeg", grads[0], dx);
    return {dx};
  }
};
struct Mul : ms::Function<Mul> {
  static Tensor Forward(ms::AutogradContext *ctx, const Tensor &x, const Tensor &y) {
    ctx->SaveForBackward({x, y});
    return times(x, y);
  }
  static Tensors Backward(ms::AutogradContext *ctx, Tensors grads) {
    const auto saved = ctx->GetSavedTensors();
    return {times(grads[0], saved[1]), times(grads[0], saved[0])};
  }
};
Tensors reverse(const Tensor &x, const Tensor &w) { return {Reverse::Apply(x), Mul::Apply(x, w)}; }

Tensor nested(const Tensor &x) {
  Tensor out(x.data_type(), x.shape());
  polyop::launch("outer", {x}, {out}, [&] {
    polyop::launch("inner", {x}, {out}, [&] {
      for (size_t i = 0; i < x.numel(); ++i) out.data<float>()[i] = x.data<float>()[i] + 1;
    });
  });
  return out;
}

Tensor by_values(const Tensor &x) {
  Tensor out(x.data_type(), {x.shape().at(1)});
  polyop::launch_aclnn("aclnnReduceSum", x, mindspore::MakeValue(std::vector<int64_t>{0}),
                       mindspore::MakeValue(false), x.data_type(), out);
  return out;
}

Tensor maybe(const Tensor &x, bool inplace) {
  const Tensor out = inplace ? x : Tensor(x.data_type(), x.shape());
  polyop::launch_aclnn("aclnnNeg", x, out);
  return out;
}

struct Double : ms::Function<Double> {
  static Tensor Forward(ms::AutogradContext *ctx, const Tensor &x) {
    polyop::launch_aclnn("aclnnAdd", x, x, int64_t{1}, x);
    ctx->MarkDirty({x});
    return x;
  }
  static Tensors Backward(ms::AutogradContext *, Tensors grads) {
    Tensor dx(grads[0].data_type(), grads[0].shape());
    polyop::launch_aclnn("aclnnAdd", grads[0], grads[0], int64_t{1}, dx);
    return {dx};
  }
};
Tensor double_(const Tensor &x) { return Double::Apply(x); }

struct Cast : ms::Function<Cast> {
  static Tensor Forward(ms::AutogradContext *, const Tensor &x, ms::TypeId type) { return x.cast(type); }
  static Tensors Backward(ms::AutogradContext *, Tensors grads) { return {grads[0], Tensor()}; }
};
Tensor to(const Tensor &x, ms::TypeId type) { return Cast::Apply(x, type); }

Tensor through_a_view(const Tensor &x) {
  const Tensor y = Mul::Apply(x, x);
  Tensor out(x.data_type(), x.shape());
  polyop::launch_aclnn("aclnnNeg", y.reshape({-1}), out.reshape({-1}));
  return out;
}

Tensor overwritten(const Tensor &x) {
  const Tensor y = Mul::Apply(x, x);
  polyop::launch("zero", {}, {y}, [&] {
    for (size_t i = 0; i < y.numel(); ++i) y.data<float>()[i] = 0;
  });
  return y;
}

Tensors read_and_filled(const Tensor &x) {
  const Tensor y = Mul::Apply(x, x);
  double sum = 0;
  for (size_t i = 0; i < x.numel(); ++i) sum += x.data<float>()[i];
  return {y, ms::tensor(sum, ms::kNumberTypeFloat32)};
}

struct KeepsAList : ms::Function<KeepsAList> {
  static Tensor Forward(ms::AutogradContext *ctx, const Tensor &x) {
    Tensor y = times(x, x);
    const auto kept = std::make_shared<mindspore::tensor::Tensor>(y);
    ctx->saved_data["both"] = std::make_shared<mindspore::ValueTuple>(mindspore::ValuePtrList{kept, kept});
    return y;
  }
  static Tensors Backward(ms::AutogradContext *, Tensors grads) { return grads; }
};
Tensor keeps_a_list(const Tensor &x) { return KeepsAList::Apply(x); }

struct Undefined : ms::Function<Undefined> {
  static Tensors Forward(ms::AutogradContext *, const Tensor &x) { return {times(x, x), Tensor()}; }
  static Tensors Backward(ms::AutogradContext *, Tensors grads) { return {grads[0]}; }
};
Tensor undefined(const Tensor &x) { return Undefined::Apply(x)[0]; }

Tensor overlapping(const Tensor &x) {
  Tensor out = times(x, x);  // squares, then divided by the first of them
  polyop::launch_aclnn("aclnnDiv", out, out.chunk(static_cast<int64_t>(out.numel()))[0], out);
  return out;
}

Tensor wide(const Tensor &x) {
  Tensor out(x.data_type(), {4});
  polyop::launch_aclnn("aclnnMul", x, x, out);
  return out;
}

Tensor times_n(const Tensor &x, size_t n) {
  Tensor out(x.data_type(), x.shape());
  polyop::launch_aclnn("aclnnMuls", x, static_cast<int64_t>(n), out);
  return out;
}

Tensor plain_read(const Tensor &x) {
  Tensor out(x.data_type(), x.shape());
  polyop::launch("copy", {x}, {out}, [&] {
    for (size_t i = 0; i < x.numel(); ++i) out.data<float>()[i] = x.data<float>()[i];
  });
  return out;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("by_value", &by_value);
  m.def("reverse", &reverse);
  m.def("nested", &nested);
  m.def("by_values", &by_values);
  m.def("maybe", &maybe, py::arg("x"), py::arg("inplace"));
  m.def("double_", &double_);
  m.def("to", &to, py::arg("x"), py::arg("wanted"));
  m.def("through_a_view", &through_a_view);
  m.def("overwritten", &overwritten);
  m.def("read_and_filled", &read_and_filled);
  m.def("keeps_a_list", &keeps_a_list);
  m.def("undefined", &undefined);
  m.def("overlapping", &overlapping);
  m.def("wide", &wide);
  m.def("times_n", &times_n, py::arg("x"), py::arg("n"));
  m.def("plain_read", &plain_read);
}
