// The state of one call of a module's function. The callbacks of the module work on it.
#pragma once

#include <memory>
#include <string>

#include "../python_lock.h"
#include "tape.h"
#include "tensor.h"
#include "trace.h"

namespace polyop::module {

struct Frame {
  const Host* host = nullptr;
  View device{};           // new tensors are allocated on the device of this view
  bool deriving = false;   // only output shapes are derived: no data, no launches
  bool recording = false;  // gradients are recorded
  const uint64_t number;   // unique in the process
  int forwards = 0;        // number of calls of Forward that have begun while recording
  bool in_forward = false;
  int kernels = 0;              // the module's own kernels that run now, one inside another
  bool untracked_read = false;  // data that requires a gradient was read outside of Forward and kernels
  std::vector<Node> nodes;      // recorded calls of Forward, in order
  Trace* trace = nullptr;       // the steps, while shapes are derived; else null
  int tensors = 0;              // number of tensors so far: the next id
  const std::vector<std::string>* names = nullptr;  // of the arguments that the caller's tensors are

  Frame(const Host* owner, const View& where);
  // The frame of a thread outside of polyop's calls: the outermost one, which lasts as long as the thread.
  enum Ambient { kAmbient };
  explicit Frame(Ambient);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // The innermost call of this thread. Throws std::runtime_error outside of any call.
  static Frame& current();

  // Gives a tensor created in this call its id.
  Ref adopt(Ref tensor);
  // Makes a tensor part of this call. The module may have kept it from an earlier call; it is then no
  // argument or output any more. Every callback calls this for the tensors that it receives.
  void renew(Tensor& tensor);
  // A new dense tensor.
  Ref empty(int32_t row, int32_t ndim, const int64_t* shape);
  // Gives a new view of `base` its id, and adds it to the trace.
  Ref adopt_view(const Ref& base, Ref view);
  // The tensor itself when it is dense, else a dense copy.
  Ref contiguous(Tensor* tensor);

  // Whether one of these tensors requires a gradient.
  static bool needs_gradient(polyop_tensor* const* tensors, size_t count);
  // Copies the dense copies that were written back to their originals. Outputs that are copies or views of
  // written arguments become the arguments.
  void copy_back(std::vector<Ref>* outputs);
  // Notes that a tensor is written. `lost`: by an operation that is not recorded, so its gradient is not
  // known. Throws for a read-only tensor, and for one of the caller whose elements share memory.
  void write(Tensor& tensor, bool lost);
  // Undoes what write() noted about the gradient of a tensor in the current Forward. For tensors that Forward
  // declares as written (MarkDirty).
  void restore(Tensor& tensor) const;
  // Notes that the module has the address of the data.
  void note_exposed(Tensor& tensor);
  // Marks the gradient of a tensor as lost when the tensor may depend on data whose use is not recorded.
  void propagate_lost(Tensor& tensor);

  // unlock() releases Python's lock until lock(), around a kernel. Callbacks in between take it
  // (LockedFrame).
  void unlock();
  void lock();
  bool is_unlocked() const { return state_ != nullptr; }
  bool is_ambient() const { return ambient_; }

 private:
  std::vector<Ref> copies_;  // dense copies that were written
  Frame* outer_ = nullptr;
  bool ambient_ = false;
  PyThreadState* state_ = nullptr;
};

// Whether this thread is in a call and no kernel runs, so that it has Python's lock.
bool holds_lock();

// Holds Python's lock inside a callback, whether or not a kernel runs.
class LockedFrame {
 public:
  explicit LockedFrame(Frame& frame)
      : frame_(frame), relock_(frame.is_unlocked()), ambient_(frame.is_ambient()) {
    if (relock_) frame_.lock();
    if (ambient_) state_ = ensure_lock();  // pybind11's caller may have released it
  }
  ~LockedFrame() {
    if (ambient_) PyGILState_Release(state_);
    if (relock_) frame_.unlock();
  }
  LockedFrame(const LockedFrame&) = delete;
  LockedFrame& operator=(const LockedFrame&) = delete;

 private:
  Frame& frame_;
  bool relock_, ambient_;
  PyGILState_STATE state_ = PyGILState_LOCKED;
};

// Runs a provider's operator; see polyop_module_functions::launch. Throws std::runtime_error.
void launch(Frame& frame, const char* name, const polyop_value* arguments, size_t count, size_t outputs);

// The text of this thread's last failure.
const std::string& failure();
void set_failure(const std::string& text);

// The table of functions that modules receive.
const polyop_module_functions* module_functions();

// A tuple of ints: a new reference, or null with a Python error.
PyObject* tuple_of(const int64_t* numbers, int32_t count);

// A polyop_value that holds this.
polyop_value value_of(Tensor* tensor);
polyop_value value_of(int64_t integer);

}  // namespace polyop::module
