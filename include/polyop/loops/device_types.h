/* The types of elements on a device and on the host that launches its kernels; included by
 * device_math.h. */
#ifndef POLYOP_LOOPS_DEVICE_TYPES_H
#define POLYOP_LOOPS_DEVICE_TYPES_H
#include "../dtypes.h"

typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16, f16, bf16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
#ifndef POLYOP_WITHOUT_F64
typedef double f64;
#endif
#define POLYOP_ROW(NAME, ...) typedef u8 NAME;
POLYOP_BYTE_FLOATS(POLYOP_ROW)
#undef POLYOP_ROW

#endif
