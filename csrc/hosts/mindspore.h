// MindSpore's tensors in the native call.
#pragma once

#include <Python.h>

#include <cstddef>

namespace polyop {

// start_mindspore(), mindspore_array(), mindspore_slot()
extern PyMethodDef mindspore_methods[];

// The fast call on MindSpore's tensors; null until the host is started. It clears `declined` when it makes
// the call. Else `declined` is set, without a Python error, and the slow path must make the call.
extern PyObject* (*mindspore_call)(PyObject* self, PyObject* const* args, Py_ssize_t count, bool* declined);

// Assigns a function, which MindSpore can launch by name, to a call (see target.h). Returns its number, or -1
// when all are taken.
int mindspore_take_slot(const char* text, size_t length, size_t inputs);
const char* mindspore_slot_name(int number);

}  // namespace polyop
