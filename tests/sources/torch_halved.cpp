// The other file of torch_muladd.cpp.
#include <ATen/ATen.h>

at::Tensor halved(const at::Tensor& a) { return a / 2; }
