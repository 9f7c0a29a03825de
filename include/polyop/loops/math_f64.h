/* double: constants and the functions that differ from float's; math.h includes it. */
#define MANTISSA 52
#define BIAS 1023
#define WHOLE 0x1p52
#define MAGIC 0x1.8p52
#define TINY 0x1p-60
#define LOG2E 0x1.71547652b82fep0
#define LN2_HIGH 0x1.62e42fefa2p-1 /* 40 bits: times an exponent it is exact */
#define LN2_LOW 0x1.9ef35793c7673p-41
#define LOG2E_HIGH 0x1.715476p0 /* 26 bits */
#define LOG2E_LOW 0x1.4ae0bf85ddf44p-26
#define HALF_PI 0x1.921fb54442d18p0
#define HALF_PI_LOW 0x1.1a62633145c07p-54
#define EXP_LOW -746.0
#define EXP_HIGH 711.0
#define EXPM1_LOW -50.0
#define EXPM1_HIGH 709.9
#define TANH_SPLIT 0.64
#define TANH_ONE 20.0
#define ERF_SPLIT 1.0
#define ERF_ONE 5.93
#define ERF_CENTRE 2.5
#define SMALLEST 0x1p-1022
#define SQRT_HALF 0x1.6a09e667f3bccp-1
#define TRIG_LIMIT 1e7
#define TAN_EIGHTH 0x1.a827999fcef32p-2
#define LIBM(name) __builtin_##name
#include "math_common.h"

#if POLYOP_LOGS
/* log(1 + f) - f + f^2/2 */
POLYOP_FN V N(log_tail)(V f, V half) {
  V s = f / (2 + f), z = s * s;
  return s * (POLY(z, log) * z + half);
}
#endif
#include "math_log.h"

#if defined(POLYOP_WANT_SIN) || defined(POLYOP_WANT_COS) || defined(POLYOP_WANT_TAN)
/* x - n pi, *odd n's last bit; n has at most 23 bits. Where |x| >= 1 all is exact up to the rounding to r:
 * fused, x less n times 53 bits of pi has no bit below 2^-52; else parts of pi have 30 bits. Where |x| < 1 it
 * is n = 0, or r is near pi/2, where its last bit counts for little. The last part counts where r is tiny. */
POLYOP_FN V N(reduce)(V x, int cosine, U* odd) {
  V turns = x * 0x1.45f306dc9c883p-2, whole = (cosine ? turns - 0.5 : turns) + MAGIC, n = whole - MAGIC, r;
  if (cosine) n += 0.5;
  *odd = (U)whole;
  V high = N(splat)(-0x1.921fb54442d18p+1), low = N(splat)(-0x1.1a62633145c07p-53);
  if (polyop_fma(&r, &n, &high, &x, sizeof x)) {
    polyop_fma(&r, &n, &low, &r, sizeof x);
    return r + n * 0x1.f1976b7ed8fbcp-109;
  }
  V a = x - n * 0x1.921fb54p1, b = a - n * 0x1.10b46118p-29;
  r = b + (((a - b) - n * 0x1.10b46118p-29) - n * 0x1.313198ap-60);
  return r - n * 0x1.701b839a25205p-91;
}
#endif

#include "math_trig.h"

#if defined(POLYOP_WANT_POW)
/* lane by lane: nothing short of twice the digits gives exact powers, and libm has those */
POLYOP_FN V N(pow)(V x, V y) {
  for (int i = 0; i < LANES; i++) x[i] = __builtin_pow(x[i], y[i]);
  return x;
}
#endif
