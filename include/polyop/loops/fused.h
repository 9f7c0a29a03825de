/* Products and sums of one rounding, for kernels whose text alone says what is fused: POLYOP_UNFUSED is
 * defined before, and the compiler is told to fuse nothing (-ffp-contract=off). What it may fuse, it fuses in
 * one place and not in another, so that a row's bits would depend on where it stands in a batch.
 *
 *   polyop_madd_T(a, b, c)   a * b + c for floats and every vector of them: rounded once if the target has an
 *                            instruction for that, else twice; for all of its types alike
 *
 * Included after vector.h. */
#ifndef POLYOP_LOOPS_FUSED_H
#define POLYOP_LOOPS_FUSED_H
#ifndef POLYOP_LOOPS_VECTOR_H
#error "include polyop/loops/vector.h"
#endif

#if defined(POLYOP_GCC) && (defined(__FMA__) || defined(__aarch64__))
/* `bytes` and `size`, of the element, are constants: all branches but one vanish */
#define POLYOP_CASE(B, E, CALL)                         \
  if (bytes == B && size == (int)sizeof(E)) {           \
    typedef E polyop_t __attribute__((vector_size(B))); \
    polyop_t v, w, z;                                   \
    __builtin_memcpy(&v, a, B);                         \
    __builtin_memcpy(&w, b, B);                         \
    __builtin_memcpy(&z, c, B);                         \
    v = CALL;                                           \
    __builtin_memcpy(to, &v, B);                        \
    return;                                             \
  }
typedef f32 polyop_part_f32 __attribute__((may_alias));
typedef f64 polyop_part_f64 __attribute__((may_alias));
POLYOP_FN void polyop_madd(void* to, const void* a, const void* b, const void* c, int bytes, int size) {
#if defined(POLYOP_AVX512)
  POLYOP_CASE(64, f32, __builtin_ia32_vfmaddps512_mask(v, w, z, -1, 4))
  POLYOP_CASE(64, f64, __builtin_ia32_vfmaddpd512_mask(v, w, z, -1, 4))
#endif
#if defined(__FMA__)
  POLYOP_CASE(32, f32, __builtin_ia32_vfmaddps256(v, w, z))
  POLYOP_CASE(32, f64, __builtin_ia32_vfmaddpd256(v, w, z))
  POLYOP_CASE(16, f32, __builtin_ia32_vfmaddps(v, w, z))
  POLYOP_CASE(16, f64, __builtin_ia32_vfmaddpd(v, w, z))
#else
  POLYOP_CASE(16, f32, __builtin_aarch64_fmav4sf(v, w, z))
  POLYOP_CASE(16, f64, __builtin_aarch64_fmav2df(v, w, z))
#endif
  POLYOP_UNROLL for (int i = 0; i < bytes / size; i++) {
    if (size == 4)
      ((polyop_part_f32*)to)[i] = __builtin_fmaf(
          ((const polyop_part_f32*)a)[i], ((const polyop_part_f32*)b)[i], ((const polyop_part_f32*)c)[i]);
    else
      ((polyop_part_f64*)to)[i] = __builtin_fma(
          ((const polyop_part_f64*)a)[i], ((const polyop_part_f64*)b)[i], ((const polyop_part_f64*)c)[i]);
  }
}
#undef POLYOP_CASE
#define POLYOP_MADD(T, E, name)                            \
  POLYOP_FN T name(T a, T b, T c) {                        \
    T r;                                                   \
    polyop_madd(&r, &a, &b, &c, sizeof r, (int)sizeof(E)); \
    return r;                                              \
  }
#elif defined(__clang__)
/* an operation of its own, which every target with an instruction fuses, whatever stands around it */
#define POLYOP_MADD(T, E, name) \
  POLYOP_FN T name(T a, T b, T c) { _Pragma("clang fp contract(on)") return a * b + c; }
#else
#define POLYOP_MADD(T, E, name) \
  POLYOP_FN T name(T a, T b, T c) { return a * b + c; }
#endif

#define POLYOP_ROW(E, W, S, U) POLYOP_MADD(E##v##W, E, polyop_madd_##E##v##W)
POLYOP_FLOATS(POLYOP_ROW)
#undef POLYOP_ROW
POLYOP_MADD(f32, f32, polyop_madd_f32)
POLYOP_MADD(f64, f64, polyop_madd_f64)

#endif
