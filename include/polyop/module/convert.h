// Converts arguments and results between C++ types and polyop values.
#ifndef POLYOP_MODULE_CONVERT_H
#define POLYOP_MODULE_CONVERT_H

#include <tuple>

#include "object.h"
#include "value.h"

namespace polyop {

[[noreturn]] inline void mismatch(const char* type) {
  throw std::runtime_error(std::string("an argument is no ") + type);
}

// schema(): the text of the type in a schema. in(): converts a value to T. out(): converts T to a value; it
// retains tensors, and allocates text and lists with new[].
template <typename T, typename Enable = void>
struct Convert {
  static_assert(
      !std::is_same_v<T, T>,
      "polyop: m.def() cannot bind a function with this type. Use tensors, optional tensors, lists of "
      "tensors, numbers, bool, std::string, std::vector of numbers, std::tuple or ms::TypeId");
};

template <>
struct Convert<ms::Tensor> {
  static std::string schema() { return "Tensor"; }
  static ms::Tensor in(const polyop_value& value) {
    if (value.kind != POLYOP_VALUE_TENSOR) return {};
    return ms::Tensor::share(value.as.tensor);
  }
  static void out(const ms::Tensor& tensor, polyop_value* value) {
    value->kind = POLYOP_VALUE_TENSOR;
    value->as.tensor = tensor.handle();
    if (value->as.tensor != nullptr) functions()->retain(value->as.tensor);
  }
};

template <>
struct Convert<mindspore::tensor::TensorPtr> {
  static std::string schema() { return "Tensor"; }
  static mindspore::tensor::TensorPtr in(const polyop_value& value) {
    if (value.kind != POLYOP_VALUE_TENSOR) return nullptr;
    return std::make_shared<mindspore::tensor::Tensor>(ms::Tensor::share(value.as.tensor));
  }
  static void out(const mindspore::tensor::TensorPtr& tensor, polyop_value* value) {
    value->kind = POLYOP_VALUE_TENSOR;
    if (tensor != nullptr) Convert<ms::Tensor>::out(tensor->get(), value);
  }
};

template <typename T>
struct Convert<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
  static std::string schema() {
    return std::is_same_v<T, bool> ? "bool" : std::is_integral_v<T> ? "int" : "float";
  }
  static T in(const polyop_value& value) {
    if (value.kind == POLYOP_VALUE_FLOAT && !std::is_integral_v<T>) return static_cast<T>(value.as.real);
    if (value.kind != POLYOP_VALUE_INT && value.kind != POLYOP_VALUE_BOOL) mismatch("number");
    const auto number = static_cast<T>(value.as.integer);
    if (std::is_unsigned_v<T> && !std::is_same_v<T, bool> && value.as.integer < 0) {
      throw std::runtime_error("the number " + std::to_string(value.as.integer) +
                               " does not fit the unsigned type of the C++ argument");
    }
    if (std::is_integral_v<T> && !std::is_same_v<T, bool> &&
        static_cast<int64_t>(number) != value.as.integer) {
      throw std::runtime_error("the number " + std::to_string(value.as.integer) +
                               " does not fit the type of the C++ argument");
    }
    return number;
  }
  static void out(T number, polyop_value* value) { mindspore::Immediate<T>(number).write(value, nullptr); }
};

template <>
struct Convert<ms::TypeId> {
  static std::string schema() { return "ScalarType"; }
  static ms::TypeId in(const polyop_value& value) { return static_cast<ms::TypeId>(value.as.integer); }
  static void out(ms::TypeId type, polyop_value* value) { Convert<int64_t>::out(type, value); }
};

template <>
struct Convert<std::string> {
  static std::string schema() { return "str"; }
  static std::string in(const polyop_value& value) {
    if (value.kind != POLYOP_VALUE_STRING) mismatch("string");
    return {value.as.text, value.count};
  }
  static void out(const std::string& text, polyop_value* value) {
    char* copy = new char[text.size() + 1]();
    text.copy(copy, text.size());
    value->kind = POLYOP_VALUE_STRING;
    value->count = text.size();
    value->as.text = copy;
  }
};

