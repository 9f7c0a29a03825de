// Somebody else's operators, called by modules by name: NumPy's own loops natively, the rest in Python.
#pragma once

#include <Python.h>

namespace polyop::module {

// set_provider(launch, loops): `launch(name, arguments)` is called for what has no loop;
// `loops` maps a name to (ufunc, whether a third argument equal to 1 may follow the inputs).
bool set_provider(PyObject* launch, PyObject* loops);

}  // namespace polyop::module
