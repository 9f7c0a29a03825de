// Operators with the two-phase interface of aclnn: one writes its first argument, one takes every kind.
#include <stdlib.h>
#include <string.h>

#include "two_phase.h"

typedef struct aclOpExecutor {
  const aclTensor* inputs[8];
  uint64_t count;
  const aclTensor* bias;
  const aclTensor* output;
  double factor;
  double rest;
  double scale;
} aclOpExecutor;

#define BAD_PARAMETER 161002

static int64_t size_of(const aclTensor* tensor) {
  int64_t size = 1;
  for (uint64_t d = 0; d < tensor->rank; ++d) size *= tensor->dims[d];
  return size;
}

static float* at(const aclTensor* tensor, int64_t index) {
  int64_t offset = 0;
  for (uint64_t d = tensor->rank; d-- > 0;) {
    offset += index % tensor->dims[d] * tensor->strides[d];
    index /= tensor->dims[d];
  }
  if (offset >= tensor->storage) abort();  // the caller has described less than it passes
  return (float*)tensor->data + offset;
}

static int same(const aclTensor* a, const aclTensor* b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

int aclnnAddCustomGetWorkspaceSize(const aclTensor* x, const aclTensor* y, aclTensor* z, uint64_t* workspace,
                                   aclOpExecutor** executor) {
  if (x->dtype != ACL_FLOAT || y->dtype != ACL_FLOAT || z->dtype != ACL_FLOAT) {
    return acl_fail(BAD_PARAMETER, "EZ1001: x, y and z must be float");
  }
  if (!same(x, y) || !same(x, z)) return acl_fail(BAD_PARAMETER, "EZ1001: x, y and z must have one shape");
  *workspace = 0;
  *executor = calloc(1, sizeof **executor);
  **executor = (aclOpExecutor){.inputs = {x, y}, .count = 2, .output = z, .factor = 1};
  return 0;
}

int aclnnAddCustom(void* workspace, uint64_t size, aclOpExecutor* executor, void* stream) {
  (void)size;
  (void)stream;
  for (int64_t i = 0; i < size_of(executor->output); ++i) {
    *at(executor->output, i) = *at(executor->inputs[0], i) + *at(executor->inputs[1], i);
  }
  free(executor);
  return workspace == NULL ? 0 : 1;
}

int aclnnInplaceAddCustomGetWorkspaceSize(aclTensor* self, const aclTensor* other, uint64_t* workspace,
                                          aclOpExecutor** executor) {
  return aclnnAddCustomGetWorkspaceSize(self, other, self, workspace, executor);
}

int aclnnInplaceAddCustom(void* workspace, uint64_t size, aclOpExecutor* executor, void* stream) {
  return aclnnAddCustom(workspace, size, executor, stream);
}

// out = factor * (sum of xs) + bias + sum(shift) + sum(weights) + number of true flags + mode + eps,
// negated if asked for, and halved when the text says so.
int aclnnMixGetWorkspaceSize(const aclTensorList* xs, const aclTensor* bias, const aclScalar* factor,
                             const aclIntArray* shift, const aclBoolArray* flags, const aclFloatArray* weights,
                             int64_t mode, double eps, bool negate, const char* text, int32_t dtype, aclTensor* out,
                             int8_t cube_math_type, uint64_t* workspace, aclOpExecutor** executor) {
  if (dtype != out->dtype) return acl_fail(BAD_PARAMETER, "EZ1001: dtype is not that of out");
  if (cube_math_type != 3) return acl_fail(BAD_PARAMETER, "EZ1001: cubeMathType must be 3");
  double rest = (double)mode + eps;
  for (uint64_t i = 0; i < shift->size; ++i) rest += (double)shift->items[i];
  for (uint64_t i = 0; i < flags->size; ++i) rest += flags->items[i];
  for (uint64_t i = 0; i < weights->size; ++i) rest += weights->items[i];
  *workspace = (uint64_t)size_of(out) * sizeof(double);
  *executor = calloc(1, sizeof **executor);
  (*executor)->count = xs->size;
  for (uint64_t i = 0; i < xs->size; ++i) (*executor)->inputs[i] = xs->items[i];
  (*executor)->bias = bias;
  (*executor)->output = out;
  (*executor)->factor = factor->value;
  (*executor)->rest = rest;
  (*executor)->scale = (negate ? -1.0 : 1.0) * (strcmp(text, "half") == 0 ? 0.5 : 1.0);
  return 0;
}

int aclnnMix(void* workspace, uint64_t size, aclOpExecutor* executor, void* stream) {
  (void)stream;
  const int64_t count = size_of(executor->output);
  if (workspace == NULL || size != (uint64_t)count * sizeof(double)) {
    return acl_fail(361001, "EZ9999: no workspace");
  }
  double* sums = workspace;
  for (int64_t i = 0; i < count; ++i) {
    sums[i] = 0;
    for (uint64_t k = 0; k < executor->count; ++k) sums[i] += *at(executor->inputs[k], i);
    sums[i] = executor->factor * sums[i] + executor->rest + (executor->bias ? *at(executor->bias, i) : 0);
  }
  for (int64_t i = 0; i < count; ++i) *at(executor->output, i) = (float)(sums[i] * executor->scale);
  free(executor);
  return 0;
}

// Only one phase: not an operator.
int aclnnHalfGetWorkspaceSize(void) { return 0; }
