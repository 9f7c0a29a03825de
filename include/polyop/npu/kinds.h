// The kinds of arguments that EXEC_NPU_CMD takes, by their C++ types.
#ifndef POLYOP_NPU_KINDS_H
#define POLYOP_NPU_KINDS_H

#include <ATen/ATen.h>

#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "../dtype_rows.h"

namespace polyop::npu {

enum class Kind { NONE, TENSOR, LIST, WHOLE, REAL, TRUTH, TEXT, DTYPE, COMPLEX, SCALAR, MAYBE, OTHER };

template <class T, class = void>
struct IsMaybe : std::false_type {};
template <class T>
struct IsMaybe<
    T, std::void_t<decltype(std::declval<const T&>().has_value()), decltype(*std::declval<const T&>())>>
    : std::true_type {};

template <class T, class = void>
struct IsList : std::false_type {};
template <class T>
struct IsList<T, std::void_t<decltype(std::begin(std::declval<const T&>())),
                             decltype(std::end(std::declval<const T&>()))>> : std::true_type {};

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, std::nullptr_t> || std::is_same_v<T, std::nullopt_t>) {
    return Kind::NONE;
  } else if constexpr (std::is_base_of_v<at::TensorBase, T>) {
    return Kind::TENSOR;
  } else if constexpr (std::is_same_v<T, at::Scalar>) {
    return Kind::SCALAR;
  } else if constexpr (std::is_same_v<T, at::ScalarType>) {
    return Kind::DTYPE;
  } else if constexpr (std::is_same_v<T, bool>) {
    return Kind::TRUTH;
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return Kind::WHOLE;
  } else if constexpr (std::is_floating_point_v<T>) {
    return Kind::REAL;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return Kind::TEXT;
  } else if constexpr (IsMaybe<T>::value) {
    return Kind::MAYBE;
  } else if constexpr (IsList<T>::value) {
    return Kind::LIST;
  } else {
    return Kind::OTHER;
  }
}

// The type of the items of a list.
template <class T>
using Item = std::remove_cv_t<std::remove_reference_t<decltype(*std::begin(std::declval<const T&>()))>>;

// Throws std::runtime_error, whose text Python users read. TORCH_CHECK would add a C++ backtrace.
[[noreturn]] inline void refuse(const char* name, const std::string& what) {
  throw std::runtime_error(std::string(name) + ": " + what);
}

inline void check_plain(const char* name, const at::TensorBase& tensor) {
  if (tensor.layout() != at::kStrided) {
    refuse(name, std::string("needs dense tensors, but got one of layout ") + c10::str(tensor.layout()));
  }
  if (tensor.is_conj() || tensor.is_neg()) {
    refuse(name,
           "got a tensor that is conjugated or negated when read\n  call resolve_conj() and resolve_neg()");
  }
  if (tensor.key_set().has(c10::DispatchKey::Python) && tensor.has_storage() &&
      tensor.storage().device_type() == c10::DeviceType::Meta) {
    refuse(name,
           "got a tensor without data, because torch.compile traces the function that calls it\n"
           "  call it in an operator that has a Meta kernel, or keep the function out of the graph: "
           "torch.compiler.disable(function)");
  }
}

}  // namespace polyop::npu

#endif
