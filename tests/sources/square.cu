#include "count.h"

__global__ void square_kernel(const float *x, float *y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}

extern "C" int Square(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  const int64_t n = count(ndims[0], shapes[0]);
  if (n == 0) return 0;
  const unsigned blocks = static_cast<unsigned>((n + 255) / 256);
  square_kernel<<<blocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(static_cast<const float *>(params[0]),
                                                                       static_cast<float *>(params[1]), n);
  return static_cast<int>(cudaGetLastError());
}
