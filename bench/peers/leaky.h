/* The arithmetic that polyop's kernel and its peers share. */
#pragma once
#include <stdint.h>

static inline void leaky_forward(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0.01f * x[i];
}

static inline void leaky_backward(const float *x, const float *g, float *dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = x[i] > 0 ? g[i] : 0.01f * g[i];
}
