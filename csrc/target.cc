#include "target.h"

#include <pthread.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "hosts/numpy_loops.h"
#include "locks.h"
#include "narrow.h"
#include "python_lock.h"

namespace polyop {

namespace {

PyObject* resolver;  // a function of polyop.call.foreign; never released
const Launch* (*unwrap_launch)(PyObject*);

Gate* gate = new Gate(true);  // never freed
ShortLock targets_lock;

// Holds Python's lock. False when Python has ended; then there is no lock.
class PythonLock {
 public:
  PythonLock() : gate_(gate), entered_(gate_->enter()) {
    if (entered_) state_ = ensure_lock();
  }
  ~PythonLock() {
    if (!entered_) return;
    PyGILState_Release(state_);
    gate_->leave();
  }
  PythonLock(const PythonLock&) = delete;
  PythonLock& operator=(const PythonLock&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  Gate* gate_;
  bool entered_;
  PyGILState_STATE state_{};
};

constexpr const char* kPythonEnded = "Python has ended";

PyObject* close_gate(PyObject*, PyObject*) {
  PyThreadState* self = PyEval_SaveThread();  // the threads inside need the lock to leave
  gate->close();
  retake_lock(self);
  Py_RETURN_NONE;
}

PyMethodDef close_method = {"close_gate", close_gate, METH_NOARGS, nullptr};

// Arranges that the gate closes when Python ends. False with a Python error when that fails.
bool close_at_exit() {
  static bool done = false;
  if (done) return true;
  pthread_atfork(nullptr, nullptr, [] { gate = gate->without_threads(); });
  PyObject* module = taking_lock([&] { return PyImport_ImportModule("atexit"); });
  PyObject* function = module == nullptr ? nullptr : PyCFunction_New(&close_method, nullptr);
  PyObject* result = function == nullptr ? nullptr : taking_lock([&] {
    return PyObject_CallMethod(module, "register", "O", function);
  });
  done = result != nullptr;
  Py_XDECREF(result);
  Py_XDECREF(function);
  Py_XDECREF(module);
  return done;
}

// Returns the pending Python error as text, "KernelError: ...", and clears it.
std::string take_python_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  std::string text = type == nullptr ? "an error without a text" : "an error";
  PyObject* message = value == nullptr ? nullptr : PyObject_Str(value);
  const char* utf8 = message == nullptr ? nullptr : PyUnicode_AsUTF8(message);
  if (type != nullptr) text = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  const size_t dot = text.rfind('.');
  if (dot != std::string::npos) text.erase(0, dot + 1);
  if (utf8 != nullptr) text += std::string(": ") + utf8;
  Py_XDECREF(message);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  PyErr_Clear();
  return text;
}

size_t bytes_of(const View& view) {
  size_t count = dtypes()[static_cast<size_t>(view.dtype)].dlpack_bits / 8;
  for (int32_t i = 0; i < view.ndim; ++i) count *= static_cast<size_t>(view.shape[i]);
  return count;
}

PyObject* specs_of(const Views& tensors) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(tensors.size()));
  for (size_t i = 0; list != nullptr && i < tensors.size(); ++i) {
    const View& view = tensors[i];
    PyObject* shape = PyTuple_New(view.ndim);
    for (int32_t k = 0; shape != nullptr && k < view.ndim; ++k) {
      PyTuple_SET_ITEM(shape, k, PyLong_FromLongLong(view.shape[k]));
    }
    PyObject* spec = shape == nullptr ? nullptr : Py_BuildValue("(Nii)", shape, view.dtype, view.device);
    if (spec == nullptr) {
      Py_CLEAR(list);
      break;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), spec);
  }
  return list;
}

PyObject* array_of(const View& view) {
  Small<int64_t, 16> strides;
  for (int32_t i = 0; i < view.ndim; ++i) strides.push(0);
  int64_t step = 1;
  for (int32_t i = view.ndim; i-- > 0; step *= view.shape[i]) strides[static_cast<size_t>(i)] = step;
  Py_INCREF(Py_None);
  return array_over(view.data, view.dtype, view.ndim, view.shape, strides.data(), Py_None);
}

}  // namespace

