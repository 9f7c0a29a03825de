#include "target.h"

#include <pthread.h>

#include <condition_variable>
#include <cstring>
#include <unordered_map>

#include "hosts/numpy_loops.h"

namespace polyop {

namespace {

PyObject* resolver;  // a function of polyop.call.foreign; never released
const Launch* (*unwrap_launch)(PyObject*);

// Counts the threads of runtimes that are inside Python. Closing it, at Python's exit, waits for them: a
// thread that Python stops while it has C++ frames takes the process down.
class Gate {
 public:
  bool enter() {
    const std::lock_guard<std::mutex> held(lock_);
    inside_ += closed_ ? 0 : 1;
    return !closed_;
  }
  void leave() {
    const std::lock_guard<std::mutex> held(lock_);
    if (--inside_ == 0) empty_.notify_all();
  }
  void close() {
    std::unique_lock<std::mutex> held(lock_);
    closed_ = true;
    empty_.wait(held, [this] { return inside_ == 0; });
  }

 private:
  std::mutex lock_;
  std::condition_variable empty_;
  int inside_ = 0;
  bool closed_ = false;
};

Gate* gate = new Gate();  // never freed

// Holds Python's lock. False when Python has ended; then there is no lock.
class PythonLock {
 public:
  PythonLock() : gate_(gate), entered_(gate_->enter()) {
    if (entered_) state_ = PyGILState_Ensure();
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
  PyEval_RestoreThread(self);
  Py_RETURN_NONE;
}

PyMethodDef close_method = {"close_gate", close_gate, METH_NOARGS, nullptr};

// Arranges that the gate closes when Python ends. False with a Python error when that fails.
bool close_at_exit() {
  static bool done = false;
  if (done) return true;
  pthread_atfork(nullptr, nullptr, [] { gate = new Gate(); });  // the child has none of these threads
  PyObject* module = PyImport_ImportModule("atexit");
  PyObject* function = module == nullptr ? nullptr : PyCFunction_New(&close_method, nullptr);
  PyObject* result = function == nullptr ? nullptr : PyObject_CallMethod(module, "register", "O", function);
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
  PyObject* owner = nullptr;                 // the Launch, or a Python function of arrays
  PyObject* failed = nullptr;                // raises the error of a kernel that failed
  const Launch* launch = nullptr;            // null: call `owner`
  std::vector<int> parameters;               // indices of tensors, -1 for an absent one
  std::vector<std::pair<int, int>> written;  // an input, and the output that shares its memory
  bool cacheable = false;

  Resolution() = default;
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;
  ~Resolution() {
    const PythonLock lock;
    if (!lock) return;
    Py_XDECREF(owner);
    Py_XDECREF(failed);
  }

  bool read(PyObject* answer) {
    PyObject *order = nullptr, *pairs = nullptr;
    int flag = 0;
    if (!PyArg_ParseTuple(answer, "OO!O!pO", &owner, &PyTuple_Type, &order, &PyTuple_Type, &pairs, &flag,
                          &failed)) {
      owner = failed = nullptr;
      return false;
    }
    Py_INCREF(owner);
    Py_INCREF(failed);
    cacheable = flag != 0;
    if (!PyCallable_Check(owner)) {
      launch = unwrap_launch(owner);
      if (launch == nullptr) return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order); ++i) {
      parameters.push_back(static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(order, i))));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); ++i) {
      int input = 0, output = 0;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, i), "ii", &input, &output)) return false;
      written.emplace_back(input, output);
    }
    return !PyErr_Occurred();
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
    PyObject* result = arrays == nullptr ? nullptr : PyObject_CallOneArg(owner, arrays);
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
    PyObject* result = text == nullptr
                           ? nullptr
                           : PyObject_CallFunction(failed, "iNOs", outcome.code, text,
                                                   outcome.threw ? Py_True : Py_False, launch->label.c_str());
    if (result == nullptr) return take_python_error();
    Py_DECREF(result);
    return "the kernel failed";
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
  static std::mutex lock;
  static auto* targets = new std::unordered_multimap<size_t, std::unique_ptr<Target>>();
  const size_t hash = std::hash<std::string_view>()(text);
  const std::lock_guard<std::mutex> held(lock);
  const auto range = targets->equal_range(hash);
  for (auto entry = range.first; entry != range.second; ++entry) {
    if (entry->second->text_ == text) return *entry->second;
  }
  return *targets->emplace(hash, std::unique_ptr<Target>(new Target(text)))->second;
}

std::shared_ptr<const Target::Resolution> Target::find(const Key& key) {
  const std::lock_guard<std::mutex> held(lock_);
  for (const auto& [entry_key, resolution] : entries_) {
    if (entry_key.size() == key.size() &&
        std::memcmp(entry_key.data(), key.data(), key.size() * sizeof(uint64_t)) == 0) {
      return resolution;
    }
  }
  return nullptr;
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
      answer = PyObject_CallFunction(resolver, "OOn", text, specs, static_cast<Py_ssize_t>(inputs));
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
  constexpr size_t kEntries = 128;
  std::shared_ptr<const Resolution> dropped;  // destroyed after lock_ is released: that takes Python's lock
  const std::lock_guard<std::mutex> held(lock_);
  std::vector<uint64_t> entry_key(key.data(), key.data() + key.size());
  if (entries_.size() < kEntries) {
    entries_.emplace_back(std::move(entry_key), resolution);
  } else {
    auto& entry = entries_[oldest_++ % kEntries];
    dropped = std::move(entry.second);
    entry = {std::move(entry_key), resolution};
  }
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
  return resolution->launch == nullptr ? resolution->run_python(tensors)
                                       : resolution->run_native(tensors, stream, workspaces);
}

void Target::set_resolver(PyObject* function, const Launch* (*unwrap)(PyObject*)) {
  if (!close_at_exit()) PyErr_WriteUnraisable(function);
  Py_INCREF(function);
  Py_XSETREF(resolver, function);
  unwrap_launch = unwrap;
}

bool Target::has_resolver() { return resolver != nullptr; }

}  // namespace polyop
