/* Largest errors of polyop/loops/math.h under one target, as lines
 *     <function> <element> <ulp> <argument> <lanes that differ from scalars>
 * An error is in units in the last place of the exact result: double libm for float, 80-bit libm for double.
 * A wrong NaN, infinity or sign of zero counts as inf. The number of samples is the only argument. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define POLYOP_WANT_W4
#define POLYOP_WANT_W8
#define POLYOP_WANT_EXP
#define POLYOP_WANT_EXPM1
#define POLYOP_WANT_EXP2
#define POLYOP_WANT_LOG
#define POLYOP_WANT_LOG1P
#define POLYOP_WANT_LOG2
#define POLYOP_WANT_SIN
#define POLYOP_WANT_COS
#define POLYOP_WANT_TAN
#define POLYOP_WANT_SIGMOID
#define POLYOP_WANT_ERFC
#define POLYOP_WANT_CBRT
#define POLYOP_WANT_TANH
#define POLYOP_WANT_SINH
#define POLYOP_WANT_COSH
#define POLYOP_WANT_ATAN
#define POLYOP_WANT_ASIN
#define POLYOP_WANT_ACOS
#define POLYOP_WANT_ERF
#define POLYOP_WANT_ATAN2
#define POLYOP_WANT_HYPOT
#define POLYOP_WANT_POW
#define POLYOP_WANT_PRECISE
#include "polyop/loops/math.h"
#include "polyop/loops/vector.h"

typedef long double wide;
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }
static wide signl(wide x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static wide rsqrtl(wide x) { return 1 / sqrtl(x); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static wide sigmoidl(wide x) { return 1 / (1 + expl(-x)); }
#define abs fabs
#define absl fabsl
#define round rint
#define roundl rintl

static double ulps(wide exact, double got, int digits, int least, double most) {
  if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
  wide step = exact == 0 ? 0 : ldexpl(1, (ilogbl(exact) < least ? least : ilogbl(exact)) + 1 - digits);
  if (isinf(exact) || isinf(got)) { /* beside the largest number an infinity is the next one */
    if (isinf(exact) && isinf(got)) return !signbit(exact) == !signbit(got) ? 0 : INFINITY;
    wide next = copysign(ldexp(most, 1), got);
    if (isinf(exact)) return INFINITY;
    step = ldexpl(1, ilogb(most) + 1 - digits);
    return fabsl(exact) >= most ? 0 : (double)(fabsl(exact - next) / step);
  }
  if (!signbit(exact) != !signbit(got) && got == 0) return INFINITY;
  if (fabsl(exact) > most) exact = copysignl(most, exact);
  return exact == got ? 0 : step == 0 ? INFINITY : (double)(fabsl(exact - got) / step);
}
static double ulps_f32(wide exact, f32 got) { return ulps(exact, got, 24, -126, 3.40282346638528859812e38); }
static double ulps_f64(wide exact, f64 got) {
  return ulps(exact, got, 53, -1022, 1.79769313486231570815e308);
}

static u64 state = 88172645463325252u;
static u64 rnd(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state * 0x2545F4914F6CDD1Du;
}
static double between(double low, double high) { return low + (high - low) * (rnd() >> 11) * 0x1p-53; }

