// Registered in PyTorch, with what PyTorch's own operators have: shapes, a gradient, an overload, a second namespace.
#include <ATen/ATen.h>
#include <torch/library.h>

static at::Tensor muladd(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes(), "muladd: the shapes differ");
  return a * b + c;
}

static at::Tensor like(const at::Tensor& a, const at::Tensor&, double) { return at::empty_like(a); }

at::Tensor halved(const at::Tensor& a);  // torch_halved.cpp

TORCH_LIBRARY(torchlib, m) {
  m.def("muladd(Tensor a, Tensor b, float c) -> Tensor");
  m.def("shift(Tensor a) -> Tensor");
  m.def("shift.by(Tensor a, int n) -> Tensor");
  m.def("halved(Tensor a) -> Tensor", &halved);
  m.def("wait(Tensor a, Stream s) -> Tensor");
}

TORCH_LIBRARY(torchlib_more, m) { m.def("shift(Tensor a) -> Tensor"); }

TORCH_LIBRARY_IMPL(torchlib, CPU, m) { m.impl("muladd", &muladd); }

TORCH_LIBRARY_IMPL(torchlib, Meta, m) { m.impl("muladd", &like); }

TORCH_LIBRARY_IMPL(torchlib, CompositeImplicitAutograd, m) {
  m.impl("shift", [](const at::Tensor& a) { return a + 1; });
  m.impl("shift.by", [](const at::Tensor& a, int64_t n) { return a + n; });
}
