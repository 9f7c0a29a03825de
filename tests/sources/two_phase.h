// The part of CANN's C interface that the two-phase test libraries use: acl objects in the caller's memory.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define ACL_FLOAT 0
#define ACL_INT64 9
#define ACL_DOUBLE 11
#define ACL_BOOL 12
#define ACL_MAX_RANK 8

typedef struct aclTensor {
  int64_t dims[ACL_MAX_RANK];
  int64_t strides[ACL_MAX_RANK];
  uint64_t rank;
  int32_t dtype;
  int64_t storage;
  char* data;
} aclTensor;

typedef struct aclScalar {
  double value;
  int32_t dtype;
} aclScalar;

typedef struct aclIntArray {
  int64_t* items;
  uint64_t size;
} aclIntArray;

typedef struct aclBoolArray {
  bool* items;
  uint64_t size;
} aclBoolArray;

typedef struct aclFloatArray {
  float* items;
  uint64_t size;
} aclFloatArray;

typedef struct aclTensorList {
  aclTensor** items;
  uint64_t size;
} aclTensorList;

// Keep a message for aclGetRecentErrMsg and return the status.
int acl_fail(int status, const char* message);
