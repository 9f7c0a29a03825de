// MindSpore's tensors in the native call.
#pragma once

#include <Python.h>

#include <cstddef>

namespace polyop {

// start_mindspore(), mindspore_array(), mindspore_slot()
extern PyMethodDef mindspore_methods[];

// A plain call on MindSpore's tensors; null until that host is started. `declined` is set, and no
// error, when the call must go another way.
extern PyObject* (*mindspore_call)(PyObject* self, PyObject* const* args, Py_ssize_t count, bool* declined);

// Give a call (see target.h) a function that MindSpore can launch by name; -1 when all are taken.
int mindspore_take_slot(const char* text, size_t length, size_t inputs);
const char* mindspore_slot_name(int number);

}  // namespace polyop
