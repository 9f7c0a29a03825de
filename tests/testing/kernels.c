/* Kernels of the 7-argument contract, right ones and ones with a planted bug. */
#include <stdint.h>
#include <string.h>

#define KERNEL(name) \
  int name(int n, void **p, int *nd, int64_t **shapes, const char **dtypes, void *stream, void *extra)

static int64_t count(int ndim, const int64_t *shape) {
  int64_t total = 1;
  for (int i = 0; i < ndim; i++) total *= shape[i];
  return total;
}

KERNEL(leaky) {
  const float *x = p[0];
  float *y = p[1];
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) y[i] = x[i] > 0 ? x[i] : 0.25f * x[i];
  return 0;
}

KERNEL(leaky_backward) {
  const float *x = p[0], *g = p[1];
  float *y = p[2];
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) y[i] = x[i] > 0 ? g[i] : 0.25f * g[i];
  return 0;
}

KERNEL(cube) {
  const int64_t total = count(nd[0], shapes[0]);
  if (strcmp(dtypes[0], "float64") == 0) {
    for (int64_t i = 0; i < total; i++) {
      const double v = ((const double *)p[0])[i];
      ((double *)p[1])[i] = v * v * v;
    }
    return 0;
  }
  for (int64_t i = 0; i < total; i++) {
    const float v = ((const float *)p[0])[i];
    ((float *)p[1])[i] = v * v * v;
  }
  return 0;
}

KERNEL(add_in_place) {
  float *x = p[0];
  const float *y = p[1];
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) x[i] += y[i];
  return 0;
}

KERNEL(scratches_input) {
  float *x = p[0], *y = p[1];
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) {
    y[i] = x[i];
    x[i] = 0;
  }
  return 0;
}

KERNEL(one_too_many) {
  const float *x = p[0];
  float *y = p[1];
  const int64_t total = count(nd[0], shapes[0]);
  for (int64_t i = 0; i < total; i++) y[i] = x[i];
  y[total] = 1;
  return 0;
}

KERNEL(writes_before_input) {
  float *x = p[0], *y = p[1];
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) y[i] = x[i];
  x[-1] = 1;
  return 0;
}

KERNEL(forgets_last) {
  const float *x = p[0];
  float *y = p[1];
  for (int64_t i = 0; i + 1 < count(nd[0], shapes[0]); i++) y[i] = x[i];
  return 0;
}

KERNEL(reads_past) {
  const float *x = p[0];
  float *y = p[1];
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) y[i] = x[i + 1];
  return 0;
}

KERNEL(counts_calls) {
  static float calls = 0;
  const float *x = p[0];
  float *y = p[1];
  calls += 1;
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) y[i] = x[i] + calls;
  return 0;
}