static const double special[] = {0.0,
                                 -0.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 3,
                                 -3,
                                 0.5,
                                 -0.5,
                                 1.5,
                                 2.5,
                                 -2.5,
                                 0.25,
                                 0.75,
                                 100,
                                 -100,
                                 127,
                                 128,
                                 -126,
                                 -149,
                                 -150,
                                 1023,
                                 1024,
                                 -1022,
                                 -1074,
                                 -1075,
                                 88.72283,
                                 88.72284,
                                 89.4159,
                                 -103.972,
                                 -103.98,
                                 -87.3365,
                                 709.782712893384,
                                 709.78271289338402,
                                 710.4758600739439,
                                 -745.1332191019411,
                                 -745.2,
                                 -708.39641853226408,
                                 1e-20,
                                 -1e-20,
                                 1e-40,
                                 -1e-40,
                                 1e-45,
                                 1e-310,
                                 5e-324,
                                 -5e-324,
                                 1.17549435e-38,
                                 2.2250738585072014e-308,
                                 3.4028234e38,
                                 1.7976931348623157e308,
                                 8388607.5,
                                 8388608,
                                 4194304.5,
                                 4503599627370495.5,
                                 9007199254740991,
                                 16777216,
                                 1e7,
                                 -1e7,
                                 10000001,
                                 1e15,
                                 1e22,
                                 1e30,
                                 1e300,
                                 0.84,
                                 3.9,
                                 5.9,
                                 6,
                                 10,
                                 20,
                                 30,
                                 0.99999994,
                                 0.9999999999999999,
                                 -0.99999994,
                                 1.0000001,
                                 0x1.6a09e667f3bcdp-1,
                                 0x1.6a09e6p0,
                                 0x1.921fb54442d18p0,
                                 0x1.921fb6p0,
                                 0x1.921fb54442d18p1,
                                 355,
                                 710,
                                 103993,
                                 4.7e6,
                                 6381956.970095103,
                                 33,
                                 0x1.0000000000001p0};
#define SPECIALS ((long)(sizeof special / sizeof *special))

/* Every exponent and sign, the range where the function lives, multiples of pi/2, the special values. */
#define SAMPLES(E, BITS, SHIFT)                                                                         \
  static void samples_##E(E* x, long n, double low, double high) {                                      \
    for (long i = 0; i < n; i++) {                                                                      \
      BITS b = (BITS)(((u64)i << (SHIFT)) / (u64)n << (sizeof(E) * 8 - (SHIFT))) ^ (BITS)(rnd() >> 20); \
      memcpy(&x[i], &b, sizeof b);                                                                      \
      if (i % 2) x[i] = (E)between(low, high);                                                          \
      if (i % 16 == 8) x[i] = (E)((wide)(long)between(0, 6e6) * M_PI_2l);                               \
    }                                                                                                   \
    for (long i = 0; i < SPECIALS; i++) x[i] = (E)special[i];                                           \
  }
#define M_PI_2l 1.570796326794896619231321691639751442L
SAMPLES(f32, u32, 16)
SAMPLES(f64, u64, 20)

static int same(const void* a, const void* b, long n, int size, int isnan_both) {
  (void)n;
  return isnan_both || memcmp(a, b, size) == 0;
}
#define COUNT_VECTOR(E, T, W, CALL1)                                                                        \
  for (long i = 0; i + POLYOP_LANES(W) <= n; i += POLYOP_LANES(W)) {                                        \
    E lane[POLYOP_LANES(W)];                                                                                \
    store_##T(lane, CALL1);                                                                                 \
    for (int k = 0; k < POLYOP_LANES(W); k++)                                                               \
      differ += !same(&lane[k], &out[i + k], 1, sizeof(E), lane[k] != lane[k] && out[i + k] != out[i + k]); \
  }
