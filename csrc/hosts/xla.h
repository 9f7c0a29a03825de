// XLA's custom calls: how JAX programs run operators.
#pragma once

#include <Python.h>

namespace polyop {

// A capsule with the handler for a platform, "cpu" or "CUDA"; null with an error set for another.
// One handler serves all operators: the attribute "call" is the text of a Target.
PyObject* xla_handler(const char* platform);

// Declare another version of XLA's interface than ours, to see what a runtime makes of it.
void pretend_xla_version(int major, int minor);

}  // namespace polyop
