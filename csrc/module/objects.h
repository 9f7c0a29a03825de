// Between the tensors of a module and the objects of a framework.
#pragma once

#include <Python.h>

#include "frame.h"

namespace polyop::module {

// The caller's tensors, in order.
using Objects = Small<PyObject*, 8>;

// A new reference to the object of a tensor that a call gave: new memory as it is; an argument that
// was written, or where `same` any argument, as itself; anything else as a copy. `arguments` are
// the caller's objects. Null with a Python error set.
PyObject* to_object(Frame& frame, Ref tensor, const Objects& arguments, bool same);

// A tuple of these; None for an absent one.
PyObject* to_objects(Frame& frame, const std::vector<Ref>& tensors, const Objects& arguments, bool same);

// After a call: tensors that the module keeps hold their objects from now on.
void keep_objects(const std::vector<Ref>& tensors);

// A capsule that owns a tape.
PyObject* to_capsule(std::unique_ptr<Tape> tape);

// Raise RuntimeError with the text.
PyObject* raise(const char* text);

}  // namespace polyop::module
