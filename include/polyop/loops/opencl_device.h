/* The runtime of loop kernels that are emitted as OpenCL C 1.2: what a kernel's text uses. It is compiled by
 * the driver of a device, together with that text, and declares what device.h declares for CUDA. Functions of
 * groups have the types in their names, as OpenCL C has no templates.
 *
 * A device without cl_khr_fp64 has no f64, and atomic operations of 64 bits need cl_khr_int64_base_atomics: a
 * kernel that needs what the device has not is refused by its compiler. */
#define POLYOP_LOOPS_DEVICE_H
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#else
#define POLYOP_WITHOUT_F64
#endif
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif
#define POLYOP_FN static inline
#define POLYOP_UNROLL

typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT32_MIN INT_MIN
#define INT64_MIN LONG_MIN
#define __builtin_inf() INFINITY
#define __builtin_nan(text) NAN
#include "byte_floats.h"
#include "device_math.h"
#include "philox.h"
#include "whole.h"

/* As in run.h of the host. */
struct polyop_failure {
  int place;
  int64_t index, size;
};
/* Whether an index is inside; else it is the failure of the launch, if it is the first. */
POLYOP_FN bool polyop_inside(__global struct polyop_failure* failure, i64 index, i64 size, int place) {
  if ((u64)polyop_from_end(index, size) < (u64)size) return true;
  if (atomic_cmpxchg((volatile __global int*)&failure->place, 0, place) == 0) {
    failure->index = index;
    failure->size = size;
  }
  return false;
}

/* A group is a whole block: all its threads call these functions, with the same width, a power of two. */
#define polyop_sync(width) barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* polyop_combine_plus_f32(value, width, shared): combines the values of all threads, each of which gets the
 * result. The order depends only on the width. `shared` is memory of the block, of eight bytes a thread. */
#define POLYOP_COMBINE(NAME, E, BOTH)                                                \
  POLYOP_FN E polyop_combine_##NAME##_##E(E value, int width, __local u64* shared) { \
    __local E* const parts = (__local E*)shared;                                     \
    const int lane = (int)get_local_id(0);                                           \
    parts[lane] = value;                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                    \
    for (int step = width / 2; step > 0; step /= 2) {                                \
      if (lane < step) {                                                             \
        const E a = parts[lane], b = parts[lane + step];                             \
        parts[lane] = BOTH;                                                          \
      }                                                                              \
      barrier(CLK_LOCAL_MEM_FENCE);                                                  \
    }                                                                                \
    value = parts[0];                                                                \
    barrier(CLK_LOCAL_MEM_FENCE);                                                    \
    return value;                                                                    \
  }
/* `*place op= value` by several threads at once, for operators whose result does not depend on the order. */
#define POLYOP_ATOMIC(NAME, E, WORD, EXCHANGE, BOTH)                                 \
  POLYOP_FN void polyop_atomic_##NAME##_##E(volatile __global E* place, const E b) { \
    volatile __global WORD* const word = (volatile __global WORD*)place;             \
    WORD current = *word, before;                                                    \
    do {                                                                             \
      before = current;                                                              \
      const E a = as_##EXCHANGE##_##E(before);                                       \
      current = polyop_exchange_##EXCHANGE(word, before, as_##E##_##EXCHANGE(BOTH)); \
    } while (current != before);                                                     \
  }
#define POLYOP_OPERATORS(ROW, E, PLUS, TIMES, ...) \
  ROW(plus, E, __VA_ARGS__ PLUS)                   \
  ROW(times, E, __VA_ARGS__ TIMES)                 \
  ROW(greatest, E, __VA_ARGS__ max_##E(a, b))      \
  ROW(least, E, __VA_ARGS__ min_##E(a, b))
#define POLYOP_GROUP(E, PLUS, TIMES)                               \
  POLYOP_OPERATORS(POLYOP_COMBINE, E, PLUS, TIMES, )               \
  POLYOP_FN E polyop_broadcast_##E(E value, __local u64* shared) { \
    if (get_local_id(0) == 0) *(__local E*)shared = value;         \
    barrier(CLK_LOCAL_MEM_FENCE);                                  \
    value = *(__local E*)shared;                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                  \
    return value;                                                  \
  }
#define POLYOP_WHOLE_GROUP(E) POLYOP_GROUP(E, wrap_add_##E(a, b), wrap_mul_##E(a, b))
POLYOP_WHOLE_GROUP(i8)
POLYOP_WHOLE_GROUP(i16)
POLYOP_WHOLE_GROUP(i32)
POLYOP_WHOLE_GROUP(i64)
POLYOP_WHOLE_GROUP(u8)
POLYOP_WHOLE_GROUP(u16)
POLYOP_WHOLE_GROUP(u32)
POLYOP_WHOLE_GROUP(u64)
POLYOP_GROUP(f32, a + b, a* b)
#ifndef POLYOP_WITHOUT_F64
POLYOP_GROUP(f64, a + b, a* b)
#endif

#define polyop_exchange_4(word, before, after) atomic_cmpxchg(word, before, after)
#define as_4_i32(word) as_int(word)
#define as_4_u32(word) (word)
#define as_4_f32(word) as_float(word)
#define as_i32_4(value) as_uint(value)
#define as_u32_4(value) (value)
#define as_f32_4(value) as_uint(value)
POLYOP_OPERATORS(POLYOP_ATOMIC, i32, wrap_add_i32(a, b), wrap_mul_i32(a, b), u32, 4, )
POLYOP_OPERATORS(POLYOP_ATOMIC, u32, a + b, a* b, u32, 4, )
POLYOP_OPERATORS(POLYOP_ATOMIC, f32, a + b, a* b, u32, 4, )
#ifdef cl_khr_int64_base_atomics
#define polyop_exchange_8(word, before, after) atom_cmpxchg(word, before, after)
#define as_8_i64(word) as_long(word)
#define as_8_u64(word) (word)
#define as_8_f64(word) as_double(word)
#define as_i64_8(value) as_ulong(value)
#define as_u64_8(value) (value)
#define as_f64_8(value) as_ulong(value)
POLYOP_OPERATORS(POLYOP_ATOMIC, i64, wrap_add_i64(a, b), wrap_mul_i64(a, b), u64, 8, )
POLYOP_OPERATORS(POLYOP_ATOMIC, u64, a + b, a* b, u64, 8, )
#ifndef POLYOP_WITHOUT_F64
POLYOP_OPERATORS(POLYOP_ATOMIC, f64, a + b, a* b, u64, 8, )
#endif
#endif
