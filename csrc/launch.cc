#include "launch.h"

#include <unistd.h>

#include <chrono>
#include <exception>

#include "threads.h"

namespace polyop {

namespace {
int64_t no_dims = 0;           // what a 0-d tensor's shape pointer points to
alignas(64) char no_data[64];  // what the pointer of a tensor without elements points to

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenLooks{50};

// Whether this is Python's main thread, which alone runs handlers of signals; -1 with an exception set where
// a handler raised it meanwhile.
int in_main_thread() {
  PyObject* threading = PyImport_ImportModule("threading");
  PyObject* main = threading == nullptr ? nullptr : PyObject_CallMethod(threading, "main_thread", nullptr);
  PyObject* number = main == nullptr ? nullptr : PyObject_GetAttrString(main, "ident");
  const bool same = number != nullptr && PyLong_AsUnsignedLong(number) == PyThread_get_thread_ident();
  Py_XDECREF(threading);
  Py_XDECREF(main);
  Py_XDECREF(number);
  return same || PyErr_Occurred() != nullptr;
}

// A call without Python's lock. It takes the lock to see signals, at most every kBetweenLooks.
class Unlocked final : public Interruptible {
 public:
  Unlocked() : state_(PyEval_SaveThread()), outer_(exchange_interruptible(this)) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    exchange_interruptible(outer_);
    PyEval_RestoreThread(state_);
  }

  void look() override {
    if (ended() || !main_) return;
    const Clock::time_point now = Clock::now();
    if (next_ != Clock::time_point() && now >= next_) see_signals();
    if (next_ == Clock::time_point() || now >= next_) next_ = Clock::now() + kBetweenLooks;
  }

 private:
  // What a handler calls has a call of its own, or none.
  void see_signals() {
    exchange_interruptible(nullptr);
    PyEval_RestoreThread(state_);
    const pid_t process = getpid();
    if (!asked_) asked_ = true, main_ = in_main_thread();
    if (PyErr_Occurred() != nullptr || (main_ && PyErr_CheckSignals() != 0)) {
      end();
    } else if (getpid() != process) {  // the threads that had parts of the kernel are not in the child
      PyErr_SetString(PyExc_RuntimeError,
                      "polyop: a signal handler forked while a kernel ran; in the child "
                      "its outputs are undefined: end the child in the handler");
      end();
    }
    state_ = PyEval_SaveThread();
    exchange_interruptible(this);
  }

  PyThreadState* state_;
  Interruptible* outer_;
  Clock::time_point next_{};
  bool asked_ = false, main_ = true;  // whether this is Python's main thread
};
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
}

void Parameters::add_absent() {
  data.push(nullptr);
  ndims.push(0);
  shapes.push(&no_dims);
  dtypes.push("");
}

Outcome run_unlocked(const Launch& launch, Parameters& parameters, void* stream) {
  Outcome outcome{0, false, "", false};
  forget_error();  // one that a kernel gave and did not fail with
  try {
    outcome.code = launch.kernel(static_cast<int>(parameters.data.size()), parameters.data.data(),
                                 parameters.ndims.data(), parameters.shapes.data(), parameters.dtypes.data(),
                                 stream, launch.extra->contract());
  } catch (const std::exception& problem) {
    outcome = {-1, true, std::string("a C++ exception: ") + problem.what(), false};
  } catch (...) {
    outcome = {-1, true, "a C++ exception that is no std::exception", false};
  }
  if (outcome.code != 0 && !outcome.threw) outcome.error = take_error();
  return outcome;
}

Outcome run(const Launch& launch, Parameters& parameters, void* stream) {
  Unlocked call;
  Outcome outcome = run_unlocked(launch, parameters, stream);
  outcome.ended = call.ended();
  return outcome;
}

}  // namespace polyop
