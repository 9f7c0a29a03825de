#include "call.h"

#include <structmember.h>

#include <new>
#include <string>

#include "eager.h"
#include "execute.h"
#include "hosts/mindspore.h"
#include "module/run.h"
#include "planned.h"
#include "python_lock.h"

namespace polyop {

namespace {

CallObject* as_call(PyObject* self) { return reinterpret_cast<CallObject*>(self); }

PyObject *slow_name, *to_save_name, *warn_name;

PyObject* slow(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject* method = PyObject_GetAttr(self, slow_name);
  if (method == nullptr) return nullptr;
  PyObject* result =
      taking_lock([&] { return PyObject_Vectorcall(method, args, static_cast<size_t>(count), names); });
  Py_DECREF(method);
  return result;
}

// Whether a name has another value than `watched` says: a tuple of (dict or cell, name, value).
bool changed(PyObject* watched) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(watched); ++i) {
    PyObject* row = PyTuple_GET_ITEM(watched, i);
    PyObject *place = PyTuple_GET_ITEM(row, 0), *value = PyTuple_GET_ITEM(row, 2);
    PyObject* now =
        PyCell_Check(place) ? PyCell_GET(place) : PyDict_GetItemWithError(place, PyTuple_GET_ITEM(row, 1));
    if (now != value) return true;
  }
  return false;
}

// Calls `_warn_of_changes` if a name has another value; false with a Python error if that raises.
bool warn_of_changes(PyObject* object) {
  CallObject* self = as_call(object);
  if (self->watched == nullptr || !PyTuple_CheckExact(self->watched) || !changed(self->watched)) return true;
  PyErr_Clear();
  PyObject* result = taking_lock([&] { return PyObject_CallMethodNoArgs(object, warn_name); });
  Py_XDECREF(result);
  return result != nullptr;
}

// The guarded call. Sets `declined`, without a Python error, when the slow path must make the call.
PyObject* fast(CallObject* self, PyObject* const* args, Py_ssize_t count, Pack pack, bool* declined) {
  Call call;
  call.guarded = true;
  switch (self->plain == 0 ? GatherResult::kSlow : gather(self, args, count, &call)) {
    case GatherResult::kReady:
      return execute_prepared(self, &call, {pack}, declined);
    case GatherResult::kDifferentiate:
      if (self->differentiate != nullptr && self->differentiate != Py_None) {
        PyObject* function = planned_function(self, call);
        if (function == nullptr) Py_INCREF(function = self->differentiate);  // it may be replaced meanwhile
        PyObject* result = taking_lock(
            [&] { return PyObject_Vectorcall(function, args, static_cast<size_t>(count), nullptr); });
        Py_DECREF(function);
        return result;
      }
      break;
    case GatherResult::kSlow:
      break;
  }
  *declined = true;
  return nullptr;
}

// Runs `call` and turns std::bad_alloc into MemoryError. It is the only C++ exception that can get here, and
// none may reach Python's frames.
template <typename F>
PyObject* catching_bad_alloc(F call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* vectorcall(PyObject* object, PyObject* const* args, size_t flagged, PyObject* names) {
  CallObject* self = as_call(object);
  const Py_ssize_t count = PyVectorcall_NARGS(flagged);
  if (!warn_of_changes(object)) return nullptr;
  if (names != nullptr) return slow(object, args, count, names);
  bool declined = false;
  PyObject* result =
      catching_bad_alloc([&] { return fast(self, args, count, static_cast<Pack>(self->pack), &declined); });
  if (declined && mindspore_call != nullptr) {
    result = catching_bad_alloc([&] { return mindspore_call(object, args, count, &declined); });
  }
  if (declined) {
    result = catching_bad_alloc([&] { return call_eager(self, args, count, &declined); });
  }
  return declined ? slow(object, args, count, nullptr) : result;
}

// How outputs are returned to the framework's dispatcher, which wants a list where the schema has one.
Pack inner_pack(const CallObject* self) { return static_cast<Pack>(self->inner_pack); }

// fast(*args): the guarded call. NotImplemented when the slow path must make the call.
PyObject* fast_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  bool declined = false;
  PyObject* result = catching_bad_alloc(
      [&] { return fast(as_call(object), args, count, inner_pack(as_call(object)), &declined); });
  if (declined) Py_RETURN_NOTIMPLEMENTED;
  return result;
}

