#include "run.h"

#include <algorithm>
#include <stdexcept>

#include "objects.h"

namespace polyop::module {

namespace {

PyObject *to_save_name, *tape_name, *dirty_name, *plain_name;
thread_local bool marked;  // the last record() gave outputs or arguments a mark

// The tensors of one call: the caller's objects, and ours over them.
struct Borrowed {
  Objects objects;
  std::vector<Ref> tensors;

  // `wanted`: null for no gradients, None to ask the tensors, or a tuple of bools.
  Borrowed(Frame& frame, ::polyop::Call* call, PyObject* wanted) {
    tensors.reserve(call->borrowed.size());
    for (const Borrowing& one : call->borrowed) {
      objects.push(one.object);
      if (one.object == nullptr) {
        tensors.emplace_back();
        continue;
      }
      Ref tensor = frame.adopt(borrow_object(call->host, one.object, one.view));
      tensor->argument = static_cast<int>(objects.size()) - 1;
      const auto number = static_cast<Py_ssize_t>(objects.size()) - 1;
      const bool gradient = wanted == nullptr   ? false
                            : wanted == Py_None ? call->host->wants_gradient(one.object)
                                                : number < PyTuple_GET_SIZE(wanted) &&
                                                      PyTuple_GET_ITEM(wanted, number) == Py_True;
      if (gradient) {
        tensor->needs_gradient = 1;
        tensor->source = {-1, tensor->argument, false};
      }
      tensors.push_back(std::move(tensor));
    }
  }
  ~Borrowed() { keep_objects(tensors); }

  bool wrote_undeclared(const Function& function) const {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool declared = i < function.declared.size() && function.declared[i];
      if (tensors[i] && tensors[i]->storage->written && !declared) return true;
    }
    return false;
  }

  // The objects that were written.
  std::vector<PyObject*> written() const {
    std::vector<PyObject*> found;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] && tensors[i]->storage->written) found.push_back(objects[i]);
    }
    return found;
  }
};

// The author's words, told by the operator: BoundOperator._failed.
PyObject* failed(CallObject* self, const Launch& launch, const char* text) {
  if (PyErr_Occurred()) return nullptr;
  PyObject* words =
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::char_traits<char>::length(text)), "replace");
  if (words == nullptr) return nullptr;
  PyObject* done = PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_failed", "iNOs", 1, words,
                                       Py_False, launch.label.c_str());
  Py_XDECREF(done);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, text);
  return nullptr;
}

PyObject* packed(PyObject* outputs, const Result& result, Pack pack) {
  if (outputs == nullptr || pack == Pack::kTuple) return outputs;
  PyObject* made = outputs;
  if (pack == Pack::kList) {
    made = PySequence_List(outputs);
  } else if (result.form == 'n' || PyTuple_GET_SIZE(outputs) == 0) {
    made = Py_None;
    Py_INCREF(made);
  } else if (PyTuple_GET_SIZE(outputs) == 1) {
    made = PyTuple_GET_ITEM(outputs, 0);
    Py_INCREF(made);
  } else {
    return outputs;
  }
  Py_DECREF(outputs);
  return made;
}

PyObject* list_of(const std::vector<PyObject*>& objects) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(objects.size()));
  for (size_t i = 0; list != nullptr && i < objects.size(); ++i) {
    Py_INCREF(objects[i]);
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), objects[i]);
  }
  return list;
}

PyObject* tell_written(CallObject* self, const Borrowed& borrowed, PyObject* outputs) {
  if (outputs == nullptr) return nullptr;
  PyObject* written = list_of(borrowed.written());
  PyObject* done = written == nullptr
                       ? nullptr
                       : PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_wrote", "N", written);
  if (done == nullptr) Py_CLEAR(outputs);
  Py_XDECREF(done);
  return outputs;
}

// The saved tensors, as the framework's objects; the tape keeps none.
PyObject* saved_objects(Frame& frame, Tape* tape, const Borrowed& borrowed, PyObject* outputs) {
  PyObject* all = PyTuple_New(static_cast<Py_ssize_t>(tape->saved.size()));
  for (size_t i = 0; all != nullptr && i < tape->saved.size(); ++i) {
    Saved& one = tape->saved[i];
    PyObject* object = nullptr;
    if (one.kind == Saved::kOwn) {
      object = to_object(frame, one.tensor, borrowed.objects, false);
      one.tensor = Ref();
    } else {
      object = one.kind == Saved::kInput ? borrowed.objects[static_cast<size_t>(one.index)]
                                         : PyTuple_GET_ITEM(outputs, one.index);
      Py_INCREF(object);
    }
    if (object == nullptr) {
      Py_CLEAR(all);
    } else {
      PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), object);
    }
  }
  return all;
}

