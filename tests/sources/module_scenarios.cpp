// Operators of a MindSpore user's module: PyboostRunner on strided and dense tensors, nested lists
// of tensors, outputs that the caller gives, a workspace.
#include <cstring>

#include "ms_extension/api.h"

namespace {

using ms::pynative::PyboostRunner;

// How far element number i of a tensor is from its first, in elements.
int64_t distance(const ms::Tensor& tensor, int64_t i) {
  const auto& shape = tensor.shape();
  const auto stride = tensor.stride();
  int64_t found = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    found += (i % shape[d]) * stride[d];
    i /= shape[d];
  }
  return found;
}

// The sum of all inputs, of any layout.
class Sum : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const ms::Tensor& out = outputs()[0];
    auto* to = static_cast<int32_t*>(out.GetDataPtr());
    for (int64_t i = 0; i < static_cast<int64_t>(out.numel()); ++i) {
      int32_t total = 0;
      for (const ms::Tensor& input : inputs()) {
        total += static_cast<const int32_t*>(input.GetDataPtr())[distance(input, i)];
      }
      to[distance(out, i)] = total;
    }
  }
  static ms::Tensor Of(const std::vector<ms::Tensor>& inputs) {
    ms::Tensor out(inputs.at(0).data_type(), inputs[0].shape());
    std::make_shared<Sum>("Sum")->Run(inputs, {out});
    return out;
  }
};

// The sum of two dense tensors, as a plain loop.
class DenseSum : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const auto* x = static_cast<const int32_t*>(inputs()[0].GetDataPtr());
    const auto* y = static_cast<const int32_t*>(inputs()[1].GetDataPtr());
    auto* out = static_cast<int32_t*>(outputs()[0].GetDataPtr());
    for (size_t i = 0; i < outputs()[0].numel(); ++i) out[i] = x[i] + y[i];
  }
};

ms::Tensor sum_of_two(const ms::Tensor& x, const ms::Tensor& y) { return Sum::Of({x, y}); }

// B1: takes the tensors as they lie.
py::object add_strided(const ms::Tensor& x, const ms::Tensor& y) {
  if (x.is_contiguous() || y.is_contiguous()) MS_LOG(EXCEPTION) << "add_strided wants strided tensors";
  x.SetNeedContiguous(false);
  y.SetNeedContiguous(false);
  return PyboostRunner::Call<1>(sum_of_two, x, y);
}

// The same for tensors of any layout, and nothing made dense.
py::object add_any(const ms::Tensor& x, const ms::Tensor& y) {
  x.SetNeedContiguous(false);
  y.SetNeedContiguous(false);
  return PyboostRunner::Call<1>(sum_of_two, x, y);
}

// B2: wants dense tensors, and says so.
ms::Tensor dense_sum(const ms::Tensor& x, const ms::Tensor& y) {
  if (!x.is_contiguous() || !y.is_contiguous()) MS_LOG(EXCEPTION) << "dense_sum got a strided tensor";
  ms::Tensor out(x.data_type(), x.shape());
  std::make_shared<DenseSum>("DenseSum")->Run({x, y}, {out});
  return out;
}
py::object add_dense(const ms::Tensor& x, const ms::Tensor& y) {
  return PyboostRunner::Call<1>(dense_sum, x, y);
}

