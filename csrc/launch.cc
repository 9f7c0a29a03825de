#include "launch.h"

#include <unistd.h>

#include <chrono>
#include <exception>

#include "dense.h"
#include "large_pages.h"
#include "python_lock.h"
#include "threads.h"
#include "tvm_ffi.h"

namespace polyop {

namespace {
int64_t no_dims = 0;           // the target of a 0-d tensor's shape pointer
alignas(64) char no_data[64];  // the target of an empty tensor's data pointer

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollInterval{50};

// Whether this is Python's main thread, the only one that runs signal handlers. Also true when a handler
// raised an exception in here: that exception is set.
int in_main_thread() {
  PyObject* threading = taking_lock([&] { return PyImport_ImportModule("threading"); });
  PyObject* main = threading == nullptr
                       ? nullptr
                       : taking_lock([&] { return PyObject_CallMethod(threading, "main_thread", nullptr); });
  PyObject* ident = main == nullptr ? nullptr : PyObject_GetAttrString(main, "ident");
  const bool same = ident != nullptr && PyLong_AsUnsignedLong(ident) == PyThread_get_thread_ident();
  Py_XDECREF(threading);
  Py_XDECREF(main);
  Py_XDECREF(ident);
  return same || PyErr_Occurred() != nullptr;
}

// A call without Python's lock. poll() takes the lock to handle signals, at most once per kPollInterval.
class Unlocked final : public Interruptible {
 public:
  Unlocked() : state_(PyEval_SaveThread()), outer_(exchange_interruptible(this)) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    exchange_interruptible(outer_);
    retake_lock(state_);
  }

  void poll() override {
    if (interrupted() || !in_main_thread_) return;
    const Clock::time_point now = Clock::now();
    if (next_poll_ != Clock::time_point() && now >= next_poll_) handle_signals();
    if (next_poll_ == Clock::time_point() || now >= next_poll_) next_poll_ = Clock::now() + kPollInterval;
  }

 private:
  // The call is not the thread's current one meanwhile: an operator that a handler calls sets its own.
  void handle_signals() {
    exchange_interruptible(nullptr);
    retake_lock(state_);
    const pid_t process = getpid();
    if (!thread_checked_) thread_checked_ = true, in_main_thread_ = in_main_thread();
    if (PyErr_Occurred() != nullptr || (in_main_thread_ && PyErr_CheckSignals() != 0)) {
      interrupt();
    } else if (getpid() != process) {  // the child has no worker threads, so parts of the kernel are missing
      PyErr_SetString(PyExc_RuntimeError,
                      "polyop: a signal handler forked while a kernel ran; in the child "
                      "its outputs are undefined: end the child in the handler");
      interrupt();
    }
    state_ = PyEval_SaveThread();
    exchange_interruptible(this);
  }

  PyThreadState* state_;
  Interruptible* outer_;
  Clock::time_point next_poll_{};
  bool thread_checked_ = false;  // in_main_thread_ is certain
  bool in_main_thread_ = true;   // whether this is Python's main thread
};

// The kernel writes its outputs whole. They come after its other tensors, and before its workspaces.
void prepare_outputs(const Launch& launch, const Parameters& parameters) {
  const size_t workspaces = launch.extra == nullptr ? 0 : launch.extra->workspaces().size();
  const size_t behind = launch.outputs.size() + workspaces;
  if (parameters.device != kCpu || behind > parameters.data.size()) return;
  size_t number = parameters.data.size() - behind;
  for (const Output& output : launch.outputs) {
    int64_t bytes = dtypes()[static_cast<size_t>(output.dtype)].dlpack_bits / 8;
    for (const int64_t size : output.shape) bytes *= size;
    ask_for_large_pages(parameters.data[number++], bytes);
  }
}
}  // namespace

std::vector<DType>& dtypes() {
  static auto* table = new std::vector<DType>();  // never destroyed: it holds Python objects
  return *table;
}

void Parameters::add(const View& view) {
  data.push(view.data == nullptr ? no_data : view.data);
  ndims.push(view.ndim);
  shapes.push(view.ndim == 0 ? &no_dims : const_cast<int64_t*>(view.shape));
  dtypes.push(polyop::dtypes()[static_cast<size_t>(view.dtype)].name.c_str());
  device = view.device;
  device_id = view.device_id;
}

void Parameters::add_absent() {
  data.push(nullptr);
  ndims.push(0);
  shapes.push(&no_dims);
  dtypes.push("");
}

Outcome run_unlocked(const Launch& launch, Parameters& parameters, void* stream) {
  Outcome outcome{0, false, "", false};
  prepare_outputs(launch, parameters);
  clear_error();
  void* extra = parameters.extra;
  if (extra == nullptr && launch.extra != nullptr) extra = launch.extra->pointer();
  try {
    if (launch.tvm_ffi != nullptr) {
      return taking_lock([&] { return launch.tvm_ffi->call(parameters, stream); });
    }
    outcome.code = taking_lock([&] {  // it may call Python
      return launch.kernel(static_cast<int>(parameters.data.size()), parameters.data.data(),
                           parameters.ndims.data(), parameters.shapes.data(), parameters.dtypes.data(),
                           stream, extra);
    });
  } catch (const std::exception& error) {
    outcome = {-1, true, std::string("a C++ exception: ") + error.what(), false};
  } catch (...) {
    outcome = {-1, true, "a C++ exception that is no std::exception", false};
  }
  if (outcome.code != 0 && !outcome.threw) outcome.error = take_error();
  return outcome;
}

Outcome run(const Launch& launch, Parameters& parameters, void* stream, DenseCopies& copies) {
  Unlocked call;
  copies.make(parameters.data.data());
  Outcome outcome = run_unlocked(launch, parameters, stream);
  outcome.interrupted = call.interrupted();
  return outcome;
}

}  // namespace polyop
