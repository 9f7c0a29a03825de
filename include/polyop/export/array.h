/* An array as an exported library takes it. The generated header of a library has this text too, with
 * the enumeration of dtypes in place of the included file. */
#ifndef POLYOP_EXPORT_ARRAY_H
#define POLYOP_EXPORT_ARRAY_H

#include <stdint.h>

#include "polyop/dtypes.h"

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
