// [kernel]
#include <cmath>
#include <string>
#include <vector>

#include "custom_aot_extra.h"

// Runs once for each set of input shapes and attribute values: reads the attributes, asks for
// a workspace of one float per row.
extern "C" int RowSoftmaxInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra) {
  if (ndims[0] != 2) return extra->Fail("needs a matrix");
  if (std::string(dtypes[0]) != "float32") return extra->Fail("needs float32");
  if (extra->Attr<float>("temperature") <= 0) return extra->Fail("needs a positive temperature");
  extra->SetWorkSpace({static_cast<size_t>(shapes[0][0]) * sizeof(float)});
  return 0;
}

// The shape and the dtype of the output: without these two, give out_shape and out_dtype in Python.
extern "C" std::vector<int64_t> RowSoftmaxInferShape(int *ndims, int64_t **shapes, AotExtra *) {
  return std::vector<int64_t>(shapes[0], shapes[0] + ndims[0]);
}
enum TypeId : int {};
extern "C" TypeId RowSoftmaxInferType(std::vector<TypeId> types, AotExtra *) { return types[0]; }

extern "C" int RowSoftmax(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                          void *stream, void *extra) {
  const float scale = 1 / static_cast<AotExtra *>(extra)->Attr<float>("temperature");
  const auto *x = static_cast<const float *>(params[0]);
  auto *y = static_cast<float *>(params[1]);
  auto *largest = static_cast<float *>(params[2]);  // the workspace comes after the outputs
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  for (int64_t i = 0; i < rows; ++i) {
    largest[i] = -INFINITY;
    for (int64_t j = 0; j < columns; ++j) largest[i] = std::fmax(largest[i], x[i * columns + j]);
  }
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < columns; ++j) {
      y[i * columns + j] = std::exp((x[i * columns + j] - largest[i]) * scale);
      sum += y[i * columns + j];
    }
    for (int64_t j = 0; j < columns; ++j) y[i * columns + j] /= sum;
  }
  return 0;
}
// [/kernel]
