/* The runtime of loop kernels that are emitted as CUDA. It is compiled, but not run on hardware: tests run
 * the emitted text in an emulation of blocks and threads. POLYOP_DEVICE_EMULATION names the emulation's
 * header, which is included in place of CUDA's.
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
 *   memory      polyop_taken: device memory in the order of a stream, freed at the end of its block
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
#include <cuda_runtime.h>
#define POLYOP_LAUNCH(part, grid, block, stream, self) part<<<(grid), (block), 0, (stream)>>>(self)
#define POLYOP_UNROLL _Pragma("unroll")
#endif

#include "../dtypes.h"
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
#define POLYOP_ROW(NAME, ...) typedef u8 NAME;
POLYOP_BYTE_FLOATS(POLYOP_ROW)
#undef POLYOP_ROW

#include "byte_floats.h"
#include "device_group.h"
#include "device_math.h"
#include "philox.h"
#include "whole.h"

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

/* polyop_inside for threads of a GPU. The kernel's struct has a pointer to its failure. */
POLYOP_GPU bool polyop_found_inside(polyop_failure* failure, int64_t* index, int64_t size, int place) {
  const int64_t original = *index;
  if (original < 0) *index += size;
  if ((uint64_t)*index < (uint64_t)size) return true;
  if (atomicCAS(&failure->place, 0, place) == 0) {
    failure->index = original;
    failure->size = size;
  }
  return false;
}
#define polyop_inside(k, index, size, place) polyop_found_inside((k)->failure, index, size, place)

/* The number of blocks for `count` rows or elements, `each` per block: at least one, at most `most`. Kernels
 * stride over the rest. */
POLYOP_FN unsigned polyop_blocks(int64_t count, int64_t each, int64_t most) {
  const int64_t needed = (count + each - 1) / each;
  return (unsigned)(needed < 1 ? 1 : needed < most ? needed : most);
}
/* The smallest power of two that covers a range, at most 256. */
POLYOP_FN int polyop_cover(int64_t range) {
  int width = 1;
  while (width < 256 && width < range) width *= 2;
  return width;
}
/* The number of threads that share a row: a warp for short rows. */
POLYOP_FN int polyop_width(int64_t length) { return length <= 512 ? 32 : length <= 4096 ? 128 : 512; }

/* Divides *rest by `by`, both not negative, and returns the remainder; in 32 bits when they fit. */
POLYOP_FN int64_t polyop_split(int64_t* rest, int64_t by) {
  if (((*rest | by) >> 31) == 0) {
    const uint32_t dividend = (uint32_t)*rest, d = (uint32_t)by;
    *rest = dividend / d;
    return dividend % d;
  }
  const int64_t remainder = *rest % by;
  *rest /= by;
  return remainder;
}

#endif
