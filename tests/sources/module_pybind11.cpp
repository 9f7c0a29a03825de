// A module that includes pybind11: bound with pybind11 itself.
#include <pybind11/pybind11.h>

#include "ms_extension/api.h"

class AddOne : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const auto *from = static_cast<const float *>(inputs()[0].GetDataPtr());
    auto *to = static_cast<float *>(outputs()[0].GetDataPtr());
    for (size_t i = 0; i < inputs()[0].numel(); ++i) to[i] = from[i] + 1;
  }
};

ms::Tensor add_one(const ms::Tensor &x) {
  ms::Tensor out(x.data_type(), x.shape());
  std::make_shared<AddOne>("AddOne")->Run({x}, {out});
  return out;
}

py::object call_add_one(const ms::Tensor &x) { return ms::pynative::PyboostRunner::Call<1>(add_one, x); }

mindspore::tensor::TensorPtr first(const mindspore::tensor::TensorPtr &x, const std::vector<ms::Tensor> &) {
  return x;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("add_one", &call_add_one, "x + 1", py::arg("x"));
  m.def("first", &first);
  m.def("size", [](const py::dict &any) { return py::len(any); });
}
