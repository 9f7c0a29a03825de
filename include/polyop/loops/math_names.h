/* The scalar and the precise variants of the functions of math.h; included by it. */

#define POLYOP_SCALAR(name, E) \
  POLYOP_FN E pl_##name##_##E(E x) { return pl_##name##_##E##s(pl_splat_##E##s(x))[0]; }
#define POLYOP_SCALAR2(name, E)                                           \
  POLYOP_FN E pl_##name##_##E(E x, E y) {                                 \
    return pl_##name##_##E##s(pl_splat_##E##s(x), pl_splat_##E##s(y))[0]; \
  }
#define POLYOP_SCALARS(name) POLYOP_SCALAR(name, f32) POLYOP_SCALAR(name, f64)
POLYOP_SCALARS(sign)
POLYOP_SCALARS(round)
POLYOP_SCALARS(floor)
POLYOP_SCALARS(ceil)
POLYOP_SCALARS(trunc)
POLYOP_SCALARS(sqrt)
POLYOP_SCALARS(rsqrt)
#define POLYOP_ROW(E, TAIL)                                                                    \
  POLYOP_FN E pl_abs_##E(E x) { return __builtin_fabs##TAIL(x); }                              \
  POLYOP_FN E pl_copysign_##E(E x, E y) { return __builtin_copysign##TAIL(x, y); }             \
  POLYOP_FN int pl_isnan_##E(E x) { return x != x; }                                           \
  POLYOP_FN int pl_isinf_##E(E x) { return __builtin_fabs##TAIL(x) == __builtin_inf##TAIL(); } \
  POLYOP_FN int pl_isfinite_##E(E x) { return __builtin_fabs##TAIL(x) < __builtin_inf##TAIL(); }
POLYOP_ROW(f32, f)
POLYOP_ROW(f64, )
#undef POLYOP_ROW

#define POLYOP_LIBM(name, E, LANES, TAIL)                                                      \
  POLYOP_FN E##LANES plp_##name##_##E##LANES(E##LANES x) {                                     \
    for (int i = 0; i < (int)(sizeof x / sizeof(E)); i++) x[i] = __builtin_##name##TAIL(x[i]); \
    return x;                                                                                  \
  }
#define POLYOP_LIBM2(name, E, LANES, TAIL)                                                           \
  POLYOP_FN E##LANES plp_##name##_##E##LANES(E##LANES x, E##LANES y) {                               \
    for (int i = 0; i < (int)(sizeof x / sizeof(E)); i++) x[i] = __builtin_##name##TAIL(x[i], y[i]); \
    return x;                                                                                        \
  }
#define POLYOP_SAME1(name, E, TAIL) \
  POLYOP_FN E plp_##name##_##E(E x) { return __builtin_##name##TAIL(x); }
#define POLYOP_SAME2(name, E, TAIL) \
  POLYOP_FN E plp_##name##_##E(E x, E y) { return __builtin_##name##TAIL(x, y); }
#ifdef POLYOP_WANT_W4
#define POLYOP_PRECISE_W4(M, name) M(name, f32, v4, f)
#else
#define POLYOP_PRECISE_W4(M, name)
#endif
#ifdef POLYOP_WANT_W8
#define POLYOP_PRECISE_W8(M, name) M(name, f32, v8, f) M(name, f64, v8, )
#else
#define POLYOP_PRECISE_W8(M, name)
#endif
#ifdef POLYOP_WANT_PRECISE
#define POLYOP_PRECISE(M, ONE, name) \
  POLYOP_PRECISE_W4(M, name) POLYOP_PRECISE_W8(M, name) ONE(name, f32, f) ONE(name, f64, )
#else
#define POLYOP_PRECISE(M, ONE, name)
#endif
#define POLYOP_UNARY(name) POLYOP_SCALARS(name) POLYOP_PRECISE(POLYOP_LIBM, POLYOP_SAME1, name)
#define POLYOP_BINARY(name) \
  POLYOP_SCALAR2(name, f32) POLYOP_SCALAR2(name, f64) POLYOP_PRECISE(POLYOP_LIBM2, POLYOP_SAME2, name)

#ifdef POLYOP_WANT_EXP
POLYOP_UNARY(exp)
#endif
#ifdef POLYOP_WANT_EXPM1
POLYOP_UNARY(expm1)
#endif
#ifdef POLYOP_WANT_EXP2
POLYOP_UNARY(exp2)
#endif
#ifdef POLYOP_WANT_LOG
POLYOP_UNARY(log)
#endif
#ifdef POLYOP_WANT_LOG1P
POLYOP_UNARY(log1p)
#endif
#ifdef POLYOP_WANT_LOG2
POLYOP_UNARY(log2)
#endif
#ifdef POLYOP_WANT_SIN
POLYOP_UNARY(sin)
#endif
#ifdef POLYOP_WANT_COS
POLYOP_UNARY(cos)
#endif
#ifdef POLYOP_WANT_TAN
POLYOP_UNARY(tan)
#endif
#ifdef POLYOP_WANT_SIGMOID
POLYOP_SCALARS(sigmoid)
#endif
#ifdef POLYOP_WANT_LGAMMA
POLYOP_SCALARS(lgamma)
#endif
#ifdef POLYOP_WANT_DIGAMMA
POLYOP_SCALARS(digamma)
#endif
#ifdef POLYOP_WANT_TRIGAMMA
POLYOP_SCALARS(trigamma)
#endif
#ifdef POLYOP_WANT_ERFC
POLYOP_UNARY(erfc)
#endif
#ifdef POLYOP_WANT_CBRT
POLYOP_UNARY(cbrt)
#endif
#ifdef POLYOP_WANT_TANH
POLYOP_UNARY(tanh)
#endif
#ifdef POLYOP_WANT_SINH
POLYOP_UNARY(sinh)
#endif
#ifdef POLYOP_WANT_COSH
POLYOP_UNARY(cosh)
#endif
#ifdef POLYOP_WANT_ATAN
POLYOP_UNARY(atan)
#endif
#ifdef POLYOP_WANT_ASIN
POLYOP_UNARY(asin)
#endif
#ifdef POLYOP_WANT_ACOS
POLYOP_UNARY(acos)
#endif
#ifdef POLYOP_WANT_ERF
POLYOP_UNARY(erf)
#endif
#ifdef POLYOP_WANT_ATAN2
POLYOP_BINARY(atan2)
#endif
#ifdef POLYOP_WANT_HYPOT
POLYOP_BINARY(hypot)
#endif
#ifdef POLYOP_WANT_POW
POLYOP_BINARY(pow)
#endif
#if defined(POLYOP_WANT_FLOORDIV) || defined(POLYOP_WANT_MOD)
POLYOP_SCALAR2(floordiv, f32)
POLYOP_SCALAR2(floordiv, f64)
POLYOP_SCALAR2(mod, f32)
POLYOP_SCALAR2(mod, f64)
POLYOP_SCALAR2(fmod, f32)
POLYOP_SCALAR2(fmod, f64)
#define POLYOP_ROW(T)                                                  \
  POLYOP_FN T floordiv_##T(T a, T b) { return pl_floordiv_##T(a, b); } \
  POLYOP_FN T mod_##T(T a, T b) { return pl_mod_##T(a, b); }
POLYOP_ROW(f32)
POLYOP_ROW(f64)
#ifdef POLYOP_WANT_W4
POLYOP_ROW(f32v4)
#endif
#ifdef POLYOP_WANT_W8
POLYOP_ROW(f32v8)
POLYOP_ROW(f64v8)
#endif
#undef POLYOP_ROW
#endif
