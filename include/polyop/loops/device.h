/* The runtime of loop kernels that are emitted as CUDA, which compilers of HIP take too (hip.h). It is
 * compiled, but not run on hardware: tests run the emitted text in an emulation of blocks and threads.
 * POLYOP_DEVICE_EMULATION names the emulation's header, which is included in place of CUDA's.
 *
 *   types       i8 .. u64, f32, f64; f16, bf16 and byte floats (f8e4m3 ...) are words, computed with as f32
 *   integers    floordiv_T mod_T as NumPy's (0 for division by 0); max_T min_T; wrap_add_T wrap_sub_T
 *               wrap_mul_T wrap_neg_T
 *   floats      max_T min_T: a NaN on either side is the result; pl_exp_f32 ...: CUDA's own functions
 *   halves      cvt_f16_f32 cvt_f32_f16 cvt_bf16_f32 cvt_f32_bf16: to nearest, ties to even; NaN stays NaN
 *   integers    whole_i32_f32 ...: of floats, as whole.h says
 *   byte floats cvt_f8e4m3_f32 cvt_f32_f8e4m3 ...: byte_floats.h
 *   groups      polyop_sync polyop_combine polyop_broadcast: for the threads that share a row, a warp or a
 *               block
 *   memory      polyop_taken: device memory in the order of a stream, freed at the end of its block;
 *               polyop_clear polyop_fetch
 *
 * CUDA's programming guide has the largest errors of CUDA's functions. They are not math.h's, so a result may
 * differ from the CPU's in the last digits. */
#ifndef POLYOP_LOOPS_DEVICE_H
#define POLYOP_LOOPS_DEVICE_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#ifdef POLYOP_DEVICE_EMULATION
#include POLYOP_DEVICE_EMULATION
#else
#ifdef __HIP__
#include "hip.h"
#else
#include <cuda_runtime.h>
#endif
#define POLYOP_LAUNCH(part, grid, block, stream, self) \
  do {                                                 \
    part<<<(grid), (block), 0, (stream)>>>(self);      \
    const cudaError_t wrong = cudaGetLastError();      \
    if (wrong) return cudaGetErrorString(wrong);       \
  } while (0)
#define POLYOP_UNROLL _Pragma("unroll")
#endif

#include "run.h"
#undef polyop_inside

#define POLYOP_WIDEST 512
#define POLYOP_FN static inline __host__ __device__
#define POLYOP_GPU static inline __device__

#include "byte_floats.h"
#include "device_group.h"
#include "device_math.h"
#include "launch.h"
#include "philox.h"
#include "whole.h"

typedef cudaStream_t polyop_stream;

/* Device memory, freed by the destructor. `wrong` is the error when there is none, else null. */
struct polyop_taken {
  void* data = nullptr;
  const char* wrong = nullptr;
  cudaStream_t stream;
  bool ordered = true;
  polyop_taken(int64_t bytes, cudaStream_t on) : stream(on) {
    const size_t size = bytes > 0 ? (size_t)bytes : 1;
    if (cudaMallocAsync(&data, size, stream) == cudaSuccess) return;
    (void)cudaGetLastError(); /* a device without memory pools */
    ordered = false;
    if (const cudaError_t problem = cudaMalloc(&data, size)) {
      (void)cudaGetLastError();
      data = nullptr;
      wrong = cudaGetErrorString(problem);
    }
  }
  ~polyop_taken() {
    if (!data) return;
    if (ordered) {
      cudaFreeAsync(data, stream);
    } else {
      cudaStreamSynchronize(stream);
      cudaFree(data);
    }
  }
  polyop_taken(const polyop_taken&) = delete;
  polyop_taken& operator=(const polyop_taken&) = delete;
};

/* Zeros in memory, and memory copied to the host, which waits for it; the error, or null. */
static inline const char* polyop_clear(void* data, int64_t bytes, polyop_stream stream) {
  const cudaError_t wrong = cudaMemsetAsync(data, 0, bytes, stream);
  return wrong ? cudaGetErrorString(wrong) : nullptr;
}
static inline const char* polyop_fetch(void* to, const void* from, size_t bytes, polyop_stream stream) {
  cudaError_t wrong = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  if (!wrong) wrong = cudaStreamSynchronize(stream);
  return wrong ? cudaGetErrorString(wrong) : nullptr;
}

/* Whether an index is inside; else it is the failure of the launch, if it is the first. */
POLYOP_GPU bool polyop_inside(polyop_failure* failure, int64_t index, int64_t size, int place) {
  if ((uint64_t)polyop_from_end(index, size) < (uint64_t)size) return true;
  if (atomicCAS(&failure->place, 0, place) == 0) {
    failure->index = index;
    failure->size = size;
  }
  return false;
}

#endif
