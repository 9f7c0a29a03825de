/* Conversions of floats of one byte, the rows of POLYOP_BYTE_FLOATS, stored as uint8 words; included by
 * vector.h and device.h.
 *
 *   cvt_f8e4m3_f32(word) ...                           word to float, exact
 *   cvt_f32_f8e4m3(x) ...                              to nearest, ties to even
 *   cvt_f8e4m3_f32vW(u8vW) cvt_f32_f8e4m3vW(f32vW) ... the same for vectors, W is 4 or 8
 *
 * The values are those of ml_dtypes, bit for bit. What is too large after rounding becomes infinity, NaN or
 * the greatest number, whichever the dtype has first. A dtype with NaN has one of each sign; without, NaN is
 * a zero. f8e8m0 has the powers of 2 alone: it rounds up at half, and 0 and negative numbers are NaN in it.
 */
#ifndef POLYOP_LOOPS_BYTE_FLOATS_H
#define POLYOP_LOOPS_BYTE_FLOATS_H

#ifdef POLYOP_LOOPS_VECTOR_H
#include "convert.h"
#define POLYOP_AS(T, v) ((T)(v))
#else
#include "device_math.h"
#define POLYOP_AS_u32(v) polyop_bits(v)
#define POLYOP_AS_f32(v) polyop_float(v)
#define POLYOP_AS(T, v) POLYOP_AS_##T(v)
#define POLYOP_PICK(U, m, a, b) ((m) ? (a) : (b))
#endif

/* Declares `result`, computed by bits; U is uint32, F is float, or vectors of them. The last arguments are
 * those of the row, so the C compiler drops what a dtype does not need: mantissa bits, bias, the sign's bit,
 * the first word that is no number (the sign's bit: none is), the words of infinity and NaN, the first float
 * that becomes the former.
 *
 * No float on the way is subnormal, because hosts may flush those to zero. Widening a subnormal word: with an
 * exponent of 1 its bits are a float that is too large by exactly the number that is subtracted. Narrowing to
 * one: after the addition the last bit of the float is the last bit of the word, so the addition rounds. */
#define POLYOP_FLOAT_WIDEN(U, F, h, M, BIAS, SIGN, SPECIAL, TOP, NONE, OVER)                        \
  U none = 0u * h, body = (h & (SIGN - 1u)) << (23 - M);                                            \
  U sign = SIGN == 0x80u ? (h & 0x80u) << 24 : POLYOP_PICK(U, h >= SIGN, none + 0x80000000u, none); \
  U least = none + ((128u - BIAS) << 23), last = none + (SPECIAL << (23 - M));                      \
  U tiny = POLYOP_AS(U, POLYOP_AS(F, body + least) - POLYOP_AS(F, least));                          \
  U finite = POLYOP_PICK(U, body < 0x00800000u, tiny, body + ((127u - BIAS) << 23));                \
  U lost = none + 0x7fc00000u;                                                                      \
  U one = TOP == NONE ? lost : POLYOP_PICK(U, body > last, lost, none + 0x7f800000u);               \
  U any = SPECIAL == SIGN - 1u ? POLYOP_PICK(U, body == last, lost, finite)                         \
                               : POLYOP_PICK(U, body >= last, one, finite);                         \
  U result = sign | (SPECIAL < SIGN ? any : finite)
#define POLYOP_FLOAT_NARROW(U, F, x, M, BIAS, SIGN, SPECIAL, TOP, NONE, OVER)                          \
  U bits = POLYOP_AS(U, x), none = 0u * bits, body = bits & 0x7fffffffu;                               \
  U sign = (bits & 0x80000000u) / (0x80000000u / SIGN), least = none + ((151u - BIAS - M) << 23);      \
  U offset = ((127u - BIAS) << 23) - (1u << (22 - M)) + 1u + none;                                     \
  U normal = (body - offset + ((body >> (23 - M)) & 1u)) >> (23 - M);                                  \
  U tiny = POLYOP_AS(U, POLYOP_AS(F, body) + POLYOP_AS(F, least)) - least;                             \
  U finite = POLYOP_PICK(U, body < ((128u - BIAS) << 23), tiny, normal);                               \
  U special = TOP == NONE ? none + NONE : POLYOP_PICK(U, body > 0x7f800000u, none + NONE, none + TOP); \
  U result = sign ^ POLYOP_PICK(U, body >= OVER, special, finite)

