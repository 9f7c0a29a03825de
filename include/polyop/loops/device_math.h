/* Scalars of loop kernels on a device, in CUDA C++ and OpenCL C, and of the host that launches them; included
 * by device.h, opencl_device.h and opencl.h. */
#ifndef POLYOP_LOOPS_DEVICE_MATH_H
#define POLYOP_LOOPS_DEVICE_MATH_H
#include "device_types.h"

/* Integers: as in integer.h. wrap_*: arithmetic that wraps around; signed overflow would be undefined. */
#define POLYOP_SIGNED_ROW(E, U)                                                                        \
  POLYOP_FN E floordiv_##E(E a, E b) {                                                                 \
    if (b == 0) return 0;                                                                              \
    if (b == (E) - 1) return (E)((U)0 - (U)a);                                                         \
    E q = (E)(a / b);                                                                                  \
    return (E)(q - ((a % b != 0) & ((a ^ b) < 0)));                                                    \
  }                                                                                                    \
  POLYOP_FN E mod_##E(E a, E b) {                                                                      \
    if (b == 0 || b == (E) - 1) return 0;                                                              \
    E r = (E)(a % b);                                                                                  \
    return (E)(r + (r != 0 && (r ^ b) < 0 ? b : 0));                                                   \
  }                                                                                                    \
  POLYOP_FN E polyop_rem_##E(E a, E b) { return b == 0 || b == (E) - 1 ? (E)0 : (E)(a % b); }          \
  POLYOP_FN E shr_##E(E a, E n) { return a >> ((u64)n < 8 * sizeof(E) ? n : (E)(8 * sizeof(E) - 1)); } \
  POLYOP_FN E wrap_neg_##E(E a) { return (E)(U)(0u - (u64)a); }                                        \
  POLYOP_WHOLE_ROW(E, if (n < 0) return x == 1 || (x == (E) - 1 && n % 2) ? x : x == (E) - 1;)
#define POLYOP_UNSIGNED_ROW(E)                                                     \
  POLYOP_FN E floordiv_##E(E a, E b) { return b ? (E)(a / b) : 0; }                \
  POLYOP_FN E mod_##E(E a, E b) { return b ? (E)(a % b) : 0; }                     \
  POLYOP_FN E polyop_rem_##E(E a, E b) { return b ? (E)(a % b) : (E)0; }           \
  POLYOP_FN E shr_##E(E a, E n) { return n < 8 * sizeof(E) ? (E)(a >> n) : (E)0; } \
  POLYOP_FN E wrap_neg_##E(E a) { return (E)(0u - (u64)a); }                       \
  POLYOP_WHOLE_ROW(E, )
#define POLYOP_WHOLE_ROW(E, NEGATIVE)                                                        \
  POLYOP_FN E wrap_add_##E(E a, E b) { return (E)((u64)a + (u64)b); }                        \
  POLYOP_FN E wrap_sub_##E(E a, E b) { return (E)((u64)a - (u64)b); }                        \
  POLYOP_FN E wrap_mul_##E(E a, E b) { return (E)((u64)a * (u64)b); }                        \
  POLYOP_FN E shl_##E(E a, E n) { return (u64)n < 8 * sizeof(E) ? (E)((u64)a << n) : (E)0; } \
  POLYOP_FN E max_##E(E a, E b) { return a >= b ? a : b; }                                   \
  POLYOP_FN E min_##E(E a, E b) { return a <= b ? a : b; }                                   \
  POLYOP_FN E polyop_ipow_##E(E x, E n) {                                                    \
    NEGATIVE E power = 1;                                                                    \
    for (u64 bits = (u64)n; bits; bits >>= 1) {                                              \
      if (bits & 1) power = wrap_mul_##E(power, x);                                          \
      x = wrap_mul_##E(x, x);                                                                \
    }                                                                                        \
    return power;                                                                            \
  }
POLYOP_SIGNED_ROW(i8, u8)
POLYOP_SIGNED_ROW(i16, u16)
POLYOP_SIGNED_ROW(i32, u32)
POLYOP_SIGNED_ROW(i64, u64)
POLYOP_UNSIGNED_ROW(u8)
POLYOP_UNSIGNED_ROW(u16)
POLYOP_UNSIGNED_ROW(u32)
POLYOP_UNSIGNED_ROW(u64)

