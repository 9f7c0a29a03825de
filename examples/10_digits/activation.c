/* softsign: x / (1 + |x|), and its gradient from the output's */
#include <math.h>

#include "polyop/abi.h"

static int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}

int softsign(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
             void *extra) {
  const float *x = params[0];
  float *y = params[1];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) y[i] = x[i] / (1 + fabsf(x[i]));
  return 0;
}

int softsign_gradient(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                      void *stream, void *extra) {
  const float *x = params[0], *dy = params[1];
  float *dx = params[2];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) {
    const float scale = 1 + fabsf(x[i]);
    dx[i] = dy[i] / (scale * scale);
  }
  return 0;
}
