/* The functions of math.h with the same text for float and double; included once per type, with these macros:
 *   V the vector type, E its element, I and U the integer vectors of its size, N(f) = pl_f_V
 *   MANTISSA the number of stored bits of the significand, BIAS the bias of the exponent
 *   WHOLE a power of two above which every value is an integer
 *   MAGIC 1.5 times that: adding it rounds to an integer, which is then in the low bits */

POLYOP_FN V N(pick)(I m, V a, V b) { return (V)((m & (I)a) | (~m & (I)b)); }
POLYOP_FN V N(abs)(V x) { return (V)((U)x & (~(U){0} >> 1)); }
/* x, negated in lanes where s is negative */
POLYOP_FN V N(flip)(V x, V s) { return (V)((U)x ^ ((U)s & ~(~(U){0} >> 1))); }
POLYOP_FN V N(copysign)(V x, V s) { return N(flip)(N(abs)(x), s); }
POLYOP_FN int N(any)(I m) { return polyop_any(&m, sizeof m); }
POLYOP_FN V N(splat)(E x) { return x - (V){0}; }
/* whether a lane of a is above limit or NaN, or 0 if `positive` is set; no lane may be negative */
POLYOP_FN int N(outside)(V a, int positive, E limit) {
  int any;
  U bits = (U)a - (unsigned)positive, most = (U)N(splat)(limit) - (unsigned)positive;
  if (polyop_above(&any, &bits, &most, sizeof a, sizeof(E))) return any;
  return N(any)(~(a <= limit) | (positive ? a == 0 : (I){0}));
}
POLYOP_FN I N(isnan)(V x) { return x != x; }
POLYOP_FN I N(isinf)(V x) { return N(abs)(x) == (E)__builtin_inf(); }
POLYOP_FN I N(isfinite)(V x) { return N(abs)(x) < (E)__builtin_inf(); }
POLYOP_FN V N(sign)(V x) {
  V one = (V)((I)(x != 0) & (I)N(flip)(N(splat)(1), x));
  return N(pick)(x == x, one, x);
}
/* The nearest integer, ties to even; -0.0 and what rounds to it keep their sign. */
POLYOP_FN V N(round)(V x) {
  V a = N(abs)(x), r = (a + WHOLE) - WHOLE;
  return N(pick)(a < WHOLE, N(flip)(r, x), x);
}
POLYOP_FN V N(floor)(V x) {
  V r = N(round)(x);
  return N(pick)(r > x, r - 1, r);
}
POLYOP_FN V N(ceil)(V x) { return -N(floor)(-x); }
POLYOP_FN V N(trunc)(V x) { return N(flip)(N(floor)(N(abs)(x)), x); }

/* a step of a polynomial */
#ifdef POLYOP_UNFUSED
POLYOP_MADD(V, E, N(madd))
#define STEP(p, x, c) N(madd)(p, x, N(splat)(c))
#else
#define STEP(p, x, c) ((p) * (x) + (c))
#endif
POLYOP_FN V N(poly)(V x, const E* c, int terms) {
  V p = N(splat)(c[terms - 1]);
  POLYOP_UNROLL for (int i = terms - 2; i >= 0; i--) p = STEP(p, x, c[i]);
  return p;
}

/* the same in half the steps, with even and odd powers apart, for results that are needed soon */
POLYOP_FN V N(poly_halves)(V x, const E* c, int terms) {
  V u = x * x, even = N(splat)(c[(terms - 1) & ~1]), odd = N(splat)(c[(terms - 2) | 1]);
  POLYOP_UNROLL for (int i = ((terms - 1) & ~1) - 2; i >= 0; i -= 2) even = STEP(even, u, c[i]);
  POLYOP_UNROLL for (int i = ((terms - 2) | 1) - 2; i >= 0; i -= 2) odd = STEP(odd, u, c[i]);
#ifdef POLYOP_UNFUSED
  return N(madd)(odd, x, even);
#else
  return odd * x + even;
#endif
}
#undef STEP

