#include "provider.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "../hosts/numpy_loops.h"
#include "frame.h"

namespace polyop::module {

namespace {

struct Row {
  std::string name;
  UfuncLoops loops;
  bool unit = false;  // the last argument before the output is a factor, which must be 1
};

PyObject *python_launch, *python_writes;
struct Rows {
  std::deque<Row> rows;
  std::unordered_map<std::string_view, const Row*> by_name;
  std::atomic<const Row*> recent[16] = {};  // found last, by length and last letter
};
Rows* rows;

constexpr int kMost = 4;             // tensors of a loop
constexpr int64_t kQuick = 1 << 14;  // elements below which releasing Python's lock costs more

bool is_one(const polyop_value& value) {
  return (value.kind == POLYOP_VALUE_INT && value.as.integer == 1) ||
         (value.kind == POLYOP_VALUE_FLOAT && value.as.real == 1.0);
}

// Whether a loop that writes the output would change an input that it has not read yet.
bool overlaps(const Tensor& input, const Tensor& output) {
  const char *a = static_cast<const char*>(input.data()), *b = static_cast<const char*>(output.data());
  if (a == b && input.numel == output.numel && input.itemsize == output.itemsize) return false;
  return a < b + output.numel * output.itemsize && b < a + input.numel * input.itemsize;
}

// The tensors of a plain call: dense, on the CPU, of one shape but for single elements.
bool plain(const polyop_value* arguments, size_t count, Tensor** tensors) {
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].kind != POLYOP_VALUE_TENSOR || arguments[i].as.tensor == nullptr) return false;
    tensors[i] = as_tensor(arguments[i].as.tensor);
    if (tensors[i]->storage->derived) return false;
    if (tensors[i]->contiguous == 0 || tensors[i]->device_type != kCpu) return false;
  }
  const Tensor& output = *tensors[count - 1];
  bool whole = output.numel == 1;  // the inputs together have the output's shape
  for (size_t i = 0; i + 1 < count; ++i) {
    const Tensor& input = *tensors[i];
    if (overlaps(input, output)) return false;
    if (input.numel == 1 && input.ndim <= output.ndim) continue;
    if (input.ndim != output.ndim) return false;
    for (int32_t d = 0; d < output.ndim; ++d) {
      if (input.shape[d] != output.shape[d]) return false;
    }
    whole = true;
  }
  return whole;
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
  if (self->storage->derived) {
    PyErr_SetString(PyExc_RuntimeError, no_data);
    return nullptr;
  }
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

// Whether all of these arguments can be written: tensors, lists of them, or absent.
bool writable(const polyop_value* arguments, PyObject* places) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); ++i) {
    const polyop_value& value = arguments[PyLong_AsSize_t(PyTuple_GET_ITEM(places, i))];
    bool fits = value.kind == POLYOP_VALUE_TENSOR || value.kind == POLYOP_VALUE_NONE;
    if (value.kind == POLYOP_VALUE_LIST) {
      fits = std::all_of(value.as.items, value.as.items + value.count,
                         [](const polyop_value& item) { return item.kind == POLYOP_VALUE_TENSOR; });
    }
    if (!fits) return false;
  }
  return true;
}

const Row* find_row(std::string_view name) {
  if (rows == nullptr || name.empty()) return nullptr;
  std::atomic<const Row*>& recent = rows->recent[(name.size() + static_cast<size_t>(name.back())) % 16];
  const Row* row = recent.load(std::memory_order_acquire);
  if (row != nullptr && row->name == name) return row;
  const auto found = rows->by_name.find(name);
  if (found == rows->by_name.end()) return nullptr;
  recent.store(found->second, std::memory_order_release);
  return found->second;
}

// Note what a loop writes: its last argument.
void note_loop(Frame& frame, const polyop_value* arguments, size_t count) {
  bool wanted = false;
  for (size_t i = 0; frame.recording && i + 1 < count; ++i) {
    for_tensors(arguments + i, 1, [&](Tensor& tensor) {
      frame.settle(tensor);
      wanted = wanted || tensor.needs_gradient != 0;
    });
  }
  for_tensors(arguments + (count - 1), 1, [&](Tensor& tensor) {
    if (frame.recording) frame.settle(tensor);
    frame.write(tensor, wanted || (frame.recording && tensor.needs_gradient != 0));
  });
}

