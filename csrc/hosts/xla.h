// XLA's custom calls: how JAX programs run operators.
#pragma once

#include <Python.h>

#include <string>

namespace polyop {

// Returns a capsule with the handler for a platform, "cpu" or "CUDA"; null with a Python error for another
// name. One handler serves all operators: the attribute "call" of a custom call is the text of a Target.
PyObject* xla_handler(const char* platform);

// Returns XLA's number of a dtype, or -1 if it has none.
int xla_dtype(const std::string& name);

// Makes the handlers report another version of XLA's interface, to test how a runtime reacts.
void pretend_xla_version(int major, int minor);

}  // namespace polyop
