// The functions of polyop._core for modules: reading a module's table, deriving shapes, running Backward.
#include <dlfcn.h>

#include <stdexcept>

#include "../python_lock.h"
#include "objects.h"
#include "provider.h"
#include "run.h"

namespace polyop::module {

namespace {

// module_table(entry) -> (version, name, problem, ((address, name, schema, doc), ...))
PyObject* module_table(PyObject*, PyObject* address) {
  auto entry = reinterpret_cast<polyop_module_entry>(PyLong_AsSize_t(address));
  if (PyErr_Occurred()) return nullptr;
  const polyop_module_table* table = entry(module_functions());
  const bool supported = table->version == POLYOP_MODULE_VERSION;
  const size_t count = supported ? table->count : 0;
  PyObject* rows = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; rows != nullptr && i < count; ++i) {
    const polyop_function& function = table->functions[i];
    PyObject* row = Py_BuildValue("(nsss)", reinterpret_cast<Py_ssize_t>(&function), function.name,
                                  function.schema, function.doc);
    if (row == nullptr) {
      Py_CLEAR(rows);
    } else {
      PyTuple_SET_ITEM(rows, static_cast<Py_ssize_t>(i), row);
    }
  }
  if (rows == nullptr) return nullptr;
  return Py_BuildValue("(iszN)", static_cast<int>(table->version), supported ? table->name : "",
                       supported ? table->problem : nullptr, rows);
}

PyObject* layout_of(const Layout& layout) {
  if (layout.row < 0) Py_RETURN_NONE;
  PyObject* shape = PyTuple_New(static_cast<Py_ssize_t>(layout.shape.size()));
  for (size_t i = 0; shape != nullptr && i < layout.shape.size(); ++i) {
    PyTuple_SET_ITEM(shape, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(layout.shape[i]));
  }
  return Py_BuildValue("(Ni)", shape, static_cast<int>(layout.row));
}

template <typename T, typename F>
PyObject* tuple_of(const std::vector<T>& items, F convert) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
  for (size_t i = 0; tuple != nullptr && i < items.size(); ++i) {
    PyObject* object = convert(items[i]);
    if (object == nullptr) {
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), object);
    }
  }
  return tuple;
}

PyObject* tensor_row(const Ref& tensor) {
  if (!tensor) Py_RETURN_NONE;
  return Py_BuildValue("(Ni)", layout_of(Layout::of(*tensor.get())), tensor->id);
}

// A tensor without data, from ((size, ...), row) or None.
Ref derived(Frame& frame, PyObject* spec) {
  if (spec == Py_None) return Ref();
  PyObject* shape = nullptr;
  int row = 0;
  if (!PyArg_ParseTuple(spec, "O!i", &PyTuple_Type, &shape, &row))
    throw std::runtime_error("a spec must be a shape and a row of the dtypes");
  std::vector<int64_t> sizes;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) {
    sizes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i)));
  }
  return frame.empty(row, static_cast<int32_t>(sizes.size()), sizes.data());
}

View on_device(int type) {
  View device{};
  device.device = type;
  return device;
}

// derive(function, kinds, values, specs, requires_gradient, device): call a function on tensors without data.
// -> (form, outputs, written, saved, sources, tape, steps, whether Forwards were recorded). Raises
// RuntimeError with the author's text.
PyObject* derive(PyObject*, PyObject* args) {
  Py_ssize_t address = 0;
  const char* kinds = nullptr;
  PyObject *values = nullptr, *specs = nullptr, *requires_gradient = nullptr;
  int device = kCpu;
  if (!PyArg_ParseTuple(args, "nsO!O!O!i", &address, &kinds, &PyTuple_Type, &values, &PyTuple_Type, &specs,
                        &PyTuple_Type, &requires_gradient, &device)) {
    return nullptr;
  }
  auto function = Function::make(reinterpret_cast<const polyop_function*>(address), kinds, values);
  if (function == nullptr) return nullptr;
  Trace trace;
  Frame frame(nullptr, on_device(device));
  frame.deriving = frame.recording = true;
  frame.trace = &trace;
  try {
    std::vector<Ref> inputs;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(specs); ++i) {
      Ref one = derived(frame, PyTuple_GET_ITEM(specs, i));
      if (one) {
        one->argument = static_cast<int>(i);
        if (PyTuple_GET_ITEM(requires_gradient, i) == Py_True) {
          one->needs_gradient = 1;
          one->source = {-1, one->argument, false};
        }
      }
      inputs.push_back(std::move(one));
    }
    Result result = call(*function, inputs);
    Py_CLEAR(result.value);
    PyObject* outputs = tuple_of(result.tensors, tensor_row);
    PyObject* written = tuple_of(
        inputs, [](const Ref& input) { return PyBool_FromLong(input && input->storage->written ? 1 : 0); });
    auto tape = std::make_unique<Tape>(frame, inputs, result.tensors);
    PyObject* saved = tuple_of(tape->saved, [](const Saved& one) {
      return Py_BuildValue("(iiNi)", static_cast<int>(one.kind), one.index, layout_of(one.layout),
                           one.tensor ? one.tensor->id : -1);
    });
    PyObject* sources = tuple_of(tape->results, [](const Edge& edge) {
      return Py_BuildValue("(ii)", edge.requires_gradient ? 1 : 0,
                           edge.source.exists() && !edge.source.lost ? 1 : 0);
    });
    for (Saved& one : tape->saved) one.tensor = Ref();
    const bool recorded = !tape->nodes.empty();
    PyObject* capsule = to_capsule(std::move(tape));
    char form[2] = {result.form, 0};
    return Py_BuildValue("(sNNNNNNi)", form, outputs, written, saved, sources, capsule, trace.to_python(),
                         recorded ? 1 : 0);
  } catch (const std::exception& problem) {
    return raise(problem.what());
  }
}

