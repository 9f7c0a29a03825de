// y = x @ w + bias for float32 matrices; the bias may be absent.
#include <stdint.h>

int linear(int count, void** data, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)count, (void)ndims, (void)dtypes, (void)stream, (void)extra;
  const float *x = data[0], *w = data[1], *bias = data[2];
  float* y = data[3];
  const int64_t rows = shapes[0][0], inner = shapes[0][1], columns = shapes[1][1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = bias ? bias[j] : 0;
      for (int64_t k = 0; k < inner; ++k) sum += x[i * inner + k] * w[k * columns + j];
      y[i * columns + j] = sum;
    }
  return 0;
}
