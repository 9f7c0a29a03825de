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
#include "../python_lock.h"
#include "frame.h"

namespace polyop::module {

namespace {

struct LoopEntry {
  std::string name;
  UfuncLoops loops;
  bool unit = false;  // the last argument before the output is a factor, which must be 1
};

PyObject *python_launch, *python_writes;
struct LoopTable {
  std::deque<LoopEntry> entries;
  std::unordered_map<std::string_view, const LoopEntry*> by_name;
  std::atomic<const LoopEntry*> recent[16] = {};  // last lookups, by length and last letter
};
LoopTable* loop_table;

constexpr int kMaxTensors = 4;       // of a loop
constexpr int64_t kSmall = 1 << 14;  // elements; for fewer, releasing Python's lock costs more than it gains

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

// Gets the tensors of a call that one loop can run: dense, on the CPU, of the output's shape or of one
// element.
bool simple_tensors(const polyop_value* arguments, size_t count, Tensor** tensors) {
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].kind != POLYOP_VALUE_TENSOR || arguments[i].as.tensor == nullptr) return false;
    tensors[i] = as_tensor(arguments[i].as.tensor);
    if (tensors[i]->storage->derived) return false;
    if (tensors[i]->contiguous == 0 || tensors[i]->device_type != kCpu) return false;
  }
  const Tensor& output = *tensors[count - 1];
  bool shape_covered = output.numel == 1;  // the inputs together have the output's shape
  for (size_t i = 0; i + 1 < count; ++i) {
    const Tensor& input = *tensors[i];
    if (overlaps(input, output)) return false;
    if (input.numel == 1 && input.ndim <= output.ndim) continue;
    if (input.ndim != output.ndim) return false;
    for (int32_t d = 0; d < output.ndim; ++d) {
      if (input.shape[d] != output.shape[d]) return false;
    }
    shape_covered = true;
  }
  return shape_covered;
}

bool run_loop(Frame& frame, const LoopEntry& entry, const polyop_value* arguments, size_t count) {
  const auto tensor_count = static_cast<size_t>(entry.loops.inputs) + 1;
  polyop_value shortened[kMaxTensors];
  if (entry.unit && count == tensor_count + 1 && is_one(arguments[count - 2])) {
    for (size_t i = 0; i < tensor_count; ++i) shortened[i] = arguments[i + 1 < tensor_count ? i : count - 1];
    arguments = shortened;
    count = tensor_count;
  }
  Tensor* tensors[kMaxTensors];
  if (count != tensor_count || tensor_count > kMaxTensors || !simple_tensors(arguments, count, tensors))
    return false;
  int32_t rows[kMaxTensors];
  char* data[kMaxTensors];
  Py_ssize_t steps[kMaxTensors];
  const Tensor& output = *tensors[count - 1];
  for (size_t i = 0; i < count; ++i) {
    rows[i] = tensors[i]->row;
    data[i] = static_cast<char*>(tensors[i]->data());
    steps[i] = tensors[i]->numel == 1 && output.numel != 1 ? 0 : tensors[i]->itemsize;
  }
  const UfuncLoop* loop = entry.loops.find(rows);
  if (loop == nullptr) return false;
  Py_ssize_t size = output.numel;
  if (size > kSmall && !frame.is_unlocked()) {
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
    PyErr_SetString(PyExc_RuntimeError, kNoData);
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
  const char* utf8 = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  const std::string message = utf8 == nullptr ? std::string(name) + " failed" : utf8;
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
bool writable(const polyop_value* arguments, PyObject* positions) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); ++i) {
    const polyop_value& value = arguments[PyLong_AsSize_t(PyTuple_GET_ITEM(positions, i))];
    bool is_writable = value.kind == POLYOP_VALUE_TENSOR || value.kind == POLYOP_VALUE_NONE;
    if (value.kind == POLYOP_VALUE_LIST) {
      is_writable = std::all_of(value.as.items, value.as.items + value.count,
                                [](const polyop_value& item) { return item.kind == POLYOP_VALUE_TENSOR; });
    }
    if (!is_writable) return false;
  }
  return true;
}

const LoopEntry* find_loop(std::string_view name) {
  if (loop_table == nullptr || name.empty()) return nullptr;
  std::atomic<const LoopEntry*>& recent =
      loop_table->recent[(name.size() + static_cast<size_t>(name.back())) % 16];
  const LoopEntry* entry = recent.load(std::memory_order_acquire);
  if (entry != nullptr && entry->name == name) return entry;
  const auto found = loop_table->by_name.find(name);
  if (found == loop_table->by_name.end()) return nullptr;
  recent.store(found->second, std::memory_order_release);
  return found->second;
}

