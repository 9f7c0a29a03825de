/* Small kernels that several tests share. */
#include <string.h>

#include "count.h"
#include "polyop/abi.h"

#define KERNEL(name) \
  int name(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra)
#define UNUSED (void)nparam, (void)params, (void)ndims, (void)shapes, (void)dtypes, (void)stream, (void)extra

KERNEL(square) { /* float32 */
  UNUSED;
  const float *x = params[0];
  float *y = params[1];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) y[i] = x[i] * x[i];
  return 0;
}

KERNEL(square_grad) { /* x, out, dout: the gradient of square */
  UNUSED;
  const float *x = params[0], *dout = params[2];
  float *dx = params[3];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) dx[i] = 2 * x[i] * dout[i];
  return 0;
}

KERNEL(cube) { /* a * x ** 3, float64 */
  UNUSED;
  const double *x = params[0];
  double *y = params[1], a = 0;
  if (polyop_get_float(extra, "a", &a)) return 1;
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) y[i] = a * x[i] * x[i] * x[i];
  return 0;
}

KERNEL(gather) { /* x[index], float32 by int64 */
  UNUSED;
  const float *x = params[0];
  const int64_t *index = params[1];
  float *y = params[2];
  for (int64_t i = 0; i < shapes[1][0]; ++i) y[i] = x[index[i]];
  return 0;
}

KERNEL(square_times) { /* x * x * y rounded to float16; x float32, y float16 */
  UNUSED;
  if (strcmp(dtypes[0], "float32") || strcmp(dtypes[1], "float16") || strcmp(dtypes[2], "float16")) return 2;
  const float *x = params[0];
  const _Float16 *y = params[1];
  _Float16 *out = params[2];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) out[i] = (_Float16)(x[i] * x[i] * (float)y[i]);
  return 0;
}

KERNEL(copy) { /* any dtype of one byte count: the bytes of x */
  UNUSED;
  size_t size = 8;
  if (strstr(dtypes[0], "32")) size = 4;
  if (strstr(dtypes[0], "16")) size = 2;
  if (!strcmp(dtypes[0], "complex128")) size = 16;
  if (!strcmp(dtypes[0], "bool") || strstr(dtypes[0], "int8") || strstr(dtypes[0], "float8")) size = 1;
  if (!strcmp(dtypes[0], "float4_e2m1fn")) size = 1;
  memcpy(params[1], params[0], size * (size_t)count(ndims[0], shapes[0]));
  return 0;
}

KERNEL(scale_in_place) { /* x *= a, float32 */
  UNUSED;
  float *x = params[0];
  double a = 0;
  if (polyop_get_float(extra, "a", &a)) return 1;
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) x[i] *= (float)a;
  return 0;
}

KERNEL(sum_and_difference) { /* float32 */
  UNUSED;
  const float *x = params[0], *y = params[1];
  float *sum = params[2], *difference = params[3];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) {
    sum[i] = x[i] + y[i];
    difference[i] = x[i] - y[i];
  }
  return 0;
}

KERNEL(add_optional) { /* x + y, or x where y was not given; float32 */
  UNUSED;
  const float *x = params[0], *y = params[1];
  float *out = params[2];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) out[i] = x[i] + (y ? y[i] : 0);
  return 0;
}

KERNEL(add_all) { /* the sum of a list of float32 tensors */
  UNUSED;
  float *out = params[nparam - 1];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) {
    out[i] = 0;
    for (int t = 0; t < nparam - 1; ++t) out[i] += ((const float *)params[t])[i];
  }
  return 0;
}

KERNEL(fails_with_7) {
  UNUSED;
  return 7;
}

KERNEL(fails_with_words) {
  UNUSED;
  return polyop_fail(extra, "needs a square matrix");
}
