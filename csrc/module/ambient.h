// Converts Python objects to tensors and back outside of polyop's own calls, for modules that pybind11 binds.
#pragma once

#include <Python.h>

namespace polyop::module {

// Returns a new capsule with the table polyop_python_functions.
PyObject* python_functions();

}  // namespace polyop::module
