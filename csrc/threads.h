// The thread pool that loops of kernels run on: polyop_parallel of polyop/parallel.h.
//
// It is not OpenMP: libgomp hangs in a forked child and hides its locks from ThreadSanitizer. But where
// PyTorch has threads of OpenMP, loops run on these (openmp.h).
#pragma once

#define POLYOP_NO_HOOKS  // the core sets the hooks of libraries and has none itself
#include <atomic>

#include "polyop/loops/stop.h"
#include "polyop/parallel.h"

namespace polyop {

// A call whose kernel can be interrupted. The thread that made the call polls for a reason; workers only read
// interrupted().
class Interruptible {
 public:
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  virtual void poll() = 0;  // on the thread that made the call

 protected:
  ~Interruptible() = default;
  void interrupt() { interrupted_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> interrupted_{false};
};

// Sets this thread's current call, or null. Returns the previous one.
Interruptible* exchange_interruptible(Interruptible* call);

// The hook polyop_stop: whether the kernel on this thread must stop. On the call's own thread it polls.
int should_stop();

// The hook polyop_parallel; see polyop/parallel.h. Workers start when first needed and are never joined. A
// child of fork() starts its own. One loop at a time has the workers; others run on their own thread alone.
int parallel(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk, int threads);

// Sets the hooks for threads in a library that has them; `library` is the handle of dlopen.
void connect_threads(void* library);

}  // namespace polyop
