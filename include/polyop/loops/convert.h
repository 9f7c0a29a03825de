/* Conversions of float16 and bfloat16, stored as uint16 words; included by vector.h. byte_floats.h adds
 * float8.
 *
 *   cvt_f16_f32(word) cvt_bf16_f32(word)           word to float, exact
 *   cvt_f32_f16(x) cvt_f32_bf16(x)                 to nearest, ties to even; overflow to inf; NaN stays NaN
 *   cvt_f16_f32vW(u16vW) cvt_f32_f16vW(f32vW) ...  the same for vectors, W is 4 or 8
 *
 * A NaN becomes quiet, and keeps its sign and the high bits of its payload. */
#ifndef POLYOP_LOOPS_CONVERT_H
#define POLYOP_LOOPS_CONVERT_H
#ifndef POLYOP_LOOPS_VECTOR_H
#error "include polyop/loops/vector.h"
#endif

/* Converts by bits, for any vector U of uint32; S is the signed vector for masks. A subnormal float16 is an
 * integer multiple of 2^-24. Adding 0.5 aligns its bits with those of a float and rounds; subtracting 0.5
 * undoes it. */
#define POLYOP_PICK(U, m, a, b) (((U)(m) & (a)) | (~(U)(m) & (b)))
#define POLYOP_HALF_WIDEN(U, F, h)                                                                       \
  U sign = (h & 0x8000u) << 16, body = (h & 0x7fffu) << 13;                                              \
  U normal = body + 0x38000000u, special = body | (0x7f800000u + ((U)(body > 0x0f800000u) & 0x400000u)); \
  U tiny = (U)((F)(body + 0x38800000u) - 0x1p-14f);                                                      \
  return (F)(sign |                                                                                      \
             POLYOP_PICK(U, body >= 0x0f800000u, special, POLYOP_PICK(U, body < 0x800000u, tiny, normal)))
#define POLYOP_HALF_NARROW(U, F, x)                                        \
  U bits = (U)x, sign = (bits >> 16) & 0x8000u, body = bits & 0x7fffffffu; \
  U normal = (body - 0x38000000u + 0xfffu + ((body >> 13) & 1u)) >> 13;    \
  U tiny = (U)((F)body + 0.5f) - 0x3f000000u;                              \
  U nan = 0x7e00u | ((body >> 13) & 0x3ffu);                               \
  U big = POLYOP_PICK(U, body > 0x7f800000u, nan, (U){0} + 0x7c00u);       \
  U result = POLYOP_PICK(U, body < 0x38800000u, tiny, POLYOP_PICK(U, body >= 0x477ff000u, big, normal))
#define POLYOP_BRAIN_NARROW(U, F, x)                                     \
  U bits = (U)x, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16; \
  U result = POLYOP_PICK(U, (bits & 0x7fffffffu) > 0x7f800000u, (bits >> 16) | 0x40u, rounded)

#define POLYOP_PORTABLE(W)                                                                                \
  POLYOP_FN f32v##W polyop_widen_##W(u16v##W word) {                                                      \
    u32v##W h = polyop_cvt(u32v##W, word);                                                                \
    POLYOP_HALF_WIDEN(u32v##W, f32v##W, h);                                                               \
  }                                                                                                       \
  POLYOP_FN u16v##W polyop_narrow_##W(f32v##W x) {                                                        \
    POLYOP_HALF_NARROW(u32v##W, f32v##W, x);                                                              \
    return polyop_cvt(u16v##W, result | sign);                                                            \
  }                                                                                                       \
  POLYOP_FN f32v##W cvt_bf16_f32v##W(u16v##W word) { return (f32v##W)(polyop_cvt(u32v##W, word) << 16); } \
  POLYOP_FN u16v##W cvt_f32_bf16v##W(f32v##W x) {                                                         \
    POLYOP_BRAIN_NARROW(u32v##W, f32v##W, x);                                                             \
    return polyop_cvt(u16v##W, result);                                                                   \
  }                                                                                                       \
  POLYOP_FN f32v##W cvt_f16_f32v##W(u16v##W word) {                                                       \
    f32v##W x;                                                                                            \
    if (polyop_widen_hardware(&x, &word, POLYOP_LANES(W))) return x;                                      \
    return polyop_widen_##W(word);                                                                        \
  }                                                                                                       \
  POLYOP_FN u16v##W cvt_f32_f16v##W(f32v##W x) {                                                          \
    u16v##W word;                                                                                         \
    if (polyop_narrow_hardware(&word, &x, POLYOP_LANES(W))) return word;                                  \
    return polyop_narrow_##W(x);                                                                          \
  }

