// ms::Tensor: a handle that shares ownership of a tensor.
#ifndef POLYOP_MODULE_TENSOR_H
#define POLYOP_MODULE_TENSOR_H

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "host.h"
#include "types.h"

namespace mindspore {
class Value;
using ValuePtr = std::shared_ptr<Value>;
}  // namespace mindspore

namespace ms {

// A tensor. Copies share the memory. Tensor() is an undefined tensor: all its functions but is_defined()
// throw std::runtime_error.
class Tensor {
 public:
  Tensor() = default;
  // A dense tensor with uninitialised memory, on the device of the call's first tensor.
  Tensor(TypeId type, const ShapeVector& shape) {
    polyop::check(polyop::functions()->empty(static_cast<int32_t>(type), static_cast<int32_t>(shape.size()),
                                             shape.data(), &handle_));
  }
  explicit Tensor(const mindspore::ValuePtr& value);
  Tensor(const Tensor& other) : handle_(other.handle_), need_contiguous_(other.need_contiguous_) {
    if (handle_ != nullptr) polyop::functions()->retain(handle_);
  }
  Tensor(Tensor&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        shape_(std::move(other.shape_)),
        need_contiguous_(other.need_contiguous_) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(shape_, other.shape_);
    std::swap(need_contiguous_, other.need_contiguous_);
    return *this;
  }
  ~Tensor() {
    if (handle_ != nullptr) polyop::functions()->release(handle_);
  }

  bool is_defined() const { return handle_ != nullptr; }
  TypeId data_type() const { return static_cast<TypeId>(get()->type_id); }
  const ShapeVector& shape() const {
    if (shape_.size() != static_cast<size_t>(get()->ndim)) {
      shape_.assign(handle_->shape, handle_->shape + handle_->ndim);
    }
    return shape_;
  }
  size_t numel() const { return static_cast<size_t>(get()->numel); }
  std::vector<int64_t> stride() const { return {get()->strides, get()->strides + get()->ndim}; }
  int64_t storage_offset() const { return get()->offset; }
  bool is_contiguous() const { return get()->contiguous != 0; }
  // The address of the first element, including the offset. The tensor must be dense. After
  // SetNeedContiguous(false) it may also be strided; the caller then uses its strides.
  void* GetDataPtr() const {
    if (get()->contiguous == 0 && need_contiguous_) {
      throw std::runtime_error(
          "the data of a tensor that is not dense was requested: use contiguous() first, or "
          "SetNeedContiguous(false) and stride()");
    }
    void* data = nullptr;
    polyop::check(polyop::functions()->data(get(), &data));
    return data;
  }
  // The same as T*. The tensor must have that dtype.
  template <typename T>
  T* data() const {
    if (data_type() != polyop::type_of<T>()) {
      throw std::runtime_error("the data of a tensor of " + polyop::dtype_name(data_type()) +
                               " was asked for as " + polyop::dtype_name(polyop::type_of<T>()));
    }
    return static_cast<T*>(GetDataPtr());
  }

  // PyTorch's names for these functions.
  bool defined() const { return is_defined(); }
  TypeId dtype() const { return data_type(); }
  TypeId scalar_type() const { return data_type(); }
  const ShapeVector& sizes() const { return shape(); }
  std::vector<int64_t> strides() const { return stride(); }
  int64_t dim() const { return get()->ndim; }
  // A size or a stride. Negative dimensions count from the end. Throws std::runtime_error if out of range.
  int64_t size(int64_t at) const { return get()->shape[wrapped(at)]; }
  int64_t stride(int64_t at) const { return get()->strides[wrapped(at)]; }
  size_t element_size() const { return static_cast<size_t>(get()->itemsize); }
  bool is_cpu() const { return get()->device_type == 1; }
  bool is_cuda() const { return get()->device_type == 2; }
  template <typename T>
  T* data_ptr() const {
    return data<T>();
  }
  void* data_ptr() const { return GetDataPtr(); }

  // Whether PyboostRunner::Call makes this tensor dense before it calls the function; the default is true.
  void SetNeedContiguous(bool flag) const { need_contiguous_ = flag; }
  bool need_contiguous() const { return need_contiguous_; }

  Tensor cast(TypeId type) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  Tensor contiguous() const {
    Tensor result;
    polyop::check(polyop::functions()->contiguous(get(), &result.handle_));
    return result;
  }
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor reshape(const std::vector<int64_t>& shape) const;
  Tensor repeat(const std::vector<int64_t>& repeats) const;
  Tensor repeat_interleave(const Tensor& repeats, const std::optional<int64_t>& dim = std::nullopt,
                           const std::optional<int64_t>& output_size = std::nullopt) const;
  Tensor repeat_interleave(int64_t repeats, const std::optional<int64_t>& dim = std::nullopt,
                           const std::optional<int64_t>& output_size = std::nullopt) const;

  const Tensor& tensor() const { return *this; }
  void AssignTensor(const Tensor& source) { *this = source; }
  void ConvertStubNodeToTensor() const {}

  // The handle for polyop's functions. Throws for an undefined tensor.
  polyop_tensor* get() const {
    if (handle_ == nullptr) throw std::runtime_error("an undefined tensor was used");
    return handle_;
  }
  polyop_tensor* handle() const { return handle_; }
  static Tensor adopt(polyop_tensor* owned) {
    Tensor result;
    result.handle_ = owned;
    return result;
  }
  static Tensor share(polyop_tensor* handle) {
    if (handle != nullptr) polyop::functions()->retain(handle);
    return adopt(handle);
  }

 private:
  int64_t wrapped(int64_t at) const {
    if (at < -dim() || at >= dim()) {
      throw std::runtime_error("dimension " + std::to_string(at) + " of a tensor with " +
                               std::to_string(dim()));
    }
    return at < 0 ? at + dim() : at;
  }

  polyop_tensor* handle_ = nullptr;
  mutable ShapeVector shape_;
  mutable bool need_contiguous_ = true;
};

}  // namespace ms

#endif
