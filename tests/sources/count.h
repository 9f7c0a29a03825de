#pragma once
#include <stdint.h>

// Number of elements of a shape.
static inline int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}
