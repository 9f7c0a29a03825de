/* Floats to integers, as NumPy converts one on x86-64; included by vector.h and device.h.
 *
 *   whole_i8_f32(x) ...                 to i8 i16 i32 i64 u8 u16 u32 u64, from f32 and f64
 *   whole_i8v8_f64v8(x) ...             the same for vectors
 *
 * The fraction is cut off. What remains is converted to an i32 for i8 i16 i32 u8 u16, to an i64 for the
 * others, and then taken modulo 2**bits: -2.0 is 254 as a u8. What the i32 or i64 cannot hold, and NaN, is
 * its least number. A u64 is converted less 2**63 from 2**63 on.
 *
 * In C such numbers are undefined: what they give depends on the instruction, and a compiler simplifies
 * (f64)(i8)x to trunc(x). */
#ifndef POLYOP_LOOPS_WHOLE_H
#define POLYOP_LOOPS_WHOLE_H

/* POLYOP_HIDE_* hide a value from the compiler, which then knows nothing of the number, nor what becomes of
 * it. POLYOP_HELD: whether the conversion is defined. The instructions of x86-64 are defined as above. */
#define POLYOP_HELD(x, low, high) ((x) > (low) && (x) < (high))
#define POLYOP_HELD_LANES(T, m, x, least) sel_##T(m, x, bcast_##T(least))
#if defined(POLYOP_LOOPS_DEVICE_H)
#define POLYOP_HIDE_FLOAT(x) (void)0
#define POLYOP_HIDE_WHOLE(n) (void)0
#elif defined(__SSE2__)
#undef POLYOP_HELD
#undef POLYOP_HELD_LANES
#define POLYOP_HELD(x, low, high) 1
#define POLYOP_HELD_LANES(T, m, x, least) (x)
#ifdef __AVX512F__
#define POLYOP_HIDE_FLOAT(x) __asm__("" : "+v"(x))
#else
#define POLYOP_HIDE_FLOAT(x) __asm__("" : "+x"(x))
#endif
#define POLYOP_HIDE_WHOLE(n) __asm__("" : "+r"(n))
#elif defined(__aarch64__)
#define POLYOP_HIDE_FLOAT(x) __asm__("" : "+w"(x))
#define POLYOP_HIDE_WHOLE(n) __asm__("" : "+r"(n))
#else
#define POLYOP_HIDE_FLOAT(x) __asm__("" : "+m"(x))
#define POLYOP_HIDE_WHOLE(n) __asm__("" : "+r"(n))
#endif

#define POLYOP_ROW(F)                                                              \
  POLYOP_FN i32 whole_i32_##F(F x) {                                               \
    POLYOP_HIDE_FLOAT(x);                                                          \
    i32 n = POLYOP_HELD(x, (F) - 0x1.00000002p31, (F)0x1p31) ? (i32)x : INT32_MIN; \
    POLYOP_HIDE_WHOLE(n);                                                          \
    return n;                                                                      \
  }                                                                                \
  POLYOP_FN i64 whole_i64_##F(F x) {                                               \
    POLYOP_HIDE_FLOAT(x);                                                          \
    i64 n = POLYOP_HELD(x, (F) - 0x1p63, (F)0x1p63) ? (i64)x : INT64_MIN;          \
    POLYOP_HIDE_WHOLE(n);                                                          \
    return n;                                                                      \
  }                                                                                \
  POLYOP_FN i8 whole_i8_##F(F x) { return (i8)whole_i32_##F(x); }                  \
  POLYOP_FN i16 whole_i16_##F(F x) { return (i16)whole_i32_##F(x); }               \
  POLYOP_FN u8 whole_u8_##F(F x) { return (u8)whole_i32_##F(x); }                  \
  POLYOP_FN u16 whole_u16_##F(F x) { return (u16)whole_i32_##F(x); }               \
  POLYOP_FN u32 whole_u32_##F(F x) { return (u32)whole_i64_##F(x); }               \
  POLYOP_FN u64 whole_u64_##F(F x) {                                               \
    const int above = x >= (F)0x1p63;                                              \
    return (u64)whole_i64_##F(above ? x - (F)0x1p63 : x) ^ (u64)above << 63;       \
  }