POLYOP_FN V N(sqrt)(V x) {
  V r;
  polyop_sqrt(&r, &x, sizeof x, sizeof(E));
  return r;
}
POLYOP_FN V N(rsqrt)(V x) { return 1 / N(sqrt)(x); }
/* x within [low, high]; NaN stays. */
POLYOP_FN V N(clamp)(V x, E low, E high) {
  V r;
  if (polyop_clamp(&r, &x, low, high, sizeof x, sizeof(E))) return r;
  r = N(pick)(x > high, N(splat)(high), x);
  return N(pick)(r < low, N(splat)(low), r);
}
/* the smaller of x and high; NaN stays. */
POLYOP_FN V N(atmost)(V x, E high) { return N(clamp)(x, -(E)__builtin_inf(), high); }
/* y * 2^n for normal y and integral |n| < 2 BIAS, one rounding: two factors, neither of which overflows. */
POLYOP_FN V N(scale)(V y, V n) {
  V r;
  if (polyop_scale(&r, &y, &n, sizeof y, sizeof(E))) return r;
  U k = (U)(n + MAGIC) - (U)N(splat)(MAGIC) + 2 * BIAS, half = (k & (4 * BIAS + 3)) >> 1;
  return y * (V)(half << MANTISSA) * (V)((k - half) << MANTISSA);
}
POLYOP_FN V N(nearest)(V x) { return (x + MAGIC) - MAGIC; }

/* x = n ln(2) + r, |r| <= ln(2) / 2: r is r_high, exact, + r_low; gives e^r - 1 - r_high. */
POLYOP_FN V N(exp_parts)(V x, V* n, V* r_high) {
  *n = N(nearest)(x * LOG2E);
  V high = x - *n * LN2_HIGH, low = *n * LN2_LOW, r = high - low;
  *r_high = high;
  return POLY(r, exp) * (r * r) - low;
}
/* e^x 2^k for EXP_LOW <= x <= EXP_HIGH, infinite only where that is past the last finite number */
POLYOP_FN V N(exp_inside)(V x, E k) {
  V n, r, tail = N(exp_parts)(x, &n, &r);
  return N(scale)(r + tail + 1, k == 0 ? n : n + k);
}
POLYOP_FN V N(exp_by)(V x, E k) { return N(exp_inside)(N(clamp)(x, EXP_LOW, EXP_HIGH), k); }
/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1), the exact parts first; with 2^(n - 1), as 2^128 is no float. */
POLYOP_FN V N(expm1_core)(V x) {
  V n, r, tail = N(exp_parts)(N(clamp)(x, EXPM1_LOW, EXPM1_HIGH), &n, &r);
  V s = (V)(((U)(n + MAGIC) - (U)N(splat)(MAGIC) + (BIAS - 1)) << MANTISSA);
  V y = ((s * r + (s - (E)0.5)) + s * tail) * 2;
  return N(pick)(N(abs)(x) < TINY, x, y);
}
#if defined(POLYOP_WANT_EXP)
POLYOP_FN V N(exp)(V x) { return N(exp_by)(x, 0); }
#endif
#if defined(POLYOP_WANT_EXPM1)
POLYOP_FN V N(expm1)(V x) { return N(expm1_core)(x); }
#endif
#if defined(POLYOP_WANT_EXP2)
POLYOP_FN V N(exp2)(V x) {
  x = N(clamp)(x, -2 * BIAS + (E)80, BIAS + 1);
  V n = N(nearest)(x), r = x - n;
  return N(scale)(POLY(r, exp2) * r + 1, n);
}
#endif
#if defined(POLYOP_WANT_TANH)
/* a polynomial up to TANH_SPLIT, 1 - 2 / (e^(2|x|) + 1) beyond, where less than half of the exponential's
 * error is left: it is rounded once more than exp's own */
