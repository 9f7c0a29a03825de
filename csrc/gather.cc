#include "gather.h"

namespace polyop {

namespace {

const Host* find_host(PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = args[i];
    const bool is_list = PyTuple_CheckExact(value) || PyList_CheckExact(value);
    const Py_ssize_t item_count = is_list ? PySequence_Fast_GET_SIZE(value) : 1;
    for (Py_ssize_t k = 0; k < item_count; ++k) {
      PyObject* item = is_list ? PySequence_Fast_GET_ITEM(value, k) : value;
      const Host* host = host_of(Py_TYPE(item));
      if (host != nullptr) return host;
      if (item != Py_None) break;  // the first item that is not None decides; None is an absent tensor
    }
  }
  return nullptr;
}

}  // namespace

GatherResult gather(CallObject* self, PyObject* const* args, Py_ssize_t count, Call* call) {
  const Py_ssize_t argument_count = PyTuple_GET_SIZE(self->defaults);
  if (count > (call->guarded ? self->positional : argument_count)) return GatherResult::kSlow;
  call->host = find_host(args, count);
  call->strided = self->module != 0;
  call->copies = self->plain != 0;  // not so if the schema writes an argument
  call->find_rows = self->reads_rows != 0;
  if (call->host == nullptr || (call->guarded && !call->host->plain())) return GatherResult::kSlow;
  call->kinds = Py_NewRef(self->kinds);
  const auto* kinds = static_cast<const char*>(PyUnicode_DATA(call->kinds));
  for (Py_ssize_t i = 0; i < argument_count; ++i) {
    PyObject* value = i < count ? args[i] : PyTuple_GET_ITEM(self->defaults, i);
    if (value == self->missing) return GatherResult::kSlow;
    value = call->freeze(value);
    if (value == nullptr) {
      PyErr_Clear();
      return GatherResult::kSlow;
    }
    GatherResult result = GatherResult::kReady;
    if (kinds[i] == 't') {
      result = call->tensor(value);
    } else if (kinds[i] == 'l') {
      result = call->tensors(value);
    } else if (!(kinds[i] != 'a' && call->number(value, kinds[i], PyTuple_GET_ITEM(self->names, i))) &&
               !add_attribute(call->key, value)) {
      result = GatherResult::kSlow;
    }
    if (result != GatherResult::kReady) return result;
  }
  if (!call->has_tensor) return GatherResult::kSlow;
  return call->differentiate ? GatherResult::kDifferentiate : GatherResult::kReady;
}

}  // namespace polyop
