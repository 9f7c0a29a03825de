// The C loops of NumPy's ufuncs, and arrays over memory that somebody else owns.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

namespace polyop {

// One inner loop: runs over `size[0]` elements; `steps` are in bytes, one per argument.
struct UfuncLoop {
  std::vector<int32_t> kinds;  // rows of dtypes(), inputs then the output
  void (*run)(char** data, const Py_ssize_t* size, const Py_ssize_t* steps, void* context);
  void* context;
};

struct UfuncLoops {
  int inputs = 0;
  std::vector<UfuncLoop> loops;

  std::vector<int> same;  // by row of dtypes(): the loop whose arguments all have that dtype, or -1

  // `kinds` has a row of dtypes() for each argument. Null when there is no such loop.
  const UfuncLoop* find(const int32_t* kinds) const {
    bool equal = true;
    for (int i = 1; i <= inputs; ++i) equal = equal && kinds[i] == kinds[0];
    if (equal && static_cast<size_t>(kinds[0]) < same.size()) {
      const int index = same[static_cast<size_t>(kinds[0])];
      return index < 0 ? nullptr : &loops[static_cast<size_t>(index)];
    }
    for (const UfuncLoop& loop : loops) {
      bool same = true;
      for (size_t i = 0; i < loop.kinds.size(); ++i) same = same && loop.kinds[i] == kinds[i];
      if (same) return &loop;
    }
    return nullptr;
  }
};

// Reads the loops of a ufunc with one output. False with a Python error for any other object.
bool ufunc_loops(PyObject* ufunc, UfuncLoops* result);

// Returns a new writeable array over memory that `owner` keeps alive; strides are in elements. Steals the
// reference to `owner`.
PyObject* array_over(void* data, int32_t row, int32_t ndim, const int64_t* shape, const int64_t* strides,
                     PyObject* owner);

}  // namespace polyop
