// An argument or a result of a graph operator: a tensor, a number, a text, None, or a list of these.
#ifndef POLYOP_MODULE_GRAPH_ITEM_H
#define POLYOP_MODULE_GRAPH_ITEM_H

#include "convert.h"
#include "operations.h"
#include "primitive.h"

namespace mindspore {

constexpr TypeId kObjectTypeNumber = static_cast<TypeId>(11);
constexpr TypeId kObjectTypeString = static_cast<TypeId>(12);
constexpr TypeId kObjectTypeList = static_cast<TypeId>(13);
constexpr TypeId kObjectTypeTuple = static_cast<TypeId>(14);
constexpr TypeId kObjectTypeTensorType = static_cast<TypeId>(17);

// clang-format off
enum : size_t {
  kIndex0, kIndex1, kIndex2, kIndex3, kIndex4, kIndex5, kIndex6, kIndex7, kIndex8, kIndex9, kIndex10,
  kIndex11, kIndex12, kIndex13, kIndex14, kIndex15, kIndex16, kIndex17, kIndex18, kIndex19, kIndex20,
  kIndex21, kIndex22, kIndex23, kIndex24, kIndex25, kIndex26, kIndex27, kIndex28, kIndex29, kIndex30
};
enum : size_t {
  kInputIndex0, kInputIndex1, kInputIndex2, kInputIndex3, kInputIndex4, kInputIndex5, kInputIndex6,
  kInputIndex7, kInputIndex8, kInputIndex9, kInputIndex10, kInputIndex11, kInputIndex12, kInputIndex13,
  kInputIndex14, kInputIndex15, kInputIndex16, kInputIndex17, kInputIndex18, kInputIndex19, kInputIndex20
};
enum : size_t {
  kOutputIndex0, kOutputIndex1, kOutputIndex2, kOutputIndex3, kOutputIndex4, kOutputIndex5
};
// clang-format on

}  // namespace mindspore

namespace polyop::graph {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

class Item {
 public:
  Item() = default;
  explicit Item(ms::Tensor tensor) : tensor_(std::move(tensor)) {}
  // Texts are borrowed, because an item lives for one call.
  explicit Item(const polyop_value& value) : value_(value) {
    if (value.kind == POLYOP_VALUE_TENSOR) {
      tensor_ = ms::Tensor::share(value.as.tensor);
      value_.kind = POLYOP_VALUE_NONE;
    }
    for (size_t i = 0; value.kind == POLYOP_VALUE_LIST && i < value.count; ++i)
      items_.emplace_back(value.as.items[i]);
  }

  bool is_tensor() const { return tensor_.is_defined(); }
  bool is_list() const { return value_.kind == POLYOP_VALUE_LIST; }
  bool is_none() const { return !is_tensor() && value_.kind == POLYOP_VALUE_NONE; }
  const ms::Tensor& tensor() const { return tensor_; }
  void set_tensor(ms::Tensor tensor) { tensor_ = std::move(tensor); }
  std::vector<Item>& items() { return items_; }
  const std::vector<Item>& items() const { return items_; }

  // The dtype of a tensor, of a number (as in MindSpore's graphs), or of the first item of a list.
  ms::TypeId type() const {
    using namespace mindspore;
    if (is_tensor()) return tensor_.data_type();
    switch (value_.kind) {
      case POLYOP_VALUE_BOOL:
        return kNumberTypeBool;
      case POLYOP_VALUE_INT:
        return kNumberTypeInt64;
      case POLYOP_VALUE_FLOAT:
        return kNumberTypeFloat32;
      case POLYOP_VALUE_STRING:
        return kObjectTypeString;
      case POLYOP_VALUE_LIST:
        return items_.empty() ? kTypeUnknown : items_[0].type();
      default:
        return kMetaTypeNone;
    }
  }
  // The object type: tensor, number, text, tuple or none.
  ms::TypeId object_type() const {
    using namespace mindspore;
    if (is_tensor()) return kObjectTypeTensorType;
    if (is_list()) return kObjectTypeTuple;
    if (is_none()) return kMetaTypeNone;
    return value_.kind == POLYOP_VALUE_STRING ? kObjectTypeString : kObjectTypeNumber;
  }
  // The shape of a tensor; empty for a number.
  const ShapeVector& shape() const {
    static const ShapeVector scalar;
    if (is_list() || is_none()) throw std::runtime_error("GetShape: the argument is not a tensor");
    return is_tensor() ? tensor_.shape() : scalar;
  }

  // The value as T. For a tensor: its elements, which do not exist while shapes are derived.
  template <typename T>
  T get() const {
    if constexpr (IsVector<T>::value) {
      if (is_tensor()) return elements<typename T::value_type>();
      if (!is_list()) mismatch("list");
      T all;
      for (const Item& item : items_) all.push_back(item.get<typename T::value_type>());
      return all;
    } else {
      if constexpr (std::is_arithmetic_v<T>) {
        if (is_tensor() && tensor_.numel() == 1) return elements<T>()[0];
      }
      if (is_none()) throw std::runtime_error("the argument is None and has no value");
      return Convert<T>::in(value_);
    }
  }

  // Converts this to an argument for a provider. The caller owns it.
  void out(polyop_value* value) const {
    if (is_tensor()) {
      Convert<ms::Tensor>::out(tensor_, value);
    } else if (is_list()) {
      value->kind = POLYOP_VALUE_LIST;
      value->count = items_.size();
      value->as.items = new polyop_value[items_.size()]();
      for (size_t i = 0; i < items_.size(); ++i) items_[i].out(&value->as.items[i]);
    } else if (value_.kind == POLYOP_VALUE_STRING) {
      Convert<std::string>::out(Convert<std::string>::in(value_), value);
    } else {
      *value = value_;
    }
  }

 private:
  template <typename T>
  std::vector<T> elements() const {
    if constexpr (std::is_arithmetic_v<T>) {
      const auto wide =
          std::is_floating_point_v<T> ? mindspore::kNumberTypeFloat64 : mindspore::kNumberTypeInt64;
      using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
      const ms::Tensor copy = tensor_.cast(wide).contiguous();
      const auto* data = static_cast<const Wide*>(copy.GetDataPtr());
      std::vector<T> all;
      for (size_t i = 0; i < copy.numel(); ++i) all.push_back(static_cast<T>(data[i]));
      return all;
    } else {
      mismatch("list");
    }
  }

  polyop_value value_{};
  ms::Tensor tensor_;
  std::vector<Item> items_;
};

}  // namespace polyop::graph

#endif
