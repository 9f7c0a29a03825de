// The kernels of the programs: each form that MindSpore's documents have, for float32 unless it is said.
#include <stdexcept>
#include <string>
#include <vector>

#include "custom_aot_extra.h"

enum TypeId : int {};

#define KERNEL(name) \
  extern "C" int name(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *, void *extra)
#define SHAPE(name) extern "C" std::vector<int64_t> name##InferShape(int *ndims, int64_t **shapes, AotExtra *extra)
#define TYPE(name) extern "C" TypeId name##InferType(std::vector<TypeId> types, AotExtra *)
#define INIT(name) extern "C" int name##Init(int *ndims, int64_t **shapes, const char **, AotExtra *extra)

namespace {

int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}

template <typename T = float>
T *data(void **params, int i) {
  return static_cast<T *>(params[i]);
}

std::vector<int64_t> first(const int *ndims, int64_t **shapes) { return {shapes[0], shapes[0] + ndims[0]}; }

struct Factor : AotKernelData {
  float value = 0;
};

}  // namespace

SHAPE(Add) { return first(ndims, shapes); }
TYPE(Add) { return types[0]; }
KERNEL(Add) {
  if (nparam != 3) return 1;
  for (int64_t i = 0; i < count(ndims[2], shapes[2]); ++i) data(params, 2)[i] = data(params, 0)[i] + data(params, 1)[i];
  return 0;
}

KERNEL(Bare) { return Add(nparam, params, ndims, shapes, dtypes, nullptr, extra); }  // infers nothing

KERNEL(Square) {
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) data(params, 1)[i] = data(params, 0)[i] * data(params, 0)[i];
  return 0;
}

KERNEL(SquareGrad) {  // x, out, dout
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i)
    data(params, 3)[i] = 2 * data(params, 0)[i] * data(params, 2)[i];
  return 0;
}

extern "C" std::vector<std::vector<int64_t>> SumDifferenceInferShape(int *ndims, int64_t **shapes, AotExtra *) {
  return {first(ndims, shapes), first(ndims, shapes)};
}
extern "C" std::vector<TypeId> SumDifferenceInferType(std::vector<TypeId> types, AotExtra *) {
  return {types[0], types[1]};
}
KERNEL(SumDifference) {
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) {
    data(params, 2)[i] = data(params, 0)[i] + data(params, 1)[i];
    data(params, 3)[i] = data(params, 0)[i] - data(params, 1)[i];
  }
  return 0;
}

INIT(Scale) {  // x * scale, by way of state and a workspace
  auto *factor = new Factor();
  factor->value = extra->Attr<float>("scale");
  extra->SetKernelData(factor);
  extra->SetWorkSpace({static_cast<size_t>(count(ndims[0], shapes[0])) * sizeof(float)});
  return 0;
}
SHAPE(Scale) { return first(ndims, shapes); }
TYPE(Scale) { return types[0]; }
KERNEL(Scale) {
  const auto *factor = static_cast<const Factor *>(static_cast<AotExtra *>(extra)->KernelData());
  if (nparam != 3 || static_cast<AotExtra *>(extra)->WorkSpace().size() != 1) return 1;
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) data(params, 2)[i] = data(params, 0)[i];
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) data(params, 1)[i] = data(params, 2)[i] * factor->value;
  return 0;
}

KERNEL(Every) {  // x plus the sum of attributes of each type
  auto *given = static_cast<AotExtra *>(extra);
  float sum = given->Attr<bool>("flag") ? 1.0f : 0.0f;
  sum += static_cast<float>(given->Attr<int64_t>("whole")) + given->Attr<float>("real");
  sum += given->Attr<std::string>("word") == "ten" ? 10.0f : 0.0f;
  for (int64_t item : given->Attr<std::vector<int64_t>>("wholes")) sum += static_cast<float>(item);
  for (float item : given->Attr<std::vector<float>>("reals")) sum += item;
  if (given->HasAttr("rows")) {
    for (const auto &row : given->Attr<std::vector<std::vector<int64_t>>>("rows")) sum += static_cast<float>(row[0]);
  }
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) data(params, 1)[i] = data(params, 0)[i] + sum;
  return 0;
}

SHAPE(Head) { return {extra->Attr<int64_t>("k")}; }  // x[:k], k an attribute
TYPE(Head) { return types[0]; }
KERNEL(Head) {
  for (int64_t i = 0; i < shapes[1][0]; ++i) data(params, 1)[i] = data(params, 0)[i];
  return 0;
}

KERNEL(Gather) {  // x[index], index int64
  for (int64_t i = 0; i < shapes[1][0]; ++i) data(params, 2)[i] = data(params, 0)[data<int64_t>(params, 1)[i]];
  return 0;
}

SHAPE(AddAll) { return first(ndims, shapes); }  // the sum of a list
KERNEL(AddAll) {
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) {
    float sum = 0;
    for (int k = 0; k < nparam - 1; ++k) sum += data(params, k)[i];
    data(params, nparam - 1)[i] = sum;
  }
  return 0;
}

KERNEL(Flip) {  // of bytes: each bool
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) data<bool>(params, 1)[i] = !data<bool>(params, 0)[i];
  return 0;
}

KERNEL(Returns) { return 7; }
KERNEL(Throws) { throw std::runtime_error("needs a square matrix"); }
