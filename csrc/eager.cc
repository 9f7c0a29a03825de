#include "eager.h"

#include <new>

#include "python_lock.h"

namespace polyop {

namespace {

PyTypeObject* array_type;
constexpr size_t kMostPlans = 16;  // of an operator: a program takes over a megabyte, and attributes may vary

using Arrays = Small<PyObject*, 16>;

CallObject* as_call(PyObject* self) { return reinterpret_cast<CallObject*>(self); }

// Reads the arguments of a call. False: it cannot have a plan.
bool read(CallObject* self, PyObject* const* args, Py_ssize_t count, Key* key, Arrays* arrays) {
  if (array_type == nullptr || count > PyTuple_GET_SIZE(self->defaults)) return false;
  const auto* kinds = static_cast<const char*>(PyUnicode_DATA(self->kinds));
  add_tag(*key, Tag::kEnd);  // no key of a prepared kernel begins with it
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->defaults); ++i) {
    PyObject* value = i < count ? args[i] : PyTuple_GET_ITEM(self->defaults, i);
    if (value == self->missing || kinds[i] == 'l') return false;
    if (kinds[i] != 't') {
      if (!add_attribute(*key, value)) return false;
    } else if (Py_TYPE(value) == array_type) {
      add_tag(*key, Tag::kTensor);
      arrays->push(value);
    } else if (value == Py_None) {
      add_tag(*key, Tag::kNone);
    } else {
      return false;
    }
  }
  return arrays->size() > 0;
}

}  // namespace

PyObject* call_eager(CallObject* self, PyObject* const* args, Py_ssize_t count, bool* declined) {
  Key key;
  Arrays arrays;
  PyObject* function = nullptr;
  if (count <= self->positional && self->plans->size() > 0 && read(self, args, count, &key, &arrays)) {
    function = self->plans->find(key).owner;
  }
  *declined = function == nullptr;
  if (function == nullptr) return nullptr;
  Py_INCREF(function);  // the operator may be updated while it runs
  PyObject* result =
      taking_lock([&] { return PyObject_Vectorcall(function, arrays.data(), arrays.size(), nullptr); });
  Py_DECREF(function);
  return result;
}

PyObject* plan_token_method(PyObject* object, PyObject*) {
  return PyLong_FromUnsignedLong(as_call(object)->generation);
}

PyObject* plan_eager_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  CallObject* self = as_call(object);
  if (count < 2 || !PyLong_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "needs a token and a function");
    return nullptr;
  }
  const unsigned long token = PyLong_AsUnsignedLong(args[0]);
  if (token == static_cast<unsigned long>(-1) && PyErr_Occurred()) return nullptr;
  try {
    Key key;
    Arrays arrays;
    if (token == self->generation && self->plans->size() < kMostPlans &&
        read(self, args + 2, count - 2, &key, &arrays) && self->plans->find(key).owner == nullptr) {
      self->plans->add(key, nullptr, args[1]);
    }
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  Py_RETURN_NONE;
}

PyObject* set_eager_type(PyObject*, PyObject* type) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "needs a class");
    return nullptr;
  }
  Py_INCREF(type);
  Py_XSETREF(array_type, reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}

}  // namespace polyop
