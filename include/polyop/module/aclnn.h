// Calling aclnn operators by name: CANN where it is, polyop's CPU provider elsewhere.
#ifndef POLYOP_MODULE_ACLNN_H
#define POLYOP_MODULE_ACLNN_H

#include "convert.h"
#include "value.h"

namespace polyop {

struct DeviceContext;  // CANN's; modules only pass it on

// A list in braces or a vector of shared pointers, as an argument: they are read and not counted.
template <typename T>
class Pointers {
 public:
  struct One {
    One(std::nullptr_t) {}
    template <typename U>
    One(const std::shared_ptr<U>& pointer) : value(pointer.get()) {}
    const T* value = nullptr;
  };
  Pointers(std::initializer_list<One> list) : count_(list.size()) { fill(list.begin()); }
  template <typename U>
  Pointers(const std::vector<std::shared_ptr<U>>& list) : count_(list.size()) {
    fill(list.data());
  }
  size_t size() const { return count_; }
  const T* operator[](size_t i) const { return count_ > kFew ? many_[i] : few_[i]; }

 private:
  static constexpr size_t kFew = 6;

  template <typename From>
  void fill(const From* from) {
    if (count_ > kFew) many_.reset(new const T*[count_]);
    const T** to = count_ > kFew ? many_.get() : few_;
    for (size_t i = 0; i < count_; ++i) to[i] = One(from[i]).value;
  }

  size_t count_;
  const T* few_[kFew];
  std::unique_ptr<const T*[]> many_;
};

// Run `name` on C++ values in the order of its prototype.
template <typename... Args>
void launch_aclnn(const char* name, const Args&... arguments) {
  polyop_value values[sizeof...(Args) + 1] = {};
  bool borrowed[sizeof...(Args) + 1] = {};  // what a Value wrote belongs to the Value
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

// Run an aclnn operator: inputs in its order, then the outputs, which must exist already.
inline void CustomLaunchAclnn(const char* aclnn_api, const polyop::Pointers<Value>& inputs,
                              const polyop::Pointers<tensor::Tensor>& outputs) {
  constexpr size_t kFew = 8;
  polyop_value few[kFew];
  std::unique_ptr<polyop_value[]> many;
  const size_t count = inputs.size() + outputs.size();
  if (count > kFew) many.reset(new polyop_value[count]);
  polyop_value* values = count > kFew ? many.get() : few;
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

// LAUNCH_ACLNN(aclnnMul, device_context, stream_id, x, y, out): the operator's own order.
#define LAUNCH_ACLNN(api, device_context, stream_id, ...) \
  do {                                                    \
    (void)(device_context);                               \
    (void)(stream_id);                                    \
    ::polyop::launch_aclnn(#api, __VA_ARGS__);            \
  } while (0)

#endif