// What a text stands for, with given tensors.
struct Target::Resolution {
  PyObject* owner = nullptr;                  // the Launch, or a Python function of arrays
  PyObject* failed = nullptr;                 // raises the error of a kernel that failed
  PyObject* unfit = nullptr;                  // raises the error for a value that does not fit
  const Launch* launch = nullptr;             // null: call `owner`
  std::vector<int> parameters;                // indices of tensors, -1 for an absent one
  std::vector<std::pair<int, int>> written;   // an input, and the output that shares its memory
  std::vector<std::pair<int, int>> narrowed;  // an output, and the row of the dtype that the kernel writes
  bool cacheable = false;

  Resolution() = default;
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;
  ~Resolution() {
    const PythonLock lock;
    if (!lock) return;
    Py_XDECREF(owner);
    Py_XDECREF(failed);
    Py_XDECREF(unfit);
  }

  bool read(PyObject* answer) {
    PyObject *order = nullptr, *pairs = nullptr, *wide = nullptr;
    int flag = 0;
    if (!PyArg_ParseTuple(answer, "OO!O!pOO!O", &owner, &PyTuple_Type, &order, &PyTuple_Type, &pairs, &flag,
                          &failed, &PyTuple_Type, &wide, &unfit)) {
      owner = failed = unfit = nullptr;
      return false;
    }
    Py_INCREF(owner);
    Py_INCREF(failed);
    Py_INCREF(unfit);
    cacheable = flag != 0;
    if (!PyCallable_Check(owner)) {
      launch = unwrap_launch(owner);
      if (launch == nullptr) return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order); ++i) {
      parameters.push_back(static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(order, i))));
    }
    return read_pairs(pairs, &written) && read_pairs(wide, &narrowed) && !PyErr_Occurred();
  }

  static bool read_pairs(PyObject* pairs, std::vector<std::pair<int, int>>* to) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); ++i) {
      int first = 0, second = 0;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, i), "ii", &first, &second)) return false;
      to->emplace_back(first, second);
    }
    return true;
  }

  std::string run_python(const Views& tensors) const {
    const PythonLock lock;
    if (!lock) return kPythonEnded;
    PyObject* arrays = PyList_New(0);
    for (size_t i = 0; arrays != nullptr && i < tensors.size(); ++i) {
      PyObject* array = array_of(tensors[i]);
      if (array == nullptr || PyList_Append(arrays, array) < 0) Py_CLEAR(arrays);
      Py_XDECREF(array);
    }
    PyObject* result =
        arrays == nullptr ? nullptr : taking_lock([&] { return PyObject_CallOneArg(owner, arrays); });
    Py_XDECREF(arrays);
    if (result == nullptr) return take_python_error();
    Py_DECREF(result);
    return "";
  }

  std::string error_text(const Outcome& outcome) const {
    const std::string& error = outcome.error;
    const PythonLock lock;
    if (!lock) return error;
    PyObject* text = PyUnicode_DecodeUTF8(error.data(), static_cast<Py_ssize_t>(error.size()), "replace");
    PyObject* result = text == nullptr ? nullptr : taking_lock([&] {
      return PyObject_CallFunction(failed, "iNOs", outcome.code, text, outcome.threw ? Py_True : Py_False,
                                   launch->label.c_str());
    });
    if (result == nullptr) return take_python_error();
    Py_DECREF(result);
    return "the kernel failed";
  }

  std::string unfit_text(int output, const std::string& value) const {
    const PythonLock lock;
    if (!lock) return kPythonEnded;
    PyObject* result = taking_lock([&] { return PyObject_CallFunction(unfit, "is", output, value.c_str()); });
    if (result == nullptr) return take_python_error();
    Py_DECREF(result);
    return "a value of a result does not fit";
  }

  // Runs the kernel with memory of its own for the outputs that it writes in another dtype.
  std::string run_wide(const Views& tensors, void* stream, Workspaces& workspaces) const {
    Views wide;
    for (size_t i = 0; i < tensors.size(); ++i) wide.push(tensors[i]);
    for (const auto& [output, row] : narrowed) {
      View& view = wide[static_cast<size_t>(output)];
      view.dtype = row;
      view.data = workspaces.allocate(bytes_of(view));
      if (view.data == nullptr)
        return "there is no memory for a result of " + std::to_string(bytes_of(view)) + " bytes";
    }
    std::string problem = run_native(wide, stream, workspaces);
    for (size_t i = 0; problem.empty() && i < narrowed.size(); ++i) {
      const auto output = static_cast<size_t>(narrowed[i].first);
      const std::string value = narrow(wide[output], tensors[output]);
      if (!value.empty()) problem = unfit_text(narrowed[i].first, value);
    }
    return problem;
  }

  std::string run_native(const Views& tensors, void* stream, Workspaces& workspaces) const {
    Parameters arguments;
    for (const int index : parameters) {
      if (index < 0) {
        arguments.add_absent();
      } else {
        arguments.add(tensors[static_cast<size_t>(index)]);
      }
    }
    for (const size_t bytes : launch->extra->workspaces()) {
      void* memory = workspaces.allocate(bytes);
      if (memory == nullptr)
        return "there is no memory for a workspace of " + std::to_string(bytes) + " bytes";
      arguments.data.push(memory);
    }
    arguments.dtypes.push(nullptr);  // so that a kernel can tell workspaces from tensors
    const Outcome outcome = run_unlocked(*launch, arguments, stream);
    return outcome.code == 0 ? std::string() : error_text(outcome);
  }
};

