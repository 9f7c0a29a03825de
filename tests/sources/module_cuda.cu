// A CUDA operator module.
#include "ms_extension/api.h"

__global__ void add_one(const float *x, float *y, size_t n) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}

class AddOne : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const size_t n = inputs()[0].numel();
    const auto on = static_cast<cudaStream_t>(stream());
    add_one<<<(n + 255) / 256, 256, 0, on>>>(static_cast<const float *>(inputs()[0].GetDataPtr()),
                                             static_cast<float *>(outputs()[0].GetDataPtr()), n);
  }
};

ms::Tensor run(const ms::Tensor &x) {
  ms::Tensor y(x.data_type(), x.shape());
  std::make_shared<AddOne>("AddOne")->Run({x}, {y});
  return y;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("add_one", PYBOOST_CALLER(1, run), py::arg("x")); }
