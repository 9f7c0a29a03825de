/* Sine and cosine from the reduced argument; included by math_f32.h and math_f64.h. */
#if defined(POLYOP_WANT_SIN) || defined(POLYOP_WANT_COS) || defined(POLYOP_WANT_TAN)
static __attribute__((noinline, cold, unused)) V N(sincos_far)(V x, V y, int cosine) {
  E in[sizeof(V) / sizeof(E)], out[sizeof(V) / sizeof(E)];
  __builtin_memcpy(in, &x, sizeof x);
  __builtin_memcpy(out, &y, sizeof y);
  for (int i = 0; i < LANES; i++)
    if (!(in[i] <= TRIG_LIMIT && in[i] >= -TRIG_LIMIT)) out[i] = cosine ? LIBM(cos)(in[i]) : LIBM(sin)(in[i]);
  __builtin_memcpy(&y, out, sizeof y);
  return y;
}
/* |x| = n pi + r, |r| <= pi/2, n whole for the sine and halfway between two for the cosine: +-sin(r).
 * The polynomial is in r^2 minus half of its largest value, which makes its rounding errors smaller. */
POLYOP_FN V N(sincos)(V x, int cosine) {
  U odd;
  V a = N(abs)(x), r = N(reduce)(a, cosine, &odd), v = r * r - (E)1.234375;
  U minus = odd << (sizeof(E) * 8 - 1) ^ (cosine ? ~(U){0} : (U)x);
  V y = N(flip)(POLY(v, sin) * r + r, (V)minus);
  if (__builtin_expect(N(outside)(a, 0, TRIG_LIMIT), 0)) y = N(sincos_far)(x, y, cosine);
  return y;
}
#endif
#if defined(POLYOP_WANT_SIN)
POLYOP_FN V N(sin)(V x) { return N(sincos)(x, 0); }
#endif
#if defined(POLYOP_WANT_COS)
POLYOP_FN V N(cos)(V x) { return N(sincos)(x, 1); }
#endif
#if defined(POLYOP_WANT_TAN)
POLYOP_FN V N(tan)(V x) { return N(sincos)(x, 0) / N(sincos)(x, 1); }
#endif
