// x + alpha * y as an operator of graph mode, registered in each of the ways there have been.
#include "ir/tensor.h"
#include "kernel/ascend/opapi/aclnn_kernel_mod.h"
#include "mindspore/ops/ops_utils/op_utils.h"
#include "ms_extension/api.h"
#include "ops/ops_func_impl/op_func_impl.h"

namespace mindspore {
namespace ops {
class OPS_API ScaledAddInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr& primitive, const InferInfoPtrList& infos) const override {
    return {CalBroadCastShape(infos[kInputIndex0]->GetShape(), infos[kInputIndex1]->GetShape(),
                              primitive->name())};
  }
  std::vector<TypeId> InferType(const PrimitivePtr& primitive, const InferInfoPtrList& infos) const override {
    const auto type = infos[kInputIndex0]->GetType();
    const auto alpha = infos[kInputIndex2]->GetType();
    if (type != infos[kInputIndex1]->GetType()) {
      MS_EXCEPTION(TypeError) << "For '" << primitive->name()
                              << "', the dtypes differ: " << TypeIdToString(type) << " and "
                              << TypeIdToString(infos[kInputIndex1]->GetType());
    }
    const bool whole = type >= kNumberTypeInt8 && type <= kNumberTypeUInt64;
    if (alpha == kNumberTypeFloat32 && whole) {
      MS_EXCEPTION(TypeError) << "For '" << primitive->name()
                              << "', alpha is a float and the tensors are integers";
    }
    const auto known = TypeIdToType(type);
    if (!std::any_of(common_valid_types.begin(), common_valid_types.end(),
                     [&](const TypePtr& one) { return one == known; })) {
      MS_EXCEPTION(TypeError) << "For '" << primitive->name() << "', the dtype is " << TypeIdToString(type);
    }
    return {type};
  }
  bool GeneralInferRegistered() const override { return true; }
};
}  // namespace ops

namespace kernel {
class ScaledAddKernel : public AclnnKernelMod {
 public:
  ScaledAddKernel() : AclnnKernelMod(std::move("aclnnAdd")) {}
  ~ScaledAddKernel() = default;
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void* stream_ptr) override {
    MS_EXCEPTION_IF_NULL(stream_ptr);
    RunOp(stream_ptr, workspace, inputs[kIndex0], inputs[kIndex1], alpha_, outputs[kIndex0]);
    return true;
  }
  void GetWorkSpaceInfo(const std::vector<KernelTensor*>& inputs,
                        const std::vector<KernelTensor*>& outputs) override {
    const auto type = inputs[kIndex2]->dtype_id();
    if (type == kNumberTypeFloat32) {
      MAKE_SCALAR(inputs[kIndex2]->GetValueWithCheck<float>(), type, alpha_);
    } else if (type == kNumberTypeInt64) {
      MAKE_SCALAR(inputs[kIndex2]->GetValueWithCheck<int64_t>(), type, alpha_);
    } else {
      MS_LOG(EXCEPTION) << "alpha must be a float or an int, but has the TypeId " << type;
    }
    GetWorkspaceForResize(inputs[kIndex0], inputs[kIndex1], alpha_, outputs[kIndex0]);
  }

 private:
  DEFINE_GET_WORKSPACE_FOR_RESIZE()

  ScalarPtr alpha_ = nullptr;
};
MS_ACLNN_KERNEL_FACTORY_REG(Custom_add2, ScaledAddKernel);
}  // namespace kernel

// The first way: the definition in C++, and no op_def.
namespace ops {
ScaledAddInfer gAdd2Infer;
OpDef gAdd2 = {
    "Custom_add2",
    {{"input", DT_TENSOR, 0, "", {DT_NUMBER}, false},
     {"other", DT_TENSOR, 0, "", {DT_NUMBER}, false},
     {"alpha", DT_NUMBER, 0, "", {}, false}},
    {{"output", DT_TENSOR, -1}},
    {Signature("input", SignatureEnumRW::kRWDefault, SignatureEnumKind::kKindPositionalKeyword, nullptr,
               SignatureEnumDType::kDType),
     Signature("other", SignatureEnumRW::kRWDefault, SignatureEnumKind::kKindPositionalKeyword, nullptr,
               SignatureEnumDType::kDType),
     Signature("alpha", SignatureEnumRW::kRWDefault, SignatureEnumKind::kKindPositionalKeyword, nullptr,
               SignatureEnumDType::kDType1)},
    {{"input", 0}, {"other", 1}, {"alpha", 2}},
    gAdd2Infer,
    true,
    false,
    false,
};
REGISTER_PRIMITIVE_OP_DEF(Custom_add2, &gAdd2);
}  // namespace ops
}  // namespace mindspore
REG_GRAPH_MODE_OP(add2);

// The second way.
MS_CUSTOM_OP_REGISTER(add4, ScaledAddInfer, ScaledAddKernel)
REG_GRAPH_MODE_OP(add4);

// The third.
REG_GRAPH_MODE_OP(add3, mindspore::ops::ScaledAddInfer, mindspore::kernel::ScaledAddKernel);
