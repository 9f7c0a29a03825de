/* float: constants and the functions that differ from double's; math.h includes it. */
#define MANTISSA 23
#define BIAS 127
#define WHOLE 0x1p23f
#define MAGIC 0x1.8p23f
#define TINY 0x1p-30f
#define LOG2E 0x1.715476p0f
#define LN2_HIGH 0x1.62ep-1f /* 12 bits: times an exponent it is exact */
#define LN2_LOW 0x1.0bfbe8p-15f
#define LOG2E_HIGH 0x1.714p0f /* 12 bits */
#define LOG2E_LOW 0x1.47652cp-12f
#define HALF_PI 0x1.921fb6p0f
#define HALF_PI_LOW -0x1.777a5cp-25f
#define EXP_LOW -104.5f
#define EXP_HIGH 90.0f
#define EXPM1_LOW -30.0f
#define EXPM1_HIGH 89.0f
#define TANH_SPLIT 0.64f
#define TANH_ONE 10.0f
#define ERF_SPLIT 0.84f
#define ERF_ONE 3.93f
#define ERF_CENTRE 2.0f
#define SMALLEST 0x1p-126f
#define SQRT_HALF 0x1.6a09e6p-1f
#define TRIG_LIMIT 0x1p22f
#define TAN_EIGHTH 0x1.a8279ap-2f
#define LIBM(name) __builtin_##name##f
#include "math_common.h"

#if POLYOP_LOGS
/* log(1 + f) - f + f^2/2 */
POLYOP_FN V N(log_tail)(V f, V half) { return POLY(f, log) * (half * 2) * f; }
#endif
#include "math_log.h"

#if defined(POLYOP_WANT_SIN) || defined(POLYOP_WANT_COS) || defined(POLYOP_WANT_TAN) || \
    defined(POLYOP_WANT_POW)
/* As many doubles: two registers where V fills one, which the compiler splits. */
typedef f64 N(D) __attribute__((vector_size(2 * sizeof(V))));
typedef u64 N(M) __attribute__((vector_size(2 * sizeof(V))));
#define MAGIC_D 0x1.8p52
#endif

#if defined(POLYOP_WANT_SIN) || defined(POLYOP_WANT_COS) || defined(POLYOP_WANT_TAN)
/* r = x - n pi in double, where 22 bits of n times 31 bits of pi are exact */
POLYOP_FN V N(reduce)(V x, int cosine, U* odd) {
  const f64 half = cosine ? 0.5 : 0;
  N(D) d = polyop_cvt(N(D), x), k = (d * 0x1.45f306dc9c883p-2 - half + MAGIC_D) - MAGIC_D;
  *odd = (U)(polyop_cvt(V, k) + MAGIC);
  k += half;
  return polyop_cvt(V, (d - k * 0x1.921fb544p1) - k * 0x1.0b4611a626331p-33);
}
#endif

#include "math_trig.h"

#if defined(POLYOP_WANT_POW)
/* a^y for a > 0: 2^(y log2(a)) in double, 2^-33 off at most, then rounded */
POLYOP_FN V N(pow_part)(V a, V y) {
  const f64 *log = polyop_powlog_f64, *exp = polyop_powexp_f64;
  N(D) x = polyop_cvt(N(D), a);
  N(M) bits = (N(M))x + 0x00095f619980c434; /* 1 - sqrt(1/2), as bits */
  N(D) e = (N(D))((bits >> 52) + 0x4330000000000000) - (0x1p52 + 1023);
  N(D) m = (N(D))((bits & 0x000fffffffffffff) + 0x3fe6a09e667f3bcc), s = (m - 1) / (m + 1), z = s * s;
  N(D) p = log[5] - (N(D)){0};
  POLYOP_UNROLL for (int i = 4; i >= 0; i--) p = p * z + log[i];
  y = N(clamp)(y, -0x1p40f, 0x1p40f); /* far enough for the a nearest to 1 */
  N(D) t = polyop_cvt(N(D), y) * (p * s + e), n = (t + MAGIC_D) - MAGIC_D, r = t - n, q = exp[7] - (N(D)){0};
  POLYOP_UNROLL for (int i = 6; i >= 0; i--) q = q * r + exp[i];
  return N(scale)(polyop_cvt(V, q * r + 1), N(clamp)(polyop_cvt(V, n), -250, 250));
}
POLYOP_FN V N(pow)(V x, V y) {
  V a = N(abs)(x), r = N(pow_part)(a, y), b = N(abs)(y);
  /* towards 0 or infinity: a is 0 or infinite, or y is infinite and a is not 1 */
  V inf = N(splat)(__builtin_inff()), zero = {0};
  I end = (a == 0) | (a == inf) | (b == inf), up = (a > 1) ^ (y < 0);
  r = N(pick)(end, N(pick)(up, inf, zero), r);
  r = N(pick)((a == 1), N(splat)(1), r);
  I whole = N(round)(y) == y, odd = whole & (N(round)(y * 0.5f) != y * 0.5f) & (b < 0x1p24f),
    minus = (I)x < 0;
  r = (V)((U)r ^ (U)(minus & odd & ~(~(U){0} >> 1)));
  V nan = N(splat)(__builtin_nanf(""));
  r = N(pick)((x < 0) & ~whole & (a != inf), nan, r);
  r = N(pick)(y == 2, x * x, r);
  r = N(pick)((x != x) | (y != y), x + y, r);
  return N(pick)((x == 1) | (y == 0), N(splat)(1), r);
}
#endif