POLYOP_ROW(f32)
#ifndef POLYOP_WITHOUT_F64
POLYOP_ROW(f64)
#endif
#undef POLYOP_ROW

#ifdef POLYOP_LOOPS_VECTOR_H
#define POLYOP_TO_32(F, W)                                                                          \
  POLYOP_FN i32v##W whole_i32v##W##_##F##v##W(F##v##W x) {                                          \
    POLYOP_HIDE_FLOAT(x);                                                                           \
    x = POLYOP_HELD_LANES(F##v##W, (x > (F) - 0x1.00000002p31) & (x < (F)0x1p31), x, (F) - 0x1p31); \
    i32v##W n = polyop_cvt(i32v##W, x);                                                             \
    POLYOP_HIDE_FLOAT(n);                                                                           \
    return n;                                                                                       \
  }
#define POLYOP_TO_64(F, W, V)                                                              \
  POLYOP_FN V polyop_whole_##F##v##W(F##v##W x) {                                          \
    POLYOP_HIDE_FLOAT(x);                                                                  \
    x = POLYOP_HELD_LANES(F##v##W, (x > (F) - 0x1p63) & (x < (F)0x1p63), x, (F) - 0x1p63); \
    return polyop_cvt(V, x);                                                               \
  }
#define POLYOP_ROW(E, F, W)                                   \
  POLYOP_FN E##v##W whole_##E##v##W##_##F##v##W(F##v##W x) {  \
    return polyop_cvt(E##v##W, whole_i32v##W##_##F##v##W(x)); \
  }
#define POLYOP_ROWS(F, W)                                       \
  POLYOP_TO_32(F, W)                                            \
  POLYOP_ROW(i8, F, W)                                          \
  POLYOP_ROW(i16, F, W)                                         \
  POLYOP_ROW(u8, F, W)                                          \
  POLYOP_ROW(u16, F, W)                                         \
  POLYOP_FN u32v##W whole_u32v##W##_##F##v##W(F##v##W x) {      \
    u32v##W n = polyop_cvt(u32v##W, polyop_whole_##F##v##W(x)); \
    POLYOP_HIDE_FLOAT(n);                                       \
    return n;                                                   \
  }
#define POLYOP_ROWS_8(F, S)                                                                \
  POLYOP_FN i64v8 whole_i64v8_##F##v8(F##v8 x) {                                           \
    i64v8 n = polyop_whole_##F##v8(x);                                                     \
    POLYOP_HIDE_FLOAT(n);                                                                  \
    return n;                                                                              \
  }                                                                                        \
  POLYOP_FN u64v8 whole_u64v8_##F##v8(F##v8 x) {                                           \
    const S##v8 above = x >= (F)0x1p63;                                                    \
    const F##v8 less = (F##v8)(above & (S##v8)bcast_##F##v8((F)0x1p63));                   \
    return (u64v8)whole_i64v8_##F##v8(x - less) ^ ((u64v8)polyop_cvt(i64v8, above) << 63); \
  }
#ifdef POLYOP_WANT_W4
typedef i64 polyop_i64_pair __attribute__((vector_size(2 * POLYOP_VB))); /* as many lanes as f32v4 */
POLYOP_TO_64(f32, 4, polyop_i64_pair)
POLYOP_ROWS(f32, 4)
#endif
#ifdef POLYOP_WANT_W8
POLYOP_TO_64(f32, 8, i64v8)
POLYOP_TO_64(f64, 8, i64v8)
POLYOP_ROWS(f32, 8)
POLYOP_ROWS(f64, 8)
POLYOP_ROWS_8(f32, i32)
POLYOP_ROWS_8(f64, i64)
#endif
#undef POLYOP_ROW
#undef POLYOP_ROWS
#undef POLYOP_ROWS_8
#undef POLYOP_TO_32
#undef POLYOP_TO_64
#endif

#endif
