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

#include "thread_count.h"

namespace polyop {

namespace {

// Each worker has a slot, and its word is all that it shares with the thread that runs a loop:
//   the loop's thread   Idle or Asleep -> Open    there is a share for the worker (wakes it)
//   the worker          Open -> Taken             it runs the share
//   the loop's thread   Open -> Idle              it took the share back: the worker was late
//   the worker          Taken or Awaited -> Idle  the share is done (wakes who waits)
//   the loop's thread   Taken -> Awaited          it sleeps until then
//   the worker          Idle -> Asleep            nothing came for a while
// A worker reads the loop only while its word is Taken or Awaited, and the loop stays until all
// words are Idle or Asleep: a late worker can never see a loop that has ended.
enum Word : uint32_t { kIdle, kAsleep, kOpen, kTaken, kAwaited };

struct alignas(64) Slot {
  std::atomic<uint32_t> word{kIdle};
  std::atomic<int64_t> begun{0};  // pieces of the share, of a dynamic loop
};

struct Loop {
  polyop_body body;
  void* context;
  int64_t begin, end, chunk;
  int parts;                    // of a static loop
  int team;                     // how many threads run it
  const Interruptible* served;  // the call that it is a part of, or null
};

// ns. What a program does between two loops, as a framework that walks back through its graph, takes less;
// a worker that sleeps misses the first tens of microseconds of the next.
constexpr int64_t kSpin = 200'000;

// How often the thread of a call that can be ended looks for a reason while it waits for workers.
constexpr timespec kLook{0, 50'000'000};

#ifdef __GLIBC__
// Each call of an operator reads them.
#define POLYOP_NEAR __attribute__((tls_model("initial-exec")))
#else
#define POLYOP_NEAR
#endif
thread_local POLYOP_NEAR Interruptible* own = nullptr;           // the call that this thread has begun
thread_local POLYOP_NEAR const Interruptible* served = nullptr;  // the call that this worker has a share of

// Everything is constant-initialised and never destroyed: workers may outlive exit().
Slot slots[kMostThreads];  // the first one's word is not used: share 0 is the loop's own thread's
Loop loop;
alignas(64) std::atomic<bool> busy{false};  // a loop has the workers
std::atomic<int> alone{0};                  // threads that run a loop without them
std::atomic<int64_t> spin{0};               // ns that a wait spins before it sleeps
int started = 0;                            // workers; belongs to who set busy
bool exhausted = false;                     // the system refused a thread; likewise

void sleep_while(std::atomic<uint32_t>& word, uint32_t value, const timespec* most = nullptr) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, most, nullptr, 0);
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

// Whether `done` became true within the time that a wait may spin.
template <typename Done>
bool spin_until(Done done) {
  const int64_t most = spin.load(std::memory_order_relaxed);
  if (most == 0) return done();
  for (int64_t last = 0;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause();
    }
    const int64_t time = now();
    if (last == 0) last = time + most;
    if (time >= last) return false;
  }
}

int64_t pieces(const Loop& of) { return (of.end - of.begin - 1) / of.chunk + 1; }

// A share is pieces side by side. Who has run all of its own takes what is left of the others'.
void run_pieces(const Loop& of, int thread) {
  const int64_t count = pieces(of);
  for (int turn = 0; turn < of.team; ++turn) {
    const int share = (thread + turn) % of.team;
    const int64_t first = polyop_part(0, count, share, of.team);
    const int64_t last = polyop_part(0, count, share + 1, of.team);
    std::atomic<int64_t>& begun = slots[share].begun;
    while (begun.load(std::memory_order_relaxed) < last - first) {
      const int64_t piece = first + begun.fetch_add(1, std::memory_order_relaxed);
      if (piece >= last) break;
      const int64_t from = of.begin + piece * of.chunk;
      of.body(of.context, from, piece == count - 1 ? of.end : from + of.chunk, thread);
    }
  }
}

// Every team-th part: where there are more parts than threads, a share is several.
void run_share(const Loop& of, int share) {
  if (of.chunk > 0) return run_pieces(of, share);
  for (int64_t next = share; next < of.parts; next += of.team) {
    const int part = static_cast<int>(next);
    of.body(of.context, polyop_part(of.begin, of.end, part, of.parts),
            polyop_part(of.begin, of.end, part + 1, of.parts), part);
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
    uint32_t seen = kOpen;
    if (!word.compare_exchange_strong(seen, kTaken, std::memory_order_acquire)) {
      if (seen == kAsleep) word.compare_exchange_strong(seen, kIdle);  // woken by nobody, as may happen
      continue;
    }
    served = loop.served;
    run_share(loop, share);
    served = nullptr;
    if (word.exchange(kIdle, std::memory_order_release) == kAwaited) wake(word);
  }
}

