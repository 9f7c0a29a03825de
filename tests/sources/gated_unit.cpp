// A gated unit as PyTorch extensions are written: tensors in lists, a library and a Python module in one
// file.
#include <torch/extension.h>
#include <torch/torch.h>

#include <vector>

at::Tensor sigmoid_slope(const at::Tensor& z) {
  const auto s = at::sigmoid(z);
  return (1 - s) * s;
}

std::vector<at::Tensor> gate_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                     const at::Tensor& state) {
  const auto joined = at::cat({state, x}, /*dim=*/1);
  const auto gates = at::addmm(bias, joined, weight.t()).chunk(2, /*dim=*/1);
  const auto value = at::tanh(gates[1]);
  return {at::sigmoid(gates[0]) * value, gates[0], value};
}

std::vector<torch::Tensor> gate_backward(const torch::Tensor& grad, const torch::Tensor& gate,
                                         const torch::Tensor& value) {
  return {grad * value * sigmoid_slope(gate), grad * at::sigmoid(gate) * (1 - value.pow(2))};
}

TORCH_LIBRARY(gated_unit, m) {
  m.def("forward(Tensor x, Tensor weight, Tensor bias, Tensor state) -> Tensor[]");
  m.def("backward(Tensor grad, Tensor gate, Tensor value) -> Tensor[]");
}
// names that are looked at while the compiler runs: PyTorch's headers assert there
TORCH_LIBRARY_IMPL(gated_unit, CPU, m) {
  m.impl(TORCH_SELECTIVE_NAME("forward"), &gate_forward);
  m.impl(TORCH_SELECTIVE_NAME("backward"), &gate_backward);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &gate_forward, "The gated value, and what its gradient reads");
  m.def("backward", &gate_backward, "The gradients of the two gates");
}
