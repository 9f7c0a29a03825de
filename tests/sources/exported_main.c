/* Calls an exported library from C; prints what it computes, and an error. */
#include <stdio.h>

#include "libexported.h"

static void print(const float* values, int count) {
  for (int i = 0; i < count; ++i) printf("%g ", values[i]);
  puts("");
}

int main(void) {
  float xs[6] = {0, 1, 2, 3, 4, 5}, ys[6] = {1, 1, 1, 1, 1, 1}, outs[6], grads[6];
  int64_t shape[2] = {2, 3}, sizes[POLYOP_MAX_DIMENSIONS], repeat[2] = {1, 1};
  const double by = 0.5;
  polyop_array x = {xs, shape, 2, POLYOP_DTYPE_FLOAT32}, y = {ys, shape, 2, POLYOP_DTYPE_FLOAT32};
  polyop_array out = {outs, sizes, 0, 0}, d_x = {grads, shape, 2, POLYOP_DTYPE_FLOAT32};
  if (exported_scale_shapes(&x, 3.0, &out)) return 1;
  printf("%d %d %d %d\n", out.dtype == POLYOP_DTYPE_FLOAT32, (int)out.ndim, (int)sizes[0], (int)sizes[1]);
  if (exported_scale(&x, 3.0, &out)) return 1;
  print(outs, 6);
  if (exported_scale_backward(&x, NULL, &y, 3.0, &d_x)) return 1;
  print(grads, 6);
  if (exported_add(&x, &y, NULL, repeat, 2, &by, &out)) return 1;
  print(outs, 6);
  repeat[0] = 9;
  if (!exported_add(&x, &y, NULL, repeat, 2, NULL, &out)) return 1;
  puts(exported_error());
  x.ndim = 1;
  if (!exported_add(&x, &y, NULL, NULL, 0, NULL, &out)) return 1;
  puts(exported_error());
  return 0;
}
