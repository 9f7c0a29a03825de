/* Logarithms and floored division, for float and double; included by math_f32.h and math_f64.h. */
#if POLYOP_LOGS
/* x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x */
POLYOP_FN V N(log_parts)(V x, V* e) {
  I tiny = x < SMALLEST;
  x = N(pick)(tiny, x * (2 * WHOLE), x);
  U one = (U)N(splat)(1), root = (U)N(splat)(SQRT_HALF), bits = (U)x + (one - root);
  *e = (V)((bits >> MANTISSA) + (U)N(splat)(WHOLE)) - (WHOLE + BIAS);
  *e -= (V)(tiny & (I)N(splat)(MANTISSA + 1));
  return (V)((bits & ((((U){0} + 1) << MANTISSA) - 1)) + root) - 1;
}
/* log(x) + more, where |more| is far smaller; x positive and finite */
POLYOP_FN V N(log_core)(V x, V more) {
  V e, f = N(log_parts)(x, &e), half = f * f * (E)0.5;
  V big = e * LN2_HIGH, sum = big + f, lost = (big - sum) + f;
  return sum + (lost + (e * LN2_LOW + more + (N(log_tail)(f, half) - half)));
}
/* the values at and outside the ends of the domain */
POLYOP_FN V N(log_ends)(V x, V y) {
  V inf = N(splat)((E)__builtin_inf());
  y = N(pick)(x < inf, y, x);
  y = N(pick)(x == 0, -inf, y);
  return N(pick)(x < 0, N(splat)((E)__builtin_nan("")), y);
}
#endif
#if defined(POLYOP_WANT_LOG)
POLYOP_FN V N(log)(V x) { return N(log_ends)(x, N(log_core)(x, (V){0})); }
#endif
#if defined(POLYOP_WANT_LOG2)
POLYOP_FN V N(log2)(V x) {
  V e, f = N(log_parts)(x, &e), half = f * f * (E)0.5, t = N(log_tail)(f, half) - half;
  V high = (V)((U)f & (~(U){0} << (MANTISSA / 2 + 1))), low = (f - high) + t;
  return N(log_ends)(x, low * LOG2E + high * LOG2E_LOW + high * LOG2E_HIGH + e);
}
#endif
#if defined(POLYOP_WANT_LOG1P)
/* u = 1 + x is rounded; the rounding error is added back through the derivative */
POLYOP_FN V N(log1p)(V x) {
  V u = 1 + x, lost = N(pick)(x > 1, 1 - (u - x), x - (u - 1));
  V y = N(log_ends)(u, N(log_core)(u, lost / u));
  return N(pick)(N(abs)(x) < TINY, x, y);
}
#endif

#if defined(POLYOP_WANT_FLOORDIV) || defined(POLYOP_WANT_MOD)
POLYOP_FN V N(fmod)(V a, V b) {
  for (int i = 0; i < LANES; i++) a[i] = LIBM(fmod)(a[i], b[i]);
  return a;
}
/* numpy.remainder: the sign of b, also on zeros; NaN for b = 0 */
POLYOP_FN V N(mod)(V a, V b) {
  V r = N(fmod)(a, b);
  I wrong = (r != 0) & ((r < 0) ^ (b < 0));
  V y = N(pick)(wrong, r + b, r);
  return N(pick)((r == 0) & (b != 0), N(flip)((V){0}, b), y);
}
/* numpy.floor_divide: consistent with mod, a / b for b = 0 */
POLYOP_FN V N(floordiv)(V a, V b) {
  V r = N(fmod)(a, b), q = a / b, d = (a - r) / b;
  I wrong = (r != 0) & ((r < 0) ^ (b < 0));
  d = N(pick)(wrong, d - 1, d);
  V f = N(floor)(d);
  f = N(pick)(d - f > (E)0.5, f + 1, f);
  f = N(pick)(d != 0, f, N(flip)((V){0}, q));
  return N(pick)(b == 0, q, f);
}
#endif
