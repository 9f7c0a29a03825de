// Two outputs with C++ inference in its several-outputs form: the maximum of each row, and where it is.
#include "count.h"
#include "custom_aot_extra.h"

enum TypeId : int {};

extern "C" std::vector<std::vector<int64_t>> RowMaxInferShape(int *, int64_t **shapes, AotExtra *extra) {
  const int64_t keep = extra->HasAttr("keepdims") && extra->Attr<bool>("keepdims") ? 1 : 0;
  std::vector<int64_t> shape(shapes[0], shapes[0] + 1);
  if (keep == 1) shape.push_back(1);
  return {shape, shape};
}

extern "C" std::vector<TypeId> RowMaxInferType(std::vector<TypeId> types, AotExtra *) {
  return {types[0], static_cast<TypeId>(35)};  // int64
}

extern "C" int RowMax(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  const auto *x = static_cast<const float *>(params[0]);
  auto *value = static_cast<float *>(params[1]);
  auto *where = static_cast<int64_t *>(params[2]);
  for (int64_t row = 0; row < shapes[0][0]; ++row) {
    const float *line = x + row * shapes[0][1];
    int64_t best = 0;
    for (int64_t i = 1; i < shapes[0][1]; ++i) best = line[i] > line[best] ? i : best;
    value[row] = line[best];
    where[row] = best;
  }
  return 0;
}
