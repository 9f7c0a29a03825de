/* Instructions that the vector extensions cannot express; included by math.h. `bytes` and `size` (of the
 * element) are constants, so all branches but one vanish. A function that returns 0 has done nothing, because
 * there is no such instruction; the caller then runs portable code. */
#ifndef POLYOP_LOOPS_MATH_TARGET_H
#define POLYOP_LOOPS_MATH_TARGET_H

typedef f32 polyop_f32_64 __attribute__((vector_size(64)));
typedef f64 polyop_f64_64 __attribute__((vector_size(64)));
typedef f32 polyop_f32_32 __attribute__((vector_size(32)));
typedef f64 polyop_f64_32 __attribute__((vector_size(32)));
typedef f32 polyop_f32_16 __attribute__((vector_size(16)));
typedef f64 polyop_f64_16 __attribute__((vector_size(16)));

/* One row per register and element: X(bytes, element, intrinsic suffix). */
#if defined(POLYOP_GCC) && defined(POLYOP_AVX512)
#define POLYOP_ROWS_64(X) X(64, f32, ps512) X(64, f64, pd512)
#define POLYOP_SCALE_ROWS(X) X(32, f32, ps256) X(32, f64, pd256) X(16, f32, ps128) X(16, f64, pd128)
#else
#define POLYOP_ROWS_64(X)
#define POLYOP_SCALE_ROWS(X)
#endif
#if defined(POLYOP_GCC) && defined(__AVX__)
#define POLYOP_ROWS_32(X) X(32, f32, ps256) X(32, f64, pd256)
#else
#define POLYOP_ROWS_32(X)
#endif
#if defined(POLYOP_GCC) && defined(__SSE2__)
#define POLYOP_ROWS_16(X) X(16, f32, ps) X(16, f64, pd)
#elif defined(POLYOP_GCC) && defined(__aarch64__)
#define POLYOP_ROWS_16(X)
#define POLYOP_ROWS_NEON(X) X(16, f32, v4sf) X(16, f64, v2df)
#else
#define POLYOP_ROWS_16(X)
#endif
#ifndef POLYOP_ROWS_NEON
#define POLYOP_ROWS_NEON(X)
#endif

#define POLYOP_CASE(B, E, CALL)               \
  if (bytes == B && size == (int)sizeof(E)) { \
    polyop_##E##_##B v, n, w, zero = {0};     \
    __builtin_memcpy(&v, from, B);            \
    __builtin_memcpy(&n, by, B);              \
    w = CALL;                                 \
    (void)zero, (void)n;                      \
    __builtin_memcpy(to, &w, B);              \
    return 1;                                 \
  }

#define POLYOP_WIDE(B, E, S) POLYOP_CASE(B, E, __builtin_ia32_sqrt##S##_mask(v, zero, -1, 4))
#define POLYOP_SHORT(B, E, S) POLYOP_CASE(B, E, __builtin_ia32_sqrt##S(v))
#define POLYOP_NEON(B, E, S) POLYOP_CASE(B, E, __builtin_aarch64_sqrt##S(v))
typedef f32 polyop_any_f32 __attribute__((may_alias));
typedef f64 polyop_any_f64 __attribute__((may_alias));
POLYOP_FN int polyop_sqrt(void* to, const void* from, int bytes, int size) {
  const void* by = from;
  (void)by;
  POLYOP_ROWS_64(POLYOP_WIDE)
  POLYOP_ROWS_32(POLYOP_SHORT)
  POLYOP_ROWS_16(POLYOP_SHORT)
  POLYOP_ROWS_NEON(POLYOP_NEON)
  POLYOP_UNROLL for (int i = 0; i < bytes / size; i++) {
    if (size == 4)
      ((polyop_any_f32*)to)[i] = __builtin_sqrtf(((const polyop_any_f32*)from)[i]);
    else
      ((polyop_any_f64*)to)[i] = __builtin_sqrt(((const polyop_any_f64*)from)[i]);
  }
  return 1;
}
#undef POLYOP_WIDE
#undef POLYOP_SHORT
#undef POLYOP_NEON

