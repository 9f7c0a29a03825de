/* What device.h uses of CUDA, as HIP has it: for hipcc, or clang -x hip. It is compiled, and was never run.
 *
 * A group of 32 threads is a wave of AMD's, or half of one: shuffles stay within 32 lanes. */
#ifndef POLYOP_LOOPS_HIP_H
#define POLYOP_LOOPS_HIP_H
#include <hip/hip_runtime.h>

#define cudaError_t hipError_t
#define cudaFree hipFree
#define cudaFreeAsync hipFreeAsync
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaMalloc hipMalloc
#define cudaMallocAsync hipMallocAsync
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemsetAsync hipMemsetAsync
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess

#define __shfl_sync(mask, value, lane) __shfl((value), (lane), 32)
#define __shfl_xor_sync(mask, value, step) __shfl_xor((value), (step), 32)
/* The lanes of a wave run in step; what they write to memory must be seen by one another. */
#define __syncwarp()                                       \
  do {                                                     \
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront"); \
    __builtin_amdgcn_wave_barrier();                       \
  } while (0)

#endif
