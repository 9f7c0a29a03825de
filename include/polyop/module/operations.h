// The operations of ms::Tensor, and functions that create tensors.
#ifndef POLYOP_MODULE_OPERATIONS_H
#define POLYOP_MODULE_OPERATIONS_H

#include "aclnn.h"

namespace polyop {

// Returns the dimension; a negative one counts from the end. Throws when it is out of range.
inline int64_t wrap(int64_t dim, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (dim < -count || dim >= count) {
    throw std::runtime_error("dimension " + std::to_string(dim) + " of a tensor with " +
                             std::to_string(count));
  }
  return dim < 0 ? dim + count : dim;
}

inline ms::Tensor view(const ms::Tensor& tensor, const ShapeVector& shape, const int64_t* strides,
                       int64_t offset) {
  polyop_tensor* result = nullptr;
  check(functions()->view(tensor.get(), static_cast<int32_t>(shape.size()), shape.data(), strides, offset,
                          &result));
  return ms::Tensor::adopt(result);
}

template <typename T>
ms::Tensor from_values(const std::vector<T>& values, ms::TypeId type) {
  ms::Tensor result(type_of<T>(), {static_cast<int64_t>(values.size())});
  check(functions()->fill(result.get(), values.data(), values.size() * sizeof(T)));
  return result.cast(type);
}

}  // namespace polyop

namespace ms {

inline Tensor Tensor::cast(TypeId type) const {
  if (type == data_type()) return *this;
  Tensor result(type, shape());
  polyop_value values[3] = {};
  values[0].kind = values[2].kind = POLYOP_VALUE_TENSOR;
  values[0].as.tensor = handle_;
  values[1].kind = POLYOP_VALUE_INT;
  values[1].as.integer = type;
  values[2].as.tensor = result.handle_;
  polyop::check(polyop::functions()->launch("aclnnCast", values, 3, 1));
  return result;
}

inline std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
  const auto axis = static_cast<size_t>(polyop::wrap(dim, shape().size()));
  if (chunks < 1) throw std::runtime_error("chunk needs at least 1 chunk");
  const int64_t whole = shape()[axis];
  const int64_t size = whole == 0 ? 0 : (whole + chunks - 1) / chunks;
  std::vector<Tensor> parts;
  for (int64_t from = 0; from < whole || parts.empty(); from += size) {
    ShapeVector part = shape();
    part[axis] = from + size < whole ? size : whole - from;
    parts.push_back(polyop::view(*this, part, stride().data(), storage_offset() + from * stride()[axis]));
  }
  return parts;
}

inline Tensor Tensor::reshape(const std::vector<int64_t>& requested) const {
  ShapeVector sizes = requested;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (open >= 0) throw std::runtime_error("reshape can find one size of -1, not several");
      open = static_cast<int64_t>(i);
    } else {
      known *= sizes[i];
    }
  }
  if (open >= 0) {
    if (known == 0) throw std::runtime_error("reshape cannot find the size of -1 beside a size of 0");
    sizes[static_cast<size_t>(open)] = static_cast<int64_t>(numel()) / known;
  }
  const Tensor dense = contiguous();
  return polyop::view(dense, sizes, nullptr, dense.storage_offset());
}

inline Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  if (shape().empty()) return reshape({1});
  const auto first = static_cast<size_t>(polyop::wrap(start_dim, shape().size()));
  const auto last = static_cast<size_t>(polyop::wrap(end_dim, shape().size()));
  if (first > last) throw std::runtime_error("flatten: start_dim comes after end_dim");
  ShapeVector sizes(shape().begin(), shape().begin() + static_cast<int64_t>(first));
  int64_t joined = 1;
  for (size_t i = first; i <= last; ++i) joined *= shape()[i];
  sizes.push_back(joined);
  sizes.insert(sizes.end(), shape().begin() + static_cast<int64_t>(last) + 1, shape().end());
  return reshape(sizes);
}

inline Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  const int64_t axis = polyop::wrap(dim, shape().size());
  ShapeVector sizes = shape();
  sizes[static_cast<size_t>(axis)] = static_cast<int64_t>(index.numel());
  Tensor result(data_type(), sizes);
  polyop::launch_aclnn("aclnnIndexSelect", *this, axis, index, result);
  return result;
}

inline Tensor Tensor::repeat(const std::vector<int64_t>& repeats) const {
  if (repeats.size() < shape().size()) throw std::runtime_error("repeat needs a number for each dimension");
  ShapeVector sizes = repeats;
  const size_t extra = repeats.size() - shape().size();
  for (size_t i = 0; i < shape().size(); ++i) sizes[extra + i] *= shape()[i];
  Tensor result(data_type(), sizes);
  polyop::launch_aclnn("aclnnRepeat", *this, repeats, result);
  return result;
}

inline Tensor Tensor::repeat_interleave(int64_t repeats, const std::optional<int64_t>& dim,
                                        const std::optional<int64_t>& output_size) const {
  const Tensor from = dim ? *this : flatten();
  const int64_t axis = polyop::wrap(dim.value_or(0), from.shape().size());
  ShapeVector sizes = from.shape();
  int64_t& size = sizes[static_cast<size_t>(axis)];
  size *= repeats;
  if (output_size && *output_size != size)
    throw std::runtime_error("repeat_interleave: output_size is not the size");
  Tensor result(data_type(), sizes);
  polyop::launch_aclnn("aclnnRepeatInterleaveIntWithDim", from, repeats, axis, size, result);
  return result;
}

inline Tensor Tensor::repeat_interleave(const Tensor& repeats, const std::optional<int64_t>& dim,
                                        const std::optional<int64_t>& output_size) const {
  const Tensor from = dim ? *this : flatten();
  const int64_t axis = polyop::wrap(dim.value_or(0), from.shape().size());
  int64_t total = output_size.value_or(0);
  if (!output_size) {  // reads the data: give output_size where shapes are to be derived
    const Tensor counts = repeats.cast(kNumberTypeInt64).contiguous();
    const auto* values = static_cast<const int64_t*>(counts.GetDataPtr());
    for (size_t i = 0; i < counts.numel(); ++i) total += values[i];
  }
  ShapeVector sizes = from.shape();
  sizes[static_cast<size_t>(axis)] = total;
  Tensor result(data_type(), sizes);
  polyop::launch_aclnn("aclnnRepeatInterleaveWithDim", from, repeats, axis, total, result);
  return result;
}

// Tensors with these values.
inline Tensor tensor(const std::vector<int64_t>& values, TypeId type = kNumberTypeInt64) {
  return polyop::from_values(values, type);
}
inline Tensor tensor(const std::vector<double>& values, TypeId type = kNumberTypeFloat64) {
  return polyop::from_values(values, type);
}
inline Tensor tensor(int64_t value, TypeId type = kNumberTypeInt64) {
  return polyop::from_values(std::vector<int64_t>{value}, type);
}
inline Tensor tensor(double value, TypeId type = kNumberTypeFloat64) {
  return polyop::from_values(std::vector<double>{value}, type);
}
inline Tensor zeros(const ShapeVector& shape, TypeId type = kNumberTypeFloat32) {
  Tensor result(type, shape);
  polyop::launch_aclnn("aclnnInplaceZero", result);
  return result;
}
inline Tensor ones(const ShapeVector& shape, TypeId type = kNumberTypeFloat32) {
  Tensor result(type, shape);
  polyop::launch_aclnn("aclnnInplaceOne", result);
  return result;
}

}  // namespace ms

#endif
