// MindSpore's values: the arguments of CustomLaunchAclnn, and the items of saved_data.
#ifndef POLYOP_MODULE_VALUE_H
#define POLYOP_MODULE_VALUE_H

#include <string>
#include <type_traits>
#include <vector>

#include "tensor.h"

namespace mindspore {

using ValuePtrList = std::vector<ValuePtr>;

class Value : public std::enable_shared_from_this<Value> {
 public:
  virtual ~Value() = default;
  // Casts this value to another type of value; null when it has another type.
  template <typename Pointer>
  Pointer cast() {
    return std::dynamic_pointer_cast<typename Pointer::element_type>(shared_from_this());
  }
  template <typename T>
  bool isa() const {
    return dynamic_cast<const T*>(this) != nullptr;
  }
  // Converts this value to polyop's. `lists` owns the items of lists.
  virtual void write(polyop_value* value, std::vector<std::unique_ptr<polyop_value[]>>* lists) const = 0;
};

// A number, a bool or a text.
template <typename T>
class Immediate : public Value {
 public:
  explicit Immediate(T value) : value_(std::move(value)) {}
  const T& value() const { return value_; }
  void write(polyop_value* value, std::vector<std::unique_ptr<polyop_value[]>>*) const override {
    if constexpr (std::is_same_v<T, std::string>) {
      value->kind = POLYOP_VALUE_STRING;
      value->count = value_.size();
      value->as.text = value_.c_str();
    } else if constexpr (std::is_floating_point_v<T>) {
      value->kind = POLYOP_VALUE_FLOAT;
      value->as.real = value_;
    } else {
      value->kind = std::is_same_v<T, bool> ? POLYOP_VALUE_BOOL : POLYOP_VALUE_INT;
      value->as.integer = static_cast<int64_t>(value_);
    }
  }

 private:
  T value_;
};
using BoolImm = Immediate<bool>;
using Int32Imm = Immediate<int32_t>;
using Int64Imm = Immediate<int64_t>;
using FP32Imm = Immediate<float>;
using FP64Imm = Immediate<double>;
using StringImm = Immediate<std::string>;
using Scalar = Value;
using ScalarPtr = ValuePtr;

class None : public Value {
 public:
  void write(polyop_value*, std::vector<std::unique_ptr<polyop_value[]>>*) const override {}
};

class ValueSequence : public Value {
 public:
  explicit ValueSequence(ValuePtrList values) : values_(std::move(values)) {}
  const ValuePtrList& value() const { return values_; }
  size_t size() const { return values_.size(); }
  const ValuePtr& operator[](size_t i) const { return values_.at(i); }
  void write(polyop_value* value, std::vector<std::unique_ptr<polyop_value[]>>* lists) const override {
    std::unique_ptr<polyop_value[]> items(new polyop_value[values_.size()]());
    value->kind = POLYOP_VALUE_LIST;
    value->count = values_.size();
    value->as.items = items.get();
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] != nullptr) values_[i]->write(&items[i], lists);
    }
    lists->push_back(std::move(items));
  }

 private:
  ValuePtrList values_;
};
class ValueTuple : public ValueSequence {
 public:
  using ValueSequence::ValueSequence;
};
class ValueList : public ValueSequence {
 public:
  using ValueSequence::ValueSequence;
};
using ValueTuplePtr = std::shared_ptr<ValueTuple>;
using ValueListPtr = std::shared_ptr<ValueList>;

namespace tensor {

// A tensor for shared pointers. It wraps an ms::Tensor.
class Tensor : public Value {
 public:
  Tensor(TypeId type, const ShapeVector& shape) : tensor_(type, shape) {}
  explicit Tensor(ms::Tensor tensor) : tensor_(std::move(tensor)) {}

  TypeId data_type() const { return tensor_.data_type(); }
  const ShapeVector& shape() const { return tensor_.shape(); }
  std::vector<int64_t> stride() const { return tensor_.stride(); }
  int64_t storage_offset() const { return tensor_.storage_offset(); }
  bool is_contiguous() const { return tensor_.is_contiguous(); }
  size_t DataSize() const { return tensor_.numel(); }
  int ElementsNum() const { return static_cast<int>(tensor_.numel()); }
  int DataDim() const { return static_cast<int>(tensor_.shape().size()); }
  size_t Size() const { return tensor_.numel() * static_cast<size_t>(tensor_.get()->itemsize); }
  void* data_c() const { return tensor_.GetDataPtr(); }
  const ms::Tensor& get() const { return tensor_; }
  void write(polyop_value* value, std::vector<std::unique_ptr<polyop_value[]>>*) const override {
    value->kind = POLYOP_VALUE_TENSOR;
    value->as.tensor = tensor_.handle();
  }

 private:
  ms::Tensor tensor_;
};
using TensorPtr = std::shared_ptr<Tensor>;
using TensorPtrList = std::vector<TensorPtr>;
using BaseTensor = Tensor;
using BaseTensorPtr = TensorPtr;
using BaseTensorPtrList = TensorPtrList;

}  // namespace tensor

using tensor::BaseTensor;
using tensor::BaseTensorPtr;
using tensor::BaseTensorPtrList;
using tensor::Tensor;
using tensor::TensorPtr;
using tensor::TensorPtrList;

// Makes a value of a number, a bool, a text, another value, or a vector of these.
template <typename T>
ValuePtr MakeValue(const T& value) {
  if constexpr (std::is_convertible_v<T, ValuePtr>) {
    return value;
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    return std::make_shared<StringImm>(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::make_shared<Int64Imm>(static_cast<int64_t>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::make_shared<Immediate<T>>(value);
  } else {
    ValuePtrList values;
    for (const auto& item : value) values.push_back(MakeValue<typename T::value_type>(item));
    return std::make_shared<ValueTuple>(std::move(values));
  }
}

// Returns the argument of MakeValue<T>. Throws std::runtime_error for a value of another type.
template <typename T>
T GetValue(const ValuePtr& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    const auto* typed = dynamic_cast<const Immediate<T>*>(value.get());
    if (typed == nullptr) throw std::runtime_error("GetValue: the value is of another type, or null");
    return typed->value();
  } else {
    const auto* typed = dynamic_cast<const ValueSequence*>(value.get());
    if (typed == nullptr) throw std::runtime_error("GetValue: the value is no sequence");
    T all;
    for (const ValuePtr& item : typed->value()) all.push_back(GetValue<typename T::value_type>(item));
    return all;
  }
}

}  // namespace mindspore

namespace ms {

using mindspore::GetValue;
using mindspore::MakeValue;

inline Tensor::Tensor(const mindspore::ValuePtr& value) {
  const auto* typed = dynamic_cast<const mindspore::tensor::Tensor*>(value.get());
  if (typed == nullptr) throw std::runtime_error("the value is not a tensor");
  *this = typed->get();
}

}  // namespace ms

#endif