bool start_worker(int share) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // signals are for the program's own threads, except those that a fault raises in this one
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread;
  const int problem =
      pthread_create(&thread, &attributes, work, reinterpret_cast<void*>(static_cast<intptr_t>(share)));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (problem != 0) {
    std::fprintf(stderr, "polyop: loops run on %d threads, as no more can be started: %s\n", share,
                 std::strerror(problem));
    return false;
  }
  char name[16];
  std::snprintf(name, sizeof name, "polyop-%d", share);
  pthread_setname_np(thread, name);
  return true;
}

// Starts what is missing of a team; returns how large it can be.
int recruit(int team) {
  while (started < team - 1 && !exhausted) {
    if (start_worker(started + 1)) {
      ++started;
    } else {
      exhausted = true;
    }
  }
  return std::min(team, started + 1);
}

void open_shares() {
  for (int share = 1; share < loop.team; ++share) {
    if (slots[share].word.exchange(kOpen, std::memory_order_release) == kAsleep) wake(slots[share].word);
  }
}

// Shares that no worker has begun are run here: a worker that the system has not woken yet, or has
// no CPU for, costs its share no waiting. A part keeps its number, whoever runs it.
void take_back() {
  for (int share = loop.team - 1; share >= 1; --share) {
    uint32_t open = kOpen;
    if (slots[share].word.compare_exchange_strong(open, kIdle, std::memory_order_relaxed)) {
      run_share(loop, share);
    }
  }
}

void wait_for(std::atomic<uint32_t>& word) {
  const auto done = [&] {
    const uint32_t seen = word.load(std::memory_order_acquire);
    return seen != kTaken && seen != kAwaited;
  };
  if (spin_until(done)) return;
  while (!done()) {
    uint32_t taken = kTaken;
    if (word.compare_exchange_strong(taken, kAwaited) || taken == kAwaited) {
      sleep_while(word, kAwaited, own == nullptr ? nullptr : &kLook);
    }
    if (own != nullptr) own->look();
  }
}

// The child has this thread only. Stores and nothing else: another thread may have held any lock.
void after_fork() {
  for (Slot& slot : slots) slot.word.store(kIdle, std::memory_order_relaxed);
  started = 0;
  exhausted = false;
  alone.store(0, std::memory_order_relaxed);
  busy.store(false, std::memory_order_relaxed);
  forget_cpus();
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);

}  // namespace

Interruptible* exchange_interruptible(Interruptible* call) { return std::exchange(own, call); }

int is_to_stop() {
  if (own != nullptr) own->look();
  const Interruptible* call = own != nullptr ? own : served;
  return call != nullptr && call->ended();
}

int parallel(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk, int threads) {
  if (end <= begin) return 0;
  const int allowed = thread_count();
  if (threads <= 0) threads = allowed;
  Loop wanted{body, context, begin, end, chunk, 1, 1, own != nullptr ? own : served};
  const int64_t most = chunk > 0 ? pieces(wanted) : end - begin;
  wanted.parts = static_cast<int>(std::min<int64_t>(threads, most));
  wanted.team = std::min(wanted.parts, allowed);
  if (wanted.team == 1) return polyop_serial(body, context, begin, end, chunk, threads);
  if (busy.exchange(true, std::memory_order_acquire)) {
    alone.fetch_add(1, std::memory_order_relaxed);
    const int used = polyop_serial(body, context, begin, end, chunk, threads);
    alone.fetch_sub(1, std::memory_order_relaxed);
    return used;
  }
  wanted.team = recruit(wanted.team);
  loop = wanted;
  for (int share = 0; share < loop.team; ++share) slots[share].begun.store(0, std::memory_order_relaxed);
  const bool crowded = wanted.team + alone.load(std::memory_order_relaxed) > cpus();
  spin.store(crowded ? 0 : kSpin, std::memory_order_relaxed);
  open_shares();
  run_share(loop, 0);
  take_back();
  for (int share = 1; share < loop.team; ++share) wait_for(slots[share].word);
  busy.store(false, std::memory_order_release);
  return chunk > 0 ? wanted.team : wanted.parts;
}

void connect_threads(void* library) {
  void* loops = dlsym(library, "polyop_parallel");
  void* count = dlsym(library, "polyop_threads");
  void* stop = dlsym(library, "polyop_stop");  // libraries built before there was one run to their end
  if (stop != nullptr) __atomic_store_n(static_cast<polyop_stop_fn*>(stop), &is_to_stop, __ATOMIC_RELEASE);
  if (loops == nullptr && count == nullptr) return;
  // reads the environment, now: kernels ask from threads that may not ask Python
  const Unusable* unusable = unusable_variable();
  static std::atomic<bool> said{false};
  if (unusable != nullptr && !said.exchange(true)) {
    std::fprintf(stderr, "polyop: %s must be a whole number from 1 to %d, but got '%s': it is not used\n",
                 unusable->variable, kMostThreads, unusable->text.c_str());
  }
  if (loops != nullptr)
    __atomic_store_n(static_cast<polyop_parallel_fn*>(loops), &parallel, __ATOMIC_RELEASE);
  if (count != nullptr)
    __atomic_store_n(static_cast<polyop_threads_fn*>(count), &thread_count, __ATOMIC_RELEASE);
}

}  // namespace polyop
