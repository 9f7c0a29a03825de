// What the call path asks of a framework. One file per host implements it.
#pragma once

#include "../launch.h"

namespace polyop {

enum class Borrowed {
  kDense,          // the view is filled in
  kOther,          // a tensor that the slow path must first make dense, or refuse
  kDifferentiated  // a dense tensor of which gradients are wanted
};

// A tensor being made: `handle` belongs to the host until finish() or drop().
struct Fresh {
  void* handle;
  View view;
  bool exchanged;  // PyTorch's: made by the DLPack exchange table
};

// Sizes and dtype of a tensor to be made.
struct Spec {
  const int64_t* shape;
  int32_t ndim;
  int32_t dtype;  // row of dtypes()
};

struct Host {
  // Whether objects of this exact type are the host's tensors.
  bool (*owns)(PyTypeObject* type);
  // Guards that hold for a whole call: false sends it down the slow path.
  bool (*plain)();
  // Borrow a tensor. `guarded`: also look at what only matters above the framework's dispatcher.
  // `strided`: also a tensor that is not dense; its view has strides then.
  Borrowed (*borrow)(PyObject* tensor, bool guarded, bool strided, View* view);
  // Whether a gradient of the tensor is wanted by whoever made it.
  bool (*wants_gradient)(PyObject* tensor);
  // Whether what is done now is itself to be differentiated.
  bool (*differentiating)();
  // Allocate like `device` says. Returns false with a Python error set.
  bool (*empty)(const Spec& spec, const View& device, Fresh* fresh);
  // The Python object of a fresh tensor (a new reference, or null with an error set).
  PyObject* (*finish)(Fresh* fresh);
  void (*drop)(Fresh* fresh);
  // The stream that the framework is using on the device of `view`.
  void* (*stream)(const View& view);
};

extern const Host numpy_host;
extern const Host torch_host;

// The host of a tensor type, or null.
const Host* host_of(PyTypeObject* type);

// Make a host ready; each returns false with a Python error set when it cannot be.
bool start_numpy();
// `missing` receives the names of symbols that the guards lack; empty when the fast call is on.
bool start_torch(PyObject* torch, const char* c10, const char* libtorch, const char* libtorch_python,
                 PyObject** missing);
// A tensor with the address of its implementation and its dispatch keys, as PyTorch tells them.
struct TensorSample {
  PyObject* tensor;
  uint64_t implementation;
  uint64_t keys;
};
// Find out where tensors keep their keys, from samples that differ; after start_torch(). The first
// is an ordinary tensor on the CPU.
void locate_keys(const std::vector<TensorSample>& samples, uint64_t unusual);
// Called inside torch.inference_mode(): a call there is plain, too.
void note_inference_mode();

}  // namespace polyop
