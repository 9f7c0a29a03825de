// PyboostRunner: an operator whose kernel is a method, and its runners for other libraries.
#ifndef POLYOP_MODULE_RUNNER_H
#define POLYOP_MODULE_RUNNER_H

#include "aclnn.h"
#include "object.h"
#include "std.h"

namespace polyop {

// Runs `kernel` as a kernel of the module, with `workspace` bytes of memory and without Python's lock. Does
// nothing while shapes are derived.
template <typename Kernel>
void run_kernel(const std::string& name, const std::vector<ms::Tensor>& inputs,
                const std::vector<ms::Tensor>& outputs, size_t workspace, const Kernel& kernel) {
  std::vector<polyop_tensor*> from, to;
  for (const ms::Tensor& tensor : inputs) from.push_back(tensor.handle());
  for (const ms::Tensor& tensor : outputs) to.push_back(tensor.get());
  void* memory = nullptr;
  int32_t run = 0;
  check(functions()->begin(name.c_str(), from.data(), from.size(), to.data(), to.size(), workspace, &memory,
                           &run));
  if (run == 0) return;
  struct End {
    ~End() { functions()->end(); }
  } end;
  kernel(memory);
}

// Runs a loop over the data of tensors, for a Forward without a PyboostRunner.
//   polyop::launch("scale", {x}, {out}, [&] { ... x.GetDataPtr() ... });
template <typename Kernel>
void launch(const std::string& name, const std::vector<ms::Tensor>& inputs,
            const std::vector<ms::Tensor>& outputs, const Kernel& kernel) {
  run_kernel(name, inputs, outputs, 0, [&](void*) { kernel(); });
}

inline const ms::Tensor& dense(const ms::Tensor& tensor, ms::Tensor* copy) {
  if (!tensor.is_defined() || !tensor.need_contiguous() || tensor.is_contiguous()) return tensor;
  *copy = tensor.contiguous();
  return *copy;
}
// Returns an argument with dense tensors; tensors with SetNeedContiguous(false) stay as they are.
template <typename T>
T dense_argument(const T& argument) {
  if constexpr (std::is_same_v<T, ms::Tensor>) {
    ms::Tensor copy;
    return dense(argument, &copy);
  } else {
    return argument;
  }
}
template <typename T>
std::optional<T> dense_argument(const std::optional<T>& argument) {
  if (!argument) return std::nullopt;
  return dense_argument<T>(*argument);
}
template <typename T>
std::vector<T> dense_argument(const std::vector<T>& arguments) {
  std::vector<T> result;
  for (const auto& argument : arguments) result.push_back(dense_argument<T>(argument));
  return result;
}

}  // namespace polyop

namespace ms::pynative {

// Derive from it and override LaunchKernel(). Create the object with std::make_shared, then call Run(inputs,
// outputs).
class PyboostRunner : public std::enable_shared_from_this<PyboostRunner> {
 public:
  explicit PyboostRunner(const std::string& op_name) : name_(op_name) {}
  virtual ~PyboostRunner() = default;

  // Calls `function` on dense arguments; a tensor with SetNeedContiguous(false) stays as it is. `function`
  // returns a tensor, a vector of OUT_NUM tensors, or (OUT_NUM 0) nothing.
  template <int OUT_NUM, typename Function, typename... Args>
  static pybind11::object Call(Function function, Args&&... arguments) {
    using R = decltype(function(polyop::dense_argument(arguments)...));
    if constexpr (std::is_void_v<R>) {
      static_assert(OUT_NUM == 0, "a function that returns nothing has no outputs");
      function(polyop::dense_argument(arguments)...);
      return pybind11::none();
    } else {
      return pack<OUT_NUM>(function(polyop::dense_argument(arguments)...));
    }
  }

  // Runs the kernel on these tensors. For an operation in place, pass the same tensor as an output.
  void Run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    inputs_ = inputs;
    outputs_ = outputs;
    launch();
  }

  const std::string& op_name() const { return name_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  size_t stream_id() const { return 0; }
  void* stream() const { return polyop::functions()->stream(); }
  void* workspace_ptr() const { return workspace_; }

 protected:
  // The number of bytes that LaunchKernel() needs at workspace_ptr().
  virtual size_t CalcWorkspace() { return 0; }
  virtual void ProcessWithWorkspace() {}
  virtual void LaunchKernel() = 0;
  virtual void launch() {
    polyop::run_kernel(name_, inputs_, outputs_, polyop::deriving() ? 0 : CalcWorkspace(), [&](void* memory) {
      workspace_ = memory;
      ProcessWithWorkspace();
      LaunchKernel();
    });
  }

  std::string name_;
  std::vector<Tensor> inputs_, outputs_;
  void* workspace_ = nullptr;

 private:
  template <int OUT_NUM>
  static pybind11::object pack(Tensor tensor) {
    static_assert(OUT_NUM == 1, "a function that returns one tensor has one output");
    return polyop::pack_object(std::move(tensor));
  }
  template <int OUT_NUM>
  static pybind11::object pack(std::vector<Tensor> tensors) {
    if (tensors.size() != OUT_NUM) {
      throw std::runtime_error("the output size should be equal to " + std::to_string(OUT_NUM) +
                               ", but got " + std::to_string(tensors.size()));
    }
    if (OUT_NUM == 1) return polyop::pack_object(std::move(tensors[0]));
    return polyop::pack_object(std::move(tensors));
  }
};

// An aclnn operator: SetLaunchFunc(LAUNCH_ACLNN_FUNC(aclnnAbs, x, out)), then Run({x}, {out}).
class AclnnOpRunner final : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  using AclnnLaunchFunc = std::function<void(DeviceContext*, size_t)>;
  void SetLaunchFunc(AclnnLaunchFunc function) { function_ = std::move(function); }

 protected:
  void LaunchKernel() override { function_(nullptr, 0); }
  void launch() override {
    if (!function_) throw std::runtime_error(name_ + ": SetLaunchFunc was not called");
    function_(nullptr, 0);
  }

 private:
  AclnnLaunchFunc function_;
};

}  // namespace ms::pynative

// Stores the arguments by value. They are in the order of the prototype.
#define LAUNCH_ACLNN_FUNC(api, ...)                                                            \
  [arguments = std::make_tuple(__VA_ARGS__)](::polyop::DeviceContext*, size_t) {               \
    std::apply([](const auto&... each) { ::polyop::launch_aclnn(#api, each...); }, arguments); \
  }

#endif
