// Turns a C++ function into a row of a table: its types as in a schema, and a call with polyop's values.
#ifndef POLYOP_LIBRARY_KERNEL_H
#define POLYOP_LIBRARY_KERNEL_H

#include "tensor.h"

namespace polyop {
namespace library __attribute__((visibility("hidden"))) {

  // A function's type: Signature<F>::Type is R(A...).
  template <typename F>
  struct Signature : Signature<decltype(&F::operator())> {};
  template <typename R, typename... A>
  struct Signature<R (*)(A...)> {
    using Type = R(A...);
  };
  template <typename R, typename... A>
  struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
  template <typename C, typename R, typename... A>
  struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
  template <typename C, typename R, typename... A>
  struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
  template <typename R, typename... A>
  struct Signature<R(A...)> : Signature<R (*)(A...)> {};

  // The types of a function as "(Tensor, float) -> Tensor".
  template <typename F>
  struct Types;
  template <typename R, typename... A>
  struct Types<R(A...)> {
    POLYOP_COLD static std::string text() {
      std::string all = "(";
      ((all += (all.size() > 1 ? ", " : "") + Convert<std::decay_t<A>>::schema()), ...);
      if constexpr (std::is_void_v<R>) {
        return all + ") -> ()";
      } else {
        return all + ") -> " + Convert<std::decay_t<R>>::schema();
      }
    }
    // The compiler's text of the type. polyop shows it in errors.
    template <typename F = R(A...)>
    static const char* spelled() {
      return __PRETTY_FUNCTION__;
    }
  };

  struct KernelBase {
    bool takes_strides;
  };

  template <typename F, typename Type = typename Signature<F>::Type>
  struct Kernel;

  template <typename F, typename R, typename... A>
  struct Kernel<F, R(A...)> : KernelBase {
    F function;
    Kernel(KernelBase base, F function_) : KernelBase(base), function(std::move(function_)) {}

    static std::string signature() { return Types<R(A...)>::text(); }
    static const char* spelled() { return Types<R(A...)>::spelled(); }

    static int call(const polyop_function* self, const polyop_value* arguments, size_t count,
                    polyop_value* result, void (*fail)(const char*)) {
      try {
        if (count != sizeof...(A)) throw std::runtime_error("wrong number of arguments");
        auto* kernel = static_cast<const Kernel*>(self->target);
        kernel->invoke(arguments, result, std::index_sequence_for<A...>());
        return 0;
      } catch (const std::exception& problem) {
        fail(problem.what());
      } catch (...) {
        fail("it threw an exception that is no std::exception");
      }
      return 1;
    }

    template <size_t... I>
    void invoke(const polyop_value* arguments, polyop_value* result, std::index_sequence<I...>) const {
      (void)arguments;
      // clang reads parentheses here as a declaration
      std::tuple<std::decay_t<A>...> values{Convert<std::decay_t<A>>::in(arguments[I])...};
      (void)values;
      if constexpr (std::is_void_v<R>) {
        function(static_cast<A&&>(std::get<I>(values))...);
      } else {
        Convert<std::decay_t<R>>::out(function(static_cast<A&&>(std::get<I>(values))...), result);
      }
    }
  };

}  // namespace library
}  // namespace polyop

#endif