// Notes that a loop writes its last argument.
void note_loop(Frame& frame, const polyop_value* arguments, size_t count) {
  bool requires_gradient = false;
  for (size_t i = 0; frame.recording && i + 1 < count; ++i) {
    for_tensors(arguments + i, 1, [&](Tensor& tensor) {
      frame.propagate_lost(tensor);
      requires_gradient = requires_gradient || tensor.needs_gradient != 0;
    });
  }
  for_tensors(arguments + (count - 1), 1, [&](Tensor& tensor) {
    if (frame.recording) frame.propagate_lost(tensor);
    frame.write(tensor, requires_gradient || (frame.recording && tensor.needs_gradient != 0));
  });
}

// The positions of the written arguments: from the prototype, else the last `outputs`.
std::vector<size_t> written_positions(const char* name, const polyop_value* arguments, size_t count,
                                      size_t outputs, bool loop) {
  std::vector<size_t> positions;
  if (loop) {
    positions.push_back(count - 1);
    return positions;
  }
  PyObject* candidates = python_writes == nullptr ? nullptr : taking_lock([&] {
    return PyObject_CallFunction(python_writes, "sn", name, static_cast<Py_ssize_t>(count));
  });
  if (candidates == nullptr) PyErr_Clear();
  for (Py_ssize_t i = 0; candidates != nullptr && i < PyTuple_GET_SIZE(candidates) && positions.empty();
       ++i) {
    PyObject* candidate = PyTuple_GET_ITEM(candidates, i);
    if (!writable(arguments, candidate)) continue;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(candidate); ++k) {
      positions.push_back(PyLong_AsSize_t(PyTuple_GET_ITEM(candidate, k)));
    }
  }
  Py_XDECREF(candidates);
  for (size_t i = count - outputs; positions.empty() && i < count; ++i) positions.push_back(i);
  return positions;
}

// Notes what a launch writes and returns the ids of those tensors. Outside of a Function, gradients pass
// through a cast and nothing else.
std::vector<int> note_outputs(Frame& frame, const char* name, const polyop_value* arguments, size_t count,
                              size_t outputs, bool loop) {
  const std::vector<size_t> positions = written_positions(name, arguments, count, outputs, loop);
  Source source;
  bool requires_gradient = false;
  for (size_t i = 0; frame.recording && i < count; ++i) {
    for_tensors(arguments + i, 1, [&](Tensor& tensor) {
      frame.propagate_lost(tensor);
      requires_gradient = requires_gradient || tensor.needs_gradient != 0;
      if (i == 0) source = tensor.source;
    });
  }
  const bool cast = std::strcmp(name, "aclnnCast") == 0;
  std::vector<int> ids;
  for (const size_t place : positions) {
    for_tensors(arguments + place, 1, [&](Tensor& tensor) {
      frame.write(tensor, requires_gradient && !cast);
      if (requires_gradient && cast) {
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
  const LoopEntry* entry = find_loop(name);
  const bool loop = entry != nullptr && count > 0;
  if (loop && frame.trace == nullptr && !frame.deriving) {
    note_loop(frame, arguments, count);
    if (run_loop(frame, *entry, arguments, count)) return;
  }
  const LockedFrame lock(frame);
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
  PyObject* result = values == nullptr ? nullptr : taking_lock([&] {
    return PyObject_CallFunction(python_launch, "sN", name, values);
  });
  if (result == nullptr) throw_python_error(name);
  Py_DECREF(result);
}

bool set_provider(PyObject* launch, PyObject* loops, PyObject* writes) {
  auto* table = new LoopTable();
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(loops, &position, &key, &value)) {
    PyObject* ufunc = nullptr;
    int unit = 0;
    if (!PyArg_ParseTuple(value, "Op", &ufunc, &unit)) return false;
    LoopEntry entry;
    entry.unit = unit != 0;
    if (!ufunc_loops(ufunc, &entry.loops)) return false;
    const char* name = PyUnicode_AsUTF8(key);
    if (name == nullptr) return false;
    entry.name = name;
    table->entries.push_back(std::move(entry));
    table->by_name.emplace(table->entries.back().name, &table->entries.back());
  }
  Py_INCREF(launch);
  Py_XDECREF(python_launch);
  python_launch = launch;
  Py_INCREF(writes);
  Py_XDECREF(python_writes);
  python_writes = writes;
  loop_table = table;  // the old table is leaked: other calls may still read it
  return true;
}

}  // namespace polyop::module
