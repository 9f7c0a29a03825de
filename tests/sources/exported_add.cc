// AddRepeated: (x + the sum of `repeat` * y) * by. It fails beyond the fixed attribute `most`, and uses a
// workspace.
#include "polyop/custom_aot_extra.h"

extern "C" int AddRepeatedInit(int*, int64_t**, const char**, AotExtra* extra) {
  extra->SetWorkSpace({sizeof(double)});
  return 0;
}

extern "C" int AddRepeated(int nparam, void** params, int* ndims, int64_t** shapes, const char**, void*,
                           void* extra) {
  auto* self = static_cast<polyop_extra*>(extra);
  polyop_attribute repeat = {}, by = {};
  int64_t most = 0, sum = 0, count = 1;
  if (nparam != 5) return polyop_fail(extra, "needs a workspace");
  self->functions->attribute(self, "repeat", &repeat);
  self->functions->attribute(self, "by", &by);
  if (polyop_get_int(extra, "most", &most) != 0) return 1;
  for (size_t i = 0; i < repeat.count; ++i) sum += repeat.ints[i];
  if (sum > most) return polyop_fail(extra, "repeats too often");
  auto* factor = static_cast<double*>(params[4]);
  *factor = by.kind == POLYOP_FLOAT ? by.floats[0] : 1;
  for (int i = 0; i < ndims[0]; ++i) count *= shapes[0][i];
  const auto *x = static_cast<const float*>(params[0]), *y = static_cast<const float*>(params[1]);
  auto* out = static_cast<float*>(params[3]);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = (x[i] + static_cast<float>(sum) * y[i]) * static_cast<float>(*factor);
  }
  return 0;
}
