#include "run.h"

#include <algorithm>
#include <stdexcept>

#include "../python_lock.h"
#include "objects.h"

namespace polyop::module {

namespace {

PyObject *to_save_name, *tape_name, *dirty_name, *plain_name;
thread_local bool marks_set;  // the last record() set `dirty` or `plain`

// The tensors of one call: the caller's objects, and a module's tensor over each.
struct CallTensors {
  Objects objects;
  std::vector<Ref> tensors;

  // `requires_gradient`: null for no gradients, None to ask the tensors, or a tuple of bools.
  CallTensors(Frame& frame, ::polyop::Call* call, PyObject* requires_gradient) {
    tensors.reserve(call->borrowed.size());
    for (const BorrowedTensor& one : call->borrowed) {
      objects.push(one.object);
      if (one.object == nullptr) {
        tensors.emplace_back();
        continue;
      }
      Ref tensor = frame.adopt(borrow_object(call->host, one.object, one.view));
      tensor->argument = static_cast<int>(objects.size()) - 1;
      const auto number = static_cast<Py_ssize_t>(objects.size()) - 1;
      const bool gradient = requires_gradient == nullptr ? false
                            : requires_gradient == Py_None
                                ? call->host->wants_gradient(one.object)
                                : number < PyTuple_GET_SIZE(requires_gradient) &&
                                      PyTuple_GET_ITEM(requires_gradient, number) == Py_True;
      if (gradient) {
        tensor->needs_gradient = 1;
        tensor->source = {-1, tensor->argument, false};
      }
      tensors.push_back(std::move(tensor));
    }
  }
  ~CallTensors() { keep_objects(tensors); }

  bool wrote_undeclared(const Function& function) const {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool declared = i < function.declared.size() && function.declared[i];
      if (tensors[i] && tensors[i]->storage->written && !declared) return true;
    }
    return false;
  }

  // Has Python refuse a tensor that the schema declares as written if its elements share memory, or if it
  // shares memory with another. False with a Python error. Dense ones alone need no look: they are written
  // where they lie, in the order of the kernel.
  bool check_written(CallObject* self, const Function& function) const {
    std::vector<size_t> written;
    bool dense = true;
    for (size_t i = 0; i < tensors.size() && i < function.declared.size(); ++i) {
      if (!tensors[i] || !function.declared[i]) continue;
      written.push_back(i);
      dense = dense && tensors[i]->contiguous != 0;
    }
    if (dense) return true;
    PyObject* rows = PyList_New(0);
    for (const size_t i : written) {
      const Tensor& one = *tensors[i].get();
      PyObject* row = rows == nullptr ? nullptr
                                      : Py_BuildValue("(sKNNi)", function.names[i].c_str(),
                                                      reinterpret_cast<unsigned long long>(one.data()),
                                                      tuple_of(one.shape, one.ndim),
                                                      tuple_of(one.strides, one.ndim), one.itemsize);
      if (row == nullptr || PyList_Append(rows, row) < 0) Py_CLEAR(rows);
      Py_XDECREF(row);
    }
    PyObject* result = rows == nullptr ? nullptr : taking_lock([&] {
      return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_check_written", "N", rows);
    });
    Py_XDECREF(result);
    return result != nullptr;
  }

  // The objects that were written.
  std::vector<PyObject*> written() const {
    std::vector<PyObject*> objects_written;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] && tensors[i]->storage->written) objects_written.push_back(objects[i]);
    }
    return objects_written;
  }
};

// Raises the error with the author's text, by BoundOperator._failed.
PyObject* raise_failure(CallObject* self, const Launch& launch, const char* text) {
  if (PyErr_Occurred()) return nullptr;
  PyObject* message =
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::char_traits<char>::length(text)), "replace");
  if (message == nullptr) return nullptr;
  PyObject* result = taking_lock([&] {
    return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_failed", "iNOs", 1, message, Py_False,
                               launch.label.c_str());
  });
  Py_XDECREF(result);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, text);
  return nullptr;
}

PyObject* pack_outputs(PyObject* outputs, const Result& result, Pack pack) {
  if (outputs == nullptr || pack == Pack::kTuple) return outputs;
  PyObject* result_object = outputs;
  if (pack == Pack::kList) {
    result_object = PySequence_List(outputs);
  } else if (result.form == 'n' || PyTuple_GET_SIZE(outputs) == 0) {
    result_object = Py_None;
    Py_INCREF(result_object);
  } else if (PyTuple_GET_SIZE(outputs) == 1) {
    result_object = PyTuple_GET_ITEM(outputs, 0);
    Py_INCREF(result_object);
  } else {
    return outputs;
  }
  Py_DECREF(outputs);
  return result_object;
}

PyObject* list_of(const std::vector<PyObject*>& objects) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(objects.size()));
  for (size_t i = 0; list != nullptr && i < objects.size(); ++i) {
    Py_INCREF(objects[i]);
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), objects[i]);
  }
  return list;
}

PyObject* report_written(CallObject* self, const CallTensors& borrowed, PyObject* outputs) {
  if (outputs == nullptr) return nullptr;
  PyObject* written = list_of(borrowed.written());
  PyObject* result = written == nullptr ? nullptr : taking_lock([&] {
    return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_wrote", "N", written);
  });
  if (result == nullptr) Py_CLEAR(outputs);
  Py_XDECREF(result);
  return outputs;
}

