// Function: an operator with its gradient, as a class with Forward and Backward.
#ifndef POLYOP_MODULE_FUNCTION_H
#define POLYOP_MODULE_FUNCTION_H

#include <exception>

#include "saved_data.h"

namespace polyop {

// Converts the tensors of a context, ms::Tensor or a shared pointer, to handles and back.
inline polyop_tensor* handle_of(const ms::Tensor& tensor) { return tensor.handle(); }
inline polyop_tensor* handle_of(const mindspore::tensor::TensorPtr& tensor) {
  return tensor == nullptr ? nullptr : tensor->get().handle();
}
template <typename T>
T from_handle(polyop_tensor* handle) {
  if constexpr (std::is_same_v<T, ms::Tensor>) {
    return ms::Tensor::share(handle);
  } else {
    return handle == nullptr ? nullptr
                             : std::make_shared<mindspore::tensor::Tensor>(ms::Tensor::share(handle));
  }
}

template <typename T>
constexpr bool is_tensor = std::is_same_v<T, ms::Tensor> || std::is_same_v<T, mindspore::tensor::TensorPtr>;

// The handle of an argument; null when it is not a tensor.
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

// Whether an argument is a list with a tensor that requires a gradient. Function has no gradients for lists.
template <typename T>
bool holds_required(const T&) {
  return false;
}
template <typename T>
bool holds_required(const std::vector<T>& items) {
  for (const auto& item : items) {
    polyop_tensor* handle = argument_handle(item);
    if ((handle != nullptr && handle->needs_gradient != 0) || holds_required(item)) return true;
  }
  return false;
}

// The state of one call between Forward and Backward; see AutogradContext.
template <typename T>
class Context {
 public:
  using List = std::vector<T>;

  Context() = default;
  Context(Context&&) = default;
  ~Context();

  // Saves tensors for Backward. They replace those saved before. Null entries are allowed.
  void SaveForBackward(List tensors) { saved_ = std::move(tensors); }
  // The saved tensors, in order.
  const List GetSavedTensors() const { return saved_; }
  // Declares inputs that Forward has written in place. Each must be among the outputs.
  void MarkDirty(const List& inputs) { dirty_ = inputs; }
  // Declares outputs that have no gradient.
  void MarkNonDifferentiable(const List& outputs) { non_differentiable_ = outputs; }
  // Whether Backward receives zeros (the default) or null for the gradients of unused outputs.
  void SetMaterializeGrads(bool materialize) { materialize_ = materialize; }
  // Whether the gradient of a tensor input is required. The index counts only the arguments that are tensors.
  bool NeedsInputGrad(size_t tensor_index) const {
    if (tensor_index >= tensors_) throw std::out_of_range("tensor index out of range");
    return (needed_ >> tensor_index & 1) != 0;
  }
  // Whether the tensor requires a gradient.
  bool NeedGrad(const T& tensor) const {
    const polyop_tensor* handle = handle_of(tensor);
    return handle != nullptr && handle->needs_gradient != 0;
  }
  // The same under PyTorch's names.
  void save_for_backward(List tensors) { SaveForBackward(std::move(tensors)); }
  const List get_saved_variables() const { return GetSavedTensors(); }
  void mark_dirty(const List& inputs) { MarkDirty(inputs); }
  void mark_non_differentiable(const List& outputs) { MarkNonDifferentiable(outputs); }
  void set_materialize_grads(bool materialize) { SetMaterializeGrads(materialize); }
  bool needs_input_grad(size_t tensor_index) const { return NeedsInputGrad(tensor_index); }
  // Values of any kind for Backward.
  SavedData saved_data;

 private:
  template <typename Class, typename Tensor>
  friend class FunctionBase;

