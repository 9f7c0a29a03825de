#include "gather.h"

namespace polyop {

namespace {

const Host* find_host(PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = args[i];
    const bool list = PyTuple_CheckExact(value) || PyList_CheckExact(value);
    const Py_ssize_t items = list ? PySequence_Fast_GET_SIZE(value) : 1;
    for (Py_ssize_t k = 0; k < items; ++k) {
      PyObject* one = list ? PySequence_Fast_GET_ITEM(value, k) : value;
      const Host* host = host_of(Py_TYPE(one));
      if (host != nullptr) return host;
      if (one != Py_None) break;  // an item may be absent
    }
  }
  return nullptr;
}

}  // namespace

Gathered gather(CallObject* self, PyObject* const* args, Py_ssize_t count, Call* call) {
  const Py_ssize_t arguments = PyTuple_GET_SIZE(self->defaults);
  if (count > (call->guarded ? self->positional : arguments)) return Gathered::kSlow;
  call->host = find_host(args, count);
  call->strided = self->module != 0;
  if (call->host == nullptr || (call->guarded && !call->host->plain())) return Gathered::kSlow;
  const auto* kinds = static_cast<const char*>(PyUnicode_DATA(self->kinds));
  for (Py_ssize_t i = 0; i < arguments; ++i) {
    PyObject* value = i < count ? args[i] : PyTuple_GET_ITEM(self->defaults, i);
    if (value == self->missing) return Gathered::kSlow;
    value = call->fixed(value);
    if (value == nullptr) {
      PyErr_Clear();
      return Gathered::kSlow;
    }
    Gathered how = Gathered::kReady;
    if (kinds[i] == 't') {
      how = call->tensor(value);
    } else if (kinds[i] == 'l') {
      how = call->tensors(value);
    } else if (!add_value(call->key, value)) {
      how = Gathered::kSlow;
    }
    if (how != Gathered::kReady) return how;
  }
  if (!call->any) return Gathered::kSlow;
  return call->differentiate ? Gathered::kDifferentiate : Gathered::kReady;
}

}  // namespace polyop
