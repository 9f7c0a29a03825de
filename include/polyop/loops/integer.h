/* Division of integers as in Python and NumPy; included by vector.h.
 *
 *   floordiv_T(a, b) mod_T(a, b)     rounded towards minus infinity; the remainder has the sign of b
 *   floordiv_i32(a, b) ...           the same for scalars
 *
 *   shl_T(a, n) shr_T(a, n)          a shifted by n bits; shr repeats the sign
 *   shl_i32(a, n) ...                the same for scalars
 *
 *   polyop_ipow_T(a, n)              a to the power n, modulo 2**bits; for n < 0 truncated to 1, -1 or 0
 *   polyop_rem_T(a, b)               the remainder of C, which has the sign of a
 *   polyop_gcd_T(a, b) polyop_lcm_T(a, b)   of absolute values, modulo 2**bits; those of 0 and b are b and 0
 *
 * As in NumPy, a shift by a negative n, or by all bits of a and more, shifts all bits out.
 *
 * Division by 0 gives 0 for both. The most negative number divided by -1 wraps around to itself. Neither
 * traps. */
#ifndef POLYOP_LOOPS_INTEGER_H
#define POLYOP_LOOPS_INTEGER_H
#ifndef POLYOP_LOOPS_VECTOR_H
#error "include polyop/loops/vector.h"
#endif
#include "lanes.h"

/* 0 and -1 never reach the hardware: the results for them, 0 and -a, are selected. */
#define POLYOP_ROW(E, U)                             \
  POLYOP_FN E floordiv_##E(E a, E b) {               \
    if (b == 0) return 0;                            \
    if (b == (E) - 1) return (E)((U)0 - (U)a);       \
    E q = (E)(a / b);                                \
    return (E)(q - ((a % b != 0) & ((a ^ b) < 0)));  \
  }                                                  \
  POLYOP_FN E mod_##E(E a, E b) {                    \
    if (b == 0 || b == (E) - 1) return 0;            \
    E r = (E)(a % b);                                \
    return (E)(r + (r != 0 && (r ^ b) < 0 ? b : 0)); \
  }
POLYOP_ROW(i8, u8)
POLYOP_ROW(i16, u16)
POLYOP_ROW(i32, u32)
POLYOP_ROW(i64, u64)
#undef POLYOP_ROW
#define POLYOP_ROW(E)                                               \
  POLYOP_FN E floordiv_##E(E a, E b) { return b ? (E)(a / b) : 0; } \
  POLYOP_FN E mod_##E(E a, E b) { return b ? (E)(a % b) : 0; }
POLYOP_ROW(u8)
POLYOP_ROW(u16)
POLYOP_ROW(u32)
POLYOP_ROW(u64)
#undef POLYOP_ROW

#define POLYOP_ROW(E, W, S, U)                                            \
  POLYOP_FN E##v##W floordiv_##E##v##W(E##v##W a, E##v##W b) {            \
    E##v##W one = (b == 0) | (b == -1), q = a / ((one & 1) | (~one & b)); \
    E##v##W r = a - q * b;                                                \
    q += (r != 0) & ((r ^ b) < 0);                                        \
    E##v##W minus = (E##v##W)((U##v##W){0} - (U##v##W)a);                 \
    return (one & (b & minus)) | (~one & q);                              \
  }                                                                       \
  POLYOP_FN E##v##W mod_##E##v##W(E##v##W a, E##v##W b) {                 \
    E##v##W one = (b == 0) | (b == -1);                                   \
    E##v##W d = (one & 1) | (~one & b), r = a - a / d * d;                \
    return r + ((r != 0) & ((r ^ b) < 0) & b);                            \
  }
