#include "objects.h"

#include <cstring>
#include <stdexcept>

namespace polyop::module {

namespace {

// Whether a tensor has all of its memory, with the shape in which it was allocated.
bool is_whole(const Tensor& tensor) {
  const View& allocated = tensor.storage->new_tensor.view;
  if (tensor.offset != 0 || tensor.contiguous == 0 || tensor.ndim != allocated.ndim) return false;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] != allocated.shape[i]) return false;
  }
  return true;
}

Ref copy_of(Frame& frame, const Tensor& tensor) {
  if (tensor.device_type != kCpu) {
    throw std::runtime_error("an output that is a view of another tensor is only copied on the CPU");
  }
  Ref copy = frame.empty(tensor.row, tensor.ndim, tensor.shape);
  copy_elements(tensor, *copy.get());
  return copy;
}

}  // namespace

PyObject* to_object(Frame& frame, Ref tensor, const Objects& arguments, bool same) {
  frame.renew(*tensor.get());
  const Storage* memory = tensor->storage;
  if (tensor->argument >= 0 && (same || memory->written)) {
    PyObject* object = arguments[static_cast<size_t>(tensor->argument)];
    Py_INCREF(object);
    return object;
  }
  try {
    if (!memory->holds_new_tensor || !is_whole(*tensor.get())) tensor = copy_of(frame, *tensor.get());
  } catch (const std::exception& problem) {
    return raise(problem.what());
  }
  Storage* storage = tensor->storage;
  storage->holds_new_tensor = false;
  storage->object = storage->host->finish(&storage->new_tensor);
  if (storage->object == nullptr) return nullptr;
  Py_INCREF(storage->object);  // tensors of the module may still refer to the memory
  storage->owned = true;
  return storage->object;
}

PyObject* to_objects(Frame& frame, const std::vector<Ref>& tensors, const Objects& arguments, bool same) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(tensors.size()));
  for (size_t i = 0; tuple != nullptr && i < tensors.size(); ++i) {
    PyObject* object = Py_None;
    if (tensors[i]) {
      object = to_object(frame, tensors[i], arguments, same);
    } else {
      Py_INCREF(object);
    }
    if (object == nullptr) {
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), object);
    }
  }
  return tuple;
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
    PyObject* message = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace");
    if (message != nullptr) PyErr_SetObject(PyExc_RuntimeError, message);
    Py_XDECREF(message);
  }
  return nullptr;
}

}  // namespace polyop::module
