// The tensors of C++ modules.
#pragma once

#include <Python.h>

#include <atomic>
#include <vector>

#include "../hosts/host.h"
#include "polyop/module_abi.h"

namespace polyop::module {

struct Tensor;

// The memory of a tensor and its views. While shapes are derived there is no data.
struct Storage {
  Tensor* original = nullptr;  // a reference, when this is a dense copy of that tensor
  void* data = nullptr;
  const Host* host = nullptr;
  NewTensor new_tensor{};         // memory of the host that is no Python object yet
  bool holds_new_tensor = false;  // `new_tensor` must still be finished or dropped
  PyObject* object = nullptr;     // the caller's tensor
  bool owned = false;             // `object` is an owned reference
  bool derived = false;           // there is no data
  bool written = false;           // by a launch or a Function
  bool read_only = false;
  bool lost = false;     // written by an operation that is not recorded, maybe through a view
  bool exposed = false;  // the module has the address, outside of Forward and kernels
};

// Where the gradient of a tensor goes: to an output of a recorded node, to an argument of the call (`node`
// -1), or nowhere (both -1). `lost`: it would have to pass through an operation that is not recorded.
struct Source {
  int node = -1;
  int index = -1;
  bool lost = false;
  bool exists() const { return index >= 0; }
};

// The tensor that a module holds by pointer. `id` is unique within a call; traces refer to it.
struct Tensor : polyop_tensor {
  std::atomic<int> references{1};
  Tensor* base = nullptr;   // of a view: the tensor that owns the memory
  Storage* storage = &own;  // of a view: the base's
  Storage own;
  int argument = -1;  // the index of the caller's tensor that this is, or -1
  int id = -1;
  Source source;
  uint64_t call = 0;     // Frame::number of the call that it belongs to
  Source source_before;  // `source` and needs_gradient before the Forward with number `forward` wrote it
  int32_t needs_gradient_before = 0;
  int forward = -1;
  int32_t row = -1;  // of dtypes()
  int64_t dims[8];   // shape, then strides, up to four dimensions
  std::vector<int64_t> heap_dims;

  // Freed memory is kept for the next tensor of the thread, because every call creates a few.
  static void* operator new(size_t size);
  static void operator delete(void* block);

  void set_layout(int32_t count, const int64_t* sizes, const int64_t* steps);
  void* data() const { return static_cast<char*>(storage->data) + offset * itemsize; }
};

inline Tensor* as_tensor(polyop_tensor* tensor) { return static_cast<Tensor*>(tensor); }

void retain(polyop_tensor* tensor);
// Releases a reference. The last one frees the memory, and takes Python's lock when Python objects are part
// of it.
void release(polyop_tensor* tensor);

// A pointer that owns a reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(Tensor* owned) : tensor_(owned) {}
  Ref(const Ref& other) : tensor_(other.tensor_) {
    if (tensor_ != nullptr) retain(tensor_);
  }
  Ref(Ref&& other) noexcept : tensor_(other.tensor_) { other.tensor_ = nullptr; }
  Ref& operator=(Ref other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Ref() {
    if (tensor_ != nullptr) release(tensor_);
  }
  static Ref share(Tensor* tensor) {
    if (tensor != nullptr) retain(tensor);
    return Ref(tensor);
  }
  Tensor* get() const { return tensor_; }
  Tensor* operator->() const { return tensor_; }
  explicit operator bool() const { return tensor_ != nullptr; }
  Tensor* take() {
    Tensor* tensor = tensor_;
    tensor_ = nullptr;
    return tensor;
  }

 private:
  Tensor* tensor_ = nullptr;
};

// The row of dtypes() for MindSpore's TypeId, or -1.
int32_t row_of_type(int32_t type_id);

// Returns a dense tensor over new memory of the host, or without data when `derived`. Throws
// std::runtime_error.
Ref make_empty(const Host* host, const View& device, bool derived, int32_t row, int32_t ndim,
               const int64_t* shape);
// Returns a tensor over the memory of a caller's object. The object must outlive the call.
Ref borrow_object(const Host* host, PyObject* object, const View& view);
Ref make_view(Tensor* base, int32_t ndim, const int64_t* shape, const int64_t* strides, int64_t offset);
// The error for a tensor that a module has kept from a run without data.
constexpr const char* kNoData =
    "a tensor has no data: it was kept from a run in which only shapes were derived; a static tensor is "
    "made in such a run: make it in each call";
// Copies elements between tensors of the same shape and dtype on the CPU. Layouts may differ.
void copy_elements(const Tensor& from, Tensor& to);

}  // namespace polyop::module
