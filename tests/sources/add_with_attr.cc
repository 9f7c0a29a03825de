// out = x + 2 * scale * y + sum(paddings), by way of a workspace; scale and paddings are read once.
#include "count.h"
#include "custom_aot_extra.h"

struct Constants : AotKernelData {
  float scale = 0;
  float shift = 0;
};

extern "C" int AddWithAttrInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  auto *constants = new Constants();
  constants->scale = extra->Attr<float>("scale");
  for (float padding : extra->Attr<std::vector<float>>("paddings")) constants->shift += padding;
  extra->SetWorkSpace({static_cast<size_t>(count(ndims[1], shapes[1])) * sizeof(float)});
  extra->SetKernelData(constants);
  return 0;
}

extern "C" int AddWithAttr(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *,
                           void *extra) {
  auto *aux = static_cast<AotExtra *>(extra);
  auto *constants = static_cast<Constants *>(aux->KernelData());  // sum_along.cc casts to const
  if (nparam != 4 || aux->WorkSpace().size() != 1) return aux->Fail("needs one workspace");
  const auto *x = static_cast<const float *>(params[0]), *y = static_cast<const float *>(params[1]);
  auto *out = static_cast<float *>(params[2]), *scaled = static_cast<float *>(params[3]);
  const int64_t n = count(ndims[0], shapes[0]);
  for (int64_t i = 0; i < n; ++i) scaled[i] = y[i] * constants->scale;
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] + scaled[i] + scaled[i] + constants->shift;
  return 0;
}
