// Kernels for OpenCL by the contract of polyop/abi.h. OpenCL is the library that the program has loaded:
// PyOpenCL may bring its own, and the system may have none.
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <map>
#include <mutex>

#include "polyop/abi.h"

namespace {

const char* kText =
    "__kernel void scale(__global const uchar *x, long at, __global uchar *y, long to, float a) {\n"
    "  const size_t i = get_global_id(0);\n"
    "  ((__global float *)(y + to))[i] = a * ((__global const float *)(x + at))[i];\n"
    "}\n";

int open_if_opencl(dl_phdr_info* info, size_t, void* library) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libOpenCL") == nullptr) return 0;
  *static_cast<void**>(library) = dlopen(info->dlpi_name, RTLD_NOW);
  return 1;
}

void* loaded() {
  void* library = nullptr;
  dl_iterate_phdr(open_if_opencl, &library);
  return library;
}

template <typename F>
F* function(const char* name) {
  static void* const library = loaded();
  return reinterpret_cast<F*>(dlsym(library, name));
}

void* context_of(void* queue) {
  void* context = nullptr;
  function<int(void*, unsigned, size_t, void*, size_t*)>("clGetCommandQueueInfo")(
      queue, 0x1090, sizeof context, &context, nullptr);
  return context;
}

// The kernel of a context. One kernel has one set of arguments, so calls wait for each other.
void* kernel_of(void* context) {
  static auto* made = new std::map<void*, void*>();
  void*& kernel = (*made)[context];
  if (kernel != nullptr) return kernel;
  void* program = function<void*(void*, unsigned, const char**, const size_t*, int*)>(
      "clCreateProgramWithSource")(context, 1, &kText, nullptr, nullptr);
  function<int(void*, unsigned, void**, const char*, void*, void*)>("clBuildProgram")(program, 0, nullptr, "",
                                                                                      nullptr, nullptr);
  return kernel = function<void*(void*, const char*, int*)>("clCreateKernel")(program, "scale", nullptr);
}

int scale(void* from, void* to, int rank, const int64_t* shape, void* queue, void* extra) {
  static std::mutex lock;
  double number = 0;
  if (polyop_get_float(extra, "a", &number)) return 1;
  size_t count = 1;
  for (int i = 0; i < rank; ++i) count *= static_cast<size_t>(shape[i]);
  if (count == 0) return 0;
  const auto *x = static_cast<polyop_opencl_memory*>(from), *y = static_cast<polyop_opencl_memory*>(to);
  const float a = static_cast<float>(number);
  const std::lock_guard<std::mutex> held(lock);
  void* kernel = kernel_of(context_of(queue));
  const auto set = function<int(void*, unsigned, size_t, const void*)>("clSetKernelArg");
  set(kernel, 0, sizeof(void*), &x->memory);
  set(kernel, 1, sizeof x->offset, &x->offset);
  set(kernel, 2, sizeof(void*), &y->memory);
  set(kernel, 3, sizeof y->offset, &y->offset);
  set(kernel, 4, sizeof a, &a);
  return function<int(void*, void*, unsigned, const size_t*, const size_t*, const size_t*, unsigned,
                      const void*, void*)>("clEnqueueNDRangeKernel")(queue, kernel, 1, nullptr, &count,
                                                                     nullptr, 0, nullptr, nullptr);
}

}  // namespace

extern "C" int scaled(int, void** params, int* ndims, int64_t** shapes, const char**, void* queue,
                      void* extra) {
  return scale(params[0], params[1], ndims[0], shapes[0], queue, extra);
}

extern "C" int scale_in_place(int, void** params, int* ndims, int64_t** shapes, const char**, void* queue,
                              void* extra) {
  return scale(params[0], params[0], ndims[0], shapes[0], queue, extra);
}

// Whether an optional tensor was given, as the number of elements that are copied from `x`: all or none.
extern "C" int copied_if_given(int, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                               void* queue, void* extra) {
  if (params[1] == nullptr) return polyop_fail(extra, dtypes[1][0] == 0 ? "no tensor" : "wrong dtype");
  return scale(params[0], params[2], ndims[0], shapes[0], queue, extra);
}
