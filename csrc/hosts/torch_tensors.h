// PyTorch tensors through its C functions for compiled models. They are probed: what is not there,
// or fails, is left to the DLPack exchange table, which makes a second tensor over the first.
#pragma once

#include <Python.h>

#include "host.h"

namespace polyop::torch_tensors {

// Look for the functions in the two libraries.
void find(void* libtorch, void* libtorch_python);

// A dense tensor on the CPU: a handle for finish() or drop(), and its view; or null: what is large is
// left to the exchange table, which fails without printing.
void* empty(const Spec& spec, View* view);
// The Python object; takes the handle.
PyObject* finish(void* handle);
void drop(void* handle);

// Fill in a view of an ordinary tensor on the CPU, given where its object has its implementation.
// Strides are always given.
bool read(const void* at, View* view);

}  // namespace polyop::torch_tensors