// Outputs of which no gradient can be asked.
std::vector<PyObject*> without_gradient(const Tape& tape, PyObject* outputs) {
  std::vector<PyObject*> found;
  for (size_t i = 0; i < tape.results.size(); ++i) {
    const Edge& edge = tape.results[i];
    const bool settled = edge.source.exists() && !edge.source.lost;
    if (!dtypes()[static_cast<size_t>(edge.layout.row)].is_smooth() || (settled && !edge.wanted))
      found.push_back(PyTuple_GET_ITEM(outputs, static_cast<Py_ssize_t>(i)));
  }
  return found;
}

// Sets an attribute to a new reference; false when that is null, or it cannot be set.
bool set(PyObject* object, PyObject* name, PyObject* value) {
  const bool done = value != nullptr && PyObject_SetAttr(object, name, value) == 0;
  Py_XDECREF(value);
  return done;
}

// The same with a list of these, where there are some: what is absent is empty.
bool set_some(PyObject* object, PyObject* name, const std::vector<PyObject*>& objects) {
  if (objects.empty()) return true;
  marked = true;
  return set(object, name, list_of(objects));
}

bool keep_tape(Frame& frame, const Borrowed& borrowed, const Result& result, PyObject* outputs,
               PyObject* ctx) {
  auto tape = std::make_unique<Tape>(frame, borrowed.tensors, result.tensors);
  if (tape->nodes.empty()) {  // nothing is known of how the outputs depend on the arguments
    for (Edge& edge : tape->results) {
      if (!edge.source.exists()) edge.source.lost = edge.wanted = true;
    }
  }
  if (!set(ctx, to_save_name, saved_objects(frame, tape.get(), borrowed, outputs)) ||
      !set_some(ctx, plain_name, without_gradient(*tape, outputs)) ||
      !set_some(ctx, dirty_name, borrowed.written())) {
    return false;
  }
  return set(ctx, tape_name, to_capsule(std::move(tape)));
}

// Leave out the outputs that are arguments which the schema says are written: the caller has them.
void leave_out_written(const Function& function, Result* result) {
  const auto is_declared = [&](const Ref& output) {
    const auto number = static_cast<size_t>(output->argument);
    return output->argument >= 0 && number < function.declared.size() && function.declared[number];
  };
  std::vector<Ref>& all = result->tensors;
  all.erase(std::remove_if(all.begin(), all.end(), is_declared), all.end());
  if (all.empty() && result->form == 't') result->form = 'n';
}

}  // namespace

PyObject* execute(CallObject* self, const Launch& launch, ::polyop::Call* call, Pack pack) {
  Frame frame(call->host, call->first);
  try {
    const Borrowed borrowed(frame, call, nullptr);
    Result result = polyop::module::call(*launch.function, borrowed.tensors);
    leave_out_written(*launch.function, &result);
    PyObject* outputs = nullptr;
    if (result.form == 'v') {
      outputs = result.value;
    } else if (result.form == 't' && pack == Pack::kPlain) {
      outputs = to_object(frame, std::move(result.tensors[0]), borrowed.objects, false);
    } else {
      outputs = packed(to_objects(frame, result.tensors, borrowed.objects, false), result, pack);
    }
    if (!borrowed.wrote_undeclared(*launch.function)) return outputs;
    return tell_written(self, borrowed, outputs);
  } catch (const std::exception& problem) {
    return failed(self, launch, problem.what());
  }
}

PyObject* record(CallObject* self, const Launch& launch, ::polyop::Call* call, PyObject* ctx) {
  if (tape_name == nullptr) {
    to_save_name = PyUnicode_InternFromString("to_save");
    tape_name = PyUnicode_InternFromString("tape");
    dirty_name = PyUnicode_InternFromString("dirty");
    plain_name = PyUnicode_InternFromString("plain");
  }
  PyObject* wanted = Py_None;
  if (PyTuple_Check(ctx)) {
    if (!PyArg_ParseTuple(ctx, "OO!", &ctx, &PyTuple_Type, &wanted)) return nullptr;
  }
  marked = false;
  Frame frame(call->host, call->first);
  frame.recording = true;
  try {
    const Borrowed borrowed(frame, call, wanted);
    Result result = polyop::module::call(*launch.function, borrowed.tensors);
    if (result.form == 'v') return result.value;
    PyObject* outputs = to_objects(frame, result.tensors, borrowed.objects, false);
    if (outputs == nullptr) return nullptr;
    if (!keep_tape(frame, borrowed, result, outputs, ctx)) {
      Py_DECREF(outputs);
      return nullptr;
    }
    if (borrowed.wrote_undeclared(*launch.function) && tell_written(self, borrowed, outputs) == nullptr) {
      return nullptr;
    }
    return packed(outputs, result, Pack::kPlain);
  } catch (const std::exception& problem) {
    return failed(self, launch, problem.what());
  }
}

bool was_marked() { return marked; }

}  // namespace polyop::module
