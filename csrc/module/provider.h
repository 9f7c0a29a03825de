// Somebody else's operators, called by modules by name: NumPy's own loops natively, the rest in Python.
#pragma once

#include <Python.h>

namespace polyop::module {

// set_provider(launch, loops, writes): `launch(name, arguments)` is called for what has no loop;
// `loops` maps a name to (ufunc, whether a third argument equal to 1 may follow the inputs);
// `writes(name, count)` says where the written ones can be among so many arguments.
bool set_provider(PyObject* launch, PyObject* loops, PyObject* writes);

}  // namespace polyop::module
