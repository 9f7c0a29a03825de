/* Vector types for generated loop kernels, built on GCC's vector extensions (gcc >= 10, clang).
 *
 * The width w of a loop is the size of the widest element in it: 1, 2, 4 or 8 bytes. All vectors of the loop
 * have POLYOP_VB / w lanes, whatever their elements. So f32v4 is a full vector of floats, and f32v8 has as
 * many lanes as f64v8. A type is named element + "v" + w. It exists for the elements i8 i16 i32 i64 u8 u16
 * u32 u64 f32 f64 of at most w bytes.
 *
 *   masks       signed integers of the same w and element size, 0 or -1: the result of a comparison
 *   booleans    u8, 0 or 1; tobool_T(mask) and frombool_T(u8 vector) convert
 *   float16     f16 and bf16 name uint16 words; load them as u16vW, compute in f32 (convert.h)
 *   byte floats f8e4m3, f8e5m2 ... name uint8 words; load them as u8vW, compute in f32 (byte_floats.h)
 *   conversion  polyop_cvt(T, v) between types of the same w; of floats to integers whole_i32v4_f32v4(v)
 *
 * Choose the target before including this, by flags or #pragma GCC target. Define POLYOP_WANT_W1, _W2, _W4 or
 * _W8 for the widths that are used: then the others are not compiled.
 *
 * memory.h: load, store, gather, scatter. lanes.h: bcast, iota, sel, max, min, reductions.
 * integer.h: floordiv, mod of integers. convert.h: float16, bfloat16. byte_floats.h: float8, float4.
 * whole.h: floats to integers. math.h (apart): functions of floats. */
#ifndef POLYOP_LOOPS_VECTOR_H
#define POLYOP_LOOPS_VECTOR_H
#include <stdint.h>

#include "../dtypes.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define POLYOP_AVX512 1
#define POLYOP_VB 64
#elif defined(__AVX__)
#define POLYOP_VB 32
#else
#define POLYOP_VB 16
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define POLYOP_GCC 1 /* names of target builtins differ between the two */
#endif

#if !defined(POLYOP_WANT_W1) && !defined(POLYOP_WANT_W2) && !defined(POLYOP_WANT_W4) && \
    !defined(POLYOP_WANT_W8)
#define POLYOP_WANT_W1 1
#define POLYOP_WANT_W2 1
#define POLYOP_WANT_W4 1
#define POLYOP_WANT_W8 1
#endif

#define POLYOP_FN static inline __attribute__((always_inline, unused))
#define POLYOP_UNROLL _Pragma("GCC unroll 64")

typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16, f16, bf16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;
#define POLYOP_ROW(NAME, ...) typedef u8 NAME;
POLYOP_BYTE_FLOATS(POLYOP_ROW)
#undef POLYOP_ROW

/* One row per type: X(element, width, signed element of its size, unsigned element of its size). */
#define POLYOP_SIGNED_1(X, W) X(i8, W, i8, u8)
#define POLYOP_SIGNED_2(X, W) POLYOP_SIGNED_1(X, W) X(i16, W, i16, u16)
#define POLYOP_SIGNED_4(X, W) POLYOP_SIGNED_2(X, W) X(i32, W, i32, u32)
#define POLYOP_SIGNED_8(X, W) POLYOP_SIGNED_4(X, W) X(i64, W, i64, u64)
#define POLYOP_UNSIGNED_1(X, W) X(u8, W, i8, u8)
#define POLYOP_UNSIGNED_2(X, W) POLYOP_UNSIGNED_1(X, W) X(u16, W, i16, u16)
#define POLYOP_UNSIGNED_4(X, W) POLYOP_UNSIGNED_2(X, W) X(u32, W, i32, u32)
#define POLYOP_UNSIGNED_8(X, W) POLYOP_UNSIGNED_4(X, W) X(u64, W, i64, u64)
#define POLYOP_FLOATS_1(X, W)
#define POLYOP_FLOATS_2(X, W)
#define POLYOP_FLOATS_4(X, W) X(f32, W, i32, u32)
#define POLYOP_FLOATS_8(X, W) X(f32, W, i32, u32) X(f64, W, i64, u64)

#ifdef POLYOP_WANT_W1
#define POLYOP_IF_W1(T, X) T##_1(X, 1)
#else
#define POLYOP_IF_W1(T, X)
#endif
#ifdef POLYOP_WANT_W2
#define POLYOP_IF_W2(T, X) T##_2(X, 2)
#else
#define POLYOP_IF_W2(T, X)
#endif
#ifdef POLYOP_WANT_W4
#define POLYOP_IF_W4(T, X) T##_4(X, 4)
#else
#define POLYOP_IF_W4(T, X)
#endif
#ifdef POLYOP_WANT_W8
#define POLYOP_IF_W8(T, X) T##_8(X, 8)
#else
#define POLYOP_IF_W8(T, X)
#endif
#define POLYOP_WIDTHS(T, X) POLYOP_IF_W1(T, X) POLYOP_IF_W2(T, X) POLYOP_IF_W4(T, X) POLYOP_IF_W8(T, X)
#define POLYOP_SIGNED(X) POLYOP_WIDTHS(POLYOP_SIGNED, X)
#define POLYOP_UNSIGNED(X) POLYOP_WIDTHS(POLYOP_UNSIGNED, X)
#define POLYOP_FLOATS(X) POLYOP_WIDTHS(POLYOP_FLOATS, X)
#define POLYOP_TYPES(X) POLYOP_SIGNED(X) POLYOP_UNSIGNED(X) POLYOP_FLOATS(X)

/* The second type is for memory: any alignment, and it aliases the elements. */
#define POLYOP_ROW(E, W, S, U)                                               \
  typedef E E##v##W __attribute__((vector_size(POLYOP_VB / W * sizeof(E)))); \
  typedef E E##v##W##_mem __attribute__((vector_size(POLYOP_VB / W * sizeof(E)), aligned(1), may_alias));
POLYOP_TYPES(POLYOP_ROW)
#undef POLYOP_ROW

#define POLYOP_LANES(W) (POLYOP_VB / (W))
#define polyop_cvt(T, v) __builtin_convertvector(v, T)

#include "byte_floats.h"
#include "convert.h"
#include "integer.h"
#include "lanes.h"
#include "memory.h"
#include "whole.h"

#endif