  void note_input(size_t i, bool tensor, const polyop_tensor* handle) {
    if (!tensor) return;
    is_input_ |= uint64_t{1} << i;
    needed_ |= uint64_t{handle != nullptr && handle->needs_gradient != 0} << tensors_++;
  }
  void note_requested(const uint8_t* wanted, size_t count) {
    needed_ = 0;
    for (size_t i = 0, k = 0; i < count; ++i) {
      if ((is_input_ >> i & 1) != 0) needed_ |= uint64_t{wanted[i] != 0} << k++;
    }
  }

  POLYOP_COLD static bool contains(const List& list, const polyop_tensor* handle) {
    for (const T& item : list) {
      if (handle != nullptr && handle_of(item) == handle) return true;
    }
    return false;
  }

  // Records the call with polyop, which owns `state` from then on. An input that is also an output, and is
  // not dirty, becomes a new handle in `outputs`, because the output and the input have different gradients.
  POLYOP_COLD static void record(Context* state, polyop_node* node, List& outputs) {
    std::unique_ptr<Context> owner(state);
    if (outputs.empty()) throw std::runtime_error("The output list must not be empty.");
    const size_t count = outputs.size(), dirty = state->dirty_.size();
    std::unique_ptr<polyop_tensor*[]> handles(new polyop_tensor*[count + dirty]);
    std::unique_ptr<uint8_t[]> plain(new uint8_t[count]);
    for (size_t i = 0; i < count; ++i) {
      handles[i] = handle_of(outputs[i]);
      if (handles[i] == nullptr) throw std::runtime_error("Forward returned an undefined tensor");
      plain[i] = contains(state->non_differentiable_, handles[i]) ? 1 : 0;
      if (contains(state->dirty_, handles[i])) continue;
      for (size_t k = 0; k < node->input_count; ++k) {
        if (node->inputs[k] != handles[i]) continue;
        outputs[i] = new_handle(handles[i]);
        handles[i] = handle_of(outputs[i]);
      }
    }
    for (size_t i = 0; i < dirty; ++i) {
      handles[count + i] = handle_of(state->dirty_[i]);
      if (handles[count + i] == nullptr || !contains(outputs, handles[count + i])) {
        throw std::runtime_error("The dirty tensors must all be outputs of the forward function.");
      }
    }
    check_saved_values(*state);
    node->output_count = count;
    node->outputs = handles.get();
    node->non_differentiable = plain.get();
    node->dirty_count = dirty;
    node->dirty = handles.get() + count;
    node->materialize = state->materialize_ ? 1 : 0;
    node->destroy = [](void* of) { delete static_cast<Context*>(of); };
    node->saved_count = [](void* of) { return static_cast<Context*>(of)->count_saved(); };
    node->saved = get_saved;
    node->set_saved = set_saved;
    node->state = owner.release();
    check(functions()->record(node));
    state->dirty_.clear();
    state->non_differentiable_.clear();
  }

  POLYOP_COLD static T new_handle(polyop_tensor* handle) {
    polyop_tensor* view = nullptr;
    check(functions()->view(handle, handle->ndim, handle->shape, handle->strides, handle->offset, &view));
    const ms::Tensor owner = ms::Tensor::adopt(view);
    return from_handle<T>(view);
  }

  // Throws for a sequence of tensors in saved_data: polyop could not pass those to the framework to be saved.
  POLYOP_COLD static void check_saved_values(const Context& state) {
    for (const SavedData::Item& item : state.saved_data) {
      const auto* list = dynamic_cast<const mindspore::ValueSequence*>(item.second.get());
      for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
        if ((*list)[i] != nullptr && (*list)[i]->isa<mindspore::tensor::Tensor>()) {
          throw std::runtime_error("saved_data[\"" + item.first +
                                   "\"] is a list of tensors: keep these with SaveForBackward");
        }
      }
    }
  }

