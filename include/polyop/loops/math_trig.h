/* Sine and cosine from the reduced argument; included by math_f32.h and math_f64.h. */
#if defined(POLYOP_WANT_SIN) || defined(POLYOP_WANT_COS)
/* sine (turn 0) or cosine (turn 1) of x = n pi/2 + r, |r| <= pi/4 */
/* A call: four of them in one loop cost a third of its compile time, and no speed. */
static __attribute__((noinline, unused)) V N(sincos)(V x, int turn) {
  V n, low, r = N(reduce)(x, &n, &low), u = r * r, half = u * (E)0.5, whole = 1 - half;
  U quarter = (U)(n + MAGIC) + (unsigned)turn;
  V s = POLY(u, sin) * u * r, c = POLY(u, cos) * (u * u) + ((1 - whole) - half);
  if (TRIG_LOW) s += low * whole, c -= low * r;
  s += r, c += whole;
  V y = N(pick)(-(I)(quarter & 1), c, s);
  y = (V)((U)y ^ (quarter >> 1 << (sizeof(E) * 8 - 1)));
  I far = N(abs)(x) > TRIG_LIMIT;
  if (__builtin_expect(N(any)(far), 0)) {
    E in[sizeof(V) / sizeof(E)], out[sizeof(V) / sizeof(E)];
    __builtin_memcpy(in, &x, sizeof x);
    __builtin_memcpy(out, &y, sizeof y);
    for (int i = 0; i < LANES; i++)
      if (!(in[i] <= TRIG_LIMIT && in[i] >= -TRIG_LIMIT)) out[i] = turn ? LIBM(cos)(in[i]) : LIBM(sin)(in[i]);
    __builtin_memcpy(&y, out, sizeof y);
  }
  return y;
}
#endif
#if defined(POLYOP_WANT_SIN)
/* the reduced sine of -0.0 is +0.0 */
POLYOP_FN V N(sin)(V x) { return N(pick)(x == 0, x, N(sincos)(x, 0)); }
#endif
#if defined(POLYOP_WANT_COS)
POLYOP_FN V N(cos)(V x) { return N(sincos)(x, 1); }
#endif