/* Returns true when an instruction has converted it. `lanes` is a constant, so the test costs nothing. */
#if defined(POLYOP_GCC) && defined(__F16C__)
typedef short polyop_8h __attribute__((vector_size(16)));
typedef float polyop_8f __attribute__((vector_size(32)));
#ifdef POLYOP_AVX512
typedef short polyop_16h __attribute__((vector_size(32)));
typedef float polyop_16f __attribute__((vector_size(64)));
#endif
POLYOP_FN int polyop_widen_hardware(void* to, const void* from, int lanes) {
#ifdef POLYOP_AVX512
  if (lanes == 16) {
    polyop_16h h;
    __builtin_memcpy(&h, from, 32);
    polyop_16f x = __builtin_ia32_vcvtph2ps512_mask(h, (polyop_16f){0}, (u16)-1, 4);
    __builtin_memcpy(to, &x, 64);
    return 1;
  }
#endif
  polyop_8h h = {0};
  __builtin_memcpy(&h, from, 2 * lanes & 31);
  polyop_8f x = __builtin_ia32_vcvtph2ps256(h);
  __builtin_memcpy(to, &x, 4 * lanes & 63);
  return 1;
}
POLYOP_FN int polyop_narrow_hardware(void* to, const void* from, int lanes) {
#ifdef POLYOP_AVX512
  if (lanes == 16) {
    polyop_16f x;
    __builtin_memcpy(&x, from, 64);
    polyop_16h h = __builtin_ia32_vcvtps2ph512_mask(x, 0, (polyop_16h){0}, (u16)-1);
    __builtin_memcpy(to, &h, 32);
    return 1;
  }
#endif
  polyop_8f x = {0};
  __builtin_memcpy(&x, from, 4 * lanes & 63);
  polyop_8h h = __builtin_ia32_vcvtps2ph256(x, 0);
  __builtin_memcpy(to, &h, 2 * lanes & 31);
  return 1;
}
#elif defined(__aarch64__) || (defined(__F16C__) && defined(__clang__) && defined(__FLT16_MANT_DIG__))
#ifdef __aarch64__
typedef __fp16 polyop_half __attribute__((may_alias));
#else
typedef _Float16 polyop_half __attribute__((may_alias));
#endif
typedef float polyop_float __attribute__((may_alias));
POLYOP_FN int polyop_widen_hardware(void* to, const void* from, int lanes) {
  const polyop_half* f = (const polyop_half*)from;
  polyop_float* t = (polyop_float*)to;
  POLYOP_UNROLL for (int i = 0; i < lanes; i++) t[i] = f[i];
  return 1;
}
POLYOP_FN int polyop_narrow_hardware(void* to, const void* from, int lanes) {
  const polyop_float* f = (const polyop_float*)from;
  polyop_half* t = (polyop_half*)to;
  POLYOP_UNROLL for (int i = 0; i < lanes; i++) t[i] = (polyop_half)f[i];
  return 1;
}
#else
POLYOP_FN int polyop_widen_hardware(void* to, const void* from, int lanes) {
  return (void)to, (void)from, (void)lanes, 0;
}
POLYOP_FN int polyop_narrow_hardware(void* to, const void* from, int lanes) {
  return (void)to, (void)from, (void)lanes, 0;
}
#endif

#if defined(POLYOP_WANT_W4)
POLYOP_PORTABLE(4)
#endif
#if defined(POLYOP_WANT_W8)
POLYOP_PORTABLE(8)
#endif

/* A scalar is computed as lane 0 of a vector of 16 bytes, so that it rounds like vectors. */
typedef u16 polyop_h4 __attribute__((vector_size(8)));
typedef u32 polyop_u4 __attribute__((vector_size(16)));
typedef f32 polyop_f4 __attribute__((vector_size(16)));
POLYOP_FN f32 cvt_bf16_f32(u16 word) {
  union {
    u32 bits;
    f32 x;
  } both = {(u32)word << 16};
  return both.x;
}
POLYOP_FN u16 cvt_f32_bf16(f32 value) {
  polyop_f4 x = value - (polyop_f4){0};
  POLYOP_BRAIN_NARROW(polyop_u4, polyop_f4, x);
  return (u16)result[0];
}
POLYOP_FN polyop_f4 polyop_widen_4h(polyop_u4 h) { POLYOP_HALF_WIDEN(polyop_u4, polyop_f4, h); }
POLYOP_FN f32 cvt_f16_f32(u16 word) {
  polyop_h4 words = {word};
  polyop_f4 x;
  if (polyop_widen_hardware(&x, &words, 4)) return x[0];
  return polyop_widen_4h((polyop_u4){word})[0];
}
POLYOP_FN u16 cvt_f32_f16(f32 value) {
  polyop_f4 x = value - (polyop_f4){0};
  polyop_h4 words;
  if (polyop_narrow_hardware(&words, &x, 4)) return words[0];
  POLYOP_HALF_NARROW(polyop_u4, polyop_f4, x);
  return (u16)(result | sign)[0];
}

#endif