Tape* tape_of(PyObject* capsule) { return static_cast<Tape*>(PyCapsule_GetPointer(capsule, "polyop.tape")); }

// derive_backward(tape, gradients, device): runs Backward on tensors without data.
// -> (ids of the saved tensors, of the gradients, of the results, steps)
PyObject* derive_backward(PyObject*, PyObject* args) {
  PyObject *capsule = nullptr, *specs = nullptr;
  int device = kCpu;
  if (!PyArg_ParseTuple(args, "OO!i", &capsule, &PyTuple_Type, &specs, &device)) return nullptr;
  Tape* tape = tape_of(capsule);
  if (tape == nullptr) return nullptr;
  Trace trace;
  Frame frame(nullptr, on_device(device));
  frame.deriving = true;
  frame.trace = &trace;
  try {
    std::vector<Ref> saved, gradients;
    for (const Saved& one : tape->saved) {
      saved.push_back(frame.empty(one.layout.row, static_cast<int32_t>(one.layout.shape.size()),
                                  one.layout.shape.data()));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(specs); ++i) {
      gradients.push_back(derived(frame, PyTuple_GET_ITEM(specs, i)));
    }
    const std::vector<Ref> results = tape->backward(frame, saved, gradients);
    return Py_BuildValue("(NNNN)", tuple_of(saved, tensor_row), tuple_of(gradients, tensor_row),
                         tuple_of(results, tensor_row), trace.to_python());
  } catch (const std::exception& problem) {
    return raise(problem.what());
  }
}

// Makes tensors over these objects. False when one cannot be borrowed as it is.
bool borrow_all(Frame& frame, PyObject* const* objects, Py_ssize_t count, std::vector<Ref>* tensors,
                Objects* borrowed) {
  tensors->reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* object = objects[i];
    borrowed->push(object);
    if (object == Py_None) {
      tensors->emplace_back();
      continue;
    }
    const Host* host = host_of(Py_TYPE(object));
    View view{};
    if (host == nullptr || host->borrow(object, false, true, &view) == ::polyop::BorrowResult::kOther)
      return false;
    if (frame.host == nullptr) {
      frame.host = host;
      frame.device = view;
    }
    Ref tensor = frame.adopt(borrow_object(host, object, view));
    tensor->argument = static_cast<int>(borrowed->size()) - 1;
    tensors->push_back(std::move(tensor));
  }
  return true;
}

// Returns one gradient or None per tensor of the call. NotImplemented when a tensor must be made dense first.
PyObject* run_tape(PyObject* capsule, PyObject* saved_objects, PyObject* const* gradient_objects,
                   Py_ssize_t count) {
  Tape* tape = tape_of(capsule);
  if (tape == nullptr) return nullptr;
  Frame frame(nullptr, View{});
  try {
    Objects objects;
    std::vector<Ref> gradients, saved;
    if (!borrow_all(frame, gradient_objects, count, &gradients, &objects) ||
        !borrow_all(frame, PySequence_Fast_ITEMS(saved_objects), PyTuple_GET_SIZE(saved_objects), &saved,
                    &objects)) {
      Py_RETURN_NOTIMPLEMENTED;
    }
    PyObject* results = to_objects(frame, tape->backward(frame, saved, gradients), objects, true);
    keep_objects(gradients);
    keep_objects(saved);
    return results;
  } catch (const std::exception& problem) {
    return raise(problem.what());
  }
}

// backward(tape, saved, gradients): run_tape(). Raises RuntimeError with the author's text.
PyObject* backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3 || !PyTuple_Check(args[1]) || !PyTuple_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "needs a tape and two tuples");
    return nullptr;
  }
  return run_tape(args[0], args[1], PySequence_Fast_ITEMS(args[2]), PyTuple_GET_SIZE(args[2]));
}

