/* An array as an exported library takes it. The generated header of a library has this text too. */
#ifndef POLYOP_EXPORT_ARRAY_H
#define POLYOP_EXPORT_ARRAY_H

#include <stdint.h>

/* The numbers are those of polyop's table of dtypes, which only grows. */
enum polyop_dtype {
  POLYOP_DTYPE_ABSENT = -1, /* no array is given for an optional argument */
  POLYOP_DTYPE_BOOL = 0,
  POLYOP_DTYPE_INT8 = 1,
  POLYOP_DTYPE_INT16 = 2,
  POLYOP_DTYPE_INT32 = 3,
  POLYOP_DTYPE_INT64 = 4,
  POLYOP_DTYPE_UINT8 = 5,
  POLYOP_DTYPE_UINT16 = 6,
  POLYOP_DTYPE_UINT32 = 7,
  POLYOP_DTYPE_UINT64 = 8,
  POLYOP_DTYPE_FLOAT16 = 9,
  POLYOP_DTYPE_FLOAT32 = 10,
  POLYOP_DTYPE_FLOAT64 = 11,
  POLYOP_DTYPE_BFLOAT16 = 12,
  POLYOP_DTYPE_COMPLEX64 = 13,
  POLYOP_DTYPE_COMPLEX128 = 14,
  POLYOP_DTYPE_FLOAT8_E4M3FN = 15,
  POLYOP_DTYPE_FLOAT8_E5M2 = 16,
  POLYOP_DTYPE_FLOAT8_E4M3FNUZ = 17,
  POLYOP_DTYPE_FLOAT8_E5M2FNUZ = 18,
  POLYOP_DTYPE_FLOAT8_E8M0FNU = 19
};

/* The most dimensions that an array has. */
#define POLYOP_MAX_DIMENSIONS 64

/* A dense, row-major array in memory that belongs to the caller. */
typedef struct polyop_array {
  void* data;
  int64_t* sizes; /* `ndim` of them; an output whose shape is asked for needs POLYOP_MAX_DIMENSIONS */
  int32_t ndim;
  int32_t dtype; /* a polyop_dtype */
} polyop_array;

#endif
