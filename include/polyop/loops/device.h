/* What loop kernels emitted as CUDA use. Compiled, not run on hardware: tests run the emitted text through an
 * emulation of blocks and threads (POLYOP_DEVICE_EMULATION names its header, included in CUDA's place).
 *
 *   types       i8 .. u64, f32, f64; f16 and bf16 are words, computed with as f32
 *   integers    floordiv_T mod_T as NumPy's (by 0: 0); max_T min_T; wrap_add_T wrap_sub_T wrap_mul_T
 * wrap_neg_T floats      max_T min_T: a NaN on either side is the result; pl_exp_f32 ...: CUDA's own
 * functions halves      cvt_f16_f32 cvt_f32_f16 cvt_bf16_f32 cvt_f32_bf16: to nearest, ties to even; NaN
 * stays NaN groups      polyop_sync polyop_combine polyop_broadcast: the threads that share a row, a warp or
 * a block memory      polyop_taken: device memory in the order of a stream, given back at the end of its
 * block
 *
 * The largest errors of CUDA's functions stand in its programming guide. They are not math.h's, so a result
 * may differ from the CPU's in the last places. */
#ifndef POLYOP_LOOPS_DEVICE_H
#define POLYOP_LOOPS_DEVICE_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#ifdef POLYOP_DEVICE_EMULATION
#include POLYOP_DEVICE_EMULATION
#else
#include <cuda_runtime.h>
#define POLYOP_LAUNCH(part, grid, block, stream, self) part<<<(grid), (block), 0, (stream)>>>(self)
#define POLYOP_UNROLL _Pragma("unroll")
#endif

#include "run.h"
#undef polyop_inside

#define POLYOP_FN static inline __host__ __device__
#define POLYOP_GPU static inline __device__

typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16, f16, bf16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

#include "device_group.h"
#include "device_math.h"

/* Device memory for as long as the block of the object; `wrong` says why there is none, or is null. */
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

/* polyop_inside for threads of a GPU: the kernel's struct has a pointer to its failure. */
POLYOP_GPU bool polyop_found_inside(polyop_failure* failure, int64_t* index, int64_t size, int place) {
  const int64_t found = *index;
  if (found < 0) *index += size;
  if ((uint64_t)*index < (uint64_t)size) return true;
  if (atomicCAS(&failure->place, 0, place) == 0) {
    failure->index = found;
    failure->size = size;
  }
  return false;
}
#define polyop_inside(k, index, size, place) polyop_found_inside((k)->failure, index, size, place)

/* How many blocks for so many rows or elements: at least one, at most `most`; the kernels stride over the
 * rest. */
POLYOP_FN unsigned polyop_blocks(int64_t count, int64_t each, int64_t most) {
  const int64_t wanted = (count + each - 1) / each;
  return (unsigned)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}
/* The power of two from 1 to 256 that covers a range. */
POLYOP_FN int polyop_cover(int64_t range) {
  int found = 1;
  while (found < 256 && found < range) found *= 2;
  return found;
}
/* How many threads share a row: a warp for short ones. */
POLYOP_FN int polyop_width(int64_t length) { return length <= 512 ? 32 : length <= 4096 ? 128 : 512; }

/* Quotient and remainder of numbers that are not negative: in 32 bits where they fit. */
POLYOP_FN int64_t polyop_split(int64_t* rest, int64_t by) {
  if (((*rest | by) >> 31) == 0) {
    const uint32_t whole = (uint32_t)*rest, d = (uint32_t)by;
    *rest = whole / d;
    return whole % d;
  }
  const int64_t found = *rest % by;
  *rest /= by;
  return found;
}

#endif
