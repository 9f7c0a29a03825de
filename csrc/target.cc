#include "target.h"

#include <pthread.h>

#include <condition_variable>
#include <cstring>
#include <unordered_map>

#include "hosts/numpy_loops.h"

namespace polyop {

namespace {

PyObject* resolver;  // polyop.call.foreign's; kept for the life of the process
const Launch* (*unwrap_launch)(PyObject*);

// Who is inside of Python on a runtime's thread. Closed when Python ends, which waits for them: a
// thread that Python stops while it holds C++ frames takes the process down.
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

Gate* gate = new Gate();  // kept for the life of the process

// Holds Python's lock, unless Python has ended.
class Locked {
 public:
  Locked() : gate_(gate), entered_(gate_->enter()) {
    if (entered_) state_ = PyGILState_Ensure();
  }
  ~Locked() {
    if (!entered_) return;
    PyGILState_Release(state_);
    gate_->leave();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  Gate* gate_;
  bool entered_;
  PyGILState_STATE state_{};
};

constexpr const char* kEnded = "Python has ended";

PyObject* close_gate(PyObject*, PyObject*) {
  PyThreadState* self = PyEval_SaveThread();  // who is inside needs the lock to leave
  gate->close();
  PyEval_RestoreThread(self);
  Py_RETURN_NONE;
}

PyMethodDef close_method = {"close_gate", close_gate, METH_NOARGS, nullptr};

// Close the gate when Python ends. Whether that is arranged now; an error is set where not.
bool close_at_exit() {
  static bool done = false;
  if (done) return true;
  pthread_atfork(nullptr, nullptr, [] { gate = new Gate(); });  // the child has none of these threads
  PyObject* module = PyImport_ImportModule("atexit");
  PyObject* function = module == nullptr ? nullptr : PyCFunction_New(&close_method, nullptr);
  PyObject* answer = function == nullptr ? nullptr : PyObject_CallMethod(module, "register", "O", function);
  done = answer != nullptr;
  Py_XDECREF(answer);
  Py_XDECREF(function);
  Py_XDECREF(module);
  return done;
}

// The pending Python error in words: "KernelError: ...". Clears it.
std::string take_python_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  std::string text = type == nullptr ? "an error without words" : "an error";
  PyObject* words = value == nullptr ? nullptr : PyObject_Str(value);
  const char* plain = words == nullptr ? nullptr : PyUnicode_AsUTF8(words);
  if (type != nullptr) text = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  const size_t dot = text.rfind('.');
  if (dot != std::string::npos) text.erase(0, dot + 1);
  if (plain != nullptr) text += std::string(": ") + plain;
  Py_XDECREF(words);
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
  PyObject* all = PyList_New(static_cast<Py_ssize_t>(tensors.size()));
  for (size_t i = 0; all != nullptr && i < tensors.size(); ++i) {
    const View& view = tensors[i];
    PyObject* shape = PyTuple_New(view.ndim);
    for (int32_t k = 0; shape != nullptr && k < view.ndim; ++k) {
      PyTuple_SET_ITEM(shape, k, PyLong_FromLongLong(view.shape[k]));
    }
    PyObject* spec = shape == nullptr ? nullptr : Py_BuildValue("(Nii)", shape, view.dtype, view.device);
    if (spec == nullptr) {
      Py_CLEAR(all);
      break;
    }
    PyList_SET_ITEM(all, static_cast<Py_ssize_t>(i), spec);
  }
  return all;
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

// What a text means for given tensors.
struct Target::Ready {
  PyObject* owner = nullptr;       // the Launch, or a function of arrays
  PyObject* failed = nullptr;      // raises the error of a kernel that failed
  const Launch* launch = nullptr;  // null: call `owner`
  std::vector<int> parameters;
  std::vector<std::pair<int, int>> written;
  bool repeatable = false;

  Ready() = default;
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
  ~Ready() {
    const Locked lock;
    if (!lock) return;
    Py_XDECREF(owner);
    Py_XDECREF(failed);
  }

  bool read(PyObject* answer) {
    PyObject *order = nullptr, *pairs = nullptr;
    int repeat = 0;
    if (!PyArg_ParseTuple(answer, "OO!O!pO", &owner, &PyTuple_Type, &order, &PyTuple_Type, &pairs, &repeat,
                          &failed)) {
      owner = failed = nullptr;
      return false;
    }
    Py_INCREF(owner);
    Py_INCREF(failed);
    repeatable = repeat != 0;
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
    const Locked lock;
    if (!lock) return kEnded;
    PyObject* arrays = PyList_New(0);
    for (size_t i = 0; arrays != nullptr && i < tensors.size(); ++i) {
      PyObject* array = array_of(tensors[i]);
      if (array == nullptr || PyList_Append(arrays, array) < 0) Py_CLEAR(arrays);
      Py_XDECREF(array);
    }
    PyObject* done = arrays == nullptr ? nullptr : PyObject_CallOneArg(owner, arrays);
    Py_XDECREF(arrays);
    if (done == nullptr) return take_python_error();
    Py_DECREF(done);
    return "";
  }

