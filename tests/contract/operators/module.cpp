// A module with each kind of saved state: an input, the output, a tensor of its own, none.
#include "ms_extension/api.h"

namespace {

using ms::Tensor;
using List = std::vector<Tensor>;
using Context = ms::AutogradContext;

template <typename... Inputs>
Tensor launched(const char* name, const Tensor& like, const Inputs&... inputs) {
  Tensor out(like.data_type(), like.shape());
  polyop::launch_aclnn(name, inputs..., out);
  return out;
}
Tensor times(const Tensor& x, const Tensor& y) { return launched("aclnnMul", x, x, y); }
Tensor plus(const Tensor& x, const Tensor& y) { return launched("aclnnAdd", x, x, y, int64_t{1}); }
Tensor scaled(const Tensor& x, double factor) { return launched("aclnnMuls", x, x, factor); }

struct Product : ms::Function<Product> {  // keeps its inputs
  static Tensor Forward(Context* ctx, const Tensor& x, const Tensor& y) {
    ctx->SaveForBackward({x, y});
    return times(x, y);
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    return {times(grads[0], saved[1]), times(grads[0], saved[0])};
  }
};

struct Logistic : ms::Function<Logistic> {  // keeps its output
  static Tensor Forward(Context* ctx, const Tensor& x) {
    const Tensor y = launched("aclnnSigmoid", x, x);
    ctx->SaveForBackward({y});
    return y;
  }
  static List Backward(Context* ctx, List grads) {
    const Tensor y = ctx->GetSavedTensors()[0];
    return {times(grads[0], plus(y, scaled(times(y, y), -1)))};
  }
};

struct Weighted : ms::Function<Weighted> {  // keeps a tensor of its own, and has an attribute
  static Tensor Forward(Context* ctx, const Tensor& x, double weight) {
    const Tensor e = launched("aclnnExp", x, x);
    ctx->SaveForBackward({e});
    return scaled(e, weight);
  }
  static List Backward(Context* ctx, List grads) {
    return {times(grads[0], scaled(ctx->GetSavedTensors()[0], 3)), Tensor()};
  }
};

struct SumAndCount : ms::Function<SumAndCount> {  // keeps nothing; one output is of integers
  static List Forward(Context*, const Tensor& x, const Tensor& y) {
    return {plus(x, y), scaled(x, 4).cast(ms::kNumberTypeInt64)};
  }
  static List Backward(Context*, List grads) { return {grads[0], grads[0]}; }
};

Tensor product(const Tensor& x, const Tensor& y) { return Product::Apply(x, y); }
Tensor logistic(const Tensor& x) { return Logistic::Apply(x); }
Tensor weighted(const Tensor& x) { return Weighted::Apply(x, 3.0); }
List sum_and_count(const Tensor& x, const Tensor& y) { return SumAndCount::Apply(x, y); }
Tensor sum_of_all(const List& all) {
  Tensor total = scaled(all.at(0), 1);
  for (size_t i = 1; i < all.size(); ++i) total = plus(total, all[i]);
  return total;
}

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("product", &product);
  m.def("logistic", &logistic);
  m.def("weighted", &weighted);
  m.def("sum_and_count", &sum_and_count);
  m.def("sum_of_all", &sum_of_all);
}
