// Calls on arrays of a framework without a native host, whose eager call is a compiled program: JAX.
//
// Python plans a call once (hosts/jax/planned.py). Calls with the same attributes, and the same tensors
// present, then go from here to the program.
#pragma once

#include "gather.h"

namespace polyop {

// Makes a planned call. Sets `declined`, without a Python error, when there is no plan.
PyObject* call_eager(CallObject* self, PyObject* const* args, Py_ssize_t count, bool* declined);

// plan_eager(token, function, *args): remembers the function for calls like this one. It is given the tensors
// that are present, and returns what the call returns. Nothing is remembered if the operator has changed
// since plan_token() gave the token.
PyObject* plan_eager_method(PyObject* object, PyObject* const* args, Py_ssize_t count);
PyObject* plan_token_method(PyObject* object, PyObject*);

// set_eager_type(type): the exact type of the arrays.
PyObject* set_eager_type(PyObject*, PyObject* type);

}  // namespace polyop
