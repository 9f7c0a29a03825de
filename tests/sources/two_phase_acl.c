// Objects and runtime of CANN's C interface, on the host: "device" memory is malloc's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "two_phase.h"

static char message[256];
static int64_t objects;  // not destroyed yet
static int64_t blocks;   // not freed yet
static int64_t copies;

int acl_fail(int status, const char* text) {
  snprintf(message, sizeof message, "%s", text);
  return status;
}

const char* aclGetRecentErrMsg(void) { return message; }

int64_t acl_live_objects(void) { return objects; }
int64_t acl_live_blocks(void) { return blocks; }
int64_t acl_copies(void) { return copies; }

static void* make(size_t size) {
  ++objects;
  return calloc(1, size);
}

static void* copy_of(const void* items, size_t size) { return memcpy(malloc(size ? size : 1), items, size); }

aclTensor* aclCreateTensor(const int64_t* dims, uint64_t rank, int32_t dtype, const int64_t* strides,
                           int64_t offset, int32_t format, const int64_t* storage, uint64_t storage_rank,
                           void* data) {
  if (rank > ACL_MAX_RANK || format != 2 || offset != 0 || storage_rank != 1) {
    acl_fail(1, "aclCreateTensor: rank, format, offset or storage");
    return NULL;
  }
  aclTensor* made = make(sizeof *made);
  memcpy(made->dims, dims, rank * sizeof *dims);
  memcpy(made->strides, strides, rank * sizeof *strides);
  made->rank = rank;
  made->dtype = dtype;
  made->storage = storage[0];
  made->data = data;
  return made;
}

aclScalar* aclCreateScalar(const void* value, int32_t dtype) {
  aclScalar* made = make(sizeof *made);
  made->dtype = dtype;
  if (dtype == ACL_DOUBLE) made->value = *(const double*)value;
  if (dtype == ACL_INT64) made->value = (double)*(const int64_t*)value;
  if (dtype == ACL_BOOL) made->value = *(const bool*)value;
  return made;
}

#define ARRAY(NAME, TYPE)                                               \
  acl##NAME* aclCreate##NAME(const TYPE* items, uint64_t size) {        \
    acl##NAME* made = make(sizeof *made);                               \
    made->items = copy_of(items, size * sizeof *items);                 \
    made->size = size;                                                  \
    return made;                                                        \
  }                                                                     \
  int aclDestroy##NAME(acl##NAME* object) {                             \
    --objects;                                                          \
    free(object->items);                                                \
    free(object);                                                       \
    return 0;                                                           \
  }

ARRAY(IntArray, int64_t)
ARRAY(BoolArray, bool)
ARRAY(FloatArray, float)

aclTensorList* aclCreateTensorList(aclTensor* const* items, uint64_t size) {
  aclTensorList* made = make(sizeof *made);
  made->items = copy_of(items, size * sizeof *items);
  made->size = size;
  return made;
}

int aclDestroyTensor(aclTensor* object) {
  --objects;
  free(object);
  return 0;
}

int aclDestroyScalar(aclScalar* object) {
  --objects;
  free(object);
  return 0;
}

int aclDestroyTensorList(aclTensorList* object) {
  for (uint64_t i = 0; i < object->size; ++i) {
    if (object->items[i] != NULL) aclDestroyTensor(object->items[i]);
  }
  --objects;
  free(object->items);
  free(object);
  return 0;
}

#ifdef WITH_RUNTIME
static int started;
static int device = -1;

int aclInit(const char* path) {
  (void)path;
  return started++ ? 100002 : 0;
}

int aclrtSetDevice(int32_t number) {
  device = number;
  return 0;
}

int aclrtMalloc(void** pointer, size_t size, int policy) {
  (void)policy;
  if (device < 0) return acl_fail(107002, "no device is set");
  if (size > (size_t)1 << 40) return acl_fail(207001, "the device has no memory left");
  ++blocks;
  *pointer = malloc(size);
  return 0;
}

int aclrtFree(void* pointer) {
  --blocks;
  free(pointer);
  return 0;
}

int aclrtMemcpy(void* to, size_t room, const void* from, size_t size, int kind) {
  if (size > room || (kind != 1 && kind != 2)) return acl_fail(100000, "aclrtMemcpy: size or kind");
  ++copies;
  memcpy(to, from, size);
  return 0;
}

int aclrtSynchronizeStream(void* stream) {
  (void)stream;
  return 0;
}
#endif