// A tuple of the saved tensors as the framework's objects. The tape has none of them any more.
PyObject* saved_objects(Frame& frame, Tape* tape, const CallTensors& borrowed, PyObject* outputs) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(tape->saved.size()));
  for (size_t i = 0; tuple != nullptr && i < tape->saved.size(); ++i) {
    Saved& entry = tape->saved[i];
    PyObject* object = nullptr;
    if (entry.kind == Saved::kOwn) {
      object = to_object(frame, entry.tensor, borrowed.objects, false);
      entry.tensor = Ref();
    } else {
      object = entry.kind == Saved::kInput ? borrowed.objects[static_cast<size_t>(entry.index)]
                                           : PyTuple_GET_ITEM(outputs, entry.index);
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

// The outputs that cannot have a gradient.
std::vector<PyObject*> without_gradient(const Tape& tape, PyObject* outputs) {
  std::vector<PyObject*> objects;
  for (size_t i = 0; i < tape.results.size(); ++i) {
    const Edge& edge = tape.results[i];
    const bool known = edge.source.exists() && !edge.source.lost;
    if (!dtypes()[static_cast<size_t>(edge.layout.row)].is_smooth() || (known && !edge.requires_gradient))
      objects.push_back(PyTuple_GET_ITEM(outputs, static_cast<Py_ssize_t>(i)));
  }
  return objects;
}

// Sets an attribute and steals the reference to `value`. False when that is null or setting fails.
bool set(PyObject* object, PyObject* name, PyObject* value) {
  const bool done = value != nullptr && PyObject_SetAttr(object, name, value) == 0;
  Py_XDECREF(value);
  return done;
}

// Sets an attribute to a list of these objects. Does nothing for none: a missing attribute stands for an
// empty list.
bool set_list(PyObject* object, PyObject* name, const std::vector<PyObject*>& objects) {
  if (objects.empty()) return true;
  marks_set = true;
  return set(object, name, list_of(objects));
}

bool keep_tape(Frame& frame, const CallTensors& borrowed, const Result& result, PyObject* outputs,
               PyObject* ctx) {
  auto tape = std::make_unique<Tape>(frame, borrowed.tensors, result.tensors);
  if (tape->nodes.empty()) {  // nothing was recorded, so how the outputs depend on the arguments is not known
    for (Edge& edge : tape->results) {
      if (!edge.source.exists()) edge.source.lost = edge.requires_gradient = true;
    }
  }
  if (!set(ctx, to_save_name, saved_objects(frame, tape.get(), borrowed, outputs)) ||
      !set_list(ctx, plain_name, without_gradient(*tape, outputs)) ||
      !set_list(ctx, dirty_name, borrowed.written())) {
    return false;
  }
  return set(ctx, tape_name, to_capsule(std::move(tape)));
}

// Removes the outputs that are arguments which the schema declares as written: the caller has them.
void leave_out_written(const Function& function, Result* result) {
  const auto is_declared = [&](const Ref& output) {
    const auto number = static_cast<size_t>(output->argument);
    return output->argument >= 0 && number < function.declared.size() && function.declared[number];
  };
  std::vector<Ref>& tensors = result->tensors;
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), is_declared), tensors.end());
  if (tensors.empty() && result->form == 't') result->form = 'n';
}

}  // namespace

PyObject* execute(CallObject* self, const Launch& launch, ::polyop::Call* call, Pack pack) {
  Frame frame(call->host, call->first);
  try {
    const CallTensors borrowed(frame, call, nullptr);
    if (!borrowed.check_written(self, *launch.function)) return nullptr;
    frame.names = &launch.function->names;
    Result result = polyop::module::call(*launch.function, borrowed.tensors);
    leave_out_written(*launch.function, &result);
    PyObject* outputs = nullptr;
    if (result.form == 'v') {
      outputs = result.value;
    } else if (result.form == 't' && pack == Pack::kPlain) {
      outputs = to_object(frame, std::move(result.tensors[0]), borrowed.objects, false);
    } else {
      outputs = pack_outputs(to_objects(frame, result.tensors, borrowed.objects, false), result, pack);
    }
    if (!borrowed.wrote_undeclared(*launch.function)) return outputs;
    return report_written(self, borrowed, outputs);
  } catch (const std::exception& problem) {
    return raise_failure(self, launch, problem.what());
  }
}

PyObject* record(CallObject* self, const Launch& launch, ::polyop::Call* call, PyObject* ctx) {
  if (tape_name == nullptr) {
    to_save_name = PyUnicode_InternFromString("to_save");
    tape_name = PyUnicode_InternFromString("tape");
    dirty_name = PyUnicode_InternFromString("dirty");
    plain_name = PyUnicode_InternFromString("plain");
  }
  PyObject* requires_gradient = Py_None;
  if (PyTuple_Check(ctx)) {
    if (!PyArg_ParseTuple(ctx, "OO!", &ctx, &PyTuple_Type, &requires_gradient)) return nullptr;
  }
  marks_set = false;
  Frame frame(call->host, call->first);
  frame.recording = true;
  try {
    const CallTensors borrowed(frame, call, requires_gradient);
    if (!borrowed.check_written(self, *launch.function)) return nullptr;
    frame.names = &launch.function->names;
    Result result = polyop::module::call(*launch.function, borrowed.tensors);
    if (result.form == 'v') return result.value;
    PyObject* outputs = to_objects(frame, result.tensors, borrowed.objects, false);
    if (outputs == nullptr) return nullptr;
    if (!keep_tape(frame, borrowed, result, outputs, ctx)) {
      Py_DECREF(outputs);
      return nullptr;
    }
    if (borrowed.wrote_undeclared(*launch.function) && report_written(self, borrowed, outputs) == nullptr) {
      return nullptr;
    }
    return pack_outputs(outputs, result, Pack::kPlain);
  } catch (const std::exception& problem) {
    return raise_failure(self, launch, problem.what());
  }
}

bool was_marked() { return marks_set; }

}  // namespace polyop::module