#include "divisors.h"
#ifdef POLYOP_WITHOUT_F64 /* functions of OpenCL; it has no others */
POLYOP_FN f32 polyop_lgamma(f32 x) { return lgamma(x); }
#else
#include "math_gamma.h"
#endif

/* Floats: E the element, F the tail of C's names. floordiv and mod round as NumPy's do. */
#define POLYOP_ONE(name, function, E, F) \
  POLYOP_FN E pl_##name##_##E(E x) { return function##F(x); }
#define POLYOP_FLOAT_ROW(E, F)                                            \
  POLYOP_FN E max_##E(E a, E b) { return a >= b || a != a ? a : b; }      \
  POLYOP_FN E min_##E(E a, E b) { return a <= b || a != a ? a : b; }      \
  POLYOP_FN int pl_isnan_##E(E x) { return x != x; }                      \
  POLYOP_FN int pl_isinf_##E(E x) { return fabs##F(x) == (E)INFINITY; }   \
  POLYOP_FN int pl_isfinite_##E(E x) { return fabs##F(x) < (E)INFINITY; } \
  POLYOP_FN E pl_sign_##E(E x) { return x != x ? x : (x > 0) - (x < 0); } \
  POLYOP_FN E pl_rsqrt_##E(E x) { return 1 / sqrt##F(x); }                \
  POLYOP_FN E pl_sigmoid_##E(E x) {                                       \
    const E e = exp##F(-fabs##F(x));                                      \
    return (x < 0 ? e : (E)1) / (1 + e);                                  \
  }                                                                       \
  POLYOP_FN E pl_lgamma_##E(E x) { return (E)polyop_lgamma(x); }          \
  POLYOP_FN E pl_atan2_##E(E y, E x) { return atan2##F(y, x); }           \
  POLYOP_FN E pl_hypot_##E(E x, E y) { return hypot##F(x, y); }           \
  POLYOP_FN E pl_pow_##E(E x, E y) { return pow##F(x, y); }               \
  POLYOP_FN E pl_fmod_##E(E a, E b) { return fmod##F(a, b); }             \
  POLYOP_FN E pl_copysign_##E(E x, E y) { return copysign##F(x, y); }     \
  POLYOP_FN E mod_##E(E a, E b) {                                         \
    E r = fmod##F(a, b);                                                  \
    if (b == 0 || r != r) return r;                                       \
    if (r == 0) return copysign##F((E)0, b);                              \
    return (b < 0) != (r < 0) ? r + b : r;                                \
  }                                                                       \
  POLYOP_FN E floordiv_##E(E a, E b) {                                    \
    if (b == 0) return a / b;                                             \
    E r = fmod##F(a, b), q = (a - r) / b;                                 \
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;                             \
    if (q == 0) return copysign##F((E)0, a / b);                          \
    E whole = floor##F(q);                                                \
    return q - whole > (E)0.5 ? whole + 1 : whole;                        \
  }                                                                       \
  POLYOP_ONE(abs, fabs, E, F)                                             \
  POLYOP_ONE(floor, floor, E, F)                                          \
  POLYOP_ONE(ceil, ceil, E, F)                                            \
  POLYOP_ONE(trunc, trunc, E, F)                                          \
  POLYOP_ONE(round, rint, E, F)                                           \
  POLYOP_ONE(exp, exp, E, F)                                              \
  POLYOP_ONE(expm1, expm1, E, F)                                          \
  POLYOP_ONE(exp2, exp2, E, F)                                            \
  POLYOP_ONE(log1p, log1p, E, F)                                          \
  POLYOP_ONE(log2, log2, E, F)                                            \
  POLYOP_ONE(tan, tan, E, F)                                              \
  POLYOP_ONE(sinh, sinh, E, F)                                            \
  POLYOP_ONE(cosh, cosh, E, F)                                            \
  POLYOP_ONE(asin, asin, E, F)                                            \
  POLYOP_ONE(acos, acos, E, F)                                            \
  POLYOP_ONE(erfc, erfc, E, F)                                            \
  POLYOP_ONE(cbrt, cbrt, E, F)                                            \
  POLYOP_ONE(log, log, E, F)                                              \
  POLYOP_ONE(sqrt, sqrt, E, F)                                            \
  POLYOP_ONE(tanh, tanh, E, F)                                            \
  POLYOP_ONE(erf, erf, E, F)                                              \
  POLYOP_ONE(sin, sin, E, F)                                              \
  POLYOP_ONE(cos, cos, E, F)                                              \
  POLYOP_ONE(atan, atan, E, F)
