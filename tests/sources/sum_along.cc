// The sum of a matrix along an axis, which the inference, Init and the kernel read as an attribute.
#include "count.h"
#include "custom_aot_extra.h"

enum TypeId : int {};

namespace {
struct Kept : AotKernelData {
  int64_t axis = 0;
};
}  // namespace

extern "C" std::vector<int64_t> SumAlongInferShape(int*, int64_t** shapes, AotExtra* extra) {
  return {shapes[0][1 - extra->Attr<int64_t>("axis")]};
}

extern "C" TypeId SumAlongInferType(std::vector<TypeId> types, AotExtra* extra) {
  return extra->Attr<int64_t>("axis") < 0 ? static_cast<TypeId>(0) : types[0];
}

extern "C" int SumAlongInit(int*, int64_t**, const char**, AotExtra* extra) {
  auto* kept = new Kept;
  kept->axis = extra->Attr<int64_t>("axis");
  extra->SetKernelData(kept);
  return 0;
}

extern "C" int SumAlong(int, void** params, int*, int64_t** shapes, const char**, void*, void* extra_void) {
  const auto* extra = static_cast<AotExtra*>(extra_void);
  const int64_t axis = static_cast<const Kept*>(extra->KernelData())->axis;
  const auto* x = static_cast<const float*>(params[0]);
  auto* sums = static_cast<float*>(params[1]);
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  for (int64_t i = 0; i < (axis == 0 ? columns : rows); ++i) sums[i] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) sums[axis == 0 ? j : i] += x[i * columns + j];
  }
  return 0;
}
