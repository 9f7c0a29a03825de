// Function: an operator with its gradient, as a class with Forward and Backward.
#ifndef POLYOP_MODULE_FUNCTION_H
#define POLYOP_MODULE_FUNCTION_H

#include <unordered_map>

#include "value.h"

namespace polyop {

// What a context needs to know of its kind of tensor: ms::Tensor, or a pointer.
inline polyop_tensor* handle_of(const ms::Tensor& tensor) { return tensor.handle(); }
inline polyop_tensor* handle_of(const mindspore::tensor::TensorPtr& tensor) {
  return tensor == nullptr ? nullptr : tensor->get().handle();
}
template <typename T>
T from_handle(polyop_tensor* handle) {
  if constexpr (std::is_same_v<T, ms::Tensor>) {
    return ms::Tensor::share(handle);
  } else {
    return handle == nullptr ? nullptr : std::make_shared<mindspore::tensor::Tensor>(ms::Tensor::share(handle));
  }
}

template <typename T>
constexpr bool is_tensor =
    std::is_same_v<T, ms::Tensor> || std::is_same_v<T, mindspore::tensor::TensorPtr>;

// The handle of an argument, or null where it is no tensor.
template <typename T>
polyop_tensor* argument_handle(const T& argument) {
  if constexpr (is_tensor<T>) {
    return handle_of(argument);
  } else {
    (void)argument;
    return nullptr;
  }
}
template <typename T>
polyop_tensor* argument_handle(const std::optional<T>& argument) {
  return argument ? argument_handle(*argument) : nullptr;
}

// Whether a list holds a tensor of which a gradient is wanted: Function gives lists none.
template <typename T>
bool holds_wanted(const T&) {
  return false;
}
template <typename T>
bool holds_wanted(const std::vector<T>& items) {
  for (const auto& item : items) {
    polyop_tensor* handle = argument_handle<T>(item);
    if ((handle != nullptr && handle->needs_gradient != 0) || holds_wanted<T>(item)) return true;
  }
  return false;
}

// The state of one call between Forward and Backward; see AutogradContext.
template <typename T>
class Context {
 public:
  using List = std::vector<T>;

  // Keep tensors for Backward, in place of those kept before. Null entries keep their places.
  void SaveForBackward(const List& tensors) { saved_ = tensors; }
  // What was kept, in order.
  const List GetSavedTensors() const { return saved_; }
  // Inputs that Forward has changed in place; each must be among the outputs.
  void MarkDirty(const List& inputs) { dirty_ = inputs; }
  // Outputs of which no gradient is taken.
  void MarkNonDifferentiable(const List& outputs) { non_differentiable_ = outputs; }
  // Whether Backward is given zeros for outputs that nobody used (true at first), or null.
  void SetMaterializeGrads(bool materialize) { materialize_ = materialize; }
  // Whether the gradient of a tensor input is wanted; only tensors are counted.
  bool NeedsInputGrad(size_t tensor_index) const {
    if (tensor_index >= needed_.size()) throw std::out_of_range("tensor index out of range");
    return needed_[tensor_index];
  }
  // Whether a gradient of the tensor is wanted.
  bool NeedGrad(const T& tensor) const {
    const polyop_tensor* handle = handle_of(tensor);
    return handle != nullptr && handle->needs_gradient != 0;
  }
  // Values of any kind for Backward.
  std::unordered_map<std::string, mindspore::ValuePtr> saved_data;

 private:
  template <typename Class, typename Tensor>
  friend class FunctionBase;

  List saved_, dirty_, non_differentiable_;
  bool materialize_ = true;
  std::vector<bool> needed_;    // for each tensor input
  std::vector<bool> is_input_;  // for each argument: it is a tensor
  std::vector<std::string> held_;  // names in saved_data whose values are tensors
};

// How many calls of Forward this thread is in: those inside another are part of it.
inline int& forward_depth() {
  static thread_local int depth = 0;
  return depth;
}
struct ForwardScope {
  ForwardScope() { ++forward_depth(); }
  ~ForwardScope() { --forward_depth(); }
};

template <typename Class, typename T>
class FunctionBase {
  using State = Context<T>;

 public:
  // Call Forward(ctx, arguments...), and remember the call for its gradient.
  template <typename X = Class, typename... Args>
  static auto Apply(Args&&... arguments)
      -> decltype(X::Forward(static_cast<State*>(nullptr), std::forward<Args>(arguments)...)) {
    auto state = std::make_unique<State>();
    polyop_tensor* inputs[sizeof...(Args) + 1] = {argument_handle<std::decay_t<Args>>(arguments)..., nullptr};
    note_inputs<std::decay_t<Args>...>(state.get(), inputs);
    const bool recorded = forward_depth() == 0 && functions()->recording() != 0;
    if (recorded && (holds_wanted(arguments) || ...)) {
      throw std::runtime_error(std::string("a gradient is wanted of a tensor in a list, and Function gives lists ") +
                               "none: pass it as an argument of its own");
    }
    auto result = [&] {
      const ForwardScope scope;
      return X::Forward(state.get(), std::forward<Args>(arguments)...);
    }();
    if (recorded) record(std::move(state), inputs, sizeof...(Args), result);
    return result;
  }

 private:
  template <typename... Args>
  static void note_inputs(State* state, polyop_tensor* const* inputs) {
    const bool tensor[] = {(is_tensor<Args> || is_optional_tensor<Args>)..., false};
    for (size_t i = 0; i < sizeof...(Args); ++i) {
      state->is_input_.push_back(tensor[i]);
      if (tensor[i]) state->needed_.push_back(inputs[i] != nullptr && inputs[i]->needs_gradient != 0);
    }
  }

