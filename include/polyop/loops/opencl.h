/* The host of loop kernels that are emitted as OpenCL C: it gets a library's kernels once for each context
 * and device, and launches them on the queue of the call.
 *
 *   polyop_memory    a buffer, and where a tensor starts in it, in bytes; what the caller passes for a tensor
 *   polyop_program   the kernels of one library
 *   polyop_queue     the queue of one call; `wrong` is why it cannot be used, else null
 *   polyop_taken     memory of the device, released at the end of its block: commands that use it keep it
 *   polyop_clear polyop_fetch
 *
 * OpenCL is found at run time, so that a library needs neither its headers nor a device to be built. */
#ifndef POLYOP_LOOPS_OPENCL_H
#define POLYOP_LOOPS_OPENCL_H
#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "run.h"
#undef polyop_inside
#undef min
#undef max

#define POLYOP_FN static inline
#define POLYOP_WIDEST 256
#include "device_math.h"
#include "launch.h"

/* The part of OpenCL's interface that is used here: the names and numbers are its specification's. */
#define POLYOP_OPENCL(X)                                                                               \
  X(clGetCommandQueueInfo, int, void* queue, unsigned what, size_t bytes, void* to, size_t* used)      \
  X(clCreateBuffer, void*, void* context, uint64_t flags, size_t bytes, void* host, int* wrong)        \
  X(clReleaseMemObject, int, void* memory)                                                             \
  X(clCreateKernel, void*, void* program, const char* name, int* wrong)                                \
  X(clSetKernelArg, int, void* kernel, unsigned number, size_t bytes, const void* value)               \
  X(clEnqueueNDRangeKernel, int, void* queue, void* kernel, unsigned dimensions, const size_t* offset, \
    const size_t* global, const size_t* local, unsigned waits, void* const* wait, void** event)        \
  X(clEnqueueFillBuffer, int, void* queue, void* memory, const void* pattern, size_t pattern_bytes,    \
    size_t offset, size_t bytes, unsigned waits, void* const* wait, void** event)                      \
  X(clEnqueueReadBuffer, int, void* queue, void* memory, unsigned blocks, size_t offset, size_t bytes, \
    void* to, unsigned waits, void* const* wait, void** event)                                         \
  X(clEnqueueBarrierWithWaitList, int, void* queue, unsigned waits, void* const* wait, void** event)

/* The functions of the library that the program has loaded already, else of the system's. */
struct polyop_opencl {
#define POLYOP_ROW(name, type, ...) type (*name)(__VA_ARGS__) = nullptr;
  POLYOP_OPENCL(POLYOP_ROW)
#undef POLYOP_ROW
  const char* wrong = nullptr;
  polyop_opencl() {
    std::string path;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* found) {
          if (!info->dlpi_name || !strstr(info->dlpi_name, "libOpenCL")) return 0;
          *(std::string*)found = info->dlpi_name;
          return 1;
        },
        &path);
    void* const library = dlopen(path.empty() ? "libOpenCL.so.1" : path.c_str(), RTLD_NOW);
    if (!library) {
      wrong = "libOpenCL.so.1 cannot be loaded: install a loader of OpenCL, such as ocl-icd";
      return;
    }
#define POLYOP_ROW(name, type, ...)                    \
  name = (type (*)(__VA_ARGS__))dlsym(library, #name); \
  if (!name) wrong = "the loader of OpenCL lacks " #name " (OpenCL 1.2)";
    POLYOP_OPENCL(POLYOP_ROW)
#undef POLYOP_ROW
  }
};
static inline const polyop_opencl& polyop_cl() {
  static const polyop_opencl functions;
  return functions;
}
/* An error as a text that lives until the next one of this thread. */
static inline const char* polyop_opencl_error(const char* function, int code) {
  static thread_local std::string text;
  text = std::string(function) + " failed with " + std::to_string(code);
  return text.c_str();
}

struct polyop_memory {
  void* memory;
  int64_t offset;
};
static inline int polyop_overlap(const polyop_memory& a, int64_t a_bytes, const polyop_memory& b,
                                 int64_t b_bytes) {
  return a.memory == b.memory && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
}

/* Makes the program of a text for a device, and keeps it; else returns 1, and sets `why`.
 * polyop/hosts/pyopencl/loop_programs.py sets the function, in each library its own: as in stop.h, another
 * library's of the same name does not take its place. */
typedef int (*polyop_build)(void* context, void* device, const char* text, void** program, char* why,
                            size_t bytes);
extern "C" {
__attribute__((visibility("protected"))) polyop_build polyop_opencl_build = nullptr;
}

/* The kernels of one library, by context and device. A program keeps its context, so no other one gets its
 * address. */
