/* lgamma, digamma and trigamma in double; those of float are rounded once more. For math.h and device.h.
 *
 * From 1 to 3 they are polynomials, with the zeros as factors of their own; from 10 on asymptotic series, and
 * sums down to [2, 3] between. Negative arguments are reflected. src/polyop/loops/ir/gamma.py has the same.
 */
#ifndef POLYOP_LOOPS_MATH_GAMMA_H
#define POLYOP_LOOPS_MATH_GAMMA_H
#ifdef POLYOP_LOOPS_DEVICE_H
#define POLYOP_OF_LIBM(name) name
#else
#define POLYOP_OF_LIBM(name) __builtin_##name
#endif
#define POLYOP_PI 3.141592653589793

POLYOP_FN double polyop_horner(double x, const double* c, int terms) {
  double p = c[terms - 1];
  for (int i = terms - 2; i >= 0; i--) p = p * x + c[i];
  return p;
}
#define POLYOP_HORNER(x, c) polyop_horner(x, c, (int)(sizeof(c) / sizeof *(c)))

/* pi times the distance from the nearest integer: sin and tan of it have no large argument */
POLYOP_FN double polyop_from_integer(double x) { return POLYOP_PI * (x - POLYOP_OF_LIBM(rint)(x)); }

POLYOP_FN double polyop_lgamma_above_zero(double x) {
  const double ratio[] = {
      /* lgamma(x) / ((x - 1) (x - 2)), 1 <= x <= 3, in x - 2; 2^-56.0 */
      0.42278433509846713,    -0.10031730167435392,    0.03296500062115691,    -0.012384192193371805,
      0.004998641164627129,   -0.0021081308339216706,  0.0009153769240386907,  -0.0004057073983775151,
      0.0001825526153982638,  -8.309511477709561e-05,  3.816907658276081e-05,  -1.7661767658452517e-05,
      8.221234475942905e-06,  -3.846858091533014e-06,  1.8113906873056685e-06, -8.54560908975883e-07,
      3.958940459367468e-07,  -1.878442644643758e-07,  1.042041826608264e-07,  -4.9827532071170234e-08,
      5.910565853507869e-09,  -2.7296358592514825e-09, 1.6194359237484174e-08, -7.842557720538356e-09,
      -4.312495770350818e-09, 2.0986002157033107e-09,  1.5746606982777302e-09, -7.639292345836201e-10};
  const double tail[] = {0.08333333333333333,    -0.002777777777777778, 0.0007936507936507937,
                         -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176,
                         0.00641025641025641,    -0.029550653594771242};
  if (x < 1) { /* of x + 1; log1p is for the zero at 1 */
    const double y = POLYOP_HORNER(x - 1, ratio) * (x * (x - 1));
    return y - (x < 0.5 ? POLYOP_OF_LIBM(log)(x) : POLYOP_OF_LIBM(log1p)(x - 1));
  }
  if (x >= 10) {
    const double u = 1 / x;
    return (x - 0.5) * (POLYOP_OF_LIBM(log)(x) - 1) + (0.4189385332046727 + POLYOP_HORNER(u * u, tail) * u);
  }
  double product = 1;
  while (x > 3) product *= x -= 1;
  const double y = POLYOP_HORNER(x - 2, ratio) * ((x - 1) * (x - 2));
  return product > 1 ? y + POLYOP_OF_LIBM(log)(product) : y;
}

POLYOP_FN double polyop_lgamma(double x) {
  if (x != x) return x;
  if (POLYOP_OF_LIBM(fabs)(x) > 1e306 || (x <= 0 && x == POLYOP_OF_LIBM(floor)(x))) return 1 / 0.0;
  if (x > 0) return polyop_lgamma_above_zero(x);
  if (x > -0x1p-60) return -POLYOP_OF_LIBM(log)(-x);
  const double s = POLYOP_OF_LIBM(fabs)(x * POLYOP_OF_LIBM(sin)(polyop_from_integer(x)));
  return POLYOP_OF_LIBM(log)(POLYOP_PI / s) - polyop_lgamma_above_zero(-x);
}

POLYOP_FN double polyop_digamma(double x) {
  const double ratio[] = {
      /* digamma(x) / (x - its zero), 1 <= x <= 3, in x - 2; 2^-54.7 */
      0.7853075386041053,     -0.2607389546830014,     0.10899991701762626,     -0.04955103291767291,
      0.023447309597724546,   -0.011338432553333682,   0.005552254171350814,    -0.0027395728831692795,
      0.0013581421903714414,  -0.000675313369799565,   0.00033643237613001386,  -0.00016781518722379935,
      8.377966540530644e-05,  -4.184622931937881e-05,  2.0891708911121205e-05,  -1.044106631983514e-05,
      5.26871942897218e-06,   -2.6338311326151924e-06, 1.2119815782595426e-06,  -6.059322795045256e-07,
      4.6173797029851077e-07, -2.3086248081342955e-07, -5.6422994902202784e-08, 2.821220170829738e-08,
      1.1540536834062045e-07, -5.77025926771739e-08,   -3.5705337308985145e-08, 1.7852672191376552e-08,
      1.0201545142033868e-08, -5.100770214989469e-09};
  const double tail[] = {0.08333333333333333,   -0.008333333333333333, 0.003968253968253968,
                         -0.004166666666666667, 0.007575757575757576,  -0.021092796092796094,
                         0.08333333333333333,   -0.4432598039215686};
  double reflected = 0, sum = 0;
  if (x <= 0) {
    if (x == 0) return -1 / x;
    if (x == POLYOP_OF_LIBM(floor)(x)) return 0.0 / 0.0; /* a pole, from both sides another infinity */
    reflected = -POLYOP_PI / POLYOP_OF_LIBM(tan)(polyop_from_integer(x));
    x = 1 - x;
  }
  if (x >= 10) {
    const double u = 1 / x;
    return POLYOP_OF_LIBM(log)(x) - (0.5 * u + POLYOP_HORNER(u * u, tail) * (u * u)) + reflected;
  }
  if (x < 1) {
    sum = -1 / x;
    x += 1;
  }
  while (x > 3) sum += 1 / (x -= 1);
  return POLYOP_HORNER(x - 2, ratio) * ((x - 1.4616321449683622) - 9.549995429965697e-17) + sum + reflected;
}

POLYOP_FN double polyop_trigamma_above_zero(double x) {
  const double tail[] = {0.16666666666666666,  -0.03333333333333333, 0.023809523809523808,
                         -0.03333333333333333, 0.07575757575757576,  -0.2531135531135531,
                         1.1666666666666667,   -7.092156862745098,   54.971177944862156};
  int steps = 0;
  while (x + steps < 10) steps++;
  const double u = 1 / (x + steps);
  double sum = u + (0.5 + POLYOP_HORNER(u * u, tail) * u) * (u * u);
  while (steps-- > 0) sum += 1 / ((x + steps) * (x + steps)); /* the greatest comes last */
  return sum;
}

POLYOP_FN double polyop_trigamma(double x) {
  if (!(x <= 0)) return polyop_trigamma_above_zero(x);
  const double y = POLYOP_PI / POLYOP_OF_LIBM(sin)(polyop_from_integer(x));
  return y * y - polyop_trigamma_above_zero(1 - x);
}
#undef POLYOP_HORNER
#endif
