/* gate / (1 + exp(-gate)) * value, and the gradients of both: float32, tensors of one shape */
#include <math.h>

#include "polyop/abi.h"

static int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}

int gated(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
          void *extra) {
  const float *gate = params[0], *value = params[1];
  float *y = params[2];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) y[i] = gate[i] / (1 + expf(-gate[i])) * value[i];
  return 0;
}

int gated_gradient(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
                   void *extra) {
  const float *gate = params[0], *value = params[1], *dy = params[2];
  float *dgate = params[3], *dvalue = params[4];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) {
    const float share = 1 / (1 + expf(-gate[i]));
    dgate[i] = dy[i] * value[i] * share * (1 + gate[i] * (1 - share));
    dvalue[i] = dy[i] * gate[i] * share;
  }
  return 0;
}
