// Several outputs, optional tensors, and an output that is an argument.
#include "custom_op_api.h"
#include "kernel/ascend/aclnn/kernel_mod_impl/aclnn_kernel_mod.h"
#include "module.h"
#include "ops/ops_func_impl/op_func_impl.h"

namespace norms {
using namespace mindspore;
using namespace mindspore::kernel;
using namespace mindspore::device::ascend;
using namespace mindspore::ops;

class OPS_API BatchNormInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    const auto& shape = infos[kIndex0]->GetShape();
    return {shape, {shape[kIndex1]}, {shape[kIndex1]}};
  }
  std::vector<TypeId> InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    const auto& type = infos[kIndex0]->GetType();
    const auto& weight = infos[kIndex1];
    const auto saved = weight->IsNone() ? type : weight->GetType();
    return {type, saved, saved};
  }
  bool GeneralInferRegistered() const override { return true; }
};

class BatchNormKernel : public AclnnKernelMod {
 public:
  BatchNormKernel() : AclnnKernelMod("aclnnBatchNorm") {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void* stream_ptr) override {
    RunOp(stream_ptr, workspace, inputs[kIndex0], inputs[kIndex1], inputs[kIndex2], inputs[kIndex3],
          inputs[kIndex4], training_, momentum_, eps_, outputs[kIndex0], outputs[kIndex1], outputs[kIndex2]);
    return true;
  }
  void GetWorkSpaceInfo(const std::vector<KernelTensor*>& inputs,
                        const std::vector<KernelTensor*>&) override {
    training_ = device::ascend::ConvertKernelTensor<bool>(inputs[kIndex5]);
    momentum_ = inputs[kIndex6]->GetValueWithCheck<double>();
    eps_ = inputs[kIndex7]->dtype_id() == kNumberTypeFloat32
               ? static_cast<double>(inputs[kIndex7]->GetValueWithCheck<float>())
               : inputs[kIndex7]->GetValueWithCheck<double>();
  }

 private:
  DEFINE_GET_WORKSPACE_FOR_RESIZE();
  bool training_;
  double momentum_;
  double eps_;
};

class InplaceAddInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[kIndex0]->GetShape()};
  }
  std::vector<TypeId> InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[kIndex0]->GetType()};
  }
  bool GeneralInferRegistered() const override { return true; }
};

class InplaceAddKernel : public AclnnCustomKernelMod {
 public:
  InplaceAddKernel() : AclnnCustomKernelMod("aclnnInplaceAdd") {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>&, void* stream_ptr) override {
    RunOp(stream_ptr, workspace, inputs[kIndex0], inputs[kIndex1], alpha_);
    return true;
  }

 private:
  DEFINE_GET_WORKSPACE_FOR_RESIZE()
  ScalarPtr alpha_ = MakeValue<int64_t>(1);
};
}  // namespace norms

REG_GRAPH_MODE_OP(batch_norm, norms::BatchNormInfer, norms::BatchNormKernel);
REG_GRAPH_MODE_OP(inplace_add, norms::InplaceAddInfer, norms::InplaceAddKernel);
