// Gradients of loop operators that were planned once: autograd's forward and backward without Python.
//
// A plan is made in Python, for one key: hosts/torch/planned.py describes it.
#pragma once

#include "gather.h"

namespace polyop {

// The function to call for a gradient, for a call with this key: a new reference, or null when nothing is
// planned.
PyObject* planned_function(CallObject* self, const Call& call);

// plan_gradient(plan, function, *args): remembers the plan for calls with the key of these arguments, unless
// `function` is no longer what the operator calls for gradients.
PyObject* plan_gradient_method(PyObject* object, PyObject* const* args, Py_ssize_t count);

// planned_forward(ctx, *args): the forward of an autograd.Function. Without a plan it calls
// `ctx.forward_slowly(ctx, *args)`.
PyObject* planned_forward_method(PyObject* object, PyObject* const* args, Py_ssize_t count);

// planned_backward(ctx, *gradients): its backward. Without a step for these gradients it calls
// `ctx.backward_slowly(ctx, *gradients)`.
PyObject* planned_backward(PyObject*, PyObject* const* args, Py_ssize_t count);

// Call it once, before the first call.
void start_planned();

}  // namespace polyop
