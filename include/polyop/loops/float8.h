/* Conversions of float8_e4m3fn and float8_e5m2, stored as uint8 words; included by vector.h and device.h.
 *
 *   cvt_f8e4m3_f32(word) cvt_f8e5m2_f32(word)          word to float, exact
 *   cvt_f32_f8e4m3(x) cvt_f32_f8e5m2(x)                to nearest, ties to even
 *   cvt_f8e4m3_f32vW(u8vW) cvt_f32_f8e4m3vW(f32vW) ... the same for vectors, W is 4 or 8
 *
 * e4m3fn has no infinity: what is beyond its greatest number, 448, after rounding becomes NaN. e5m2 overflows
 * to infinity. There is one NaN of each sign, as in ml_dtypes. */
#ifndef POLYOP_LOOPS_FLOAT8_H
#define POLYOP_LOOPS_FLOAT8_H

#ifdef POLYOP_LOOPS_VECTOR_H
#define POLYOP_AS(T, v) ((T)(v))
#else
POLYOP_FN f32 polyop_as(u32 bits) { return polyop_float(bits); }
POLYOP_FN u32 polyop_as(f32 x) { return polyop_bits(x); }
#define POLYOP_AS(T, v) polyop_as(v)
#define POLYOP_PICK(U, m, a, b) ((m) ? (a) : (b))
#endif

/* Declares `result`, computed by bits; U is uint32, F is float, or vectors of them.
 *
 * No float on the way is subnormal, because hosts may flush those to zero. Widening a subnormal word: with an
 * exponent of 1 its bits are a float that is too large by exactly the number that is subtracted. Narrowing to
 * one: after the addition the last bit of the float is the last bit of the word, so the addition rounds. */
#define POLYOP_E4M3_WIDEN(U, F, h)                                         \
  U sign = (h & 0x80u) << 24, body = (h & 0x7fu) << 20;                    \
  U tiny = POLYOP_AS(U, POLYOP_AS(F, body + 0x3c800000u) - 0x1p-6f);       \
  U finite = POLYOP_PICK(U, body < 0x00800000u, tiny, body + 0x3c000000u); \
  U result = sign | POLYOP_PICK(U, body == 0x07f00000u, 0u * h + 0x7fc00000u, finite)
#define POLYOP_E5M2_WIDEN(U, F, h)                                                            \
  U sign = (h & 0x80u) << 24, body = (h & 0x7fu) << 21;                                       \
  U tiny = POLYOP_AS(U, POLYOP_AS(F, body + 0x38800000u) - 0x1p-14f);                         \
  U finite = POLYOP_PICK(U, body < 0x00800000u, tiny, body + 0x38000000u);                    \
  U special = POLYOP_PICK(U, body > 0x0f800000u, 0u * h + 0x7fc00000u, 0u * h + 0x7f800000u); \
  U result = sign | POLYOP_PICK(U, body >= 0x0f800000u, special, finite)
#define POLYOP_E4M3_NARROW(U, F, x)                                                 \
  U bits = POLYOP_AS(U, x), sign = (bits >> 24) & 0x80u, body = bits & 0x7fffffffu; \
  U normal = (body - 0x3c000000u + 0x7ffffu + ((body >> 20) & 1u)) >> 20;           \
  U tiny = POLYOP_AS(U, POLYOP_AS(F, body) + 0x1p14f) - 0x46800000u;                \
  U finite = POLYOP_PICK(U, body < 0x3c800000u, tiny, normal);                      \
  U result = sign | POLYOP_PICK(U, body > 0x43e80000u, 0u * bits + 0x7fu, finite)
#define POLYOP_E5M2_NARROW(U, F, x)                                                     \
  U bits = POLYOP_AS(U, x), sign = (bits >> 24) & 0x80u, body = bits & 0x7fffffffu;     \
  U normal = (body - 0x38000000u + 0xfffffu + ((body >> 21) & 1u)) >> 21;               \
  U tiny = POLYOP_AS(U, POLYOP_AS(F, body) + 0x1p7f) - 0x43000000u;                     \
  U finite = POLYOP_PICK(U, body < 0x38800000u, tiny, normal);                          \
  U special = POLYOP_PICK(U, body > 0x7f800000u, 0u * bits + 0x7eu, 0u * bits + 0x7cu); \
  U result = sign | POLYOP_PICK(U, body >= 0x47700000u, special, finite)

#ifdef POLYOP_LOOPS_VECTOR_H
#define POLYOP_FLOAT8_VECTORS(W, NAME, KIND)            \
  POLYOP_FN f32v##W cvt_##NAME##_f32v##W(u8v##W word) { \
    u32v##W h = polyop_cvt(u32v##W, word);              \
    POLYOP_##KIND##_WIDEN(u32v##W, f32v##W, h);         \
    return (f32v##W)result;                             \
  }                                                     \
  POLYOP_FN u8v##W cvt_f32_##NAME##v##W(f32v##W x) {    \
    POLYOP_##KIND##_NARROW(u32v##W, f32v##W, x);        \
    return polyop_cvt(u8v##W, result);                  \
  }
#if defined(POLYOP_WANT_W4)
POLYOP_FLOAT8_VECTORS(4, f8e4m3, E4M3)
POLYOP_FLOAT8_VECTORS(4, f8e5m2, E5M2)
#endif
#if defined(POLYOP_WANT_W8)
POLYOP_FLOAT8_VECTORS(8, f8e4m3, E4M3)
POLYOP_FLOAT8_VECTORS(8, f8e5m2, E5M2)
#endif

/* A scalar is computed as lane 0 of a vector of 16 bytes, as in convert.h. */
#define POLYOP_FLOAT8(NAME, KIND)                    \
  POLYOP_FN f32 cvt_##NAME##_f32(u8 word) {          \
    polyop_u4 h = {word};                            \
    POLYOP_##KIND##_WIDEN(polyop_u4, polyop_f4, h);  \
    return ((polyop_f4)result)[0];                   \
  }                                                  \
  POLYOP_FN u8 cvt_f32_##NAME(f32 value) {           \
    polyop_f4 x = value - (polyop_f4){0};            \
    POLYOP_##KIND##_NARROW(polyop_u4, polyop_f4, x); \
    return (u8)result[0];                            \
  }
#else
#define POLYOP_FLOAT8(NAME, KIND)           \
  POLYOP_FN f32 cvt_##NAME##_f32(u8 word) { \
    const u32 h = word;                     \
    POLYOP_##KIND##_WIDEN(u32, f32, h);     \
    return polyop_float(result);            \
  }                                         \
  POLYOP_FN u8 cvt_f32_##NAME(f32 x) {      \
    POLYOP_##KIND##_NARROW(u32, f32, x);    \
    return (u8)result;                      \
  }
#endif
POLYOP_FLOAT8(f8e4m3, E4M3)
POLYOP_FLOAT8(f8e5m2, E5M2)

#endif
