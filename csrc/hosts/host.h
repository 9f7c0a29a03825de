// The interface between the call path and a framework. One file per host implements it.
#pragma once

#include "../launch.h"

namespace polyop {

enum class BorrowResult {
  kDense,          // the view is filled in
  kOther,          // a tensor that the slow path must make dense first, or reject
  kDifferentiated  // the view is filled in, and the tensor requires a gradient
};

// A tensor that has memory but no Python object yet. `handle` belongs to the host until finish() or drop().
struct NewTensor {
  void* handle;
  View view;
  bool exchanged;  // PyTorch only: allocated through the DLPack exchange table
};

// Shape and dtype of a tensor to allocate.
struct Spec {
  const int64_t* shape;
  int32_t ndim;
  int32_t dtype;  // row of dtypes()
};

struct Host {
  // Whether objects of this exact type are the host's tensors.
  bool (*owns)(PyTypeObject* type);
  // The guards of a whole call. False: the call takes the slow path.
  bool (*plain)();
  // Fills in a view of a tensor. `guarded`: also checks what matters only above the framework's dispatcher.
  // `strided`: also accepts a tensor that is not dense; its view then has strides.
  BorrowResult (*borrow)(PyObject* tensor, bool guarded, bool strided, View* view);
  // Whether the tensor requires a gradient.
  bool (*wants_gradient)(PyObject* tensor);
  // Whether operations are recorded for gradients now.
  bool (*differentiating)();
  // Allocates a tensor on the device of the view `device`. False with a Python error when that fails.
  bool (*empty)(const Spec& spec, const View& device, NewTensor* tensor);
  // Turns the tensor into a Python object: a new reference, or null with a Python error.
  PyObject* (*finish)(NewTensor* tensor);
  // Frees the tensor.
  void (*drop)(NewTensor* tensor);
  // The framework's current stream on the device of `view`; null on the CPU.
  void* (*stream)(const View& view);
};

extern const Host numpy_host;
extern const Host torch_host;

// The host of a tensor type, or null.
const Host* host_of(PyTypeObject* type);

// These start a host. Each returns false with a Python error when that fails.
bool start_numpy();
// `missing` receives the names of symbols that the guards need and this PyTorch lacks. When it is empty, the
// fast call is on.
bool start_torch(PyObject* torch, const char* c10, const char* libtorch, const char* libtorch_python,
                 PyObject** missing);
// A tensor, with the address of its implementation and its dispatch keys as PyTorch's Python interface gives
// them.
struct TensorSample {
  PyObject* tensor;
  uint64_t implementation;
  uint64_t keys;
};
// Finds where tensors keep their dispatch keys, by searching for the keys of samples that differ. Call it
// after start_torch(). The first sample must be an ordinary tensor on the CPU; `unusual` is a mask of the
// keys of tensors that the fast call must not take.
void locate_keys(const std::vector<TensorSample>& samples, uint64_t unusual);
// Notes the dispatch keys of torch.inference_mode(), in which calls may be fast. Call it inside that mode.
void note_inference_mode();

}  // namespace polyop
