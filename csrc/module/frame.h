// One call of a module's function: what its callbacks work on.
#pragma once

#include <memory>
#include <string>

#include "tape.h"
#include "tensor.h"
#include "trace.h"

namespace polyop::module {

struct Frame {
  const Host* host = nullptr;
  View device{};          // new tensors are made where this one is
  bool deriving = false;  // shapes are derived: no data, no launches
  bool recording = false;
  const uint64_t number;  // of all calls, no two have the same
  int forwards = 0;       // calls of Forward that were recorded or are about to be
  bool in_forward = false;
  int kernels = 0;            // of the module's own that run, one inside another
  bool read_plainly = false;  // data of which a gradient is wanted was read, outside of Forward and kernels
  std::vector<Node> nodes;    // recorded calls of Forward, in order
  Trace* trace = nullptr;     // what was done, where shapes are derived
  int tensors = 0;            // made so far: numbers their ids

  Frame(const Host* owner, const View& where);
  // A frame that stays: the outermost of its thread, where polyop makes no call.
  enum Loose { kLoose };
  explicit Frame(Loose);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // The call that this thread is in; throws std::runtime_error outside of one.
  static Frame& current();

  // Number a tensor made in this call. One that the module has kept from an earlier call is an
  // argument or an output of that no more: every callback renew()s what it is given.
  Ref adopt(Ref tensor);
  void renew(Tensor& tensor);
  Ref empty(int32_t row, int32_t ndim, const int64_t* shape);
  // A new view of `base`, noted in the trace.
  Ref viewed(const Ref& base, Ref view);
  // The tensor itself where it is dense, else a copy that is.
  Ref contiguous(Tensor* tensor);

  // Whether a gradient of any of these is wanted.
  static bool needs_gradient(polyop_tensor* const* tensors, size_t count);
  // A written dense copy of a tensor stands for that: copy it back, and put arguments in the place
  // of their copies among the outputs.
  void write_back(std::vector<Ref>* outputs);
  // Note that a tensor is written, by what is not recorded when `lost`; throws for a read-only one.
  void write(Tensor& tensor, bool lost);
  // Undo for a tensor that Forward says it wrote what write() noted of its gradient in this Forward.
  void restore(Tensor& tensor) const;
  // Note that the address of the data was given away.
  void expose(Tensor& tensor);
  // Mark the gradient of a tensor lost where it may depend on data that was read plainly.
  void settle(Tensor& tensor);

  // Release Python's lock until lock(): around a kernel. Callbacks in between take it again.
  void unlock();
  void lock();
  bool is_unlocked() const { return state_ != nullptr; }
  bool is_loose() const { return loose_; }

 private:
  std::vector<Ref> copies_;  // dense copies that were written
  Frame* outer_ = nullptr;
  bool loose_ = false;
  PyThreadState* state_ = nullptr;
};

// Whether this thread is in a call and no kernel runs: it has Python's lock.
bool holds_lock();

// Holds Python's lock inside a callback, whether or not a kernel runs.
class Locked {
 public:
  explicit Locked(Frame& frame) : frame_(frame), again_(frame.is_unlocked()), loose_(frame.is_loose()) {
    if (again_) frame_.lock();
    if (loose_) state_ = PyGILState_Ensure();  // pybind11's caller may have released it
  }
  ~Locked() {
    if (loose_) PyGILState_Release(state_);
    if (again_) frame_.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Frame& frame_;
  bool again_, loose_;
  PyGILState_STATE state_ = PyGILState_LOCKED;
};

// Run a provider's operator; see polyop_module_functions::launch. Throws std::runtime_error.
void launch(Frame& frame, const char* name, const polyop_value* arguments, size_t count, size_t outputs);

// The text of this thread's last failure, and how to give it.
const std::string& failure();
void set_failure(const std::string& text);

// The table that modules are given.
const polyop_module_functions* module_functions();

// A polyop_value of each kind.
polyop_value value_of(Tensor* tensor);
polyop_value value_of(int64_t integer);

}  // namespace polyop::module
