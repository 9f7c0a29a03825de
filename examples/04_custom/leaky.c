#include "polyop/abi.h"

/* y = x where x > 0, slope * x elsewhere */
int leaky(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
          void *stream, void *extra) {
  const float *x = params[0];
  float *y = params[1];
  double slope;
  if (polyop_get_float(extra, "slope", &slope)) return 1;
  int64_t n = 1;
  for (int i = 0; i < ndims[0]; ++i) n *= shapes[0][i];
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : (float)slope * x[i];
  return 0;
}
