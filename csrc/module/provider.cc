#include "provider.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "../hosts/numpy_loops.h"
#include "frame.h"

namespace polyop::module {

namespace {

struct Row {
  UfuncLoops loops;
  bool unit = false;  // the last argument before the output is a factor, which must be 1
};

PyObject* python_launch;
std::unordered_map<std::string, Row>* rows;

constexpr int kMost = 4;            // tensors of a loop
constexpr int64_t kQuick = 1 << 14;  // elements below which releasing Python's lock costs more

bool is_one(const polyop_value& value) {
  return (value.kind == POLYOP_VALUE_INT && value.as.integer == 1) ||
         (value.kind == POLYOP_VALUE_FLOAT && value.as.real == 1.0);
}

// The tensors of a plain call: dense, on the CPU, of one shape but for single elements.
bool plain(const polyop_value* arguments, size_t count, Tensor** tensors) {
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].kind != POLYOP_VALUE_TENSOR || arguments[i].as.tensor == nullptr) return false;
    tensors[i] = as_tensor(arguments[i].as.tensor);
    if (tensors[i]->contiguous == 0 || tensors[i]->device_type != kCpu) return false;
  }
  const Tensor& output = *tensors[count - 1];
  for (size_t i = 0; i + 1 < count; ++i) {
    const Tensor& input = *tensors[i];
    if (input.numel == 1 && input.ndim <= output.ndim) continue;
    if (input.ndim != output.ndim) return false;
    for (int32_t d = 0; d < output.ndim; ++d) {
      if (input.shape[d] != output.shape[d]) return false;
    }
  }
  return true;
}

bool run_loop(Frame& frame, const Row& row, const polyop_value* arguments, size_t count) {
  const auto wanted = static_cast<size_t>(row.loops.inputs) + 1;
  polyop_value shortened[kMost];
  if (row.unit && count == wanted + 1 && is_one(arguments[count - 2])) {
    for (size_t i = 0; i < wanted; ++i) shortened[i] = arguments[i + 1 < wanted ? i : count - 1];
    arguments = shortened;
    count = wanted;
  }
  Tensor* tensors[kMost];
  if (count != wanted || wanted > kMost || !plain(arguments, count, tensors)) return false;
  int32_t kinds[kMost];
  char* data[kMost];
  Py_ssize_t steps[kMost];
  const Tensor& output = *tensors[count - 1];
  for (size_t i = 0; i < count; ++i) {
    kinds[i] = tensors[i]->row;
    data[i] = static_cast<char*>(tensors[i]->data());
    steps[i] = tensors[i]->numel == 1 && output.numel != 1 ? 0 : tensors[i]->itemsize;
  }
  const UfuncLoop* loop = row.loops.find(kinds);
  if (loop == nullptr) return false;
  Py_ssize_t size = output.numel;
  if (size > kQuick && !frame.is_unlocked()) {
    frame.unlock();
    loop->run(data, &size, steps, loop->context);
    frame.lock();
  } else {
    loop->run(data, &size, steps, loop->context);
  }
  return true;
}

void release_capsule(PyObject* capsule) {
  release(static_cast<polyop_tensor*>(PyCapsule_GetPointer(capsule, nullptr)));
}

PyObject* as_array(polyop_tensor* tensor) {
  Tensor* self = as_tensor(tensor);
  if (self->device_type != kCpu) {
    PyErr_SetString(PyExc_RuntimeError, "a provider's operator needs tensors on the CPU");
    return nullptr;
  }
  retain(self);  // Python may keep the array
  PyObject* owner = PyCapsule_New(static_cast<polyop_tensor*>(self), nullptr, release_capsule);
  if (owner == nullptr) return nullptr;
  return array_over(self->data(), self->row, self->ndim, self->shape, self->strides, owner);
}

[[noreturn]] void throw_python_error(const char* name) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* text = value == nullptr ? nullptr : PyObject_Str(value);
  const char* words = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  const std::string message = words == nullptr ? std::string(name) + " failed" : words;
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  PyErr_Clear();
  throw std::runtime_error(message);
}

template <typename F>
void for_tensors(const polyop_value* values, size_t count, F each) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i].kind == POLYOP_VALUE_TENSOR && values[i].as.tensor != nullptr) {
      each(*as_tensor(values[i].as.tensor));
    } else if (values[i].kind == POLYOP_VALUE_LIST) {
      for_tensors(values[i].as.items, values[i].count, each);
    }
  }
}

// Note what a launch writes. A cast passes gradients on; anything else outside of a Function does not.
void note_outputs(Frame& frame, const char* name, const polyop_value* arguments, size_t count,
                  size_t outputs) {
  Source source;
  bool wanted = false;
  if (frame.recording) {
    for_tensors(arguments, count - outputs, [&](const Tensor& tensor) {
      wanted = wanted || tensor.needs_gradient != 0;
      source = tensor.source;
    });
  }
  const bool cast = std::strcmp(name, "aclnnCast") == 0;
  for_tensors(arguments + (count - outputs), outputs, [&](Tensor& tensor) {
    frame.write(tensor, wanted && !cast);
    if (wanted && cast) {
      tensor.needs_gradient = 1;
      tensor.source = source;
    }
  });
}

}  // namespace

void launch(Frame& frame, const char* name, const polyop_value* arguments, size_t count, size_t outputs) {
  if (outputs > count) throw std::runtime_error(std::string(name) + ": more outputs than arguments");
  if (frame.trace == nullptr && !frame.deriving) {
    note_outputs(frame, name, arguments, count, outputs);
    const auto found = rows == nullptr ? decltype(rows->end()){} : rows->find(name);
    if (rows != nullptr && found != rows->end() && run_loop(frame, found->second, arguments, count)) return;
  }
  const Locked held(frame);
  if (frame.trace != nullptr) {
    note_outputs(frame, name, arguments, count, outputs);
    std::vector<int> ids;
    for_tensors(arguments + (count - outputs), outputs,
                [&](const Tensor& tensor) { ids.push_back(tensor.id); });
    frame.trace->add("launch", name, to_python(arguments, count, tensor_id), std::move(ids));
    return;
  }
  if (frame.deriving) return;
  if (python_launch == nullptr) throw std::runtime_error(std::string(name) + ": no provider is connected");
  PyObject* values = to_python(arguments, count, as_array);
  PyObject* result =
      values == nullptr ? nullptr : PyObject_CallFunction(python_launch, "sN", name, values);
  if (result == nullptr) throw_python_error(name);
  Py_DECREF(result);
}

bool set_provider(PyObject* launch, PyObject* loops) {
  auto* made = new std::unordered_map<std::string, Row>();
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(loops, &at, &key, &value)) {
    PyObject* ufunc = nullptr;
    int unit = 0;
    if (!PyArg_ParseTuple(value, "Op", &ufunc, &unit)) return false;
    Row row;
    row.unit = unit != 0;
    if (!ufunc_loops(ufunc, &row.loops)) return false;
    const char* name = PyUnicode_AsUTF8(key);
    if (name == nullptr) return false;
    made->emplace(name, std::move(row));
  }
  Py_INCREF(launch);
  Py_XDECREF(python_launch);
  python_launch = launch;
  rows = made;  // the old table is left to calls that still read it
  return true;
}

}  // namespace polyop::module
