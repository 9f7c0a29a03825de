// MindSpore's own functions of tensors, which read them without Python.
#pragma once

#include <Python.h>

#include <cstdint>

namespace polyop::mindspore_tensors {

// What kernels need to know of a tensor beside its memory. `shape` lives as long as the tensor.
struct Facts {
  const int64_t* shape;
  int32_t ndim;
  int32_t row;  // of dtypes()
  bool dense;
};

// Looks the functions up in MindSpore's library, and reads `probe` with them, which must be a dense tensor of
// shape (2, 3) and dtype int16. They are not public: where one is missing or that fails, read() is not to be
// called, and the result is false.
bool find(const char* library, PyObject* probe);

// Reads a tensor on which nothing is pending. False if no kernel has its dtype.
bool read(PyObject* tensor, Facts* facts);

}  // namespace polyop::mindspore_tensors
