// Calls a module's function on a framework's tensors.
#pragma once

#include <Python.h>

#include "../gather.h"
#include "function.h"

namespace polyop::module {

// Calls the function on gathered tensors. Returns the packed outputs, or null with a Python error.
PyObject* execute(CallObject* self, const Launch& launch, ::polyop::Call* call, Pack pack);

// The same, and records the gradient. Sets the attributes `to_save`, `tape`, `dirty` and `plain` (outputs
// without a gradient) of `ctx`; of the last two only those that are not empty. `ctx` may be a pair with a
// tuple of bools that tells which tensors require a gradient; else the tensors are asked. Returns one output
// as itself, several as a tuple.
PyObject* record(CallObject* self, const Launch& launch, ::polyop::Call* call, PyObject* ctx);

// Whether the last record() of this thread set `dirty` or `plain`.
bool was_marked();

// The functions of polyop._core for modules.
extern PyMethodDef methods[];

}  // namespace polyop::module
