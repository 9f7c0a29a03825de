// MindSpore's tensors in the native call.
#pragma once

#include <Python.h>

#include <cstddef>

namespace polyop {

// start_mindspore(), mindspore_array()
extern PyMethodDef mindspore_methods[];

// The fast call on MindSpore's tensors; null until the host is started. It clears `declined` when it makes
// the call. Else `declined` is set, without a Python error, and the slow path must make the call.
extern PyObject* (*mindspore_call)(PyObject* self, PyObject* const* args, Py_ssize_t count, bool* declined);

}  // namespace polyop
