// polyop::Function: an operator's forward and backward, bound to the Autograd keys.
#ifndef POLYOP_LIBRARY_FUNCTION_H
#define POLYOP_LIBRARY_FUNCTION_H

#include "../module/function.h"
#include "tensor.h"

namespace polyop {

using AutogradContext = Context<Tensor>;
using tensor_list = std::vector<Tensor>;
using variable_list = tensor_list;

// While such an object exists on this thread, operators are called without their Autograd functions. Inside
// forward() and backward() that is so without an object, too.
class AutoDispatchBelowAutograd {
 public:
  AutoDispatchBelowAutograd() { ++forward_depth(); }
  ~AutoDispatchBelowAutograd() { --forward_depth(); }
  AutoDispatchBelowAutograd(const AutoDispatchBelowAutograd&) = delete;
  AutoDispatchBelowAutograd& operator=(const AutoDispatchBelowAutograd&) = delete;
};
using AutoDispatchBelowADInplaceOrView = AutoDispatchBelowAutograd;

// Derive a class from Function<Class> with
//   static Tensor (or tensor_list) forward(AutogradContext*, arguments...);
//   static tensor_list backward(AutogradContext*, tensor_list output_gradients);
// and call Class::apply(arguments...). backward returns one gradient for each argument of forward; Tensor()
// when the argument is not a tensor, or its gradient is not required. Forward, Backward and Apply are other
// names of the three.
template <typename Class>
class Function : public FunctionBase<Class, Tensor> {
 public:
  template <typename X = Class, typename... A>
  static auto Forward(AutogradContext* ctx, A&&... arguments)
      -> decltype(X::forward(ctx, std::forward<A>(arguments)...)) {
    return X::forward(ctx, std::forward<A>(arguments)...);
  }
  static tensor_list Backward(AutogradContext* ctx, tensor_list gradients) {
    const AutoDispatchBelowAutograd below;
    return Class::backward(ctx, std::move(gradients));
  }
  template <typename X = Class, typename... A>
  static auto apply(A&&... arguments) {
    return X::Apply(std::forward<A>(arguments)...);
  }
};

namespace autograd {
using polyop::AutogradContext;
using polyop::Function;
using polyop::tensor_list;
using polyop::variable_list;
}  // namespace autograd

}  // namespace polyop

#endif