POLYOP_FN V N(tanh)(V x) {
  V a = N(atmost)(N(abs)(x), TANH_ONE), u = a * a, low = POLY(u, tanh) * u * a + a;
  V n = N(nearest)(a * (2 * LOG2E)), r = (2 * a - n * LN2_HIGH) - n * LN2_LOW;
  V high = 1 - 2 / (N(scale)((POLY(r, exp) * r + 1) * r + 1, n) + 1);
  return N(flip)(N(pick)(a <= TANH_SPLIT, low, high), x);
}
#endif
#if defined(POLYOP_WANT_COSH)
POLYOP_FN V N(cosh)(V x) {
  V e = N(exp_by)(N(abs)(x), -1);
  return e + (E)0.25 / e;
}
#endif
#if defined(POLYOP_WANT_SINH)
POLYOP_FN V N(sinh)(V x) {
  V a = N(abs)(x), e = N(exp_by)(a, -1), u = a * a;
  V low = POLY(u, sinh) * u * a + a, high = e - (E)0.25 / e;
  return N(flip)(N(pick)(a < 1, low, high), x);
}
#endif
#if defined(POLYOP_WANT_SIGMOID)
/* 1 / (1 + e) or e / (1 + e), where e = e^-|x|; to the second what was lost when e was rounded is added back
 */
POLYOP_FN V N(sigmoid)(V x) {
  V n, r, tail = N(exp_parts)(N(clamp)(-N(abs)(x), EXP_LOW, 0), &n, &r);
  V sum = r + tail, one = sum + 1, lost = (r - (one - 1)) + tail, e = N(scale)(one, n);
  V y = N(pick)((I)x < 0, e, N(splat)(1)) / (1 + e);
  return N(pick)((I)x < 0, y + y * (lost / (one * (1 + e))), y);
}
#endif
#define POLYOP_BY_LANE(name, function, T)                              \
  POLYOP_FN V N(name)(V x) {                                           \
    E lane[sizeof(V) / sizeof(E)];                                     \
    __builtin_memcpy(lane, &x, sizeof x);                              \
    for (int i = 0; i < LANES; i++) lane[i] = (E)function((T)lane[i]); \
    __builtin_memcpy(&x, lane, sizeof x);                              \
    return x;                                                          \
  }
#if defined(POLYOP_WANT_ERFC)
POLYOP_BY_LANE(erfc, LIBM(erfc), E)
#endif
#if defined(POLYOP_WANT_CBRT)
POLYOP_BY_LANE(cbrt, LIBM(cbrt), E)
#endif
#if defined(POLYOP_WANT_LGAMMA)
POLYOP_BY_LANE(lgamma, polyop_lgamma, double)
#endif
#if defined(POLYOP_WANT_DIGAMMA)
POLYOP_BY_LANE(digamma, polyop_digamma, double)
#endif
#if defined(POLYOP_WANT_TRIGAMMA)
POLYOP_BY_LANE(trigamma, polyop_trigamma, double)
#endif
#undef POLYOP_BY_LANE
#if defined(POLYOP_WANT_ERF)
/* a polynomial up to ERF_SPLIT, 1 - e^(-x^2) times another beyond. x and not a, and exp_by: then it is the
 * same expression as the exp(-(x * x)) of a gradient, and a compiler may compute it once. */
POLYOP_FN V N(erf)(V x) {
  V a = N(atmost)(N(abs)(x), ERF_ONE), u = x * x;
  V low = x * POLY(u, erf) + x;
  V high = 1 - N(exp_by)(-u, 0) * POLY(a - ERF_CENTRE, erfc);
  return N(pick)(a <= ERF_SPLIT, low, N(flip)(high, x));
}
#endif
#if defined(POLYOP_WANT_ATAN) || defined(POLYOP_WANT_ATAN2)
/* atan(small / large), 0 <= small <= large, 0 < large, and their sum finite: up to tan(pi/8) itself, beyond
 * it pi/4 + atan((s - l) / (s + l)). *base is pi/4 or 0; what is returned is to be added. */
