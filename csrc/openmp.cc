#include "openmp.h"

#include <dlfcn.h>

#include <atomic>
#include <string>

#include "thread_count.h"

namespace polyop {

namespace {

// The interface of GCC's runtime, which those of LLVM and Intel have as well.
struct Functions {
  void (*parallel)(void (*body)(void*), void* data, unsigned threads, unsigned flags);
  int (*in_parallel)();
  int (*max_threads)();
  int (*thread_num)();
  int (*num_threads)();
};

Functions found;                       // written before `usable` is set
std::atomic<bool> usable{false};

struct Region {
  void (*work)(void* context, int thread, int threads);
  void* context;
};

void enter(void* data) {
  const Region& region = *static_cast<const Region*>(data);
  region.work(region.context, found.thread_num(), found.num_threads());
}

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool is_wanted() {
#if defined(__SANITIZE_THREAD__)
  return false;  // ThreadSanitizer does not see the locks of libgomp
#else
  return process_variable("POLYOP_OPENMP") != "0";
#endif
}

}  // namespace

void take_openmp(void* library) {
  if (library == nullptr || usable.load(std::memory_order_relaxed) || !is_wanted()) return;
  const bool all = find(library, "GOMP_parallel", &found.parallel) &&
                   find(library, "omp_in_parallel", &found.in_parallel) &&
                   find(library, "omp_get_max_threads", &found.max_threads) &&
                   find(library, "omp_get_thread_num", &found.thread_num) &&
                   find(library, "omp_get_num_threads", &found.num_threads);
  usable.store(all, std::memory_order_release);
}

bool run_on_openmp(void (*work)(void* context, int thread, int threads), void* context, int wanted) {
  if (!usable.load(std::memory_order_acquire) || found.in_parallel()) return false;
  const int most = found.max_threads();  // a team of another size would end some of its threads
  if (most < wanted) return false;
  Region region{work, context};
  found.parallel(&enter, &region, static_cast<unsigned>(most), 0);
  return true;
}

void forget_openmp() { usable.store(false, std::memory_order_relaxed); }

}  // namespace polyop
