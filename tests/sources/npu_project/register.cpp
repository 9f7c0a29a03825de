// Schemas, and functions for Python.
#include <torch/library.h>

#include "function.h"
#include "pytorch_npu_helper.hpp"

TORCH_LIBRARY(rehearsed, m) {
  m.def("product(Tensor self, Tensor other, Scalar factor=1) -> Tensor");
  m.def("older(Tensor self) -> Tensor");
}

void add(const at::Tensor& x, const at::Tensor& y, c10::complex<double> number, at::Tensor out) {
  const at::Scalar alpha = number.imag() == 0 ? at::Scalar(number.real()) : at::Scalar(number);
  EXEC_NPU_CMD(aclnnAdd, x, y, alpha, out);
}
void add_custom(const at::Tensor& x, const at::Tensor& y, at::Tensor out) {
  EXEC_NPU_CMD(aclnnAddCustom, x, y, out);
}
void sum(const at::Tensor& x, std::vector<int64_t> dims, at::Tensor out) {
  c10::OptionalIntArrayRef given(dims);
  EXEC_NPU_CMD(aclnnReduceSum, x, given, true, out.scalar_type(), out);
}
void clamp(const at::Tensor& x, c10::optional<double> low, c10::optional<double> high, at::Tensor out) {
  c10::optional<at::Scalar> least, most;
  if (low) least = at::Scalar(*low);
  if (high) most = at::Scalar(*high);
  EXEC_NPU_CMD(aclnnClamp, x, least, most, out);
}
void norm(const at::Tensor& x, c10::optional<at::Tensor> weight, at::Tensor out) {
  at::Tensor absent;
  at::IntArrayRef shape = x.sizes().slice(1);
  EXEC_NPU_CMD(aclnnLayerNorm, x, shape, weight, absent, 0.0, out, nullptr, c10::nullopt);
}
void split(const at::Tensor& x, std::vector<int64_t> sizes, std::vector<at::Tensor> out) {
  at::TensorList outs(out);
  EXEC_NPU_CMD(aclnnSplitWithSize, x, sizes, 0, outs);
}
void nobody(const at::Tensor& x, at::Tensor out) { EXEC_NPU_CMD(aclnnLayerNorn, x, out); }
at::Tensor negated(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  EXEC_NPU_CMD(aclnnNeg, x, out);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def(
      "product",
      [](const at::Tensor& x, const at::Tensor& y, double factor) { return product_autograd(x, y, factor); },
      "factor * x * y");
  m.def("add", &add);
  m.def("add_custom", &add_custom);
  m.def("sum", &sum);
  m.def("clamp", &clamp);
  m.def("norm", &norm);
  m.def("split", &split);
  m.def("nobody", &nobody);
  m.def("negated", &negated);
  m.def("mix",
        [](std::vector<at::Tensor> xs, c10::optional<at::Tensor> bias, double factor,
           std::vector<int64_t> shift, std::vector<bool> flags, std::vector<double> weights, std::string text,
           at::Tensor out) { mix(xs, bias, factor, shift, flags, weights, text, out); });
}
