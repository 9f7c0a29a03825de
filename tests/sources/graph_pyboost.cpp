// A Function that runs its operator as MindSpore's own do: a runner, and a task for the device.
#include "custom_op_api.h"
#include "utils/stream_guard.h"

namespace mindspore::pynative {
namespace autograd {
using kernel::pyboost::PyBoostUtils;

class TaskMul : public Function<TaskMul> {
 public:
  static TensorPtr Forward(AutogradContext* ctx, const TensorPtr& x, const TensorPtr& y) {
    auto output = std::make_shared<Tensor>(x->data_type(), x->shape());
    auto primitive = std::make_shared<Primitive>("TaskMul");
    auto op = std::make_shared<kernel::pyboost::OpRunner>(
        primitive, runtime::OpRunner::GetDeviceContext(device::DeviceType::kAscend));
    op->set_stream_id(CurrentStream::id());
    op->set_outputs({output});
    PyBoostUtils::PrepareOpInputs(op->device_context(), op->stream_id(), x, y);
    PyBoostUtils::PrepareOpOutputs(op->device_context(), op->stream_id(), op->outputs());
    PyBoostUtils::DispatchRun(std::make_shared<runtime::PyBoostDeviceTask>([op, x, y]() {
      auto device_context = op->device_context();
      MS_EXCEPTION_IF_NULL(device_context);
      const auto& outputs = op->outputs();
      PyBoostUtils::MallocOpInputs(device_context, x, y);
      PyBoostUtils::MallocOpOutputs(device_context, outputs);
      LAUNCH_ACLNN(aclnnMul, device_context, op->stream_id(), x, y, outputs[0]);
      MS_LOG(DEBUG) << "done: " << op->primitive()->name();
    }));
    ctx->SaveForBackward({x, y});
    return output;
  }
  static TensorPtrList Backward(AutogradContext* ctx, TensorPtrList grads) {
    const auto saved = ctx->GetSavedTensors();
    auto x = std::make_shared<Tensor>(grads[0]->data_type(), grads[0]->shape());
    auto y = std::make_shared<Tensor>(grads[0]->data_type(), grads[0]->shape());
    custom::CustomLaunchAclnn("aclnnMul", {grads[0], saved[1]}, {x});
    custom::CustomLaunchAclnn("aclnnMul", {grads[0], saved[0]}, {y});
    return {x, y};
  }
};

TensorPtr task_mul(const tensor::TensorPtr& x, const tensor::TensorPtr& y) { return TaskMul::Apply(x, y); }
}  // namespace autograd
}  // namespace mindspore::pynative

PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("mul", &mindspore::pynative::autograd::task_mul, "x * y"); }