struct polyop_program {
  const char* text;
  int count;
  std::mutex lock;
  std::map<std::pair<void*, void*>, std::vector<void*>> built;
  polyop_program(const char* text, int count) : text(text), count(count) {}
  /* Sets `kernels`; returns the error, or null. The host may wait for other threads while it compiles, so the
   * lock is not held: of two threads that come first, one's kernels are not used. */
  const char* find(void* context, void* device, const std::vector<void*>** kernels) {
    {
      const std::lock_guard<std::mutex> held(lock);
      const auto found = built.find({context, device});
      if (found != built.end()) {
        *kernels = &found->second;
        return nullptr;
      }
    }
    std::vector<void*> made;
    if (const char* const wrong = build(context, device, made)) return wrong;
    const std::lock_guard<std::mutex> held(lock);
    *kernels = &built.emplace(std::make_pair(context, device), std::move(made)).first->second;
    return nullptr;
  }
  const char* build(void* context, void* device, std::vector<void*>& made) const {
    static thread_local char why[4000];
    if (!polyop_opencl_build) return "polyop's host of PyOpenCL has not prepared its library";
    void* program = nullptr;
    strcpy(why, "its program could not be made");
    if (polyop_opencl_build(context, device, text, &program, why, sizeof why) || !program) return why;
    int wrong = 0;
    for (int k = 0; k < count && !wrong; ++k) {
      made.push_back(polyop_cl().clCreateKernel(program, ("part" + std::to_string(k)).c_str(), &wrong));
    }
    return wrong ? polyop_opencl_error("clCreateKernel", wrong) : nullptr;
  }
};

struct dim3 {
  unsigned x, y;
  dim3(unsigned x, unsigned y = 1) : x(x), y(y) {}
};
struct polyop_queue {
  const char* wrong = nullptr;
  void *queue, *context = nullptr, *device = nullptr;
  polyop_program& program;
  const std::vector<void*>* kernels = nullptr;
  bool in_order = true;
  polyop_queue(void* given, polyop_program& program) : queue(given), program(program) {
    if ((wrong = polyop_cl().wrong)) return;
    uint64_t properties = 0;
    ask(0x1090, &context, sizeof context);
    ask(0x1091, &device, sizeof device);
    ask(0x1093, &properties, sizeof properties);
    in_order = !(properties & 1);
    if (!wrong) wrong = program.find(context, device, &kernels);
  }
  /* Where commands may overtake one another, each waits for those before it. */
  void ordered() const {
    if (!in_order) polyop_cl().clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr);
  }
  template <class Numbers>
  const char* launch(int part, dim3 grid, dim3 block, const Numbers& self,
                     std::initializer_list<polyop_memory> memory) const {
    const polyop_opencl& cl = polyop_cl();
    const std::lock_guard<std::mutex> held(program.lock); /* a kernel has one set of arguments */
    void* const kernel = (*kernels)[part];
    unsigned number = 0;
    int code = cl.clSetKernelArg(kernel, number++, sizeof self, &self);
    for (const polyop_memory& one : memory) {
      if (!code)
        code = cl.clSetKernelArg(kernel, number++, sizeof(void*), one.memory ? &one.memory : nullptr);
    }
    if (code) return polyop_opencl_error("clSetKernelArg", code);
    const size_t local[] = {block.x, block.y},
                 global[] = {(size_t)grid.x * block.x, (size_t)grid.y * block.y};
    ordered();
    code = cl.clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, global, local, 0, nullptr, nullptr);
    ordered();
    return code ? polyop_opencl_error("clEnqueueNDRangeKernel", code) : nullptr;
  }

 private:
  void ask(unsigned what, void* to, size_t bytes) {
    const int code = polyop_cl().clGetCommandQueueInfo(queue, what, bytes, to, nullptr);
    if (code && !wrong) wrong = polyop_opencl_error("clGetCommandQueueInfo", code);
  }
};
typedef const polyop_queue* polyop_stream;
#define POLYOP_LAUNCH(part, grid, block, stream, ...) \
  if (const char* wrong = (stream)->launch(part, grid, block, __VA_ARGS__)) return wrong

struct polyop_taken {
  polyop_memory data = {nullptr, 0};
  const char* wrong = nullptr;
  polyop_taken(int64_t bytes, polyop_stream on) {
    int code = 0;
    data.memory = polyop_cl().clCreateBuffer(on->context, 1, bytes > 0 ? (size_t)bytes : 1, nullptr, &code);
    if (code) wrong = polyop_opencl_error("clCreateBuffer", code);
  }
  ~polyop_taken() {
    if (data.memory) polyop_cl().clReleaseMemObject(data.memory);
  }
  polyop_taken(const polyop_taken&) = delete;
  polyop_taken& operator=(const polyop_taken&) = delete;
};

/* Zeros in memory, and memory copied to the host, which waits for it; the error, or null. */
static inline const char* polyop_clear(const polyop_memory& to, int64_t bytes, polyop_stream stream) {
  const u8 zero = 0;
  stream->ordered();
  const int code = polyop_cl().clEnqueueFillBuffer(stream->queue, to.memory, &zero, 1, (size_t)to.offset,
                                                   (size_t)bytes, 0, nullptr, nullptr);
  stream->ordered();
  return code ? polyop_opencl_error("clEnqueueFillBuffer", code) : nullptr;
}
static inline const char* polyop_fetch(void* to, const polyop_memory& from, size_t bytes,
                                       polyop_stream stream) {
  stream->ordered();
  const int code = polyop_cl().clEnqueueReadBuffer(stream->queue, from.memory, 1, (size_t)from.offset, bytes,
                                                   to, 0, nullptr, nullptr);
  return code ? polyop_opencl_error("clEnqueueReadBuffer", code) : nullptr;
}

#endif
