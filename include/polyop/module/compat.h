// The older way to run an operator in a Function: OpRunner, PyBoostUtils and device tasks.
//
// MindSpore queues a device task and runs it later. Here DispatchRun() runs it at once, and tensors have
// memory from the start.
#ifndef POLYOP_MODULE_COMPAT_H
#define POLYOP_MODULE_COMPAT_H

#include <functional>

#include "aclnn.h"
#include "log.h"
#include "primitive.h"

namespace mindspore {

struct CurrentStream {
  static size_t id() { return 0; }
};

namespace runtime {

class PyBoostDeviceTask {
 public:
  explicit PyBoostDeviceTask(std::function<void()> run) : run_(std::move(run)) {}
  void Run() const { run_(); }

 private:
  std::function<void()> run_;
};

struct OpRunner {
  // A placeholder for the device of the call. It is never null, and has no content.
  template <typename Device>
  static device::DeviceContext* GetDeviceContext(const Device&) {
    static char context;
    return reinterpret_cast<device::DeviceContext*>(&context);
  }
};

}  // namespace runtime

namespace kernel::pyboost {

class OpRunner : public std::enable_shared_from_this<OpRunner> {
 public:
  OpRunner(PrimitivePtr primitive, device::DeviceContext* context)
      : primitive_(std::move(primitive)), context_(context) {}
  virtual ~OpRunner() = default;
  const PrimitivePtr& primitive() const { return primitive_; }
  device::DeviceContext* device_context() const { return context_; }
  size_t stream_id() const { return stream_id_; }
  void set_stream_id(size_t id) { stream_id_ = id; }
  const tensor::TensorPtrList& outputs() const { return outputs_; }
  const tensor::TensorPtr& output(size_t i) const { return outputs_.at(i); }
  void set_outputs(const tensor::TensorPtrList& outputs) { outputs_ = outputs; }

 private:
  PrimitivePtr primitive_;
  device::DeviceContext* context_;
  size_t stream_id_ = 0;
  tensor::TensorPtrList outputs_;
};
using OpPtr = std::shared_ptr<OpRunner>;

struct PyBoostUtils {
  template <typename... Args>
  static void PrepareOpInputs(device::DeviceContext*, size_t, const Args&...) {}
  static void PrepareOpOutputs(device::DeviceContext*, size_t, const tensor::TensorPtrList&) {}
  template <typename... Args>
  static void MallocOpInputs(device::DeviceContext*, const Args&...) {}
  static void MallocOpOutputs(device::DeviceContext*, const tensor::TensorPtrList&) {}
  static void DispatchRun(const std::shared_ptr<runtime::PyBoostDeviceTask>& task) { task->Run(); }
  static size_t cur_stream_id() { return CurrentStream::id(); }
};

}  // namespace kernel::pyboost
}  // namespace mindspore

#endif