// pull(ctx, *gradients): the backward of an autograd.Function whose forward was record_forward(). Python
// makes unusual calls, and those that failed, again: `ctx.backward_slowly(ctx, *gradients)`.
PyObject* pull(PyObject*, PyObject* const* args, Py_ssize_t count) {
  static PyObject* const saved_name = PyUnicode_InternFromString("saved_tensors");
  static PyObject* const tape_name = PyUnicode_InternFromString("tape");
  static PyObject* const slow_name = PyUnicode_InternFromString("backward_slowly");
  if (!torch_host.differentiating()) {
    PyObject* saved = PyObject_GetAttr(args[0], saved_name);
    if (saved == nullptr) return nullptr;  // freed already, or changed in place
    PyObject* tape = PyObject_GetAttr(args[0], tape_name);
    PyObject* gradients = nullptr;
    if (tape != nullptr && PyTuple_Check(saved)) gradients = run_tape(tape, saved, args + 1, count - 1);
    Py_XDECREF(tape);
    Py_DECREF(saved);
    if (gradients != nullptr && gradients != Py_NotImplemented) return gradients;
    Py_XDECREF(gradients);
    PyErr_Clear();
  }
  PyObject* slowly = PyObject_GetAttr(args[0], slow_name);
  if (slowly == nullptr) return nullptr;
  PyObject* result =
      taking_lock([&] { return PyObject_Vectorcall(slowly, args, static_cast<size_t>(count), nullptr); });
  Py_DECREF(slowly);
  return result;
}

// tape_call(tape) -> (layouts of the call's tensors, whether each requires a gradient, number of outputs)
PyObject* tape_call(PyObject*, PyObject* capsule) {
  Tape* tape = tape_of(capsule);
  if (tape == nullptr) return nullptr;
  return Py_BuildValue(
      "(NNn)", tuple_of(tape->arguments, layout_of),
      tuple_of(tape->requires_gradient, [](bool flag) { return PyBool_FromLong(flag ? 1 : 0); }),
      static_cast<Py_ssize_t>(tape->results.size()));
}

// connect(launch, loops, writes): see provider.h.
PyObject* connect(PyObject*, PyObject* args) {
  PyObject *launch = nullptr, *loops = nullptr, *writes = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O", &launch, &PyDict_Type, &loops, &writes)) return nullptr;
  if (!set_provider(launch, loops, writes)) return nullptr;
  Py_RETURN_NONE;
}

// call_plain(function, kinds, values, like): calls a function that takes no tensors. The tensors that it
// creates belong to the host of `like` and are on its device.
PyObject* call_plain(PyObject*, PyObject* args) {
  Py_ssize_t address = 0;
  const char* kinds = nullptr;
  PyObject *values = nullptr, *like = nullptr;
  if (!PyArg_ParseTuple(args, "nsO!O", &address, &kinds, &PyTuple_Type, &values, &like)) return nullptr;
  auto function = Function::make(reinterpret_cast<const polyop_function*>(address), kinds, values);
  const Host* host = host_of(Py_TYPE(like));
  View view{};
  if (function == nullptr) return nullptr;
  if (host == nullptr || host->borrow(like, false, false, &view) == ::polyop::BorrowResult::kOther) {
    return raise("the example tensor cannot be borrowed");
  }
  Frame frame(host, view);
  try {
    Result result = call(*function, {});
    if (result.form == 'v') return result.value;
    PyObject* outputs = to_objects(frame, result.tensors, {}, false);
    if (outputs == nullptr || result.form == 'l') return outputs;
    PyObject* one = result.form == 'n' ? Py_None : PyTuple_GET_ITEM(outputs, 0);
    Py_INCREF(one);
    Py_DECREF(outputs);
    return one;
  } catch (const std::exception& problem) {
    return raise(problem.what());
  }
}

template <typename F>
PyCFunction as_function(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

PyMethodDef methods[] = {
    {"module_table", module_table, METH_O, "Return the table of the module with this entry."},
    {"derive", derive, METH_VARARGS, "Call a module's function on tensors without data."},
    {"derive_backward", derive_backward, METH_VARARGS, "Run the Backward of a tape on tensors without data."},
    {"backward", as_function(backward), METH_FASTCALL, "Run the Backward of a tape."},
    {"pull", as_function(pull), METH_FASTCALL, "backward() for an autograd.Function."},
    {"tape_call", tape_call, METH_O,
     "Return the layouts of a tape's call, which gradients it requires, and its number of outputs."},
    {"connect", connect, METH_VARARGS, "Connect the provider that modules launch."},
    {"call_plain", call_plain, METH_VARARGS, "Call a module's function that takes no tensors."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace polyop::module