  std::string words(const Outcome& outcome) const {
    const std::string& error = outcome.error;
    const Locked lock;
    if (!lock) return error;
    PyObject* text = PyUnicode_DecodeUTF8(error.data(), static_cast<Py_ssize_t>(error.size()), "replace");
    PyObject* done = text == nullptr
                         ? nullptr
                         : PyObject_CallFunction(failed, "iNOs", outcome.code, text,
                                                 outcome.threw ? Py_True : Py_False, launch->label.c_str());
    if (done == nullptr) return take_python_error();
    Py_DECREF(done);
    return "the kernel failed";
  }

  std::string run_native(const Views& tensors, void* stream, Scratch& scratch) const {
    Parameters all;
    for (const int number : parameters) {
      if (number < 0) {
        all.add_absent();
      } else {
        all.add(tensors[static_cast<size_t>(number)]);
      }
    }
    for (const size_t bytes : launch->extra->workspaces()) {
      void* memory = scratch.allocate(bytes);
      if (memory == nullptr)
        return "there is no memory for a workspace of " + std::to_string(bytes) + " bytes";
      all.data.push(memory);
    }
    all.dtypes.push(nullptr);  // so that a kernel can tell workspaces from tensors
    const Outcome outcome = run_unlocked(*launch, all, stream);
    return outcome.code == 0 ? std::string() : words(outcome);
  }
};

Target& Target::of(std::string_view text) {
  static std::mutex lock;
  static auto* all = new std::unordered_multimap<size_t, std::unique_ptr<Target>>();
  const size_t hash = std::hash<std::string_view>()(text);
  const std::lock_guard<std::mutex> held(lock);
  const auto range = all->equal_range(hash);
  for (auto at = range.first; at != range.second; ++at) {
    if (at->second->text_ == text) return *at->second;
  }
  return *all->emplace(hash, std::unique_ptr<Target>(new Target(text)))->second;
}

std::shared_ptr<const Target::Ready> Target::find(const Key& key) {
  const std::lock_guard<std::mutex> held(lock_);
  for (const auto& [known, ready] : entries_) {
    if (known.size() == key.size() &&
        std::memcmp(known.data(), key.data(), key.size() * sizeof(uint64_t)) == 0) {
      return ready;
    }
  }
  return nullptr;
}

std::shared_ptr<const Target::Ready> Target::resolve(const Views& tensors, size_t inputs, const Key& key,
                                                     std::string* error) {
  auto made = std::make_shared<Ready>();
  {
    const Locked lock;
    if (!lock) {
      *error = kEnded;
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
    const bool read = answer != nullptr && made->read(answer);
    Py_XDECREF(answer);
    if (!read) {
      *error = take_python_error();
      return nullptr;
    }
  }
  if (!made->repeatable) return made;
  constexpr size_t kEntries = 128;
  std::shared_ptr<const Ready> dropped;  // destroyed after the lock is released: it takes Python's
  const std::lock_guard<std::mutex> held(lock_);
  std::vector<uint64_t> kept(key.data(), key.data() + key.size());
  if (entries_.size() < kEntries) {
    entries_.emplace_back(std::move(kept), made);
  } else {
    auto& entry = entries_[oldest_++ % kEntries];
    dropped = std::move(entry.second);
    entry = {std::move(kept), made};
  }
  return made;
}

std::string Target::run(const Views& tensors, size_t inputs, void* stream, Scratch& scratch) {
  Key key;
  for (size_t i = 0; i < tensors.size(); ++i) add_tensor(key, tensors[i]);
  std::shared_ptr<const Ready> ready = find(key);
  if (ready == nullptr) {
    std::string error;
    ready = resolve(tensors, inputs, key, &error);
    if (ready == nullptr) return error;
  }
  for (const auto& [input, output] : ready->written) {  // one buffer, unless the runtime made two of it
    const View &from = tensors[static_cast<size_t>(input)], &to = tensors[static_cast<size_t>(output)];
    if (from.data == to.data) continue;
    if (from.device != kCpu) return "the runtime did not keep an argument that is written in its place";
    std::memcpy(to.data, from.data, bytes_of(from));
  }
  return ready->launch == nullptr ? ready->run_python(tensors) : ready->run_native(tensors, stream, scratch);
}

void Target::set_resolver(PyObject* function, const Launch* (*unwrap)(PyObject*)) {
  if (!close_at_exit()) PyErr_WriteUnraisable(function);
  Py_INCREF(function);
  Py_XSETREF(resolver, function);
  unwrap_launch = unwrap;
}

}  // namespace polyop