  template <typename A>
  static constexpr bool is_optional_tensor = std::is_same_v<A, std::optional<ms::Tensor>> ||
                                             std::is_same_v<A, std::optional<mindspore::tensor::TensorPtr>>;

  static std::vector<T> listed(const T& result) { return {result}; }
  static const std::vector<T>& listed(const std::vector<T>& result) { return result; }

  static bool holds(const std::vector<T>& list, polyop_tensor* handle) {
    for (const T& item : list) {
      if (handle != nullptr && handle_of(item) == handle) return true;
    }
    return false;
  }

  template <typename R>
  static void record(std::unique_ptr<State> state, polyop_tensor* const* inputs, size_t count, const R& result) {
    const std::vector<T>& list = listed(result);
    if (list.empty()) throw std::runtime_error("The output list must not be empty.");
    std::vector<polyop_tensor*> outputs, dirty;
    std::vector<uint8_t> plain;
    for (const T& output : list) {
      outputs.push_back(handle_of(output));
      plain.push_back(holds(state->non_differentiable_, outputs.back()) ? 1 : 0);
    }
    for (const T& input : state->dirty_) {
      dirty.push_back(handle_of(input));
      if (!holds(list, dirty.back())) {
        throw std::runtime_error("The dirty tensors must all be outputs of the forward function.");
      }
    }
    polyop_node node{};
    node.name = Class_name();
    node.input_count = count;
    node.inputs = inputs;
    node.output_count = outputs.size();
    node.outputs = outputs.data();
    node.non_differentiable = plain.data();
    node.dirty_count = dirty.size();
    node.dirty = dirty.data();
    node.materialize = state->materialize_ ? 1 : 0;
    note_held(state.get());
    state->dirty_.clear();
    state->non_differentiable_.clear();
    node.destroy = [](void* of) { delete static_cast<State*>(of); };
    node.saved_count = [](void* of) {
      return static_cast<State*>(of)->saved_.size() + static_cast<State*>(of)->held_.size();
    };
    node.saved = get_saved;
    node.set_saved = set_saved;
    node.backward = backward;
    node.state = state.release();
    check(functions()->record(&node));
  }

  // The class's name, from the text that the compiler gives this function.
  static const char* Class_name() {
    static const std::string name = [] {
      const std::string text = __PRETTY_FUNCTION__;
      const size_t from = text.find("Class = ") + 8;
      const std::string full = text.substr(from, text.find_first_of(";]", from) - from);
      return full.substr(full.rfind(':') == std::string::npos ? 0 : full.rfind(':') + 1);
    }();
    return name.c_str();
  }

  // Tensors in saved_data are saved like the others, after them.
  static void note_held(State* state) {
    for (const auto& item : state->saved_data) {
      if (item.second != nullptr && item.second->template isa<mindspore::tensor::Tensor>()) {
        state->held_.push_back(item.first);
      }
    }
  }
  static polyop_tensor* get_saved(void* of, size_t i) {
    auto* state = static_cast<State*>(of);
    polyop_tensor* handle = nullptr;
    if (i < state->saved_.size()) {
      handle = handle_of(state->saved_[i]);
    } else {
      const auto& value = state->saved_data[state->held_[i - state->saved_.size()]];
      handle = ms::Tensor(value).handle();
    }
    if (handle != nullptr) functions()->retain(handle);
    return handle;
  }
  static void set_saved(void* of, size_t i, polyop_tensor* handle) {
    auto* state = static_cast<State*>(of);
    if (i < state->saved_.size()) {
      state->saved_[i] = from_handle<T>(handle);
    } else {
      state->saved_data[state->held_[i - state->saved_.size()]] =
          from_handle<mindspore::tensor::TensorPtr>(handle);
    }
  }

  static int backward(void* of, polyop_tensor* const* gradients, size_t count, const uint8_t* wanted,
                      polyop_tensor** results, size_t room, size_t* returned) {
    auto* state = static_cast<State*>(of);
    try {
      state->needed_.clear();
      for (size_t i = 0; i < state->is_input_.size(); ++i) {
        if (state->is_input_[i]) state->needed_.push_back(wanted[i] != 0);
      }
      std::vector<T> given;
      for (size_t i = 0; i < count; ++i) given.push_back(from_handle<T>(gradients[i]));
      const std::vector<T> made = Class::Backward(state, std::move(given));
      *returned = made.size();
      for (size_t i = 0; i < made.size() && i < room; ++i) {
        results[i] = handle_of(made[i]);
        if (results[i] != nullptr) functions()->retain(results[i]);
      }
      return 0;
    } catch (const std::exception& problem) {
      functions()->fail(problem.what());
    } catch (...) {
      functions()->fail("it threw an exception that is no std::exception");
    }
    return 1;
  }
};

}  // namespace polyop

namespace mindspore::pynative::autograd {

using AutogradContext = polyop::Context<tensor::TensorPtr>;

// Derive a class from Function<Class> with
//   static TensorPtr (or TensorPtrList) Forward(AutogradContext*, arguments...);
//   static TensorPtrList Backward(AutogradContext*, TensorPtrList output_gradients);
// and call Class::Apply(arguments...). Backward returns one gradient for each argument of Forward:
// null where the argument is no tensor, or the gradient is not wanted.
template <typename Class>
class Function : public polyop::FunctionBase<Class, tensor::TensorPtr> {};

}  // namespace mindspore::pynative::autograd

namespace ms {

// The same with ms::Tensor: an undefined tensor in place of null.
using AutogradContext = polyop::Context<Tensor>;
template <typename Class>
class Function : public polyop::FunctionBase<Class, Tensor> {};

namespace pynative {
using ms::AutogradContext;
using ms::Function;
}  // namespace pynative

}  // namespace ms

#endif
