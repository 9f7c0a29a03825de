/* clang-format off */
/* Functions of float and double, scalar and vector, for generated loop kernels.
 *
 * Define POLYOP_WANT_<NAME> for each function in the table, include this (and with it vector.h). Names:
 * pl_exp_f32(x), pl_exp_f32v4(v), pl_pow_f64v8(x, y), for f32, f64 and every vector of them that vector.h
 * declares. Always declared: abs sign copysign round (half to even) floor ceil trunc sqrt rsqrt and isnan
 * isinf isfinite (a mask; an int for scalars). POLYOP_WANT_FLOORDIV and _MOD declare floordiv_T and mod_T, as
 * numpy.floor_divide and numpy.remainder, and pl_fmod_T. POLYOP_WANT_PRECISE adds plp_<name>_<type>: libm, lane by lane, for
 * the functions of the table, but not sigmoid and those of gamma: libm has none.
 *
 * Inf, NaN, -0.0, subnormal arguments and results and overflow are as in C (Annex F), except that no
 * exception flags are promised. A scalar is computed as a lane of a vector. With gcc its bits are those of a
 * lane for the same target, unless it is a constant, which gcc computes without fusing. Targets with and
 * without fused multiply-add may differ in the last bits. Compile with -ffp-contract=fast -fno-math-errno
 * -fno-trapping-math, and never with -ffast-math. With POLYOP_UNFUSED and -ffp-contract=off (fused.h) a scalar
 * has the bits of a lane with every compiler, constants too.
 *
 * Largest error, in units in the last place of the exact result (tests/native/test_loop_math.py holds every
 * target to these bounds):
 *     function   float   double
 *     exp         1.00     1.00
 *     expm1       1.60     1.30
 *     exp2        1.30     1.30
 *     log         1.00     0.80
 *     log1p       1.00     1.00
 *     log2        1.40     1.00
 *     sin         2.00     2.00
 *     cos         2.00     2.00
 *     tan         3.50     3.50
 *     tanh        1.40     1.40
 *     sinh        2.00     2.00
 *     cosh        1.50     1.50
 *     atan        2.00     1.80
 *     asin        2.10     2.10
 *     acos        1.20     1.50
 *     sigmoid     2.00     2.00
 *     erf         1.40     1.40
 *     erfc        3.00     3.00
 *     cbrt        1.00     4.00
 *     rsqrt       1.60     1.60
 *     sqrt        0.50     0.50
 *     abs         0.00     0.00
 *     sign        0.00     0.00
 *     round       0.00     0.00
 *     floor       0.00     0.00
 *     ceil        0.00     0.00
 *     trunc       0.00     0.00
 *     atan2       2.00     2.00
 *     hypot       1.20     1.20
 *     pow         0.80     0.51
 *     lgamma, digamma, trigamma: 4 for positive arguments (tests/loops/test_accuracy.py).
 *     floordiv, mod, fmod: exactly NumPy's. plp_: those of libm. */
/* clang-format on */
#ifndef POLYOP_LOOPS_MATH_H
#define POLYOP_LOOPS_MATH_H
#include "vector.h"
#ifdef POLYOP_UNFUSED
#include "fused.h"
#endif

#if defined(POLYOP_WANT_LOG) || defined(POLYOP_WANT_LOG2) || defined(POLYOP_WANT_LOG1P)
#define POLYOP_LOGS 1
#else
#define POLYOP_LOGS 0
#endif
#define POLYOP_JOIN(a, b) POLYOP_PASTE(a, b)
#define POLYOP_PASTE(a, b) a##b

#if defined(POLYOP_WANT_LGAMMA) || defined(POLYOP_WANT_DIGAMMA) || defined(POLYOP_WANT_TRIGAMMA)
#include "math_gamma.h"
#endif
#include "math_tables.h"
#include "math_target.h"

/* A scalar is lane 0 of a vector of 16 bytes. */
typedef f32 f32s __attribute__((vector_size(16)));
typedef i32 i32s __attribute__((vector_size(16)));
typedef u32 u32s __attribute__((vector_size(16)));
typedef f64 f64s __attribute__((vector_size(16)));
typedef i64 i64s __attribute__((vector_size(16)));
typedef u64 u64s __attribute__((vector_size(16)));

/* math_f32.h and math_f64.h are included once per type, with these macros: E the element, S and UNSIGNED the
 * integers of its size, SUFFIX the end of the type's name, LANES the number of lanes that count. The macros
 * below are made of them: V, I and U are the type and the integer vectors of its size. */
#define N(f) POLYOP_JOIN(POLYOP_JOIN(POLYOP_JOIN(pl_, f), _), V)
#define V POLYOP_JOIN(E, SUFFIX)
#define I POLYOP_JOIN(S, SUFFIX)
#define U POLYOP_JOIN(UNSIGNED, SUFFIX)
#define POLY(x, name)                                                    \
  N(poly)(x, POLYOP_JOIN(POLYOP_JOIN(POLYOP_JOIN(polyop_, name), _), E), \
          (int)(sizeof(POLYOP_JOIN(POLYOP_JOIN(POLYOP_JOIN(polyop_, name), _), E)) / sizeof(E)))

#define POLY2(x, name)                                                          \
  N(poly_halves)(x, POLYOP_JOIN(POLYOP_JOIN(POLYOP_JOIN(polyop_, name), _), E), \
                 (int)(sizeof(POLYOP_JOIN(POLYOP_JOIN(POLYOP_JOIN(polyop_, name), _), E)) / sizeof(E)))

#define E f32
#define S i32
#define UNSIGNED u32
#define SUFFIX s
#define LANES 1
#include "math_f32.h"
#undef SUFFIX
#undef LANES
#ifdef POLYOP_WANT_W4
#define SUFFIX v4
#define LANES POLYOP_LANES(4)
#include "math_f32.h"
#undef SUFFIX
#undef LANES
#endif
#ifdef POLYOP_WANT_W8
#define SUFFIX v8
#define LANES POLYOP_LANES(8)
#include "math_f32.h"
#undef SUFFIX
#undef LANES
#endif
#undef E
#undef S
#undef UNSIGNED
#include "math_undef.h"

#define E f64
#define S i64
#define UNSIGNED u64
#define SUFFIX s
#define LANES 1
#include "math_f64.h"
#undef SUFFIX
#undef LANES
#ifdef POLYOP_WANT_W8
#define SUFFIX v8
#define LANES POLYOP_LANES(8)
#include "math_f64.h"
#undef SUFFIX
#undef LANES
#endif
#undef E
#undef S
#undef UNSIGNED
#include "math_undef.h"

#undef N
#undef V
#undef I
#undef U
#undef POLY
#undef POLY2
#include "math_names.h"

#endif