// Makes a call again that was declined because another thread changed the operator while a kernel for it was
// prepared: a kernel of a name that was defined again stays a kernel for these arguments.
template <typename Make>
PyObject* while_defined(CallObject* self, bool* declined, Make make) {
  for (;;) {
    const unsigned definition = self->definition;
    *declined = false;
    PyObject* result = catching_bad_alloc(make);
    if (!*declined || definition == self->definition) return result;
  }
}

// launch(*args): runs below the framework's dispatcher. NotImplemented when an argument is not dense or the
// operator has no native kernel for the arguments.
PyObject* launch_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  bool declined = false;
  PyObject* result = while_defined(as_call(object), &declined, [&]() -> PyObject* {
    Call call;
    declined = gather(as_call(object), args, count, &call) != GatherResult::kReady;
    const RunMode mode{inner_pack(as_call(object))};
    return declined ? nullptr : execute_prepared(as_call(object), &call, mode, &declined);
  });
  if (declined) Py_RETURN_NOTIMPLEMENTED;
  return result;
}

// forward(ctx, *tensors): the forward of an autograd.Function whose gradient rule reads only the inputs.
PyObject* forward_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  PyObject* inputs = PyTuple_New(count - 1);
  if (inputs == nullptr) return nullptr;
  for (Py_ssize_t i = 1; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(inputs, i - 1, args[i]);
  }
  const int set = PyObject_SetAttr(args[0], to_save_name, inputs);  // what save_for_backward() does
  Py_DECREF(inputs);
  return set < 0 ? nullptr : launch_method(object, args + 1, count - 1);
}

// record(ctx, *args): runs a module's function and records its gradient. NotImplemented like launch(), and
// when the call has taught the operator which arguments are written: the host looks at them before it makes
// the call again.
PyObject* record_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  bool declined = false;
  PyObject* result = catching_bad_alloc([&]() -> PyObject* {
    Call call;
    declined = count < 1 || gather(as_call(object), args + 1, count - 1, &call) != GatherResult::kReady;
    return declined ? nullptr : execute_prepared(as_call(object), &call, {Pack::kPlain, args[0]}, &declined);
  });
  if (declined) Py_RETURN_NOTIMPLEMENTED;
  return result;
}

// record_forward(ctx, *tensors): the forward of the autograd.Function of a module's function. Python handles
// the unusual: `ctx.forward_slowly(ctx, *tensors)` when record() declines, `ctx.settle(ctx, output)` when
// there are several outputs or some were marked.
PyObject* record_forward_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  PyObject* output = record_method(object, args, count);
  if (output == nullptr) return nullptr;
  if (output == Py_NotImplemented) {
    Py_DECREF(output);
    PyObject* slowly = PyObject_GetAttrString(args[0], "forward_slowly");
    if (slowly == nullptr) return nullptr;
    PyObject* result =
        taking_lock([&] { return PyObject_Vectorcall(slowly, args, static_cast<size_t>(count), nullptr); });
    Py_DECREF(slowly);
    return result;
  }
  if (!PyTuple_CheckExact(output) && !module::was_marked()) return output;
  PyObject* settled =
      taking_lock([&] { return PyObject_CallMethod(args[0], "settle", "OO", args[0], output); });
  Py_DECREF(output);
  return settled;
}

bool is_complex(const View& view) {
  return view.dtype >= 0 && dtypes()[static_cast<size_t>(view.dtype)].dlpack_code == 5;
}

// same_shapes(gradients, inputs): whether each gradient is None or dense, with its input's shape, and real if
// its input is.
PyObject* same_shapes_method(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyTuple_CheckExact(args[0]) || !PyTuple_CheckExact(args[1]) ||
      PyTuple_GET_SIZE(args[0]) != PyTuple_GET_SIZE(args[1])) {
    Py_RETURN_FALSE;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
    PyObject *gradient = PyTuple_GET_ITEM(args[0], i), *input = PyTuple_GET_ITEM(args[1], i);
    if (gradient == Py_None) continue;
    const Host* host = host_of(Py_TYPE(gradient));
    View a{}, b{};
    if (host == nullptr || host != host_of(Py_TYPE(input)) ||
        host->borrow(gradient, false, false, &a) != BorrowResult::kDense ||
        host->borrow(input, false, false, &b) != BorrowResult::kDense || a.ndim != b.ndim ||
        is_complex(a) > is_complex(b)) {
      Py_RETURN_FALSE;
    }
    for (int32_t d = 0; d < a.ndim; ++d) {
      if (a.shape[d] != b.shape[d]) Py_RETURN_FALSE;
    }
  }
  Py_RETURN_TRUE;
}

