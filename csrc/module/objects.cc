#include "objects.h"

#include <cstring>
#include <stdexcept>

namespace polyop::module {

namespace {

// Whether a tensor is all of its memory, as it was allocated.
bool is_whole(const Tensor& tensor) {
  const View& made = tensor.storage->fresh.view;
  if (tensor.offset != 0 || tensor.contiguous == 0 || tensor.ndim != made.ndim) return false;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] != made.shape[i]) return false;
  }
  return true;
}

Ref copy_of(Frame& frame, const Tensor& tensor) {
  if (tensor.device_type != kCpu) {
    throw std::runtime_error("an output that is a view of another tensor is only copied on the CPU");
  }
  Ref made = frame.empty(tensor.row, tensor.ndim, tensor.shape);
  copy_elements(tensor, *made.get());
  return made;
}

}  // namespace

PyObject* to_object(Frame& frame, Ref tensor, const Objects& arguments, bool same) {
  frame.renew(*tensor.get());
  const Storage* from = tensor->storage;
  if (tensor->argument >= 0 && (same || from->written)) {
    PyObject* object = arguments[static_cast<size_t>(tensor->argument)];
    Py_INCREF(object);
    return object;
  }
  try {
    if (!from->is_fresh || !is_whole(*tensor.get())) tensor = copy_of(frame, *tensor.get());
  } catch (const std::exception& problem) {
    return raise(problem.what());
  }
  Storage* storage = tensor->storage;
  storage->is_fresh = false;
  storage->object = storage->host->finish(&storage->fresh);
  if (storage->object == nullptr) return nullptr;
  Py_INCREF(storage->object);  // the memory lives as long as anybody here knows of it
  storage->owned = true;
  return storage->object;
}

PyObject* to_objects(Frame& frame, const std::vector<Ref>& tensors, const Objects& arguments, bool same) {
  PyObject* all = PyTuple_New(static_cast<Py_ssize_t>(tensors.size()));
  for (size_t i = 0; all != nullptr && i < tensors.size(); ++i) {
    PyObject* one = Py_None;
    if (tensors[i]) {
      one = to_object(frame, tensors[i], arguments, same);
    } else {
      Py_INCREF(one);
    }
    if (one == nullptr) {
      Py_CLEAR(all);
    } else {
      PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), one);
    }
  }
  return all;
}

void keep_objects(const std::vector<Ref>& tensors) {
  for (const Ref& tensor : tensors) {
    if (!tensor) continue;
    Storage* storage = tensor->storage;
    if (tensor->references.load() > 1 && !storage->owned && storage->object != nullptr) {
      Py_INCREF(storage->object);
      storage->owned = true;
    }
  }
}

void destroy_tape(PyObject* capsule) {
  delete static_cast<Tape*>(PyCapsule_GetPointer(capsule, "polyop.tape"));
}

PyObject* to_capsule(std::unique_ptr<Tape> tape) {
  return PyCapsule_New(tape.release(), "polyop.tape", destroy_tape);
}

PyObject* raise(const char* text) {
  if (!PyErr_Occurred()) {
    PyObject* words = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace");
    if (words != nullptr) PyErr_SetObject(PyExc_RuntimeError, words);
    Py_XDECREF(words);
  }
  return nullptr;
}

}  // namespace polyop::module
