// Operators of a provider, which modules call by name. NumPy's loops run natively, all others in Python.
#pragma once

#include <Python.h>

namespace polyop::module {

// Sets the Python side of the provider. False with a Python error for a bad table.
// launch(name, arguments): runs an operator that has no loop, or arguments that the loop does not take
// loops: a dict from a name to (ufunc, whether an argument equal to 1 may follow the inputs)
// writes(name, count): tuples of possible positions of the written arguments among `count`
bool set_provider(PyObject* launch, PyObject* loops, PyObject* writes);

}  // namespace polyop::module