// B4 to B6: lists of tensors, lists of lists, and a list that is written.
ms::Tensor sum_with_list(const ms::Tensor& x, const ms::Tensor& y, const std::vector<ms::Tensor>& more) {
  std::vector<ms::Tensor> all = {x, y};
  all.insert(all.end(), more.begin(), more.end());
  return Sum::Of(all);
}
py::object add4(const ms::Tensor& x, const ms::Tensor& y, const std::vector<ms::Tensor>& more) {
  return PyboostRunner::Call<1>(sum_with_list, x, y, more);
}
ms::Tensor sum_with_rows(const ms::Tensor& x, const ms::Tensor& y,
                         const std::vector<std::vector<ms::Tensor>>& rows) {
  std::vector<ms::Tensor> all = {x, y};
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return Sum::Of(all);
}
py::object add5(const ms::Tensor& x, const ms::Tensor& y, const std::vector<std::vector<ms::Tensor>>& rows) {
  return PyboostRunner::Call<1>(sum_with_rows, x, y, rows);
}
void sum_into(const ms::Tensor& x, const ms::Tensor& y, const ms::Tensor& z, const std::vector<ms::Tensor>& out) {
  std::make_shared<Sum>("Sum")->Run({x, y, z}, {out.at(0)});
}
py::object add6(const ms::Tensor& x, const ms::Tensor& y, const ms::Tensor& z, const std::vector<ms::Tensor>& out) {
  return PyboostRunner::Call<0>(sum_into, x, y, z, out);
}

// Two tensors exchanged, through a workspace.
class Swap : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  size_t CalcWorkspace() override { return inputs()[0].numel() * sizeof(float); }
  void LaunchKernel() override {
    const size_t bytes = inputs()[0].numel() * sizeof(float);
    std::memcpy(workspace_ptr(), inputs()[0].GetDataPtr(), bytes);
    std::memcpy(outputs()[0].GetDataPtr(), inputs()[1].GetDataPtr(), bytes);
    std::memcpy(outputs()[1].GetDataPtr(), workspace_ptr(), bytes);
  }
};
void exchange(const ms::Tensor& x, const ms::Tensor& y) {
  if (x.shape() != y.shape()) MS_LOG(EXCEPTION) << "swap needs tensors of one shape";
  std::make_shared<Swap>("Swap")->Run({x, y}, {x, y});
}
py::object swap(const ms::Tensor& x, const ms::Tensor& y) { return PyboostRunner::Call<0>(exchange, x, y); }

// Two outputs from one kernel, and one of the wrong number of them.
class MinMax : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const auto* x = static_cast<const int32_t*>(inputs()[0].GetDataPtr());
    const auto ends = std::minmax_element(x, x + inputs()[0].numel());
    *static_cast<int32_t*>(outputs()[0].GetDataPtr()) = *ends.first;
    *static_cast<int32_t*>(outputs()[1].GetDataPtr()) = *ends.second;
  }
};
std::vector<ms::Tensor> ends(const ms::Tensor& x) {
  const std::vector<ms::Tensor> out = {ms::Tensor(x.data_type(), {}), ms::Tensor(x.data_type(), {})};
  std::make_shared<MinMax>("MinMax")->Run({x}, out);
  return out;
}
py::object min_max(const ms::Tensor& x) { return PyboostRunner::Call<2>(ends, x); }
py::object three_of_two(const ms::Tensor& x) { return PyboostRunner::Call<3>(ends, x); }

// aclnn's own operators through their runner, and through the macro.
ms::Tensor absolute(const ms::Tensor& x) {
  ms::Tensor out(x.data_type(), x.shape());
  auto runner = std::make_shared<ms::pynative::AclnnOpRunner>("Abs");
  runner->SetLaunchFunc(LAUNCH_ACLNN_FUNC(aclnnAbs, x, out));
  runner->Run({x}, {out});
  return out;
}
py::object abs_by_aclnn(const ms::Tensor& x) { return PyboostRunner::Call<1>(absolute, x); }

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("add_strided", &add_strided, "Add two strided tensors.");
  m.def("add_any", &add_any);
  m.def("add_dense", &add_dense);
  m.def("add4", &add4);
  m.def("add5", &add5);
  m.def("add6", &add6);
  m.def("swap", &swap);
  m.def("min_max", &min_max);
  m.def("three_of_two", &three_of_two);
  m.def("abs", &abs_by_aclnn);
  m.def("add_called", PYBOOST_CALLER(1, sum_of_two));
}
