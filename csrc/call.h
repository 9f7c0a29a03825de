// The object that programs call: a vectorcall type with a cache of prepared kernels.
#pragma once

#include <Python.h>

#include "launch.h"

namespace polyop {

// How bind.cc's Launch objects are read. Null with a Python error set for anything else.
using Unwrap = const Launch* (*)(PyObject*);

// Create the type polyop._core.Call; a new reference, or null with an error set.
PyObject* make_call_type(Unwrap unwrap);

}  // namespace polyop
