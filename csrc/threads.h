// The threads that kernels' loops run on: polyop_parallel of polyop/parallel.h.
//
// No OpenMP: its common runtime hangs in a forked child, hides its locks from ThreadSanitizer, and
// frameworks bring copies of their own into the process.
#pragma once

#define POLYOP_NO_HOOKS  // the core gives the hooks and has none
#include <atomic>

#include "polyop/loops/stop.h"
#include "polyop/parallel.h"

namespace polyop {

// A call whose kernel can be ended while it runs. Its own thread looks for a reason, workers read the answer.
class Interruptible {
 public:
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  virtual void look() = 0;  // only its own thread does

 protected:
  ~Interruptible() = default;
  void end() { ended_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> ended_{false};
};

// Sets the call that this thread has begun, or null. Returns the one before.
Interruptible* exchange_interruptible(Interruptible* call);

// polyop_stop_fn.
int is_to_stop();

// polyop_parallel_fn. Threads start when first needed, are never joined, and do not outlive fork().
int parallel(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk, int threads);

// Sets the hooks of a library that has them; `library` is its handle.
void connect_threads(void* library);

}  // namespace polyop
