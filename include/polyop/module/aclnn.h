// Runs aclnn operators by name: through CANN where it is installed, else through polyop's CPU provider.
#ifndef POLYOP_MODULE_ACLNN_H
#define POLYOP_MODULE_ACLNN_H

#include "convert.h"
#include "value.h"

namespace polyop {

struct DeviceContext;  // of CANN; modules only pass pointers to it

// An argument that is a braced list or a vector of shared pointers. It borrows the pointers.
template <typename T>
class Pointers {
 public:
  struct Pointer {
    Pointer(std::nullptr_t) {}
    template <typename U>
    Pointer(const std::shared_ptr<U>& pointer) : value(pointer.get()) {}
    const T* value = nullptr;
  };
  Pointers(std::initializer_list<Pointer> list) : count_(list.size()) { fill(list.begin()); }
  template <typename U>
  Pointers(const std::vector<std::shared_ptr<U>>& list) : count_(list.size()) {
    fill(list.data());
  }
  size_t size() const { return count_; }
  const T* operator[](size_t i) const { return count_ > kInline ? heap_[i] : inline_[i]; }

 private:
  static constexpr size_t kInline = 6;

  template <typename From>
  void fill(const From* from) {
    if (count_ > kInline) heap_.reset(new const T*[count_]);
    const T** to = count_ > kInline ? heap_.get() : inline_;
    for (size_t i = 0; i < count_; ++i) to[i] = Pointer(from[i]).value;
  }

  size_t count_;
  const T* inline_[kInline];
  std::unique_ptr<const T*[]> heap_;
};

// Runs the operator `name` on C++ values in the order of its prototype.
template <typename... Args>
void launch_aclnn(const char* name, const Args&... arguments) {
  polyop_value values[sizeof...(Args) + 1] = {};
  bool borrowed[sizeof...(Args) + 1] = {};  // the Value owns what it wrote
  std::vector<std::unique_ptr<polyop_value[]>> lists;
  size_t i = 0;
  const auto put = [&](const auto& argument) {
    using T = std::decay_t<decltype(argument)>;
    if constexpr (std::is_convertible_v<T, std::string>) {
      Convert<std::string>::out(argument, &values[i++]);
    } else if constexpr (std::is_convertible_v<T, mindspore::ValuePtr> &&
                         !std::is_same_v<T, mindspore::tensor::TensorPtr> && !std::is_null_pointer_v<T>) {
      if (argument != nullptr) argument->write(&values[i], &lists);
      borrowed[i++] = true;
    } else if constexpr (!std::is_null_pointer_v<T>) {
      Convert<T>::out(argument, &values[i++]);
    } else {
      ++i;
    }
  };
  (put(arguments), ...);
  const int code = functions()->launch(name, values, sizeof...(Args), 0);
  for (size_t k = 0; k < sizeof...(Args); ++k) {
    if (borrowed[k]) continue;
    release_tensors(&values[k]);
    free_value(&values[k]);
  }
  check(code);
}

}  // namespace polyop

namespace mindspore {

namespace device {
using DeviceContext = polyop::DeviceContext;
enum class DeviceType { kUnknown = 0, kCPU = 1, kAscend = 2, kGPU = 3 };
}  // namespace device
using device::DeviceContext;

namespace custom {

// Runs an aclnn operator on its inputs, in its order, and its outputs, which must be allocated.
inline void CustomLaunchAclnn(const char* aclnn_api, const polyop::Pointers<Value>& inputs,
                              const polyop::Pointers<tensor::Tensor>& outputs) {
  constexpr size_t kInline = 8;
  polyop_value inline_values[kInline];
  std::unique_ptr<polyop_value[]> heap_values;
  const size_t count = inputs.size() + outputs.size();
  if (count > kInline) heap_values.reset(new polyop_value[count]);
  polyop_value* values = count > kInline ? heap_values.get() : inline_values;
  std::vector<std::unique_ptr<polyop_value[]>> lists;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[i] = {};
    if (inputs[i] != nullptr) inputs[i]->write(&values[i], &lists);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    values[inputs.size() + i] = {};
    outputs[i]->write(&values[inputs.size() + i], &lists);
  }
  polyop::check(polyop::functions()->launch(aclnn_api, values, count, outputs.size()));
}
inline void CustomLaunchAclnn(const std::string& aclnn_api, const polyop::Pointers<Value>& inputs,
                              const polyop::Pointers<tensor::Tensor>& outputs) {
  CustomLaunchAclnn(aclnn_api.c_str(), inputs, outputs);
}

}  // namespace custom
}  // namespace mindspore

namespace ms {
namespace pynative {
using mindspore::device::DeviceContext;
}
using mindspore::device::DeviceContext;
}  // namespace ms

// LAUNCH_ACLNN(aclnnMul, device_context, stream_id, x, y, out): arguments in the order of the prototype.
#define LAUNCH_ACLNN(api, device_context, stream_id, ...) \
  do {                                                    \
    (void)(device_context);                               \
    (void)(stream_id);                                    \
    ::polyop::launch_aclnn(#api, __VA_ARGS__);            \
  } while (0)

#endif
