// Functions that double a tensor in place, in each way in which C++ can write one: by a launch, by a loop on
// a dense copy, by a Forward, unannounced, in Backward, and as operators by schema.
#include "ms_extension/api.h"
#include "polyop/library.h"

namespace {

using ms::Tensor;
using List = std::vector<Tensor>;
using Context = ms::AutogradContext;

void by_launch(const Tensor& x) { polyop::launch_aclnn("aclnnInplaceMuls", x, 2.0); }

void by_loop(const Tensor& given) {
  const Tensor x = given.contiguous();
  polyop::launch("double", {x}, {x}, [&] {
    auto* data = static_cast<float*>(x.GetDataPtr());
    for (size_t i = 0; i < x.numel(); ++i) data[i] *= 2;
  });
}

struct Doubled : ms::Function<Doubled> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->MarkDirty({x});
    by_launch(x);
    return x;
  }
  static List Backward(Context*, List grads) {
    Tensor to_x(grads[0].data_type(), grads[0].shape());
    polyop::launch_aclnn("aclnnMuls", grads[0], 2.0, to_x);
    return {to_x};
  }
};
Tensor by_forward(const Tensor& x) { return Doubled::Apply(x); }

// Its result has a size that depends on data, so no run without data shows that it writes x.
Tensor unannounced(const Tensor& x, const Tensor& size) {
  by_launch(x);
  return Tensor(x.data_type(), {static_cast<int64_t>(*static_cast<const float*>(size.GetDataPtr()))});
}

// Backward doubles the gradient that it is given.
struct DoublesGradient : ms::Function<DoublesGradient> {
  static Tensor Forward(Context*, const Tensor& x) {
    Tensor out(x.data_type(), x.shape());
    polyop::launch_aclnn("aclnnMuls", x, 2.0, out);
    return out;
  }
  static List Backward(Context*, List grads) {
    by_launch(grads[0]);
    return {grads[0]};
  }
};
Tensor doubles_gradient(const Tensor& x) { return DoublesGradient::Apply(x); }

void dense(polyop::Tensor& x) {
  for (size_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] *= 2;
}
void list(const std::vector<polyop::Tensor>& xs) {
  for (polyop::Tensor x : xs) dense(x);
}
void both(polyop::Tensor& x, polyop::Tensor& y) {
  dense(x);
  dense(y);
}

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("by_launch", &by_launch);
  m.def("by_loop", &by_loop);
  m.def("by_forward", &by_forward);
  m.def("unannounced", &unannounced);
  m.def("doubles_gradient", &doubles_gradient);
}

POLYOP_LIBRARY(overlap_kinds, m) {
  m.def("dense(Tensor(a!) x) -> ()");
  m.def("list(Tensor(a!)[] xs) -> ()");
  m.def("both(Tensor(a!) x, Tensor(b!) y) -> ()");
}
POLYOP_LIBRARY_IMPL(overlap_kinds, CPU, m) {
  m.impl("dense", &dense);
  m.impl("list", &list);
  m.impl("both", &both);
}
POLYOP_LIBRARY_IMPL(overlap_kinds, Meta, m) {
  m.impl("dense", [](polyop::Tensor&) {});
  m.impl("list", [](const std::vector<polyop::Tensor>&) {});
  m.impl("both", [](polyop::Tensor&, polyop::Tensor&) {});
}
