// Calling a module's function on a framework's tensors, and deriving what it would give.
#pragma once

#include <Python.h>

#include "../gather.h"
#include "function.h"

namespace polyop::module {

// The outputs of a call on gathered tensors, packed; null with a Python error set.
PyObject* execute(CallObject* self, const Launch& launch, ::polyop::Call* call, Pack pack);

// The same with its gradient recorded: sets `to_save`, `tape`, `dirty` and `plain` (outputs without
// a gradient) of `ctx`; of which tensors a gradient is wanted they say themselves, or `ctx` is a pair
// with a tuple of bools. One output as itself, several as a tuple.
PyObject* record(CallObject* self, const Launch& launch, ::polyop::Call* call, PyObject* ctx);

// Whether the last record() of this thread set `dirty` or `plain`.
bool was_marked();

// The functions of polyop._core that are about modules.
extern PyMethodDef methods[];

}  // namespace polyop::module
