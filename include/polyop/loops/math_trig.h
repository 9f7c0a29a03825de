/* Sine and cosine from the reduced argument; included by math_f32.h and math_f64.h. */
#if defined(POLYOP_WANT_SIN) || defined(POLYOP_WANT_COS)
static __attribute__((noinline, cold, unused)) V N(sincos_far)(V x, V y, int cosine) {
  E in[sizeof(V) / sizeof(E)], out[sizeof(V) / sizeof(E)];
  __builtin_memcpy(in, &x, sizeof x);
  __builtin_memcpy(out, &y, sizeof y);
  for (int i = 0; i < LANES; i++)
    if (!(in[i] <= TRIG_LIMIT && in[i] >= -TRIG_LIMIT)) out[i] = cosine ? LIBM(cos)(in[i]) : LIBM(sin)(in[i]);
  __builtin_memcpy(&y, out, sizeof y);
  return y;
}
/* |x| = n pi/2 + r, |r| <= pi/4: its sine or cosine, as n says */
POLYOP_FN V N(sincos)(V x, int cosine) {
  V a = N(abs)(x), n, low, r = N(reduce)(a, &n, &low), u = r * r, half = u * (E)0.5, whole = 1 - half;
  U quarter = (U)(n + MAGIC) + (unsigned)cosine;
  V s = POLY2(u, sin) * u * r, c = POLY2(u, cos) * (u * u) + ((1 - whole) - half);
  if (TRIG_LOW) s += low * whole, c -= low * r;
  V y = N(pick)(-(I)(quarter & 1), c + whole, s + r);
  y = (V)((U)y ^ (quarter >> 1 << (sizeof(E) * 8 - 1)) ^ (cosine ? (U){0} : (U)x & ~(~(U){0} >> 1)));
  if (__builtin_expect(N(any)(~(a <= TRIG_LIMIT)), 0)) y = N(sincos_far)(x, y, cosine);
  return y;
}
#endif
#if defined(POLYOP_WANT_SIN)
POLYOP_FN V N(sin)(V x) { return N(sincos)(x, 0); }
#endif
#if defined(POLYOP_WANT_COS)
POLYOP_FN V N(cos)(V x) { return N(sincos)(x, 1); }
#endif
