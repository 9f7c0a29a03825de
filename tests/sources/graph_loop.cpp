// Operators of graph mode with loops of their own, and functions for PyNative mode.
#include "custom_op_api.h"
#include "module.h"

namespace loops {
using namespace mindspore;
using namespace mindspore::kernel;
using namespace mindspore::ops;

// rows(x, lengths, scale, mode): the sums of the first lengths[i] elements of row i of x, as a list of one.
class RowsInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr& primitive, const InferInfoPtrList& infos) const override {
    const auto lengths = infos[kIndex1]->GetArrayValue<int64_t>();
    const auto shape = infos[kIndex0]->GetShape();
    MS_CHECK_VALUE(lengths->size() == static_cast<size_t>(shape[0]),
                   CheckAndConvertUtils::FormatCommMsg(primitive->name(), " needs ", shape[0],
                                                       " lengths, not ", lengths->size()));
    return {{shape[0]}};
  }
  std::vector<TypeId> InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[kIndex0]->GetType()};
  }
};
class RowsKernel : public KernelMod {
 public:
  int Resize(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>&) override {
    SetWorkspaceSizeList({inputs[kIndex0]->size()});
    return inputs[kIndex3]->GetValueWithCheck<std::string>() == "sum" ? KRET_OK : 1;
  }
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void*) override {
    const auto lengths = inputs[kIndex1]->GetValueWithCheck<std::vector<int64_t>>();
    const auto scale = inputs[kIndex2]->GetValue<double>();
    const int64_t width = inputs[kIndex0]->GetShapeVector()[1];
    const auto* x = static_cast<const float*>(inputs[kIndex0]->device_ptr());
    auto* scaled = static_cast<float*>(workspace[kIndex0]->device_ptr());
    auto* out = static_cast<float*>(outputs[kIndex0]->device_ptr());
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] > width) return false;
      out[i] = 0;
      for (int64_t j = 0; j < lengths[i]; ++j) {
        scaled[j] = x[static_cast<int64_t>(i) * width + j] * static_cast<float>(scale.value_or(1.0));
        out[i] += scaled[j];
      }
    }
    return true;
  }
};

// total(xs): the sum of a list of tensors, and how many elements the last has, as a list of two.
class TotalInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    const auto parts = infos[kIndex0]->GetSequenceElements();
    return {parts[0]->GetShape(), {}};
  }
  std::vector<TypeId> InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[kIndex0]->GetSequenceElements()[0]->GetType(), kNumberTypeInt64};
  }
};
class TotalKernel : public KernelMod {
 public:
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>&,
              const std::vector<KernelTensor*>& outputs, void*) override {
    const auto parts = device::ascend::ConvertKernelTensor<std::vector<KernelTensor*>>(inputs[kIndex0]);
    auto* out = static_cast<float*>(outputs[0]->device_ptr());
    const size_t count = outputs[0]->size() / sizeof(float);
    std::fill(out, out + count, 0.0f);
    for (KernelTensor* part : parts) {
      for (size_t i = 0; i < count; ++i) out[i] += static_cast<const float*>(part->device_ptr())[i];
    }
    *static_cast<int64_t*>(outputs[1]->device_ptr()) =
        static_cast<int64_t>(parts.back()->size() / sizeof(float));
    return true;
  }
};

// mix(x, y): x + y of one dtype, by aclnn.
class MixKernel : public AclnnKernelMod {
 public:
  MixKernel() : AclnnKernelMod("aclnnAdd") {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void* stream) override {
    RunOp(stream, workspace, inputs[0], inputs[1], 1.0, outputs[0]);
    return true;
  }
};
class MixInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr& primitive, const InferInfoPtrList& infos) const override {
    return {CalBroadCastShape(infos[0]->GetShape(), infos[1]->GetShape(), primitive->name(), "x", "y")};
  }
  std::vector<TypeId> InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetType()};
  }
};

// first(x, count): the first elements of x, as many as the tensor count says.
class FirstInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {{infos[1]->GetScalarValueWithCheck<int64_t>()}};
  }
  std::vector<TypeId> InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetType()};
  }
  std::set<int64_t> GetValueDependArgIndices() const override { return {1}; }
};
class FirstKernel : public KernelMod {
 public:
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>&,
              const std::vector<KernelTensor*>& outputs, void*) override {
    std::copy_n(static_cast<const char*>(inputs[0]->device_ptr()), outputs[0]->size(),
                static_cast<char*>(outputs[0]->device_ptr()));
    return true;
  }
};
}  // namespace loops

REG_GRAPH_MODE_OP(rows, loops::RowsInfer, loops::RowsKernel);
REG_GRAPH_MODE_OP(total, loops::TotalInfer, loops::TotalKernel);
REG_GRAPH_MODE_OP(first, loops::FirstInfer, loops::FirstKernel);
REG_GRAPH_MODE_OP(mix, loops::MixInfer, loops::MixKernel);

ms::Tensor abs_sum(const ms::Tensor& x, const std::vector<int64_t>& axis, bool keep) {
  ms::ShapeVector shape;
  for (size_t i = 0; i < x.shape().size(); ++i) {
    const bool summed = std::find(axis.begin(), axis.end(), static_cast<int64_t>(i)) != axis.end();
    if (!summed) shape.push_back(x.shape()[i]);
    if (summed && keep) shape.push_back(1);
  }
  ms::Tensor positive(x.data_type(), x.shape()), out(x.data_type(), shape);
  auto abs = std::make_shared<ms::pynative::AclnnOpRunner>("Abs");
  abs->SetLaunchFunc(LAUNCH_ACLNN_FUNC(aclnnAbs, x, positive));
  abs->Run({x}, {positive});
  auto sum = std::make_shared<ms::pynative::AclnnOpRunner>("ReduceSum");
  sum->SetLaunchFunc(LAUNCH_ACLNN_FUNC(aclnnReduceSum, positive, axis, keep, x.data_type(), out));
  sum->Run({positive}, {out});
  return out;
}

MS_CUSTOM_OPS_EXTENSION_MODULE(m) { m.def("npu_abs_reduce_sum", PYBOOST_CALLER(1, abs_sum)); }

// Both modes.
ms::Tensor pynative_mix(const ms::Tensor& x, const ms::Tensor& y) {
  ms::Tensor out(x.data_type(), x.shape());
  auto add = std::make_shared<ms::pynative::AclnnOpRunner>("Add");
  add->SetLaunchFunc(LAUNCH_ACLNN_FUNC(aclnnAdd, x, y, int64_t{1}, out));
  add->Run({x, y}, {out});
  return out;
}

MS_CUSTOM_OPS_EXTENSION_MODULE(m) {
  m.def("mix", &pynative_mix, "x + y", pybind11::arg("x"), pybind11::arg("y"));
}
