#include "ambient.h"

#include <stdexcept>

#include "../python_lock.h"
#include "objects.h"
#include "polyop/python_abi.h"

namespace polyop::module {

namespace {

// The frame of this thread outside of polyop's own calls. It lasts as long as the thread. New tensors are
// allocated on the device of the last borrowed tensor.
Frame& ambient_frame(const Host* host, const View& view) {
  static thread_local Frame* frame = nullptr;
  if (frame == nullptr) frame = new Frame(Frame::kAmbient);
  frame->host = host;
  frame->device = view;
  return *frame;
}

// The host of an object. A host whose framework was imported since is started first.
const Host* find_host(PyObject* object) {
  const Host* host = host_of(Py_TYPE(object));
  if (host != nullptr) return host;
  PyObject* hosts = taking_lock([&] { return PyImport_ImportModule("polyop.call.host"); });
  PyObject* result = hosts == nullptr
                         ? nullptr
                         : taking_lock([&] { return PyObject_CallMethod(hosts, "host_of", "O", object); });
  Py_XDECREF(hosts);
  Py_XDECREF(result);
  PyErr_Clear();
  return host_of(Py_TYPE(object));
}

int is_tensor(PyObject* object) { return find_host(object) != nullptr ? 1 : 0; }

int borrow(PyObject* object, polyop_tensor** result) {
  const Host* host = find_host(object);
  View view{};
  const BorrowResult status =
      host == nullptr ? BorrowResult::kOther : host->borrow(object, true, true, &view);
  if (status == BorrowResult::kDifferentiated) {
    set_failure(
        "a tensor requires a gradient, but a module that is bound with pybind11 itself records none: "
        "call it under torch.no_grad(), or leave pybind11 out and use polyop's PYBIND11_MODULE");
    return 1;
  }
  if (status == BorrowResult::kOther) {
    set_failure("this tensor cannot be passed to a module as it is; make it dense, on the CPU");
    return 1;
  }
  Frame& frame = ambient_frame(host, view);
  Ref tensor = frame.adopt(borrow_object(host, object, view));
  Py_INCREF(object);
  tensor->own.owned = true;
  *result = tensor.take();
  return 0;
}

PyObject* wrap(polyop_tensor* tensor) {
  Tensor* self = as_tensor(tensor);
  const bool whole = self->base == nullptr && self->own.object != nullptr;
  if (whole) {  // the object itself, also where it was only borrowed
    Py_INCREF(self->own.object);
    return self->own.object;
  }
  try {
    return to_object(Frame::current(), Ref::share(self), {}, false);
  } catch (const std::exception& problem) {
    return raise(problem.what());
  }
}

const polyop_python_functions table = {
    POLYOP_MODULE_VERSION, sizeof(polyop_python_functions), nullptr, is_tensor, borrow, wrap};

}  // namespace

PyObject* python_functions() {
  static polyop_python_functions filled = table;
  filled.module = module_functions();
  return PyCapsule_New(&filled, nullptr, nullptr);
}

}  // namespace polyop::module
