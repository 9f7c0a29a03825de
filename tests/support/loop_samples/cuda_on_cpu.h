/* CUDA's blocks and threads on a CPU, for the texts that loop kernels emit: polyop/loops/device.h includes
 * this in place of CUDA where POLYOP_DEVICE_EMULATION names it.
 *
 * Each thread of a block is a coroutine with a stack of its own. One runs until it waits for others, at
 * __syncthreads, __syncwarp or a shuffle; which one is next is drawn from a sequence that
 * POLYOP_EMULATION_ORDER starts, so that a missing barrier gives wrong results under one order or another.
 * Blocks run one after another.
 *
 * An error ends the process with a text: threads of a block that wait at different barriers, or at none while
 * others wait; more threads, or shared memory where blocks have none. Device memory starts as 0xCB bytes and
 * has a margin on both sides that is looked at when it is given back. */
#ifndef CUDA_ON_CPU_H
#define CUDA_ON_CPU_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__ static
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(threads)
#define POLYOP_UNROLL
#define POLYOP_LAUNCH(part, grid, block, stream, self) emulation::launch(part, grid, block, self, __LINE__)

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
typedef struct emulated_stream* cudaStream_t;
typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaMemcpyDeviceToHost = 2 };

namespace emulation {

[[noreturn]] inline void stop(const char* what, int line) {
  fprintf(stderr, "emulation: %s (launched at line %d)\n", what, line);
  abort();
}

enum state { READY, AT_BLOCK, AT_WARP, DONE };
struct thread {
  ucontext_t context;
  char* stack = nullptr;
  int state = DONE;
  dim3 index;
  uint64_t value = 0; /* what a shuffle hands on */
};
struct machine {
  ucontext_t back;
  thread threads[1024];
  thread* running = nullptr;
  int count = 0, line = 0;
  dim3 block, grid, size;
  uint32_t random = 1;
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  long long launches = 0, live = 0;
};
static machine& self() { /* of this library alone */
  static machine one;
  return one;
}
static inline unsigned draw(unsigned below) {
  uint32_t& r = self().random;
  r ^= r << 13, r ^= r >> 17, r ^= r << 5;
  return r % below;
}
static inline void wait(int state) {
  machine& m = self();
  m.running->state = state;
  swapcontext(&m.running->context, &m.back);
}
static inline void enter() {
  machine& m = self();
  m.body(m.argument);
  m.running->state = DONE;
  swapcontext(&m.running->context, &m.back);
}
/* Let those go on that have all arrived; whether there were any. */
static inline bool release(int first, int last, int state) {
  machine& m = self();
  int waiting = 0;
  for (int i = first; i < last; ++i) waiting += m.threads[i].state == state;
  if (waiting == 0 || waiting < last - first) return false;
  for (int i = first; i < last; ++i) m.threads[i].state = READY;
  return true;
}
static inline void run_block() {
  machine& m = self();
  for (;;) {
    const unsigned start = draw((unsigned)m.count), backward = draw(2);
    bool any = false;
    for (int n = 0; n < m.count; ++n) {
      const int at = (int)((start + (unsigned)(backward ? m.count - n : n)) % (unsigned)m.count);
      thread& t = m.threads[at];
      if (t.state != READY) continue;
      any = true;
      m.running = &t;
      swapcontext(&m.back, &t.context);
    }
    if (any) continue;
    bool released = false;
    for (int first = 0; first < m.count; first += 32) {
      released |= release(first, first + 32 < m.count ? first + 32 : m.count, AT_WARP);
    }
    if (released || release(0, m.count, AT_BLOCK)) continue;
    for (int i = 0; i < m.count; ++i) {
      if (m.threads[i].state != DONE) stop("threads wait for others that never come", m.line);
    }
    return;
  }
}
template <class Kernel>
void launch(void (*part)(const Kernel), dim3 grid, dim3 block, const Kernel& given, int line) {
  struct call {
    void (*part)(const Kernel);
    const Kernel* given;
  } both = {part, &given};
  machine& m = self();
  const char* order = getenv("POLYOP_EMULATION_ORDER");
  m.random = order ? (uint32_t)atoi(order) * 2654435761u | 1u : 1u;
  m.body = [](void* p) { ((call*)p)->part(*((call*)p)->given); };
  m.argument = &both;
  m.count = (int)(block.x * block.y * block.z);
  m.grid = grid, m.size = block, m.line = line;
  ++m.launches;
  if (m.count < 1 || m.count > 1024) stop("a block must have 1 to 1024 threads", line);
  if (grid.x < 1 || grid.y < 1 || grid.y > 65535 || grid.x > 0x7fffffffu)
    stop("a grid is too large, or empty", line);
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      m.block = dim3(x, y);
      for (int i = 0; i < m.count; ++i) {
        thread& t = m.threads[i];
        if (!t.stack) t.stack = (char*)malloc(64 << 10);
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack;
        t.context.uc_stack.ss_size = 64 << 10;
        t.context.uc_link = nullptr;
        makecontext(&t.context, enter, 0);
        t.index = dim3((unsigned)i % block.x, (unsigned)i / block.x % block.y, 0);
        t.state = READY;
      }
      run_block();
    }
  }
}