  // The tensors in saved_data are saved after the others. Returns the i-th of them, or null.
  mindspore::ValuePtr* saved_value(size_t i) {
    for (SavedData::Item& item : saved_data) {
      if (item.second == nullptr || !item.second->isa<mindspore::tensor::Tensor>()) continue;
      if (i-- == 0) return &item.second;
    }
    return nullptr;
  }
  POLYOP_COLD size_t count_saved() {
    size_t more = 0;
    while (saved_value(more) != nullptr) ++more;
    return saved_.size() + more;
  }
  POLYOP_COLD static polyop_tensor* get_saved(void* of, size_t i) {
    auto* state = static_cast<Context*>(of);
    polyop_tensor* handle = nullptr;
    if (i < state->saved_.size()) {
      handle = handle_of(state->saved_[i]);
    } else {
      mindspore::ValuePtr* value = state->saved_value(i - state->saved_.size());
      if (value != nullptr) handle = ms::Tensor(*value).handle();
    }
    if (handle != nullptr) functions()->retain(handle);
    return handle;
  }
  POLYOP_COLD static void set_saved(void* of, size_t i, polyop_tensor* handle) {
    auto* state = static_cast<Context*>(of);
    if (i < state->saved_.size()) {
      state->saved_[i] = from_handle<T>(handle);
    } else {  // null becomes an undefined tensor, so that the value is still found
      mindspore::ValuePtr* value = state->saved_value(i - state->saved_.size());
      if (value == nullptr) return;  // Backward has cleared it
      *value = std::make_shared<mindspore::tensor::Tensor>(ms::Tensor::share(handle));
    }
  }

  List saved_, dirty_, non_differentiable_;
  bool materialize_ = true;
  uint64_t needed_ = 0;    // a bit for each tensor input
  uint64_t is_input_ = 0;  // a bit for each argument: it is a tensor
  size_t tensors_ = 0;
};

template <typename T>
POLYOP_OUTLINE Context<T>::~Context() = default;  // defined once, not in every function that has a Context

// How many nested calls of Forward this thread is in. The inner ones are part of the outermost.
inline int& forward_depth() {
  static thread_local int depth = 0;
  return depth;
}
struct ForwardScope {
  // `depth` is forward_depth()
  ForwardScope(int& depth, bool recorded)
      : depth_(depth), recorded_(recorded), exceptions_before_(recorded ? std::uncaught_exceptions() : 0) {
    ++depth_;
  }
  ~ForwardScope() {
    --depth_;
    if (recorded_ && std::uncaught_exceptions() > exceptions_before_) functions()->left();
  }

 private:
  int& depth_;
  bool recorded_;
  int exceptions_before_;
};

template <typename Class, typename T>
class FunctionBase {
  using State = Context<T>;

 public:
  // Calls Forward(ctx, arguments...) and records the call for its gradient.
  template <typename X = Class, typename... Args>
  static auto Apply(Args&&... arguments)
      -> decltype(X::Forward(static_cast<State*>(nullptr), std::forward<Args>(arguments)...)) {
    static_assert(sizeof...(Args) <= 64, "Apply takes at most 64 arguments");
    State state;
    polyop_tensor* inputs[sizeof...(Args) + 1] = {argument_handle(arguments)..., nullptr};
    note_inputs<std::decay_t<Args>...>(&state, inputs);
    int& depth = forward_depth();
    const bool recorded = depth == 0 && functions()->recording() != 0;
    if (recorded && (holds_required(arguments) || ...)) {
      throw std::runtime_error(
          "a tensor in a list requires a gradient, but Function has no gradients for lists: pass the tensor "
          "as an argument of its own");
    }
    // not forwarded: an argument that Forward takes by value must live until the call is recorded
    auto result = [&] {
      const ForwardScope scope(depth, recorded);
      return X::Forward(&state, arguments...);
    }();
    for (const T& input : state.dirty_) check(functions()->wrote(handle_of(input)));
    if (recorded) record(&state, inputs, sizeof...(Args), &result);
    return result;
  }