// Where the written arguments are: as the prototype has it, else the last `outputs`.
std::vector<size_t> written_places(const char* name, const polyop_value* arguments, size_t count,
                                   size_t outputs, bool loop) {
  std::vector<size_t> places;
  if (loop) {
    places.push_back(count - 1);
    return places;
  }
  PyObject* found = python_writes == nullptr
                        ? nullptr
                        : PyObject_CallFunction(python_writes, "sn", name, static_cast<Py_ssize_t>(count));
  if (found == nullptr) PyErr_Clear();
  for (Py_ssize_t i = 0; found != nullptr && i < PyTuple_GET_SIZE(found) && places.empty(); ++i) {
    PyObject* row = PyTuple_GET_ITEM(found, i);
    if (!writable(arguments, row)) continue;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(row); ++k) {
      places.push_back(PyLong_AsSize_t(PyTuple_GET_ITEM(row, k)));
    }
  }
  Py_XDECREF(found);
  for (size_t i = count - outputs; places.empty() && i < count; ++i) places.push_back(i);
  return places;
}

// Note what a launch writes; return the ids of that. A cast passes gradients on; anything else
// outside of a Function does not.
std::vector<int> note_outputs(Frame& frame, const char* name, const polyop_value* arguments, size_t count,
                              size_t outputs, bool loop) {
  const std::vector<size_t> places = written_places(name, arguments, count, outputs, loop);
  Source source;
  bool wanted = false;
  for (size_t i = 0; frame.recording && i < count; ++i) {
    for_tensors(arguments + i, 1, [&](Tensor& tensor) {
      frame.settle(tensor);
      wanted = wanted || tensor.needs_gradient != 0;
      if (i == 0) source = tensor.source;
    });
  }
  const bool cast = std::strcmp(name, "aclnnCast") == 0;
  std::vector<int> ids;
  for (const size_t place : places) {
    for_tensors(arguments + place, 1, [&](Tensor& tensor) {
      frame.write(tensor, wanted && !cast);
      if (wanted && cast) {
        tensor.needs_gradient = 1;
        tensor.source = source;
      }
      ids.push_back(tensor.id);
    });
  }
  return ids;
}

}  // namespace

void launch(Frame& frame, const char* name, const polyop_value* arguments, size_t count, size_t outputs) {
  if (outputs > count) throw std::runtime_error(std::string(name) + ": more outputs than arguments");
  const Row* row = find_row(name);
  const bool loop = row != nullptr && count > 0;
  if (loop && frame.trace == nullptr && !frame.deriving) {
    note_loop(frame, arguments, count);
    if (run_loop(frame, *row, arguments, count)) return;
  }
  const Locked held(frame);
  if (!loop || frame.trace != nullptr) {
    std::vector<int> ids = note_outputs(frame, name, arguments, count, outputs, loop);
    if (frame.trace != nullptr) {
      frame.trace->add("launch", name, to_python(arguments, count, tensor_id), std::move(ids));
      return;
    }
  }
  if (frame.deriving) return;
  if (python_launch == nullptr) throw std::runtime_error(std::string(name) + ": no provider is connected");
  PyObject* values = to_python(arguments, count, as_array);
  PyObject* result = values == nullptr ? nullptr : PyObject_CallFunction(python_launch, "sN", name, values);
  if (result == nullptr) throw_python_error(name);
  Py_DECREF(result);
}

bool set_provider(PyObject* launch, PyObject* loops, PyObject* writes) {
  auto* made = new Rows();
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
    row.name = name;
    made->rows.push_back(std::move(row));
    made->by_name.emplace(made->rows.back().name, &made->rows.back());
  }
  Py_INCREF(launch);
  Py_XDECREF(python_launch);
  python_launch = launch;
  Py_INCREF(writes);
  Py_XDECREF(python_writes);
  python_writes = writes;
  rows = made;  // the old table is left to calls that still read it
  return true;
}

}  // namespace polyop::module
