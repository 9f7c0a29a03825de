/* polyop's kernel of the call-path rows. */
#include "leaky.h"

#include "polyop/abi.h"

static int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}

int leaky(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  (void)nparam, (void)dtypes, (void)stream, (void)extra;
  leaky_forward((const float *)params[0], (float *)params[1], count(ndims[0], shapes[0]));
  return 0;
}

int leaky_grad(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  (void)nparam, (void)dtypes, (void)stream, (void)extra;
  leaky_backward((const float *)params[0], (const float *)params[1], (float *)params[2], count(ndims[0], shapes[0]));
  return 0;
}