/* The word is the exponent of a float. The least, 2^-127, is a subnormal float, whose exponent bits are 0:
 * half way to the next word is not a carry from the bits below. */
#define POLYOP_SCALE_WIDEN(U, F, h, ...)                           \
  U none = 0u * h, body = h << 23;                                 \
  U finite = POLYOP_PICK(U, body == 0u, none + 0x00400000u, body); \
  U result = POLYOP_PICK(U, body == 0x7f800000u, none + 0x7fc00000u, finite)
#define POLYOP_SCALE_NARROW(U, F, x, ...)                                      \
  U bits = POLYOP_AS(U, x), none = 0u * bits, up = (bits + 0x00400000u) >> 23; \
  U finite = POLYOP_PICK(U, bits < 0x00600000u, none, up);                     \
  U result = POLYOP_PICK(U, bits - 1u >= 0x7f7fffffu, none + 0xffu, finite)

#ifdef POLYOP_LOOPS_VECTOR_H
#define POLYOP_BYTE_VECTORS(W, NAME, KIND, ...)               \
  POLYOP_FN f32v##W cvt_##NAME##_f32v##W(u8v##W word) {       \
    u32v##W h = polyop_cvt(u32v##W, word);                    \
    POLYOP_##KIND##_WIDEN(u32v##W, f32v##W, h, __VA_ARGS__);  \
    return (f32v##W)result;                                   \
  }                                                           \
  POLYOP_FN u8v##W cvt_f32_##NAME##v##W(f32v##W x) {          \
    POLYOP_##KIND##_NARROW(u32v##W, f32v##W, x, __VA_ARGS__); \
    return polyop_cvt(u8v##W, result);                        \
  }
#define POLYOP_BYTE_VECTORS_4(...) POLYOP_BYTE_VECTORS(4, __VA_ARGS__)
#define POLYOP_BYTE_VECTORS_8(...) POLYOP_BYTE_VECTORS(8, __VA_ARGS__)
#if defined(POLYOP_WANT_W4)
POLYOP_BYTE_FLOATS(POLYOP_BYTE_VECTORS_4)
#endif
#if defined(POLYOP_WANT_W8)
POLYOP_BYTE_FLOATS(POLYOP_BYTE_VECTORS_8)
#endif

/* A scalar is computed as lane 0 of a vector of 16 bytes, as in convert.h. */
#define POLYOP_BYTE_SCALAR(NAME, KIND, ...)                       \
  POLYOP_FN f32 cvt_##NAME##_f32(u8 word) {                       \
    polyop_u4 h = {word};                                         \
    POLYOP_##KIND##_WIDEN(polyop_u4, polyop_f4, h, __VA_ARGS__);  \
    return ((polyop_f4)result)[0];                                \
  }                                                               \
  POLYOP_FN u8 cvt_f32_##NAME(f32 value) {                        \
    polyop_f4 x = value - (polyop_f4){0};                         \
    POLYOP_##KIND##_NARROW(polyop_u4, polyop_f4, x, __VA_ARGS__); \
    return (u8)result[0];                                         \
  }
#else
#define POLYOP_BYTE_SCALAR(NAME, KIND, ...)           \
  POLYOP_FN f32 cvt_##NAME##_f32(u8 word) {           \
    const u32 h = word;                               \
    POLYOP_##KIND##_WIDEN(u32, f32, h, __VA_ARGS__);  \
    return polyop_float(result);                      \
  }                                                   \
  POLYOP_FN u8 cvt_f32_##NAME(f32 x) {                \
    POLYOP_##KIND##_NARROW(u32, f32, x, __VA_ARGS__); \
    return (u8)result;                                \
  }
#endif
POLYOP_BYTE_FLOATS(POLYOP_BYTE_SCALAR)

#endif
