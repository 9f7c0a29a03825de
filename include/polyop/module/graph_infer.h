// OpFuncImpl: infers the shapes and dtypes of a graph operator's outputs.
#ifndef POLYOP_MODULE_GRAPH_INFER_H
#define POLYOP_MODULE_GRAPH_INFER_H

#include <set>

#include "graph_item.h"

namespace mindspore::ops {

// The values of a list, or the elements of a tensor. All of them are known.
template <typename T>
class ArrayValue {
 public:
  explicit ArrayValue(std::vector<T> values) : values_(std::move(values)) {}
  size_t size() const { return values_.size(); }
  const T& operator[](size_t i) const { return values_.at(i); }
  bool HasUnknownValue() const { return false; }
  bool IsAllUnknown() const { return false; }
  bool IsValueUnknown(size_t) const { return false; }
  const std::vector<T>& ToVector() const { return values_; }

 private:
  std::vector<T> values_;
};

class InferInfo;
using InferInfoPtr = std::unique_ptr<InferInfo>;
using InferInfoPtrList = std::vector<InferInfoPtr>;

// Information about one argument. The values of a tensor are read from its data. While shapes are derived
// without data, that is an error, which recommends load(infer={...}).
class InferInfo {
 public:
  explicit InferInfo(const polyop::graph::Item& item) : item_(item) {}
  const ShapeVector& GetShape() const { return item_.shape(); }
  TypeId GetType() const { return item_.type(); }
  bool IsNone() const { return item_.is_none(); }
  bool IsDynamic() const { return false; }
  bool IsDynamicRank() const { return false; }
  bool IsDynamicSequence() const { return false; }
  bool IsSequence() const { return item_.is_list(); }
  // The number or text; nullopt for None.
  template <typename T>
  std::optional<T> GetScalarValue() const {
    if (item_.is_none()) return std::nullopt;
    return item_.get<T>();
  }
  template <typename T>
  T GetScalarValueWithCheck() const {
    return item_.get<T>();
  }
  template <typename T>
  std::optional<ArrayValue<T>> GetArrayValue() const {
    if (item_.is_none()) return std::nullopt;
    return ArrayValue<T>(item_.get<std::vector<T>>());
  }
  InferInfoPtrList GetSequenceElements() const {
    InferInfoPtrList all;
    for (const auto& item : item_.items()) all.push_back(std::make_unique<InferInfo>(item));
    return all;
  }

 private:
  const polyop::graph::Item& item_;
};

constexpr int32_t OP_CHECK_SUCCESS = 0;

// Derive from it, and override InferShape() and InferType(). They return one entry for each output.
class OpFuncImpl {
 public:
  virtual ~OpFuncImpl() = default;
  virtual ShapeArray InferShape(const PrimitivePtr& primitive, const InferInfoPtrList&) const {
    throw std::runtime_error(primitive->name() + ": its OpFuncImpl has no InferShape()");
  }
  virtual std::vector<TypeId> InferType(const PrimitivePtr& primitive, const InferInfoPtrList&) const {
    throw std::runtime_error(primitive->name() + ": its OpFuncImpl has no InferType()");
  }
  // Any result but OP_CHECK_SUCCESS fails the call.
  virtual int32_t CheckValidation(const PrimitivePtr&, const InferInfoPtrList&) const {
    return OP_CHECK_SUCCESS;
  }
  virtual bool GeneralInferRegistered() const { return false; }
  // MindSpore needs the indices of arguments whose values InferShape() reads. polyop has all values.
  virtual std::set<int64_t> GetValueDependArgIndices() const { return {}; }
};

}  // namespace mindspore::ops

#endif