#define POLYOP_GAMMA_ROW(E)                                        \
  POLYOP_FN E pl_digamma_##E(E x) { return (E)polyop_digamma(x); } \
  POLYOP_FN E pl_trigamma_##E(E x) { return (E)polyop_trigamma(x); }
#ifdef __OPENCL_VERSION__ /* one name for all types */
POLYOP_FLOAT_ROW(f32, )
#else
POLYOP_FLOAT_ROW(f32, f)
#endif
#ifndef POLYOP_WITHOUT_F64
POLYOP_FLOAT_ROW(f64, )
POLYOP_GAMMA_ROW(f32)
POLYOP_GAMMA_ROW(f64)
#endif

/* float16: by instructions on a GPU, which make all NaN equal; else by bits. */
#ifdef __OPENCL_VERSION__
#define polyop_bits(x) as_uint(x)
#define polyop_float(bits) as_float(bits)
#else
POLYOP_FN u32 polyop_bits(f32 x) {
  u32 bits;
  memcpy(&bits, &x, 4);
  return bits;
}
POLYOP_FN f32 polyop_float(u32 bits) {
  f32 x;
  memcpy(&x, &bits, 4);
  return x;
}
#endif
POLYOP_FN f32 cvt_f16_f32(f16 word) {
#ifdef __CUDA_ARCH__
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(word));
  return x;
#else
  const u32 sign = (u32)(word & 0x8000u) << 16, body = word & 0x7fffu;
  if (body >= 0x7c00u) return polyop_float(sign | 0x7f800000u | body << 13);
  if (body >= 0x400u) return polyop_float(sign | ((body << 13) + 0x38000000u));
  const f32 tiny = (f32)body * 0x1p-24f;
  return sign ? -tiny : tiny;
#endif
}
POLYOP_FN f16 cvt_f32_f16(f32 x) {
#ifdef __CUDA_ARCH__
  f16 word;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(word) : "f"(x));
  return word;
#else
  const u32 bits = polyop_bits(x), sign = bits >> 16 & 0x8000u, body = bits & 0x7fffffffu;
  if (body > 0x7f800000u) return (f16)(sign | 0x7e00u);
  if (body >= 0x477ff000u) return (f16)(sign | 0x7c00u);
  if (body < 0x38800000u) return (f16)(sign | (polyop_bits(polyop_float(body) + 0.5f) - 0x3f000000u));
  return (f16)(sign | (body - 0x38000000u + 0xfffu + (body >> 13 & 1u)) >> 13);
#endif
}
POLYOP_FN f32 cvt_bf16_f32(bf16 word) { return polyop_float((u32)word << 16); }
POLYOP_FN bf16 cvt_f32_bf16(f32 x) {
  const u32 bits = polyop_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bf16)(bits >> 16 | 0x40u);
  return (bf16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Divides *rest by `by`, both not negative, and returns the remainder; in 32 bits when they fit. */
POLYOP_FN i64 polyop_split(i64* rest, i64 by) {
  if (((*rest | by) >> 31) == 0) {
    const u32 dividend = (u32)*rest, d = (u32)by;
    *rest = dividend / d;
    return dividend % d;
  }
  const i64 remainder = *rest % by;
  *rest /= by;
  return remainder;
}
/* An index that counts from the end when it is negative. */
POLYOP_FN i64 polyop_from_end(i64 index, i64 size) { return index < 0 ? index + size : index; }

#endif
