// Tensors of Python objects outside of a call that polyop makes: for modules bound with pybind11.
#pragma once

#include <Python.h>

namespace polyop::module {

// A new capsule with the polyop_python_functions.
PyObject* python_functions();

}  // namespace polyop::module
