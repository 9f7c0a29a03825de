#include "threads.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "openmp.h"
#include "thread_count.h"

namespace polyop {

namespace {

// Each worker has a slot. The state in the slot's word is all that synchronises the worker with the thread
// that runs the loop (the owner):
//   owner    Idle or Asleep -> Open    offers a share to the worker, wakes it when it sleeps
//   worker   Open -> Taken             runs the share
//   owner    Open -> Idle              takes the share back: the worker was late
//   worker   Taken or Awaited -> Idle  has run the share, wakes the owner when it waits
//   owner    Taken -> Awaited          sleeps until the share is done
//   worker   Idle -> Asleep            had no share for a while, sleeps
// A worker reads `loop` only while its word is Taken or Awaited. The owner changes `loop` only after all
// words are Idle or Asleep. So a late worker never reads a loop that has ended.
enum State : uint32_t { kIdle, kAsleep, kOpen, kTaken, kAwaited };

struct alignas(64) Slot {
  std::atomic<uint32_t> word{kIdle};
  std::atomic<int64_t> pieces_begun{0};  // of this share, in a dynamic loop
};

struct Loop {
  polyop_body body;
  void* context;
  int64_t begin, end, chunk;
  int parts;                  // of a static loop (chunk 0)
  int team;                   // number of threads that run it
  const Interruptible* call;  // the call that it is part of, or null
};

// How long a worker spins before it sleeps, in ns. A sleeping worker misses the first tens of microseconds of
// the next loop, and the work between two loops (a framework walking its graph) usually takes less than this.
constexpr int64_t kSpinTime = 200'000;

// How often the thread of an interruptible call polls while it waits for workers.
constexpr timespec kPollInterval{0, 50'000'000};

#ifdef __GLIBC__
// Each call of an operator reads these variables; this model saves a function call for each read.
#define POLYOP_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define POLYOP_FAST_TLS
#endif
// The current call of this thread, and the call whose share this worker runs.
thread_local POLYOP_FAST_TLS Interruptible* own_call = nullptr;
thread_local POLYOP_FAST_TLS const Interruptible* served_call = nullptr;

// All of it is constant-initialised and never destroyed: workers may still run during exit().
Slot slots[kMaxThreads];                    // the word of slots[0] is not used: the owner runs share 0
Loop loop;                                  // the loop that has the workers
alignas(64) std::atomic<bool> busy{false};  // whether a loop has the workers
std::atomic<int> serial_loops{0};           // loops that run without workers, because another has them
std::atomic<int64_t> spin_time{0};          // ns that a wait spins before it sleeps
int started = 0;                            // number of workers; only the thread that set busy uses it
bool exhausted = false;                     // the system refused a thread; likewise

void sleep_while(std::atomic<uint32_t>& word, uint32_t value, const timespec* timeout = nullptr) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // yield does nothing on most of them
#endif
}

// Spins for at most spin_time. Returns whether `done` became true.
template <typename Done>
bool spin_until(Done done) {
  const int64_t limit = spin_time.load(std::memory_order_relaxed);
  if (limit == 0) return done();
  for (int64_t deadline = 0;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause();
    }
    const int64_t current = now();
    if (deadline == 0) deadline = current + limit;
    if (current >= deadline) return false;
  }
}

int64_t pieces(const Loop& job) { return (job.end - job.begin - 1) / job.chunk + 1; }

// Runs a share of a dynamic loop: a range of neighbouring pieces. A thread that has run its own share
// continues with the pieces left in the shares of the others.
void run_pieces(const Loop& job, int thread) {
  const int64_t count = pieces(job);
  for (int offset = 0; offset < job.team; ++offset) {
    const int share = (thread + offset) % job.team;
    const int64_t first = polyop_part(0, count, share, job.team);
    const int64_t last = polyop_part(0, count, share + 1, job.team);
    std::atomic<int64_t>& begun = slots[share].pieces_begun;
    while (begun.load(std::memory_order_relaxed) < last - first) {
      const int64_t piece = first + begun.fetch_add(1, std::memory_order_relaxed);
      if (piece >= last) break;
      const int64_t from = job.begin + piece * job.chunk;
      job.body(job.context, from, piece == count - 1 ? job.end : from + job.chunk, thread);
    }
  }
}