POLYOP_SIGNED(POLYOP_ROW)
#undef POLYOP_ROW
#define POLYOP_ROW(E, W, S, U)                                 \
  POLYOP_FN E##v##W floordiv_##E##v##W(E##v##W a, E##v##W b) { \
    E##v##W zero = (E##v##W)(b == 0);                          \
    return (a / (b | (zero & 1))) & ~zero;                     \
  }                                                            \
  POLYOP_FN E##v##W mod_##E##v##W(E##v##W a, E##v##W b) {      \
    E##v##W d = b | ((E##v##W)(b == 0) & 1);                   \
    return a - a / d * d;                                      \
  }
POLYOP_UNSIGNED(POLYOP_ROW)
#undef POLYOP_ROW

#define POLYOP_ROW(E, U)                                                                   \
  POLYOP_FN E shl_##E(E a, E n) { return (U)n < 8 * sizeof(E) ? (E)((u64)(U)a << n) : 0; } \
  POLYOP_FN E shr_##E(E a, E n) { return a >> ((U)n < 8 * sizeof(E) ? n : (E)(8 * sizeof(E) - 1)); }
POLYOP_ROW(i8, u8)
POLYOP_ROW(i16, u16)
POLYOP_ROW(i32, u32)
POLYOP_ROW(i64, u64)
#undef POLYOP_ROW
#define POLYOP_ROW(E)                                                                \
  POLYOP_FN E shl_##E(E a, E n) { return n < 8 * sizeof(E) ? (E)((u64)a << n) : 0; } \
  POLYOP_FN E shr_##E(E a, E n) { return n < 8 * sizeof(E) ? (E)(a >> n) : 0; }
POLYOP_ROW(u8)
POLYOP_ROW(u16)
POLYOP_ROW(u32)
POLYOP_ROW(u64)
#undef POLYOP_ROW
#define POLYOP_ROW(E, W, S, U)                                                 \
  POLYOP_FN E##v##W shl_##E##v##W(E##v##W a, E##v##W n) {                      \
    U##v##W bits = (U##v##W)n, most = (U##v##W){0} + (8 * sizeof(E) - 1);      \
    return (E##v##W)(((U##v##W)a << (bits & most)) & (U##v##W)(bits <= most)); \
  }                                                                            \
  POLYOP_FN E##v##W shr_##E##v##W(E##v##W a, E##v##W n) {                      \
    U##v##W bits = (U##v##W)n, most = (U##v##W){0} + (8 * sizeof(E) - 1);      \
    U##v##W in = (U##v##W)(bits <= most);                                      \
    return a >> (E##v##W)((bits & in) | (most & ~in));                         \
  }
POLYOP_SIGNED(POLYOP_ROW)
#undef POLYOP_ROW
#define POLYOP_ROW(E, W, S, U)                            \
  POLYOP_FN E##v##W shl_##E##v##W(E##v##W a, E##v##W n) { \
    E##v##W most = (E##v##W){0} + (8 * sizeof(E) - 1);    \
    return (a << (n & most)) & (E##v##W)(n <= most);      \
  }                                                       \
  POLYOP_FN E##v##W shr_##E##v##W(E##v##W a, E##v##W n) { \
    E##v##W most = (E##v##W){0} + (8 * sizeof(E) - 1);    \
    return (a >> (n & most)) & (E##v##W)(n <= most);      \
  }
POLYOP_UNSIGNED(POLYOP_ROW)
#undef POLYOP_ROW

#ifdef POLYOP_WANT_IPOW
#define POLYOP_ROW(E, U)                                                    \
  POLYOP_FN E polyop_ipow_##E(E a, E n) {                                   \
    if (n < 0) return a == 1 || (a == (E) - 1 && n % 2) ? a : a == (E) - 1; \
    U power = 1, x = (U)a;                                                  \
    for (U bits = (U)n; bits; bits >>= 1) {                                 \
      if (bits & 1) power = (U)((u64)power * x);                            \
      x = (U)((u64)x * x);                                                  \
    }                                                                       \
    return (E)power;                                                        \
  }