PyObject* forget_method(PyObject* object, PyObject*) {
  ++as_call(object)->generation;
  as_call(object)->cache->clear();
  as_call(object)->plans->clear();
  Py_RETURN_NONE;
}

PyObject* prepared_method(PyObject* object, PyObject*) {
  return PyLong_FromSize_t(as_call(object)->cache->size());
}

// decides(positions): the values of these arguments decide something, so they are parts of the key from now
// on.
PyObject* decides_method(PyObject* object, PyObject* positions) {
  CallObject* self = as_call(object);
  if (!PyTuple_CheckExact(positions)) {
    PyErr_SetString(PyExc_TypeError, "needs a tuple of positions");
    return nullptr;
  }
  std::string letters = static_cast<const char*>(PyUnicode_DATA(self->kinds));
  bool changed = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); ++i) {
    const size_t at = PyLong_AsSize_t(PyTuple_GET_ITEM(positions, i));
    if (PyErr_Occurred()) return nullptr;
    if (at >= letters.size() || (letters[at] != 'f' && letters[at] != 'i')) continue;
    letters[at] = 'a';
    changed = true;
  }
  if (!changed) Py_RETURN_NONE;
  PyObject* kinds = PyUnicode_FromStringAndSize(letters.data(), static_cast<Py_ssize_t>(letters.size()));
  if (kinds == nullptr) return nullptr;
  Py_XSETREF(self->kinds, kinds);
  return forget_method(object, nullptr);
}

// configure(kinds, names, defaults, positional, missing, plain, pack, inner_pack, module)
PyObject* configure_method(PyObject* object, PyObject* args) {
  CallObject* self = as_call(object);
  PyObject *kinds = nullptr, *names = nullptr, *defaults = nullptr, *missing = nullptr;
  Py_ssize_t positional = 0;
  int plain = 0, pack = 0, inner_pack = 0, module = 0;
  if (!PyArg_ParseTuple(args, "UO!O!nOpiip", &kinds, &PyTuple_Type, &names, &PyTuple_Type, &defaults,
                        &positional, &missing, &plain, &pack, &inner_pack, &module)) {
    return nullptr;
  }
  if (!PyUnicode_IS_COMPACT_ASCII(kinds) || PyUnicode_GET_LENGTH(kinds) != PyTuple_GET_SIZE(defaults) ||
      PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(defaults)) {
    PyErr_SetString(PyExc_ValueError, "kinds needs one ASCII letter per default, and names one name");
    return nullptr;
  }
  Py_INCREF(kinds);
  Py_XSETREF(self->kinds, kinds);
  Py_INCREF(names);
  Py_XSETREF(self->names, names);
  Py_INCREF(defaults);
  Py_XSETREF(self->defaults, defaults);
  Py_INCREF(missing);
  Py_XSETREF(self->missing, missing);
  self->positional = positional;
  ++self->generation;
  ++self->definition;
  self->plain = plain != 0;
  self->pack = static_cast<char>(pack);
  self->inner_pack = static_cast<char>(inner_pack);
  self->module = module != 0;
  self->cache->clear();
  self->plans->clear();
  Py_RETURN_NONE;
}

PyObject* new_call(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* object = type->tp_alloc(type, 0);
  if (object == nullptr) return nullptr;
  CallObject* self = as_call(object);
  self->vectorcall = vectorcall;
  self->cache = new Cache();
  self->plans = new Cache();
  self->kinds = PyUnicode_FromString("");
  self->names = PyTuple_New(0);
  self->defaults = PyTuple_New(0);
  if (self->kinds == nullptr || self->names == nullptr || self->defaults == nullptr) {
    Py_DECREF(object);
    return nullptr;
  }
  return object;
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  CallObject* self = as_call(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->differentiate);
  Py_VISIT(self->watched);
  Py_VISIT(self->defaults);
  for (Cache* cache : {self->cache, self->plans}) {
    const int stop = cache == nullptr ? 0 : cache->visit(visit, arg);
    if (stop != 0) return stop;
  }
  return 0;
}