/* The second operand of max and min is the result where either is NaN. */
#define POLYOP_WIDE(B, E, S)                                                      \
  POLYOP_CASE(B, E, __builtin_ia32_min##S##_mask((E)high - zero, v, zero, -1, 4); \
              if (low > -__builtin_inf()) w = __builtin_ia32_max##S##_mask((E)low - zero, w, zero, -1, 4))
#define POLYOP_SHORT(B, E, S)                                 \
  POLYOP_CASE(B, E, __builtin_ia32_min##S((E)high - zero, v); \
              if (low > -__builtin_inf()) w = __builtin_ia32_max##S((E)low - zero, w))
POLYOP_FN int polyop_clamp(void* to, const void* from, f64 low, f64 high, int bytes, int size) {
  const void* by = from;
  (void)by;
  POLYOP_ROWS_64(POLYOP_WIDE)
  POLYOP_ROWS_32(POLYOP_SHORT)
  POLYOP_ROWS_16(POLYOP_SHORT)
  return (void)to, (void)from, (void)low, (void)high, (void)bytes, (void)size, 0;
}
#undef POLYOP_WIDE
#undef POLYOP_SHORT

#define POLYOP_WIDE(B, E, S) POLYOP_CASE(B, E, __builtin_ia32_scalef##S##_mask(v, n, zero, -1, 4))
#define POLYOP_SHORT(B, E, S) POLYOP_CASE(B, E, __builtin_ia32_scalef##S##_mask(v, n, zero, -1))
POLYOP_FN int polyop_scale(void* to, const void* from, const void* by, int bytes, int size) {
  POLYOP_ROWS_64(POLYOP_WIDE)
  POLYOP_SCALE_ROWS(POLYOP_SHORT)
  return (void)to, (void)from, (void)by, (void)bytes, (void)size, 0;
}
#undef POLYOP_WIDE
#undef POLYOP_SHORT
#undef POLYOP_CASE

/* a * b + c, rounded once. The compiler may fuse the operators or not, even differently for constants. */
#if defined(POLYOP_GCC) && defined(__FMA__) && defined(POLYOP_AVX512)
#define POLYOP_FMA_64(v, w, z) __builtin_ia32_vfmaddpd512_mask(v, w, z, -1, 4)
#endif
#if defined(POLYOP_GCC) && defined(__FMA__)
#define POLYOP_FMA_32(v, w, z) __builtin_ia32_vfmaddpd256(v, w, z)
#define POLYOP_FMA_16(v, w, z) __builtin_ia32_vfmaddpd(v, w, z)
#elif defined(POLYOP_GCC) && defined(__aarch64__)
#define POLYOP_FMA_16(v, w, z) __builtin_aarch64_fmav2df(v, w, z)
#endif
#define POLYOP_ROW(B)            \
  if (bytes == B) {              \
    polyop_f64_##B v, w, z;      \
    __builtin_memcpy(&v, a, B);  \
    __builtin_memcpy(&w, b, B);  \
    __builtin_memcpy(&z, c, B);  \
    v = POLYOP_FMA_##B(v, w, z); \
    __builtin_memcpy(to, &v, B); \
    return 1;                    \
  }
POLYOP_FN int polyop_fma(void* to, const void* a, const void* b, const void* c, int bytes) {
#ifdef POLYOP_FMA_64
  POLYOP_ROW(64)
#endif
#ifdef POLYOP_FMA_32
  POLYOP_ROW(32)
#endif
#ifdef POLYOP_FMA_16
  POLYOP_ROW(16)
#endif
  return (void)to, (void)a, (void)b, (void)c, (void)bytes, 0;
}
#undef POLYOP_ROW

/* whether an unsigned integer is above that of its lane in by, without a vector of masks in between */
POLYOP_FN int polyop_above(int* to, const void* from, const void* by, int bytes, int size) {
#if defined(POLYOP_GCC) && defined(POLYOP_AVX512)
  if (bytes == 64) {
    typedef long long Q __attribute__((vector_size(64)));
    typedef int D __attribute__((vector_size(64)));
    union {
      Q q;
      D d;
    } v, w;
    __builtin_memcpy(&v, from, 64);
    __builtin_memcpy(&w, by, 64);
    *to = size == 8 ? __builtin_ia32_ucmpq512_mask(v.q, w.q, 6, -1)
                    : __builtin_ia32_ucmpd512_mask(v.d, w.d, 6, -1);
    return 1;
  }
#endif
  return (void)to, (void)from, (void)by, (void)bytes, (void)size, 0;
}

#endif
