// What the two sources have in common.
#pragma once
#include <torch/extension.h>
at::Tensor product_autograd(const at::Tensor& self, const at::Tensor& other, const at::Scalar& factor);
void mix(at::TensorList xs, const c10::optional<at::Tensor>& bias, const at::Scalar& factor,
         at::IntArrayRef shift, std::vector<bool> flags, std::vector<double> weights, const std::string& text,
         at::Tensor& out);
