/* Operations on the lanes of vectors; included by vector.h.
 *
 *   bcast_T(x) iota_T()            x in every lane; 0, 1, 2, ...
 *   sel_T(mask, a, b)              a where the mask is -1, b where it is 0
 *   max_T(a, b) min_T(a, b)        as numpy.maximum and minimum: a NaN on either side is the result.
 *                                  Also for scalars: max_f32(a, b)
 *   reduce_add_T(v), reduce_mul_T, reduce_max_T, reduce_min_T
 *                                  over all lanes, always in the same order (halves folded on halves)
 *   tobool_T(mask) frombool_T(b)   masks of T to and from booleans (u8 of 0 and 1; any non-zero is true)
 *   any_T(mask)                    1 if any lane of a mask of T is set
 *   POLYOP_MASK(T, mask)           the mask, for statements under a condition
 */
#ifndef POLYOP_LOOPS_LANES_H
#define POLYOP_LOOPS_LANES_H
#ifndef POLYOP_LOOPS_VECTOR_H
#error "include polyop/loops/vector.h"
#endif
#include "memory.h"

#if defined(POLYOP_GCC) && defined(__SSE2__) && !defined(__SSE4_1__)
/* Hides from gcc 12 that the mask is the result of a comparison. It crashes when it moves such a comparison
 * of 64 bits from one branch to another, because SSE2 has no instruction for it. */
#define POLYOP_MASK(T, mask)      \
  ({                              \
    T polyop_m = (mask);          \
    __asm__("" : "+m"(polyop_m)); \
    polyop_m;                     \
  })
#else
#define POLYOP_MASK(T, mask) (mask)
#endif

#define POLYOP_IOTA8(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
#define POLYOP_IOTA16 POLYOP_IOTA8(0), POLYOP_IOTA8(8)
#define POLYOP_IOTA32 POLYOP_IOTA16, POLYOP_IOTA8(16), POLYOP_IOTA8(24)
#define POLYOP_IOTA64 POLYOP_IOTA32, POLYOP_IOTA8(32), POLYOP_IOTA8(40), POLYOP_IOTA8(48), POLYOP_IOTA8(56)
#define POLYOP_ROW(E, N) __attribute__((unused)) static const E polyop_iota_##E[] = {POLYOP_IOTA##N};
POLYOP_ROW(i8, 64)
POLYOP_ROW(u8, 64)
POLYOP_ROW(i16, 32)
POLYOP_ROW(u16, 32)
POLYOP_ROW(i32, 16)
POLYOP_ROW(u32, 16)
POLYOP_ROW(f32, 16)
#undef POLYOP_ROW
#define POLYOP_ROW(E) __attribute__((unused)) static const E polyop_iota_##E[] = {POLYOP_IOTA8(0)};
POLYOP_ROW(i64)
POLYOP_ROW(u64)
POLYOP_ROW(f64)
#undef POLYOP_ROW

/* `bytes` is a constant. Uses the instruction that tests a whole vector when there is one. */
POLYOP_FN int polyop_any(const void* mask, int bytes) {
#if defined(POLYOP_GCC) && defined(POLYOP_AVX512)
  if (bytes == 64) {
    typedef int V __attribute__((vector_size(64)));
    V v;
    __builtin_memcpy(&v, mask, 64);
    return __builtin_ia32_ptestmd512(v, v, (u16)-1) != 0;
  }
#endif
#if defined(POLYOP_GCC) && defined(__AVX__)
  if (bytes == 32) {
    typedef long long V __attribute__((vector_size(32)));
    V v;
    __builtin_memcpy(&v, mask, 32);
    return !__builtin_ia32_ptestz256(v, v);
  }
#endif
#if defined(POLYOP_GCC) && defined(__SSE2__)
  if (bytes == 16) {
    typedef char V __attribute__((vector_size(16)));
    V v;
    __builtin_memcpy(&v, mask, 16);
    return __builtin_ia32_pmovmskb128(v) != 0;
  }
#endif
  u64 word = 0, sum = 0;
  POLYOP_UNROLL
  for (int i = 0; i < bytes; i += 8) {
    __builtin_memcpy(&word, (const char*)mask + i, bytes < 8 ? bytes & 7 : 8);
    sum |= word;
  }
  return sum != 0;
}