// Runs a share of a loop. In a static loop with more parts than threads, a share is every team-th part.
void run_share(const Loop& job, int share) {
  if (job.chunk > 0) return run_pieces(job, share);
  for (int64_t next = share; next < job.parts; next += job.team) {
    const int part = static_cast<int>(next);
    job.body(job.context, polyop_part(job.begin, job.end, part, job.parts),
             polyop_part(job.begin, job.end, part + 1, job.parts), part);
  }
}

void* work(void* argument) {
  const int share = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  std::atomic<uint32_t>& word = slots[share].word;
  for (;;) {
    if (!spin_until([&] { return word.load(std::memory_order_relaxed) == kOpen; })) {
      uint32_t idle = kIdle;
      if (word.compare_exchange_strong(idle, kAsleep)) sleep_while(word, kAsleep);
    }
    uint32_t state = kOpen;
    if (!word.compare_exchange_strong(state, kTaken, std::memory_order_acquire)) {
      if (state == kAsleep) word.compare_exchange_strong(state, kIdle);  // a spurious wake-up
      continue;
    }
    served_call = loop.call;
    run_share(loop, share);
    served_call = nullptr;
    if (word.exchange(kIdle, std::memory_order_release) == kAwaited) wake(word);
  }
}

std::atomic<int> finished{0};  // threads of OpenMP that have run their shares of the loop

// Runs the shares of one thread of OpenMP's team. The thread of the call waits for the others, and polls.
void run_shares(void*, int thread, int threads) {
  const Interruptible* before = std::exchange(served_call, loop.call);
  for (int share = thread; share < loop.team; share += threads) run_share(loop, share);
  served_call = before;
  if (thread != 0) {
    finished.fetch_add(1, std::memory_order_release);
    return;
  }
  if (own_call == nullptr) return;  // OpenMP waits
  const auto done = [&] { return finished.load(std::memory_order_acquire) == threads - 1; };
  while (!spin_until(done)) own_call->poll();
}

bool start_worker(int share) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // the program's own threads handle signals; a worker only those that it raises itself by a fault
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread;
  const int error =
      pthread_create(&thread, &attributes, work, reinterpret_cast<void*>(static_cast<intptr_t>(share)));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    std::fprintf(stderr, "polyop: loops run on %d threads, as no more can be started: %s\n", share,
                 std::strerror(error));
    return false;
  }
  char name[16];
  std::snprintf(name, sizeof name, "polyop-%d", share);
  pthread_setname_np(thread, name);
  return true;
}

// Starts the workers that a team still needs. Returns the size that the team can have.
int start_workers(int team) {
  while (started < team - 1 && !exhausted) {
    if (start_worker(started + 1)) {
      ++started;
    } else {
      exhausted = true;
    }
  }
  return std::min(team, started + 1);
}

void offer_shares() {
  for (int share = 1; share < loop.team; ++share) {
    if (slots[share].word.exchange(kOpen, std::memory_order_release) == kAsleep) wake(slots[share].word);
  }
}

// Runs the shares that no worker has claimed, so that nothing waits for a worker that is not awake yet or has
// no CPU. A part keeps its number on any thread.
void run_unclaimed() {
  for (int share = loop.team - 1; share >= 1; --share) {
    uint32_t open = kOpen;
    if (slots[share].word.compare_exchange_strong(open, kIdle, std::memory_order_relaxed)) {
      run_share(loop, share);
    }
  }
}

