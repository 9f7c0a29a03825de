/* A kernel that writes what it finds of the attribute "v": kind, depth, count, rows, the lengths of the
 * rows, then the values; a text as its bytes. The output is float64[64]. */
#include <string.h>

#include "polyop/abi.h"

int seen(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  (void)ndims, (void)shapes, (void)dtypes, (void)stream;
  struct polyop_extra *self = extra;
  struct polyop_attribute v;
  memset(&v, 0, sizeof v);
  if (self->functions->attribute(self, "v", &v)) return polyop_fail(extra, "there is no attribute v");
  double *out = params[nparam - 1];
  memset(out, 0, 64 * sizeof *out);
  *out++ = v.kind, *out++ = v.depth, *out++ = (double)v.count, *out++ = (double)v.rows;
  for (size_t i = 0; i < v.rows; ++i) *out++ = (double)v.row_lengths[i];
  for (size_t i = 0; i < v.count; ++i) {
    if (v.kind == POLYOP_STRING) {
      for (const char *c = v.strings[i]; *c; ++c) *out++ = (unsigned char)*c;
    } else if (v.kind != POLYOP_NONE) {
      *out++ = v.kind == POLYOP_FLOAT ? v.floats[i] : (double)v.ints[i];
    }
  }
  return 0;
}