POLYOP_FN V N(atan_parts)(V small, V large, V* base) {
  I middle = small > large * TAN_EIGHTH;
  V one = (V)(middle & (I)N(splat)(1)), q = (small - one * large) / (large + one * small), u = q * q;
  *base = (V)(middle & (I)N(splat)(HALF_PI / 2));
  return POLY2(u, atan) * u * q + (V)(middle & (I)N(splat)(HALF_PI_LOW / 2)) + q;
}
#endif
#if defined(POLYOP_WANT_ATAN)
POLYOP_FN V N(atan)(V x) {
  V a = N(clamp)(N(abs)(x), 0, (E)0x1p60), one = N(splat)(1), base; /* beyond 2^60 it is pi/2 */
  I swap = a > 1;
  V r = N(atan_parts)(N(pick)(swap, one, a), N(pick)(swap, a, one), &base);
  r = N(pick)(swap, (HALF_PI - base) - (r - HALF_PI_LOW), base + r);
  return N(flip)(r, x);
}
#endif
#if defined(POLYOP_WANT_ATAN2)
POLYOP_FN V N(atan2)(V y, V x) {
  V ax = N(abs)(x), ay = N(abs)(y), base;
  I swap = ay > ax, left = (I)x < 0;
  V small = N(pick)(swap, ax, ay), large = N(pick)(swap, ay, ax);
  if (__builtin_expect(N(outside)(large, 1, 1 / SMALLEST), 0)) {
    V inf = N(splat)((E)__builtin_inf()), one = N(splat)(1);
    V scale = N(pick)(large < 1 / SMALLEST, one, one / 4);
    large = N(pick)(small == small, large, small); /* a NaN wins over an infinity */
    small = N(pick)(large == inf, (V)((I)one & (small == inf)), small * scale); /* 1 / 1 or 0 / 1 */
    large = N(pick)((large == inf) | (large == 0), one, large * scale);
  }
  V r = N(atan_parts)(small, large, &base);
  U minus = (U)(swap ^ left) & ~(~(U){0} >> 1);
  V from = N(pick)(swap, N(splat)(HALF_PI), (V)(left & (I)N(splat)(2 * HALF_PI)));
  V low = N(pick)(swap, N(splat)(HALF_PI_LOW), (V)(left & (I)N(splat)(2 * HALF_PI_LOW)));
  r = (from + (V)((U)base ^ minus)) + ((V)((U)r ^ minus) + low);
  return N(flip)(r, y);
}
#endif
#if defined(POLYOP_WANT_HYPOT)
POLYOP_FN V N(hypot)(V x, V y) {
  /* squares of large and of small numbers are taken of multiples, by powers of two */
  const E most = sizeof(E) == 4 ? 0x1p60 : 0x1p500, least = sizeof(E) == 4 ? 0x1p-50 : 0x1p-450;
  const E down = sizeof(E) == 4 ? 0x1p-70 : 0x1p-600, up = sizeof(E) == 4 ? 0x1p90 : 0x1p600;
  V a = N(abs)(x), b = N(abs)(y), one = N(splat)(1), inf = N(splat)((E)__builtin_inf());
  V large = N(pick)(b > a, b, a);
  I big = large > most, tiny = large < least;
  V scale = N(pick)(big, N(splat)(down), N(pick)(tiny, N(splat)(up), one));
  V back = N(pick)(big, N(splat)(1 / down), N(pick)(tiny, N(splat)(1 / up), one));
  V s = a * scale, t = b * scale;
  return N(pick)((a == inf) | (b == inf), inf, N(sqrt)(s * s + t * t) * back);
}
#endif
/* asin of |x|: below 1/2 itself, above pi/2 - 2 asin(sqrt((1 - |x|) / 2)); out of [-1, 1] the root is NaN. */
#if defined(POLYOP_WANT_ASIN)
POLYOP_FN V N(asin)(V x) {
  V a = N(abs)(x);
  I big = a > (E)0.5;
  V u = N(pick)(big, (1 - a) * (E)0.5, a * a), q = N(pick)(big, N(sqrt)(u), a);
  V p = POLY(u, asin) * u * q;
  return N(flip)(N(pick)(big, (HALF_PI - 2 * q) - (2 * p - HALF_PI_LOW), p + q), x);
}
#endif
#if defined(POLYOP_WANT_ACOS)
POLYOP_FN V N(acos)(V x) {
  V a = N(abs)(x);
  I big = a > (E)0.5, left = (I)x < 0;
  V u = N(pick)(big, (1 - a) * (E)0.5, a * a), q = N(pick)(big, N(sqrt)(u), a);
  V p = POLY(u, asin) * u * q;
  V middle = HALF_PI - (N(flip)(q, x) - (HALF_PI_LOW - N(flip)(p, x)));
  V near = 2 * (q + p), far = 2 * HALF_PI - (2 * q - 2 * (HALF_PI_LOW - p));
  return N(pick)(big, N(pick)(left, far, near), middle);
}
#endif
