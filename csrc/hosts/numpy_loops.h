// NumPy's ufuncs as plain C loops, and arrays over memory that somebody else owns.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

namespace polyop {

// One inner loop: run over `size[0]` elements, each argument with its step in bytes.
struct UfuncLoop {
  std::vector<int32_t> kinds;  // rows of dtypes(), inputs then the output
  void (*run)(char** data, const Py_ssize_t* size, const Py_ssize_t* steps, void* context);
  void* context;
};

struct UfuncLoops {
  int inputs = 0;
  std::vector<UfuncLoop> loops;

  std::vector<int> same;  // by row: the loop whose arguments all have that dtype, or -1

  const UfuncLoop* find(const int32_t* kinds) const {
    bool equal = true;
    for (int i = 1; i <= inputs; ++i) equal = equal && kinds[i] == kinds[0];
    if (equal && static_cast<size_t>(kinds[0]) < same.size()) {
      const int at = same[static_cast<size_t>(kinds[0])];
      return at < 0 ? nullptr : &loops[static_cast<size_t>(at)];
    }
    for (const UfuncLoop& loop : loops) {
      bool same = true;
      for (size_t i = 0; i < loop.kinds.size(); ++i) same = same && loop.kinds[i] == kinds[i];
      if (same) return &loop;
    }
    return nullptr;
  }
};

// The loops of a ufunc with one output; false with a Python error set for anything else.
bool ufunc_loops(PyObject* ufunc, UfuncLoops* found);

// A new array over memory that `owner` (taken over) keeps alive; strides in elements. Writeable.
PyObject* array_over(void* data, int32_t row, int32_t ndim, const int64_t* shape, const int64_t* strides,
                     PyObject* owner);

}  // namespace polyop
