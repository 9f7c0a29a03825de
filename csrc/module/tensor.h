// The tensors that a C++ operator module works with.
#pragma once

#include <Python.h>

#include <atomic>
#include <vector>

#include "../hosts/host.h"
#include "polyop/module_abi.h"

namespace polyop::module {

struct Tensor;

// The memory behind tensors. While shapes are derived there is none.
struct Storage {
  Tensor* original = nullptr;  // this is a dense copy of that tensor: a reference
  void* data = nullptr;
  const Host* host = nullptr;
  Fresh fresh{};               // memory of the host's that became no object yet
  bool is_fresh = false;       // `fresh` is still to be finished or dropped
  PyObject* object = nullptr;  // the caller's tensor
  bool owned = false;          // `object` is a reference of ours
  bool derived = false;        // there is no data
  bool written = false;        // a launch or a Function has changed it
  bool read_only = false;
  bool lost = false;     // it was written by what is not recorded, maybe through a view
  bool exposed = false;  // its address was given away outside of Forward and kernels
};

// Where the gradient of a tensor goes: to an output of a recorded node, to an argument of the call
// (`node` -1), or nowhere (both -1). `lost`: it would have to pass through what is not recorded.
struct Source {
  int node = -1;
  int index = -1;
  bool lost = false;
  bool exists() const { return index >= 0; }
};

// What a module holds by pointer. `id` numbers the tensors of a call in which shapes are derived.
struct Tensor : polyop_tensor {
  std::atomic<int> references{1};
  Tensor* base = nullptr;   // of a view: the tensor that holds the memory
  Storage* storage = &own;  // of a view: the base's
  Storage own;
  int argument = -1;  // which tensor of the caller's it is, itself
  int id = -1;
  Source source;
  uint64_t call = 0;  // the number of the call that it belongs to: Frame::number
  Source before;      // and needs_gradient, before the Forward of this number wrote it
  int32_t needed_before = 0;
  int forward = -1;
  int32_t row = -1;  // of dtypes()
  int64_t dims[8];   // shape, then strides, where they fit
  std::vector<int64_t> many;

  // Blocks are kept for the next tensor of the thread: a call makes and frees a few.
  static void* operator new(size_t size);
  static void operator delete(void* block);

  void set_layout(int32_t count, const int64_t* sizes, const int64_t* steps);
  void* data() const { return static_cast<char*>(storage->data) + offset * itemsize; }
};

inline Tensor* as_tensor(polyop_tensor* tensor) { return static_cast<Tensor*>(tensor); }

void retain(polyop_tensor* tensor);
// Takes Python's lock where the last reference goes and memory of Python's is behind it.
void release(polyop_tensor* tensor);

// A counted pointer.
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
    Tensor* taken = tensor_;
    tensor_ = nullptr;
    return taken;
  }

 private:
  Tensor* tensor_ = nullptr;
};

// MindSpore's number of a dtype to its row of dtypes(), or -1.
int32_t row_of_type(int32_t type_id);

// A dense tensor over new memory of the host (none when `derived`); throws std::runtime_error.
Ref make_empty(const Host* host, const View& device, bool derived, int32_t row, int32_t ndim,
               const int64_t* shape);
// A tensor over the memory of a caller's object, which must live as long as the call.
Ref borrow_object(const Host* host, PyObject* object, const View& view);
Ref make_view(Tensor* base, int32_t ndim, const int64_t* shape, const int64_t* strides, int64_t offset);
// What is wrong with a tensor that a module has kept from a run without data.
constexpr const char* no_data =
    "a tensor has no data: it was kept from a run in which only shapes were derived; a static tensor is "
    "made in such a run: make it in each call";
// Copy elements between tensors of one shape and dtype, of any layout, on the CPU.
void copy_elements(const Tensor& from, Tensor& to);

}  // namespace polyop::module
