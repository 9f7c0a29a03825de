// Calls from MindSpore's graphs, which enter at mindspore_extra.cc.
#include <stdexcept>

#include "../host_memory.h"
#include "../python_lock.h"
#include "../target.h"
#include "mindspore_extra.h"

namespace polyop {

namespace {

int32_t row_of(const char* name) {
  for (size_t row = 0; row < dtypes().size(); ++row) {
    if (dtypes()[row].name == name) return static_cast<int32_t>(row);
  }
  return -1;
}

// Imports the host: a process that has only loaded a graph from a file has this library, and not polyop.
void import_host() {
  const PyGILState_STATE state = ensure_lock();
  PyObject* module = taking_lock([&] { return PyImport_ImportModule("polyop.hosts.mindspore"); });
  if (module == nullptr) PyErr_Print();
  Py_XDECREF(module);
  PyGILState_Release(state);
  if (!Target::has_resolver()) throw std::runtime_error("polyop cannot be imported");
}

}  // namespace

void* mindspore_target(const char* text, size_t length) {
  if (!Target::has_resolver()) import_host();
  return &Target::of({text, length});
}

void mindspore_run(void* target, size_t inputs, int count, void** params, const int* ndims, int64_t** shapes,
                   const char** dtypes) {
  static const int64_t no_dims = 0;
  Views views;
  for (int i = 0; i < count; ++i) {
    const int32_t row = row_of(dtypes[i]);
    if (row < 0) throw std::runtime_error(std::string("polyop: no kernel takes dtype ") + dtypes[i]);
    views.push(
        {params[i], ndims[i] == 0 ? &no_dims : shapes[i], ndims[i], row, kCpu, 0, nullptr, false, false});
  }
  HostMemory scratch;
  const std::string error = static_cast<Target*>(target)->run(views, inputs, nullptr, scratch);
  if (!error.empty()) throw std::runtime_error(error);
}

void mindspore_shapes(const char* text, const char* dtypes, size_t inputs, const int* ndims, int64_t** shapes,
                      void (*add)(void* outputs, const int64_t* shape, size_t ndim), void* outputs) {
  const PyGILState_STATE state = ensure_lock();
  PyObject* given = PyList_New(0);
  for (size_t i = 0; given != nullptr && i < inputs; ++i) {
    PyObject* shape = PyList_New(0);
    for (int k = 0; shape != nullptr && k < ndims[i]; ++k) {
      PyObject* size = PyLong_FromLongLong(shapes[i][k]);
      if (size == nullptr || PyList_Append(shape, size) < 0) Py_CLEAR(shape);
      Py_XDECREF(size);
    }
    if (shape == nullptr || PyList_Append(given, shape) < 0) Py_CLEAR(given);
    Py_XDECREF(shape);
  }
  PyObject* module =
      taking_lock([&] { return PyImport_ImportModule("polyop.hosts.mindspore.unknown_sizes"); });
  PyObject* answer = module == nullptr ? nullptr : taking_lock([&] {
    return PyObject_CallMethod(module, "asked_by_mindspore", "ssO", text, dtypes, given);
  });
  // a list of shapes, or the text of an error
  std::string error = "polyop: the shapes of an operator could not be asked for";
  const char* said = answer != nullptr && PyUnicode_Check(answer) ? PyUnicode_AsUTF8(answer) : nullptr;
  if (said != nullptr) error = said;  // null: a path in it is no valid text
  if (answer != nullptr && PyList_Check(answer)) {
    error.clear();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(answer); ++i) {
      PyObject* shape = PyList_GET_ITEM(answer, i);
      Small<int64_t, 16> sizes;
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); ++k) {
        sizes.push(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k)));
      }
      add(outputs, sizes.data(), sizes.size());
    }
  }
  PyErr_Clear();
  Py_XDECREF(answer);
  Py_XDECREF(module);
  Py_XDECREF(given);
  PyGILState_Release(state);
  if (!error.empty()) throw std::runtime_error(error);
}

}  // namespace polyop
