// The object that programs call: a vectorcall type with a cache of prepared kernels.
#pragma once

#include <Python.h>

#include "launch.h"

namespace polyop {

// Returns the Launch inside bind.cc's Python object. Null, with a Python error, for any other object.
using Unwrap = const Launch* (*)(PyObject*);

// Creates the type polyop._core.Call: a new reference, or null with a Python error.
PyObject* make_call_type(Unwrap unwrap);

}  // namespace polyop