 private:
  template <typename A>
  static constexpr bool is_optional_tensor = std::is_same_v<A, std::optional<ms::Tensor>> ||
                                             std::is_same_v<A, std::optional<mindspore::tensor::TensorPtr>>;

  template <typename... Args>
  static void note_inputs(State* state, polyop_tensor* const* inputs) {
    const bool tensor[] = {(is_tensor<Args> || is_optional_tensor<Args>)..., false};
    for (size_t k = 0; k < sizeof...(Args); ++k) state->note_input(k, tensor[k], inputs[k]);
  }

  template <typename Result>
  POLYOP_COLD static void record(State* state, polyop_tensor* const* inputs, size_t count, Result* result) {
    polyop_node node{};
    node.name = name();
    node.input_count = count;
    node.inputs = inputs;
    node.backward = backward;
    std::vector<T> outputs = as_list(*result);
    State::record(new State(std::move(*state)), &node, outputs);
    assign_outputs(std::move(outputs), result);
  }

  static std::vector<T> as_list(const T& result) { return {result}; }
  static std::vector<T> as_list(const std::vector<T>& result) { return result; }
  static void assign_outputs(std::vector<T> outputs, T* result) { *result = std::move(outputs[0]); }
  static void assign_outputs(std::vector<T> outputs, std::vector<T>* result) { *result = std::move(outputs); }

  // polyop reads the name of the class from the compiler's text for this function.
  static const char* name() { return __PRETTY_FUNCTION__; }

  static int backward(void* state_pointer, polyop_tensor* const* gradients, size_t count,
                      const uint8_t* wanted, polyop_tensor** results, size_t room, size_t* returned) {
    auto* state = static_cast<State*>(state_pointer);
    try {
      state->note_requested(wanted, room);
      const size_t saved = state->saved_.size();
      const std::vector<T> input_gradients = Class::Backward(state, from_handles(gradients, count));
      if (state->saved_.size() != saved) state->saved_ = std::vector<T>(saved);  // cleared: it may run again
      *returned = input_gradients.size();
      store_results(input_gradients, results, room);
      return 0;
    } catch (const std::exception& problem) {
      functions()->fail(problem.what());
    } catch (...) {
      functions()->fail("it threw an exception that is no std::exception");
    }
    return 1;
  }
  POLYOP_OUTLINE static std::vector<T> from_handles(polyop_tensor* const* handles, size_t count) {
    std::vector<T> tensors(count);
    for (size_t i = 0; i < count; ++i) tensors[i] = from_handle<T>(handles[i]);
    return tensors;
  }
  POLYOP_OUTLINE static void store_results(const std::vector<T>& tensors, polyop_tensor** results,
                                           size_t room) {
    for (size_t i = 0; i < tensors.size() && i < room; ++i) {
      results[i] = handle_of(tensors[i]);
      if (results[i] != nullptr) functions()->retain(results[i]);
    }
  }
};

}  // namespace polyop

namespace mindspore::pynative::autograd {

using AutogradContext = polyop::Context<tensor::TensorPtr>;

// Derive a class from Function<Class> with
//   static TensorPtr (or TensorPtrList) Forward(AutogradContext*, arguments...);
//   static TensorPtrList Backward(AutogradContext*, TensorPtrList output_gradients);
// and call Class::Apply(arguments...). Backward returns one gradient for each argument of Forward; null when
// the argument is not a tensor, or its gradient is not required.
template <typename Class>
class Function : public polyop::FunctionBase<Class, tensor::TensorPtr> {};

}  // namespace mindspore::pynative::autograd

namespace ms {

// The same with ms::Tensor. An undefined tensor stands for null.
using AutogradContext = polyop::Context<Tensor>;
template <typename Class>
class Function : public polyop::FunctionBase<Class, Tensor> {};

namespace pynative {
using ms::AutogradContext;
using ms::Function;
}  // namespace pynative

}  // namespace ms

#endif