template <typename T>
struct Convert<std::optional<T>> {
  static std::string schema() { return Convert<T>::schema() + "?"; }
  static std::optional<T> in(const polyop_value& value) {
    if (value.kind == POLYOP_VALUE_NONE) return std::nullopt;
    return Convert<T>::in(value);
  }
  static void out(const std::optional<T>& item, polyop_value* value) {
    if (item) Convert<T>::out(*item, value);
  }
};

template <typename T>
struct Convert<std::vector<T>> {
  static std::string schema() { return Convert<T>::schema() + "[]"; }
  static std::vector<T> in(const polyop_value& value) {
    if (value.kind != POLYOP_VALUE_LIST && value.kind != POLYOP_VALUE_NONE) mismatch("list");
    std::vector<T> items;
    for (size_t i = 0; value.kind == POLYOP_VALUE_LIST && i < value.count; ++i) {
      items.push_back(Convert<T>::in(value.as.items[i]));
    }
    return items;
  }
  static void out(const std::vector<T>& items, polyop_value* value) {
    value->kind = POLYOP_VALUE_LIST;
    value->count = items.size();
    value->as.items = new polyop_value[items.size()]();
    for (size_t i = 0; i < items.size(); ++i) Convert<T>::out(items[i], &value->as.items[i]);
  }
};

// A tuple. Arguments need equal types, such as int[2]; results may have any.
template <typename... T>
struct Convert<std::tuple<T...>> {
  using First = std::tuple_element_t<0, std::tuple<T...>>;
  static std::string schema() {
    if constexpr ((std::is_same_v<First, T> && ...) && std::is_arithmetic_v<First>) {
      return Convert<First>::schema() + "[" + std::to_string(sizeof...(T)) + "]";
    }
    std::string text;
    ((text += (text.empty() ? "(" : ", ") + Convert<T>::schema()), ...);
    return text + ")";
  }
  static std::tuple<T...> in(const polyop_value& value) {
    if (value.kind != POLYOP_VALUE_LIST || value.count != sizeof...(T)) mismatch("tuple of this length");
    size_t i = 0;
    return std::tuple<T...>{Convert<T>::in(value.as.items[i++])...};
  }
  static void out(const std::tuple<T...>& items, polyop_value* value) {
    value->kind = POLYOP_VALUE_LIST;
    value->count = sizeof...(T);
    value->as.items = new polyop_value[sizeof...(T)]();
    size_t i = 0;
    std::apply([&](const T&... item) { (Convert<T>::out(item, &value->as.items[i++]), ...); }, items);
  }
};

template <typename A, typename B>
struct Convert<std::pair<A, B>> {
  static std::string schema() { return Convert<std::tuple<A, B>>::schema(); }
  static std::pair<A, B> in(const polyop_value& value) {
    const auto items = Convert<std::tuple<A, B>>::in(value);
    return {std::get<0>(items), std::get<1>(items)};
  }
  static void out(const std::pair<A, B>& items, polyop_value* value) {
    Convert<std::tuple<A, B>>::out({items.first, items.second}, value);
  }
};

#ifndef POLYOP_PYBIND11
template <>
struct Convert<py::object> {
  static std::string schema() { return "object"; }
  static void out(const py::object& object, polyop_value* value) {
    if (object.single() && object.tensors().size() == 1) {
      Convert<ms::Tensor>::out(object.tensors()[0], value);
    } else if (!object.tensors().empty()) {
      Convert<std::vector<ms::Tensor>>::out(object.tensors(), value);
    }
  }
};
#endif

// Frees the memory that out() allocated; see release_tensors() for the tensors.
POLYOP_OUTLINE inline void free_value(polyop_value* value) {
  if (value->kind == POLYOP_VALUE_STRING) delete[] value->as.text;
  if (value->kind != POLYOP_VALUE_LIST) return;
  for (size_t i = 0; i < value->count; ++i) free_value(&value->as.items[i]);
  delete[] value->as.items;
}

// Releases the tensors that out() retained.
POLYOP_OUTLINE inline void release_tensors(polyop_value* value) {
  if (value->kind == POLYOP_VALUE_TENSOR && value->as.tensor != nullptr)
    functions()->release(value->as.tensor);
  for (size_t i = 0; value->kind == POLYOP_VALUE_LIST && i < value->count; ++i) {
    release_tensors(&value->as.items[i]);
  }
}

}  // namespace polyop

#endif