Target& Target::of(std::string_view text) {
  static auto* targets = new std::unordered_multimap<size_t, std::unique_ptr<Target>>();
  const size_t hash = std::hash<std::string_view>()(text);
  const std::lock_guard<ShortLock> held(targets_lock);
  const auto range = targets->equal_range(hash);
  for (auto entry = range.first; entry != range.second; ++entry) {
    if (entry->second->text_ == text) return *entry->second;
  }
  return *targets->emplace(hash, std::unique_ptr<Target>(new Target(text)))->second;
}

std::shared_ptr<const Target::Resolution> Target::find(const Key& key) {
  const std::lock_guard<ShortLock> held(lock_);
  const std::shared_ptr<const Resolution>* found = entries_.find(key);
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<const Target::Resolution> Target::resolve(const Views& tensors, size_t inputs, const Key& key,
                                                          std::string* error) {
  auto resolution = std::make_shared<Resolution>();
  {
    const PythonLock lock;
    if (!lock) {
      *error = kPythonEnded;
      return nullptr;
    }
    PyObject* specs = specs_of(tensors);
    PyObject* text = PyUnicode_DecodeUTF8(text_.data(), static_cast<Py_ssize_t>(text_.size()), "replace");
    PyObject* answer = nullptr;
    if (specs != nullptr && text != nullptr) {
      answer = taking_lock([&] {
        return PyObject_CallFunction(resolver, "OOn", text, specs, static_cast<Py_ssize_t>(inputs));
      });
    }
    Py_XDECREF(text);
    Py_XDECREF(specs);
    const bool read = answer != nullptr && resolution->read(answer);
    Py_XDECREF(answer);
    if (!read) {
      *error = take_python_error();
      return nullptr;
    }
  }
  if (!resolution->cacheable) return resolution;
  const uint32_t weight = resolution->launch == nullptr ? 1 : resolution->launch->weight();
  // destroyed after lock_ is released, because that takes Python's lock
  std::vector<std::shared_ptr<const Resolution>> dropped;
  const std::lock_guard<ShortLock> held(lock_);
  dropped = entries_.add(key, resolution, weight);
  return resolution;
}

std::string Target::run(const Views& tensors, size_t inputs, void* stream, Workspaces& workspaces) {
  Key key;
  for (size_t i = 0; i < tensors.size(); ++i) add_tensor(key, tensors[i]);
  std::shared_ptr<const Resolution> resolution = find(key);
  if (resolution == nullptr) {
    std::string error;
    resolution = resolve(tensors, inputs, key, &error);
    if (resolution == nullptr) return error;
  }
  // an input that the operator writes shares its output's memory, unless the runtime copied it
  for (const auto& [input, output] : resolution->written) {
    const View &from = tensors[static_cast<size_t>(input)], &to = tensors[static_cast<size_t>(output)];
    if (from.data == to.data) continue;
    if (from.device != kCpu) return "the runtime did not keep an argument that is written in its place";
    std::memcpy(to.data, from.data, bytes_of(from));
  }
  if (resolution->launch == nullptr) return resolution->run_python(tensors);
  return resolution->narrowed.empty() ? resolution->run_native(tensors, stream, workspaces)
                                      : resolution->run_wide(tensors, stream, workspaces);
}

void Target::set_resolver(PyObject* function, const Launch* (*unwrap)(PyObject*)) {
  if (!close_at_exit()) PyErr_WriteUnraisable(function);
  Py_INCREF(function);
  Py_XSETREF(resolver, function);
  unwrap_launch = unwrap;
}

bool Target::has_resolver() { return resolver != nullptr; }

}  // namespace polyop
