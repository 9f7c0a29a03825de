/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw, 2011): four random words of 32 bits for a counter and a key.
 *
 *   pl_philox_low_T(a, b, key)    words 0 and 1 of the result, the first in the low half
 *   pl_philox_high_T(a, b, key)   words 2 and 3
 *
 * T is u64, or u64v8 on a CPU. `a` has words 0 and 1 of the counter, `b` words 2 and 3, the earlier one in
 * the low half; so has `key`. A word is computed in a lane of 64 bits, whose high half may hold anything
 * until the end: a product reads low halves. */
#ifndef POLYOP_LOOPS_PHILOX_H
#define POLYOP_LOOPS_PHILOX_H

/* MULTIPLY(x, constant): the product of two low halves. */
#define POLYOP_PHILOX(T, MULTIPLY)                                              \
  POLYOP_FN void polyop_philox_##T(T w[4], T key) {                             \
    T low = key, high = key >> 32;                                              \
    POLYOP_UNROLL for (int round = 0; round < 10; ++round) {                    \
      const T p = MULTIPLY(w[0], 0xD2511F53u), q = MULTIPLY(w[2], 0xCD9E8D57u); \
      w[0] = (q >> 32) ^ w[1] ^ low;                                            \
      w[2] = (p >> 32) ^ w[3] ^ high;                                           \
      w[1] = q;                                                                 \
      w[3] = p;                                                                 \
      low += 0x9E3779B9u;                                                       \
      high += 0xBB67AE85u;                                                      \
    }                                                                           \
  }                                                                             \
  POLYOP_FN T pl_philox_low_##T(T a, T b, T key) {                              \
    T w[4] = {a, a >> 32, b, b >> 32};                                          \
    polyop_philox_##T(w, key);                                                  \
    return (w[0] & 0xFFFFFFFFu) | (w[1] << 32);                                 \
  }                                                                             \
  POLYOP_FN T pl_philox_high_##T(T a, T b, T key) {                             \
    T w[4] = {a, a >> 32, b, b >> 32};                                          \
    polyop_philox_##T(w, key);                                                  \
    return (w[2] & 0xFFFFFFFFu) | (w[3] << 32);                                 \
  }

#define POLYOP_HALVES(x, constant) ((u64)(u32)(x) * (constant))
POLYOP_PHILOX(u64, POLYOP_HALVES)
#undef POLYOP_HALVES

#if defined(POLYOP_LOOPS_VECTOR_H) && defined(POLYOP_WANT_W8)
/* gcc multiplies all 64 bits unless it is told the instruction; clang finds it. */
#if defined(POLYOP_GCC) && defined(POLYOP_AVX512)
typedef i32 polyop_words __attribute__((vector_size(64)));
typedef long long polyop_products __attribute__((vector_size(64)));
#define POLYOP_HALVES(x, constant)                                                                   \
  ((u64v8)__builtin_ia32_pmuludq512_mask((polyop_words)(x), (polyop_words)((u64v8){0} + (constant)), \
                                         (polyop_products){0}, (u8) - 1))
#elif defined(POLYOP_GCC) && defined(__AVX2__)
typedef i32 polyop_words __attribute__((vector_size(32)));
#define POLYOP_HALVES(x, constant) \
  ((u64v8)__builtin_ia32_pmuludq256((polyop_words)(x), (polyop_words)((u64v8){0} + (constant))))
#elif defined(POLYOP_GCC) && defined(__SSE2__) && !defined(__AVX__)
typedef i32 polyop_words __attribute__((vector_size(16)));
#define POLYOP_HALVES(x, constant) \
  ((u64v8)__builtin_ia32_pmuludq128((polyop_words)(x), (polyop_words)((u64v8){0} + (constant))))
#else
#define POLYOP_HALVES(x, constant) (((x) & 0xFFFFFFFFu) * ((u64v8){0} + (constant)))
#endif
POLYOP_PHILOX(u64v8, POLYOP_HALVES)
#undef POLYOP_HALVES
#endif
#undef POLYOP_PHILOX

#endif