/* memory: a margin, the bytes, a margin */
enum { MARGIN = 64, OUTSIDE = 0xA7, FRESH = 0xCB };
static inline cudaError_t take(void** data, size_t bytes) {
  unsigned char* all = (unsigned char*)malloc(bytes + 2 * MARGIN);
  if (!all) return cudaErrorMemoryAllocation;
  memset(all, OUTSIDE, bytes + 2 * MARGIN);
  memcpy(all, &bytes, sizeof bytes);
  memset(all + MARGIN, FRESH, bytes);
  *data = all + MARGIN;
  ++self().live;
  return cudaSuccess;
}
static inline cudaError_t give(void* data) {
  unsigned char* all = (unsigned char*)data - MARGIN;
  size_t bytes;
  memcpy(&bytes, all, sizeof bytes);
  for (int i = (int)sizeof bytes; i < MARGIN; ++i) {
    if (all[i] != OUTSIDE || all[MARGIN + bytes + i] != OUTSIDE)
      stop("written outside device memory", self().line);
  }
  free(all);
  --self().live;
  return cudaSuccess;
}

template <class T>
T shuffle(T value, int from) {
  machine& m = self();
  thread& own = *m.running;
  const int index = (int)(&own - m.threads), first = index / 32 * 32;
  own.value = 0;
  memcpy(&own.value, &value, sizeof value);
  wait(AT_WARP);
  T found;
  memcpy(&found, &m.threads[first + from].value, sizeof found);
  wait(AT_WARP);
  return found;
}

}  // namespace emulation

#define threadIdx (emulation::self().running->index)
#define blockIdx (emulation::self().block)
#define blockDim (emulation::self().size)
#define gridDim (emulation::self().grid)

static inline void __syncthreads() { emulation::wait(emulation::AT_BLOCK); }
static inline void __syncwarp() { emulation::wait(emulation::AT_WARP); }
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulation::shuffle(value, lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int step) {
  const int lane = (int)(emulation::self().running - emulation::self().threads) % 32;
  return emulation::shuffle(value, lane ^ step);
}
template <class T, class U>
T atomicCAS(T* place, U before, U wanted) {
  const T seen = *place;
  if (seen == (T)before) *place = (T)wanted;
  return seen;
}

static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline const char* cudaGetErrorString(cudaError_t) { return "emulated"; }
static inline cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t) {
  return emulation::take(data, bytes);
}
static inline cudaError_t cudaMalloc(void** data, size_t bytes) { return emulation::take(data, bytes); }
static inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return emulation::give(data); }
static inline cudaError_t cudaFree(void* data) { return emulation::give(data); }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t) {
  memset(data, value, bytes);
  return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, cudaStream_t) {
  memcpy(to, from, bytes);
  return cudaSuccess;
}

/* For tests: how many launches there were, and how many pieces of device memory are not given back. */
extern "C" long long emulated_launches() { return emulation::self().launches; }
extern "C" long long emulated_live() { return emulation::self().live; }
#endif