void wait_for(std::atomic<uint32_t>& word) {
  const auto done = [&] {
    const uint32_t state = word.load(std::memory_order_acquire);
    return state != kTaken && state != kAwaited;
  };
  if (spin_until(done)) return;
  while (!done()) {
    uint32_t taken = kTaken;
    if (word.compare_exchange_strong(taken, kAwaited) || taken == kAwaited) {
      sleep_while(word, kAwaited, own_call == nullptr ? nullptr : &kPollInterval);
    }
    if (own_call != nullptr) own_call->poll();
  }
}

// Resets the pool in a child of fork(), which has this thread only. It only stores: other threads of the
// parent may have held any lock.
void after_fork() {
  for (Slot& slot : slots) slot.word.store(kIdle, std::memory_order_relaxed);
  started = 0;
  exhausted = false;
  serial_loops.store(0, std::memory_order_relaxed);
  busy.store(false, std::memory_order_relaxed);
  forget_cpus();
  forget_openmp();
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);

}  // namespace

Interruptible* exchange_interruptible(Interruptible* call) { return std::exchange(own_call, call); }

int should_stop() {
  if (own_call != nullptr) own_call->poll();
  const Interruptible* call = own_call != nullptr ? own_call : served_call;
  return call != nullptr && call->interrupted();
}

int parallel(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk, int threads) {
  if (end <= begin) return 0;
  const int allowed = thread_count();
  if (threads <= 0) threads = allowed;
  Loop request{body, context, begin, end, chunk, 1, 1, own_call != nullptr ? own_call : served_call};
  const int64_t max_parts = chunk > 0 ? pieces(request) : end - begin;
  request.parts = static_cast<int>(std::min<int64_t>(threads, max_parts));
  request.team = std::min(request.parts, allowed);
  if (request.team == 1) return polyop_serial(body, context, begin, end, chunk, threads);
  if (busy.exchange(true, std::memory_order_acquire)) {
    serial_loops.fetch_add(1, std::memory_order_relaxed);
    const int used = polyop_serial(body, context, begin, end, chunk, threads);
    serial_loops.fetch_sub(1, std::memory_order_relaxed);
    return used;
  }
  loop = request;
  for (int share = 0; share < loop.team; ++share)
    slots[share].pieces_begun.store(0, std::memory_order_relaxed);
  finished.store(0, std::memory_order_relaxed);
  if (run_on_openmp(&run_shares, nullptr, request.team)) {
    busy.store(false, std::memory_order_release);
    return chunk > 0 ? request.team : request.parts;
  }
  loop.team = request.team = start_workers(request.team);
  const bool crowded = request.team + serial_loops.load(std::memory_order_relaxed) > cpus();
  spin_time.store(crowded ? 0 : kSpinTime, std::memory_order_relaxed);
  offer_shares();
  run_share(loop, 0);
  run_unclaimed();
  for (int share = 1; share < loop.team; ++share) wait_for(slots[share].word);
  busy.store(false, std::memory_order_release);
  return chunk > 0 ? request.team : request.parts;
}

void connect_threads(void* library) {
  void* loops = dlsym(library, "polyop_parallel");
  void* count = dlsym(library, "polyop_threads");
  void* stop = dlsym(library, "polyop_stop");  // null in libraries of an older polyop: not interruptible
  if (stop != nullptr) __atomic_store_n(static_cast<polyop_stop_fn*>(stop), &should_stop, __ATOMIC_RELEASE);
  if (loops == nullptr && count == nullptr) return;
  // this reads the environment now: threads of kernels cannot call Python later
  const UnusableVariable* unusable = unusable_variable();
  static std::atomic<bool> warned{false};
  if (unusable != nullptr && !warned.exchange(true)) {
    std::fprintf(stderr, "polyop: %s must be a whole number from 1 to %d, but got '%s': it is not used\n",
                 unusable->variable, kMaxThreads, unusable->text.c_str());
  }
  if (loops != nullptr)
    __atomic_store_n(static_cast<polyop_parallel_fn*>(loops), &parallel, __ATOMIC_RELEASE);
  if (count != nullptr)
    __atomic_store_n(static_cast<polyop_threads_fn*>(count), &thread_count, __ATOMIC_RELEASE);
}

}  // namespace polyop
