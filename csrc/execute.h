// Runs the kernel that is prepared for the arguments of a call, or has Python prepare one.
#pragma once

#include "call.h"
#include "gather.h"

namespace polyop {

// How a prepared kernel is run.
struct RunMode {
  Pack pack;
  PyObject* ctx = nullptr;  // where the gradient of a module's function is recorded
};

// Returns the outputs, or null with a Python error. Null with `declined` set, without an error, when Python
// must make the call: the operator has no native kernel for these arguments.
PyObject* execute_prepared(CallObject* self, Call* call, RunMode mode, bool* declined);

// Call it once, before the first call.
void start_execute(Unwrap unwrap);

}  // namespace polyop
