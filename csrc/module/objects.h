// Converts the tensors of a module to objects of a framework.
#pragma once

#include <Python.h>

#include "frame.h"

namespace polyop::module {

// The caller's tensors, in order.
using Objects = Small<PyObject*, 8>;

// Returns a new reference to the object of a tensor that a call returned, or null with a Python error. New
// memory becomes a new object. An argument that was written is the caller's object; with `same`, any argument
// is. Anything else is copied. `arguments` are the caller's objects.
PyObject* to_object(Frame& frame, Ref tensor, const Objects& arguments, bool same);

// A tuple of such objects; None for an absent tensor.
PyObject* to_objects(Frame& frame, const std::vector<Ref>& tensors, const Objects& arguments, bool same);

// Call it after a call: the tensors that the module has kept then own references to their objects.
void keep_objects(const std::vector<Ref>& tensors);

// Returns a capsule that owns the tape.
PyObject* to_capsule(std::unique_ptr<Tape> tape);

// Raises RuntimeError with this text, unless a Python error is set. Returns null.
PyObject* raise(const char* text);

}  // namespace polyop::module