POLYOP_ROW(i8, u8)
POLYOP_ROW(i16, u16)
POLYOP_ROW(i32, u32)
POLYOP_ROW(i64, u64)
POLYOP_ROW(u8, u8)
POLYOP_ROW(u16, u16)
POLYOP_ROW(u32, u32)
POLYOP_ROW(u64, u64)
#undef POLYOP_ROW
#define POLYOP_ROW(E, W, S, U)                                                   \
  POLYOP_FN E##v##W polyop_ipow_##E##v##W(E##v##W a, E##v##W n) {                \
    U##v##W power = (U##v##W){0} + 1, x = (U##v##W)a, bits = (U##v##W)n;         \
    U##v##W negative = (U##v##W)(n < 0), odd = (U##v##W)((bits & 1) != 0);       \
    bits &= ~negative;                                                           \
    while (any_##E##v##W((S##v##W)(bits != 0))) {                                \
      power *= (x & (U##v##W)((bits & 1) != 0)) | (U##v##W)((bits & 1) ^ 1);     \
      x *= x;                                                                    \
      bits >>= 1;                                                                \
    }                                                                            \
    U##v##W one = (U##v##W)(a == 1), minus = (U##v##W)(a == (E) - 1);            \
    U##v##W truncated = (one & 1) | (minus & ((odd & (U##v##W)a) | (~odd & 1))); \
    return (E##v##W)((negative & truncated) | (~negative & power));              \
  }
POLYOP_SIGNED(POLYOP_ROW)
POLYOP_UNSIGNED(POLYOP_ROW)
#undef POLYOP_ROW
#endif

#ifdef POLYOP_WANT_REM
#define POLYOP_ROW(E) \
  POLYOP_FN E polyop_rem_##E(E a, E b) { return b == 0 || b == (E) - 1 ? 0 : (E)(a % b); }
POLYOP_ROW(i8)
POLYOP_ROW(i16)
POLYOP_ROW(i32)
POLYOP_ROW(i64)
#undef POLYOP_ROW
#define POLYOP_ROW(E) \
  POLYOP_FN E polyop_rem_##E(E a, E b) { return mod_##E(a, b); }
POLYOP_ROW(u8)
POLYOP_ROW(u16)
POLYOP_ROW(u32)
POLYOP_ROW(u64)
#undef POLYOP_ROW
#define POLYOP_ROW(E, W, S, U)                                      \
  POLYOP_FN E##v##W polyop_rem_##E##v##W(E##v##W a, E##v##W b) {    \
    E##v##W one = (b == 0) | (b == -1), d = (one & 1) | (~one & b); \
    return a - a / d * d;                                           \
  }
POLYOP_SIGNED(POLYOP_ROW)
#undef POLYOP_ROW
#define POLYOP_ROW(E, W, S, U) \
  POLYOP_FN E##v##W polyop_rem_##E##v##W(E##v##W a, E##v##W b) { return mod_##E##v##W(a, b); }
POLYOP_UNSIGNED(POLYOP_ROW)
#undef POLYOP_ROW
#endif

#if defined(POLYOP_WANT_GCD) || defined(POLYOP_WANT_LCM)
#include "divisors.h"
#define POLYOP_ROW(E, W, S, U)                                                               \
  POLYOP_FN E##v##W polyop_gcd_##E##v##W(E##v##W a, E##v##W b) {                             \
    for (int i = 0; i < (int)(sizeof a / sizeof(E)); i++) a[i] = polyop_gcd_##E(a[i], b[i]); \
    return a;                                                                                \
  }                                                                                          \
  POLYOP_FN E##v##W polyop_lcm_##E##v##W(E##v##W a, E##v##W b) {                             \
    for (int i = 0; i < (int)(sizeof a / sizeof(E)); i++) a[i] = polyop_lcm_##E(a[i], b[i]); \
    return a;                                                                                \
  }
POLYOP_SIGNED(POLYOP_ROW) POLYOP_UNSIGNED(POLYOP_ROW)
#undef POLYOP_ROW
#endif

#endif