#define VECTORS_f32(name, ...)                                               \
  COUNT_VECTOR(f32, f32v4, 4, pl_##name##_f32v4(LOADS_##__VA_ARGS__(f32v4))) \
  COUNT_VECTOR(f32, f32v8, 8, pl_##name##_f32v8(LOADS_##__VA_ARGS__(f32v8)))
#define VECTORS_f64(name, ...) COUNT_VECTOR(f64, f64v8, 8, pl_##name##_f64v8(LOADS_##__VA_ARGS__(f64v8)))
#define LOADS_1(T) load_##T(x + i)
#define LOADS_2(T) load_##T(x + i), load_##T(y + i)
#define ARGS_1 x[i]
#define ARGS_2 x[i], y[i]
#define MEASURE(name, E, ARITY, REFERENCE)                                                             \
  static void __attribute__((noinline)) measure_##name##_##E(const E* x, const E* y, E* out, long n) { \
    double worst = 0, at = 0, at2 = 0;                                                                 \
    long differ = 0;                                                                                   \
    (void)y;                                                                                           \
    for (long i = 0; i < n; i++) out[i] = pl_##name##_##E(ARGS_##ARITY);                               \
    VECTORS_##E(name, ARITY) for (long i = 0; i < n; i++) {                                            \
      double e = ulps_##E((wide)REFERENCE(ARGS_##ARITY), out[i]);                                      \
      if (e > worst) worst = e, at = x[i], at2 = ARITY == 2 ? y[i] : 0;                                \
    }                                                                                                  \
    printf("%s %s %.3f %a,%a %ld\n", #name, #E, worst, at, at2, differ);                               \
  }
/* name, 80-bit name, range where it lives */
#define UNARY(X)                 \
  X(exp, expl, -105, 90)         \
  X(expm1, expm1l, -20, 90)      \
  X(exp2, exp2l, -150, 128)      \
  X(log, logl, 0.2, 4)           \
  X(log1p, log1pl, -1, 3)        \
  X(log2, log2l, 0.2, 4)         \
  X(sin, sinl, -30, 30)          \
  X(cos, cosl, -30, 30)          \
  X(tan, tanl, -30, 30)          \
  X(sigmoid, sigmoidl, -105, 20) \
  X(erfc, erfcl, -6, 27)         \
  X(tanh, tanhl, -10, 10)        \
  X(sinh, sinhl, -5, 5)          \
  X(cosh, coshl, -5, 5)          \
  X(atan, atanl, -3, 3)          \
  X(asin, asinl, -1, 1)          \
  X(acos, acosl, -1, 1)          \
  X(erf, erfl, -6, 6)            \
  X(rsqrt, rsqrtl, 0, 9)         \
  X(sqrt, sqrtl, 0, 9)           \
  X(cbrt, cbrtl, -9, 9)          \
  X(abs, fabsl, -1, 1)           \
  X(sign, signl, -1, 1)          \
  X(round, rintl, -9, 9) X(floor, floorl, -9, 9) X(ceil, ceill, -9, 9) X(trunc, truncl, -9, 9)
#define BINARY(X) X(atan2, atan2l, -9, 9) X(hypot, hypotl, -9, 9) X(pow, powl, -40, 40)
#undef abs
#undef round
static double (*const abs_)(double) = fabs;
#define ROW(name, namel, low, high) MEASURE(name, f32, 1, REF_##name) MEASURE(name, f64, 1, namel)
#define REF_exp exp
#define REF_expm1 expm1
#define REF_exp2 exp2
#define REF_log log
#define REF_log1p log1p
#define REF_log2 log2
#define REF_sin sin
#define REF_cos cos
#define REF_tan tan
#define REF_sigmoid sigmoid
#define REF_erfc erfc
#define REF_tanh tanh
#define REF_sinh sinh
#define REF_cosh cosh
#define REF_atan atan
#define REF_asin asin
#define REF_acos acos
#define REF_erf erf
#define REF_rsqrt rsqrt
#define REF_sqrt sqrt
#define REF_cbrt cbrt
#define REF_abs abs_
#define REF_sign sign
#define REF_round rint
#define REF_floor floor
#define REF_ceil ceil
#define REF_trunc trunc
#define REF_atan2 atan2
#define REF_hypot hypot
#define REF_pow pow
UNARY(ROW)
#undef ROW
#define ROW(name, namel, low, high) MEASURE(name, f32, 2, REF_##name) MEASURE(name, f64, 2, namel)
BINARY(ROW)
#undef ROW

/* x^k while the product is exact, and x^2 as x * x */
static int powers_are_exact(void) {
  for (int i = 1; i < 5000; i++) {
    double product = i;
    for (int k = 1; product < 0x1p53; k++, product *= i) {
      if (pl_pow_f64(-i, k) != (k % 2 ? -product : product)) return 0;
      if (product < 0x1p24 && pl_pow_f32((f32)-i, (f32)k) != (k % 2 ? -product : product)) return 0;
      if (i == 1 && k > 99) break;
    }
  }
  for (int i = 0; i < 200000; i++) {
    f32 x = (f32)between(-9, 9);
    f64 y = between(-9, 9);
    if (pl_pow_f32(x, 2) != x * x || pl_pow_f64(y, 2) != y * y) return 0;
  }
  return 1;
}
static int precise_is_libm(void) {
  for (int i = 0; i < 1000; i++) {
    f32 x = (f32)between(-9, 9), y = (f32)between(0, 9);
    f32v4 e = plp_exp_f32v4(bcast_f32v4(x));
    f64v8 p = plp_pow_f64v8(bcast_f64v8(y), bcast_f64v8(x));
    if (e[0] != expf(x) || e[POLYOP_LANES(4) - 1] != expf(x) || plp_log_f32(y) != logf(y)) return 0;
    if (p[0] != pow(y, x) || p[POLYOP_LANES(8) - 1] != pow(y, x) || plp_sin_f64(x) != sin(x)) return 0;
  }
  return 1;
}
/* never above 1, odd and even to the last bit, and cos(0) = 1: beside the extremes, where rounding would show
 */
static int trig_keeps_its_bounds(void) {
  if (pl_cos_f32(0) != 1 || pl_cos_f64(0) != 1) return 0;
  for (long i = 0; i < 400000; i++) {
    f64 x = (f64)((i * 16 + 1) * M_PI_2l) * (1 + (double)(i % 16 - 8) * 0x1p-52);
    f64 s = pl_sin_f64(x), c = pl_cos_f64(x);
    f32 w = (f32)x, sw = pl_sin_f32(w), cw = pl_cos_f32(w);
    if (!(fabs(s) <= 1 && fabs(c) <= 1 && fabsf(sw) <= 1 && fabsf(cw) <= 1)) return 0;
    if (pl_sin_f64(-x) != -s || pl_cos_f64(-x) != c || pl_sin_f32(-w) != -sw || pl_cos_f32(-w) != cw)
      return 0;
  }
  return 1;
}

/* what a compiler computes beforehand is as near as what is computed when the program runs */
static int constants_are_exact(void) {
#define ROW(x) (ulps_f64(sinl(x), pl_sin_f64(x)) > 2 || ulps_f64(cosl(x), pl_cos_f64(x)) > 2) ||
  return !(ROW(355.0) ROW(3.141592653589793) ROW(1.5707963267948966) ROW(103993.0) ROW(9999999.0) 0);
#undef ROW
}

int main(int argc, char** argv) {
  long n = argc > 1 ? atol(argv[1]) : 1000000;
  void *x = malloc(n * 8), *y = malloc(n * 8), *out = malloc(n * 8);
#define ROW(name, namel, low, high)         \
  samples_f32(x, n, low, high);             \
  measure_##name##_f32(x, y, out, n);       \
  samples_f64(x, n, low * 7.1, high * 7.9); \
  measure_##name##_f64(x, y, out, n);
  UNARY(ROW)
#undef ROW
#define PAIRS(E)                                 \
  for (long i = 0; i < SPECIALS; i++)            \
    for (long k = 0; k < SPECIALS; k++) {        \
      ((E*)x)[i * SPECIALS + k] = (E)special[i]; \
      ((E*)y)[i * SPECIALS + k] = (E)special[k]; \
    }
#define ROW(name, namel, low, high)   \
  samples_f32(y, n, low, high);       \
  samples_f32(x, n, 0, 9);            \
  PAIRS(f32)                          \
  measure_##name##_f32(x, y, out, n); \
  samples_f64(y, n, low, high);       \
  samples_f64(x, n, 0, 9);            \
  PAIRS(f64)                          \
  measure_##name##_f64(x, y, out, n);
  BINARY(ROW)
  return powers_are_exact() && precise_is_libm() && trig_keeps_its_bounds() && constants_are_exact() ? 0 : 1;
}
