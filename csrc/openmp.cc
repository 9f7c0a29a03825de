#include "openmp.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
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

Functions found;  // written before `usable` is set
std::atomic<bool> usable{false};

std::atomic<int64_t> loops{0};

// The system's number of the second thread in this thread's team; 0 until this thread has entered it once.
thread_local pid_t second = 0;

struct Region {
  void (*work)(void* context, int thread, int threads);
  void* context;
  pid_t second;
};

void enter(void* data) {
  Region& region = *static_cast<Region*>(data);
  const int thread = found.thread_num();
  if (thread == 1 && region.second == 0) region.second = static_cast<pid_t>(syscall(SYS_gettid));
  region.work(region.context, thread, found.num_threads());
}

int64_t nanoseconds(clockid_t clock) {
  timespec time;
  return clock_gettime(clock, &time) == 0 ? time.tv_sec * 1'000'000'000 + time.tv_nsec : -1;
}

// Whether a thread has a CPU now: its own clock goes on.
bool is_running(pid_t thread) {
  constexpr int64_t kWatched = 1500;                                 // ns
  const clockid_t own = (~static_cast<clockid_t>(thread) << 3) | 6;  // the kernel's name of its clock
  const int64_t first = nanoseconds(own), start = nanoseconds(CLOCK_MONOTONIC);
  if (first < 0) return false;
  while (nanoseconds(CLOCK_MONOTONIC) - start < kWatched) continue;
  return nanoseconds(own) - first > kWatched / 2;
}

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The environment is read when PyTorch's host is loaded.
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
  if (most < wanted || (second != 0 && !is_running(second))) return false;
  Region region{work, context, second};
  found.parallel(&enter, &region, static_cast<unsigned>(most), 0);
  second = region.second;
  loops.fetch_add(1, std::memory_order_relaxed);
  return true;
}

int64_t openmp_loops() { return loops.load(std::memory_order_relaxed); }

void forget_openmp() { usable.store(false, std::memory_order_relaxed); }

}  // namespace polyop
