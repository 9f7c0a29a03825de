// The tables of an exported library, by hand: what the surfaces are tested with.
#include <cstring>

#include "polyop/export/run.h"

namespace polyop {
namespace exported {

namespace {

int64_t elements(int ndim, const int64_t* sizes) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= sizes[i];
  return count;
}

Shape like(const polyop_array& array) { return {array.dtype, {array.sizes, array.sizes + array.ndim}}; }

// scale(Tensor x, float factor=2.0) -> Tensor
int scale(int, void** data, int* ndims, int64_t** sizes, const char**, void*, void* extra) {
  double factor = 0;
  if (polyop_get_float(extra, "factor", &factor) != 0) return 1;
  if (factor == 0) return polyop_fail(extra, "the factor must not be 0");
  const auto* x = static_cast<const float*>(data[0]);
  auto* y = static_cast<float*>(data[1]);
  for (int64_t i = 0; i < elements(ndims[0], sizes[0]); ++i) y[i] = x[i] * static_cast<float>(factor);
  return 0;
}

// weigh(Tensor x, Tensor? bias=None, *, int[] weights=[], str mode="plain", bool negate=False)
//     -> (Tensor, Tensor): x * the sum of the weights + bias, and how many bytes the mode has
int weigh(int, void** data, int* ndims, int64_t** sizes, const char**, void*, void* extra) {
  auto* self = static_cast<polyop_extra*>(extra);
  polyop_attribute weights = {}, mode = {};
  self->functions->attribute(self, "weights", &weights);
  self->functions->attribute(self, "mode", &mode);
  int64_t negate = 0, sum = 0;
  if (polyop_get_int(extra, "negate", &negate) != 0) return 1;
  for (size_t i = 0; i < weights.count; ++i) sum += weights.ints[i];
  const auto* x = static_cast<const float*>(data[0]);
  const auto* bias = static_cast<const float*>(data[1]);
  auto* y = static_cast<float*>(data[2]);
  for (int64_t i = 0; i < elements(ndims[0], sizes[0]); ++i) {
    y[i] = (negate ? -x[i] : x[i]) * static_cast<float>(sum) + (bias == nullptr ? 0 : bias[i]);
  }
  *static_cast<int32_t*>(data[3]) = static_cast<int32_t>(std::strlen(mode.strings[0]));
  return 0;
}

// add_(Tensor(a!) x, Tensor y) -> ()
int add(int, void** data, int* ndims, int64_t** sizes, const char**, void*, void*) {
  auto* x = static_cast<float*>(data[0]);
  const auto* y = static_cast<const float*>(data[1]);
  for (int64_t i = 0; i < elements(ndims[0], sizes[0]); ++i) x[i] += y[i];
  return 0;
}

// copy(Tensor x) -> Tensor, of every dtype
int copy(int, void** data, int* ndims, int64_t** sizes, const char** dtypes, void*, void*) {
  size_t bytes = 0;
  for (int32_t i = 0; i < kDTypes; ++i) {
    if (std::strcmp(kDTypeRows[i].name, dtypes[0]) == 0) bytes = static_cast<size_t>(kDTypeRows[i].bytes);
  }
  std::memcpy(data[1], data[0], bytes * static_cast<size_t>(elements(ndims[0], sizes[0])));
  return 0;
}

void infer_like(const polyop_array* inputs, const polyop_attribute*, Shape* outputs) {
  outputs[0] = like(inputs[0]);
}
void infer_weigh(const polyop_array* inputs, const polyop_attribute*, Shape* outputs) {
  outputs[0] = like(inputs[0]);
  outputs[1] = {POLYOP_DTYPE_INT32, {}};
}
void infer_nothing(const polyop_array*, const polyop_attribute*, Shape*) {}

constexpr DTypes kFloat32[] = {1u << POLYOP_DTYPE_FLOAT32, 1u << POLYOP_DTYPE_FLOAT32};
constexpr DTypes kAny[] = {kAnyDType};
constexpr int32_t kAnyRank[] = {-1, -1};
constexpr const char* kOut[] = {"out"};
constexpr const char* kWeighed[] = {"out0", "out1"};

constexpr Input kX[] = {{"x", false, false}};
constexpr double kTwo = 2;
const polyop_attribute kFactor = float_attribute(&kTwo);
const Attribute kScaleAttributes[] = {{"factor", POLYOP_FLOAT, 0, &kFactor}};
constexpr Kernel kScaleKernels[] = {{kFloat32, kAnyRank, infer_like, scale, nullptr}};
const Operator kScale = {"toy::scale",
                         "toy::scale(Tensor x, float factor=2.0) -> Tensor",
                         kX,
                         1,
                         kOut,
                         1,
                         kScaleAttributes,
                         1,
                         kScaleKernels,
                         1};

constexpr Input kWeighInputs[] = {{"x", false, false}, {"bias", true, false}};
const polyop_attribute kNoWeights = int_list(nullptr, 0);
constexpr const char* kPlain = "plain";
const polyop_attribute kMode = string_attribute(&kPlain);
constexpr int64_t kFalse = 0;
const polyop_attribute kNegate = bool_attribute(&kFalse);
const Attribute kWeighAttributes[] = {{"weights", POLYOP_INT, 1, &kNoWeights},
                                      {"mode", POLYOP_STRING, 0, &kMode},
                                      {"negate", POLYOP_BOOL, 0, &kNegate}};
constexpr Kernel kWeighKernels[] = {{kFloat32, kAnyRank, infer_weigh, weigh, nullptr}};
const Operator kWeigh = {
    "toy::weigh",
    "toy::weigh(Tensor x, Tensor? bias=None, *, int[] weights=[], str mode=\"plain\", bool negate=False)"
    " -> (Tensor, Tensor)",
    kWeighInputs,
    2,
    kWeighed,
    2,
    kWeighAttributes,
    3,
    kWeighKernels,
    1};

constexpr Input kAddInputs[] = {{"x", false, true}, {"y", false, false}};
constexpr Kernel kAddKernels[] = {{kFloat32, kAnyRank, infer_nothing, add, nullptr}};
const Operator kAdd = {"toy::add_", "toy::add_(Tensor(a!) x, Tensor y) -> ()",
                       kAddInputs,  2,
                       nullptr,     0,
                       nullptr,     0,
                       kAddKernels, 1};

constexpr Kernel kCopyKernels[] = {{kAny, kAnyRank, infer_like, copy, nullptr}};
const Operator kCopy = {
    "toy::copy", "toy::copy(Tensor x) -> Tensor", kX, 1, kOut, 1, nullptr, 0, kCopyKernels, 1};

}  // namespace

const Operator* const kOperators[] = {&kScale, &kWeigh, &kAdd, &kCopy};
const int32_t kOperatorCount = 4;

}  // namespace exported
}  // namespace polyop
