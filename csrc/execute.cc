#include "execute.h"

#include "module/run.h"
#include "python_lock.h"

namespace polyop {

namespace {

Unwrap unwrap_launch;
PyObject* prepare_name;

// The outputs and workspaces of one call. The destructor drops those that were not returned.
struct Outputs {
  const Host* host;
  Small<NewTensor, 8> tensors;
  size_t returned = 0;

  explicit Outputs(const Host* owner) : host(owner) {}
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  ~Outputs() {
    for (size_t i = returned; i < tensors.size(); ++i) host->drop(&tensors[i]);
  }

  bool add(const Spec& spec, const View& device) {
    NewTensor tensor{};
    if (!host->empty(spec, device, &tensor)) return false;
    tensors.push(tensor);
    return true;
  }

  PyObject* finish_next() { return host->finish(&tensors[returned++]); }

  PyObject* finish(size_t count, bool as_tuple) {
    if (count == 0 && !as_tuple) Py_RETURN_NONE;
    if (count == 1 && !as_tuple) return finish_next();
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
    if (tuple == nullptr) return nullptr;
    for (size_t i = 0; i < count; ++i) {
      PyObject* object = finish_next();
      if (object == nullptr) {
        Py_DECREF(tuple);
        return nullptr;
      }
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), object);
    }
    return tuple;
  }
};

// Owns a reference.
struct Held {
  PyObject* object;
  ~Held() { Py_DECREF(object); }
};

PyObject* execute(CallObject* self, const Launch& launch, Call* call, bool as_tuple) {
  for (const InRows& one : launch.in_rows) {
    call->dense.leave(one.parameter);
    call->parameters.shapes[one.parameter] = const_cast<int64_t*>(one.shape.data());
  }
  Outputs outputs(call->host);
  for (const Output& output : launch.outputs) {
    const Spec spec = {output.shape.data(), static_cast<int32_t>(output.shape.size()), output.dtype};
    if (!outputs.add(spec, call->first)) return nullptr;
    call->parameters.add(outputs.tensors[outputs.tensors.size() - 1].view);
  }
  for (const size_t bytes : launch.extra->workspaces()) {
    constexpr int32_t kUint8 = 5;  // row of dtypes(); checked when the table is set
    const auto size = static_cast<int64_t>(bytes);
    if (!outputs.add({&size, 1, kUint8}, call->first)) return nullptr;
    call->parameters.data.push(outputs.tensors[outputs.tensors.size() - 1].view.data);
  }
  call->parameters.dtypes.push(nullptr);  // so that a kernel can tell workspaces from tensors
  NumbersOfCall numbers(*launch.extra, call->numbers.data(), call->numbers.size());
  if (call->numbers.size() > 0) call->parameters.extra = numbers.contract();
  const Outcome outcome = run(launch, call->parameters, call->host->stream(call->first), call->dense);
  if (outcome.interrupted) return nullptr;
  if (outcome.code != 0) {
    const std::string& error = outcome.error;
    PyObject* text = PyUnicode_DecodeUTF8(error.data(), static_cast<Py_ssize_t>(error.size()), "replace");
    if (text == nullptr) return nullptr;
    PyObject* result = taking_lock([&] {
      return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_failed", "iNOs", outcome.code, text,
                                 outcome.threw ? Py_True : Py_False, launch.label.c_str());
    });
    Py_XDECREF(result);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the kernel failed");
    return nullptr;
  }
  return outputs.finish(launch.outputs.size(), as_tuple);
}

// The tensors in rows, each as (parameter, order, sizes).
PyObject* rows_of(const Call& call) {
  PyObject* result = PyTuple_New(static_cast<Py_ssize_t>(call.rows.size()));
  for (size_t i = 0; result != nullptr && i < call.rows.size(); ++i) {
    const Rows& rows = call.rows[i];
    PyObject *order = PyTuple_New(rows.ndim), *sizes = PyTuple_New(rows.ndim);
    for (int32_t k = 0; order != nullptr && sizes != nullptr && k < rows.ndim; ++k) {
      PyTuple_SET_ITEM(order, k, PyLong_FromLong(rows.order[k]));
      PyTuple_SET_ITEM(sizes, k, PyLong_FromLongLong(rows.sizes[k]));
    }
    PyObject* row = order == nullptr || sizes == nullptr
                        ? nullptr
                        : Py_BuildValue("(nOO)", static_cast<Py_ssize_t>(rows.parameter), order, sizes);
    Py_XDECREF(order);
    Py_XDECREF(sizes);
    if (row == nullptr) {
      Py_CLEAR(result);
    } else {
      PyTuple_SET_ITEM(result, static_cast<Py_ssize_t>(i), row);
    }
  }
  return result;
}

// Asks Python to choose and prepare a kernel. Returns (Launch, whether it may be cached), or None: not for
// the native path.
PyObject* prepare(CallObject* self, const Call& call) {
  PyObject* values = PyTuple_New(static_cast<Py_ssize_t>(call.values.size()));
  if (values == nullptr) return nullptr;
  for (size_t i = 0; i < call.values.size(); ++i) {
    Py_INCREF(call.values[i]);
    PyTuple_SET_ITEM(values, static_cast<Py_ssize_t>(i), call.values[i]);
  }
  PyObject* rows = rows_of(call);
  if (rows == nullptr) {
    Py_DECREF(values);
    return nullptr;
  }
  PyObject* answer = taking_lock([&] {
    return PyObject_CallMethodObjArgs(reinterpret_cast<PyObject*>(self), prepare_name, values, rows, nullptr);
  });
  Py_DECREF(values);
  Py_DECREF(rows);
  return answer;
}

}  // namespace

PyObject* execute_prepared(CallObject* self, Call* call, RunMode mode, bool* declined) {
  Cache::Prepared prepared = self->cache->find(call->key);
  if (prepared.launch == nullptr) {
    const unsigned generation = self->generation, definition = self->definition;
    PyObject* answer = prepare(self, *call);
    if (answer == nullptr) return nullptr;
    if (answer == Py_None || definition != self->definition) {  // changed while preparing
      Py_DECREF(answer);
      *declined = true;
      return nullptr;
    }
    PyObject* owner = PyTuple_GET_ITEM(answer, 0);
    const Launch* launch = unwrap_launch(owner);
    if (launch == nullptr) {
      Py_DECREF(answer);
      return nullptr;
    }
    if (PyTuple_GET_ITEM(answer, 1) == Py_True && generation == self->generation) {
      self->cache->add(call->key, launch, owner);
    }
    prepared = {launch, owner};
    Py_INCREF(owner);
    Py_DECREF(answer);
  } else {
    Py_INCREF(prepared.owner);  // another thread may replace the entry while the kernel runs
  }
  const Held held{prepared.owner};
  if (prepared.launch->function == nullptr) {
    return execute(self, *prepared.launch, call, mode.pack == Pack::kTuple);
  }
  if (mode.ctx != nullptr) return module::record(self, *prepared.launch, call, mode.ctx);
  return module::execute(self, *prepared.launch, call, mode.pack);
}

void start_execute(Unwrap unwrap) {
  unwrap_launch = unwrap;
  prepare_name = PyUnicode_InternFromString("_prepare");
}

}  // namespace polyop