#define POLYOP_ROW(E, W, S, U)                                                                     \
  POLYOP_FN E##v##W bcast_##E##v##W(E x) { return x - (E##v##W){0}; }                              \
  POLYOP_FN E##v##W iota_##E##v##W(void) { return load_##E##v##W(polyop_iota_##E); }               \
  POLYOP_FN E##v##W sel_##E##v##W(S##v##W m, E##v##W a, E##v##W b) {                               \
    return (E##v##W)((m & (S##v##W)a) | (~m & (S##v##W)b));                                        \
  }                                                                                                \
  POLYOP_FN u8v##W tobool_##E##v##W(S##v##W m) { return polyop_cvt(u8v##W, m & 1); }               \
  POLYOP_FN S##v##W frombool_##E##v##W(u8v##W b) { return polyop_cvt(S##v##W, (i8v##W)(b != 0)); } \
  POLYOP_FN int any_##E##v##W(S##v##W m) { return polyop_any(&m, sizeof(m)); }
POLYOP_TYPES(POLYOP_ROW)
#undef POLYOP_ROW

#define POLYOP_ROW(E, W, S, U)                                                                  \
  POLYOP_FN E##v##W max_##E##v##W(E##v##W a, E##v##W b) { return sel_##E##v##W(a >= b, a, b); } \
  POLYOP_FN E##v##W min_##E##v##W(E##v##W a, E##v##W b) { return sel_##E##v##W(a <= b, a, b); }
POLYOP_SIGNED(POLYOP_ROW)
POLYOP_UNSIGNED(POLYOP_ROW)
#undef POLYOP_ROW
#define POLYOP_ROW(E, W, S, U)                                                                               \
  POLYOP_FN E##v##W max_##E##v##W(E##v##W a, E##v##W b) { return sel_##E##v##W((a >= b) | (a != a), a, b); } \
  POLYOP_FN E##v##W min_##E##v##W(E##v##W a, E##v##W b) { return sel_##E##v##W((a <= b) | (a != a), a, b); }
POLYOP_FLOATS(POLYOP_ROW)
#undef POLYOP_ROW
#define POLYOP_ROW(E)                                                \
  POLYOP_FN E max_##E(E a, E b) { return a >= b || a != a ? a : b; } \
  POLYOP_FN E min_##E(E a, E b) { return a <= b || a != a ? a : b; }
POLYOP_ROW(i8)
POLYOP_ROW(i16)
POLYOP_ROW(i32)
POLYOP_ROW(i64)
POLYOP_ROW(u8)
POLYOP_ROW(u16)
POLYOP_ROW(u32)
POLYOP_ROW(u64)
POLYOP_ROW(f32)
POLYOP_ROW(f64)
#undef POLYOP_ROW

/* In each step, lane i is combined with lane i + half. clang has no shuffle by a vector, so there the halves
 * go through memory. */
#ifdef POLYOP_GCC
#define POLYOP_REDUCE(E, W, S, NAME, OP)                                      \
  POLYOP_FN E NAME##_##E##v##W(E##v##W v) {                                   \
    POLYOP_UNROLL for (int half = POLYOP_LANES(W) / 2; half > 0; half /= 2) { \
      E##v##W a = v, b = __builtin_shuffle(v, iota_##S##v##W() ^ (S)half);    \
      v = OP;                                                                 \
    }                                                                         \
    return v[0];                                                              \
  }
#else
#define POLYOP_REDUCE(E, W, S, NAME, OP)                                      \
  POLYOP_FN E NAME##_##E##v##W(E##v##W v) {                                   \
    POLYOP_UNROLL for (int half = POLYOP_LANES(W) / 2; half > 0; half /= 2) { \
      E##v##W a = v, b = v;                                                   \
      __builtin_memcpy(&b, (const E*)&a + half, half * sizeof(E));            \
      v = OP;                                                                 \
    }                                                                         \
    return v[0];                                                              \
  }
#endif
#define POLYOP_ROW(E, W, S, U)                            \
  POLYOP_REDUCE(E, W, S, reduce_add, a + b)               \
  POLYOP_REDUCE(E, W, S, reduce_mul, (E##v##W)(a * b))    \
  POLYOP_REDUCE(E, W, S, reduce_max, max_##E##v##W(a, b)) \
  POLYOP_REDUCE(E, W, S, reduce_min, min_##E##v##W(a, b))
POLYOP_TYPES(POLYOP_ROW)
#undef POLYOP_ROW

#endif
