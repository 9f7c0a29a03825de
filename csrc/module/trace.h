// The steps of a function while its output shapes are derived.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

#include "polyop/module_abi.h"

namespace polyop::module {

// One step. `arguments` is a Python tuple in which a tensor is ("tensor", id), a list a tuple.
struct Step {
  std::string kind;  // "empty", "launch", "kernel", "view", "copy" or "fill"
  std::string name;
  PyObject* arguments;
  std::vector<int> outputs;  // ids of the tensors that are written or created
};

struct Trace {
  std::vector<Step> steps;

  Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();

  void add(const char* kind, const std::string& name, PyObject* arguments, std::vector<int> outputs);
  // A new tuple of (kind, name, arguments, outputs).
  PyObject* to_python() const;
};

// Converts a value to Python: a new reference, or null with a Python error. `tensor` converts tensors.
PyObject* to_python(const polyop_value& value, PyObject* (*tensor)(polyop_tensor*));
PyObject* to_python(const polyop_value* values, size_t count, PyObject* (*tensor)(polyop_tensor*));
// ("tensor", id), or None.
PyObject* tensor_id(polyop_tensor* tensor);

}  // namespace polyop::module
