// PyTorch tensors through the C functions that PyTorch has for compiled models (aoti_torch_*). The functions
// are probed. When one is missing or fails, the DLPack exchange table is used; it is slower, as it makes a
// second tensor over the first.
#pragma once

#include <Python.h>

#include "host.h"

namespace polyop::torch_tensors {

// Looks up the functions in the two libraries.
void find(void* libtorch, void* libtorch_python);

// Whether PyTorch is known to have no tensors of a row of dtypes().
bool lacks(int32_t dtype);

// Allocates a dense tensor on the CPU and fills in its view. Returns a handle for finish() or drop(), or null
// when the exchange table must do it. That includes large tensors: when memory is short, the exchange table
// fails without printing.
void* empty(const Spec& spec, View* view);
// Turns the tensor into a Python object; the handle is gone after that.
PyObject* finish(void* handle);
void drop(void* handle);

// Fills in a view of an ordinary tensor on the CPU, always with strides. `handle` is the address of the
// pointer to the implementation in the tensor object.
bool read(const void* handle, View* view);

}  // namespace polyop::torch_tensors