int clear(PyObject* object) {
  CallObject* self = as_call(object);
  Py_CLEAR(self->differentiate);
  Py_CLEAR(self->watched);
  if (self->cache != nullptr) self->cache->clear();
  if (self->plans != nullptr) self->plans->clear();
  return 0;
}

void dealloc(PyObject* object) {
  CallObject* self = as_call(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  clear(object);
  Py_CLEAR(self->kinds);
  Py_CLEAR(self->names);
  Py_CLEAR(self->defaults);
  Py_CLEAR(self->missing);
  delete self->cache;
  delete self->plans;
  type->tp_free(object);
  Py_DECREF(type);
}

// rearm(cls): restores the native call slots of a Python subclass that has a __call__ (torch.compile reads
// it). Python replaces the slots whenever __call__ is defined or assigned.
PyObject* rearm_method(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls)) {
    PyErr_SetString(PyExc_TypeError, "needs a class");
    return nullptr;
  }
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  type->tp_call = PyVectorcall_Call;
  type->tp_vectorcall_offset = offsetof(CallObject, vectorcall);
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  Py_RETURN_NONE;
}

template <typename F>
PyCFunction as_function(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"launch", as_function(launch_method), METH_FASTCALL,
     "Run below the dispatcher; NotImplemented if not dense."},
    {"fast", as_function(fast_method), METH_FASTCALL, "Make the guarded call, or return NotImplemented."},
    {"forward", as_function(forward_method), METH_FASTCALL,
     "launch() for an autograd.Function, saving the inputs."},
    {"record", as_function(record_method), METH_FASTCALL, "Run a module's function, recording its gradient."},
    {"record_forward", as_function(record_forward_method), METH_FASTCALL,
     "record() for an autograd.Function."},
    {"plan_token", plan_token_method, METH_NOARGS, "Return what plan_eager() wants."},
    {"plan_eager", as_function(plan_eager_method), METH_FASTCALL,
     "Remember the compiled program of calls like this one."},
    {"plan_gradient", as_function(plan_gradient_method), METH_FASTCALL,
     "Remember the plan of a gradient for calls like this one."},
    {"planned_forward", as_function(planned_forward_method), METH_FASTCALL,
     "The forward of an autograd.Function, by its plan."},
    {"same_shapes", as_function(same_shapes_method), METH_FASTCALL | METH_STATIC,
     "Compare gradients with inputs."},
    {"forget", forget_method, METH_NOARGS, "Drop all prepared kernels."},
    {"prepared", prepared_method, METH_NOARGS, "Return the number of prepared kernels."},
    {"decides", decides_method, METH_O, "Make the values of arguments parts of the key."},
    {"configure", configure_method, METH_VARARGS, "Set the parts of the schema that a call reads."},
    {"rearm", rearm_method, METH_O | METH_STATIC, "Restore the native call slots of a subclass."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallObject, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CallObject, weakrefs), READONLY, nullptr},
    {"differentiate", T_OBJECT, offsetof(CallObject, differentiate), 0,
     "Called when gradients are required."},
    {"watched", T_OBJECT, offsetof(CallObject, watched), 0,
     "Where the values are found that a kernel was defined with: (dict or cell, name, value), or None."},
    {"reads_rows", T_BOOL, offsetof(CallObject, reads_rows), 0,
     "Whether a kernel can be compiled for tensors in rows."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_call)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {
    "polyop._core.Call", sizeof(CallObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

PyObject* make_call_type(Unwrap unwrap) {
  start_execute(unwrap);
  start_planned();
  slow_name = PyUnicode_InternFromString("_slow");
  to_save_name = PyUnicode_InternFromString("to_save");
  warn_name = PyUnicode_InternFromString("_warn_of_changes");
  return PyType_FromSpec(&spec);
}

}  // namespace polyop
