/* Loads and stores of vectors; included by vector.h.
 *
 *   load_T(p) store_T(p, v)                              all lanes, any alignment
 *   load_n_T(p, n) store_n_T(p, v, n)                    the first n lanes; the others are loaded as 0
 *   gather_T(p, stride) scatter_T(p, stride, v)          elements p[0], p[stride], ...
 *   gather_n_T(p, stride, n) scatter_n_T(p, stride, v, n)
 *   gatherx_T(p, idx) gatherx_n_T(p, idx, n)             p[idx[0]], p[idx[1]], ...; idx is an array of int64
 *   polyop_fetch(p, bytes)                               prefetches the line at p + bytes; any address
 *   polyop_fetch_later(p, bytes)                         the same, for a line that is used much later: it
 *                                                        is not put into the nearest cache
 *   polyop_concat_lanes(T, w, a, b, n)                           the lanes of a followed by b, from lane n
 * on; n is a constant, at most the number of lanes. Only when POLYOP_CONCAT_LANES is 1
 *
 * n may be any number: 0 or less stands for no lanes, the number of lanes or more for all. Memory beyond the
 * first n elements is neither read nor written. A scatter writes its lanes in order, so the last of equal
 * addresses wins.
 */
#ifndef POLYOP_LOOPS_MEMORY_H
#define POLYOP_LOOPS_MEMORY_H
#ifndef POLYOP_LOOPS_VECTOR_H
#error "include polyop/loops/vector.h"
#endif

/* Copies n elements, n < lanes, in pieces of fixed size. A memcpy of variable size would be a call. */
POLYOP_FN void polyop_copy_n(void* to, const void* from, long n, int lanes, int size) {
  char* t = (char*)to;
  const char* f = (const char*)from;
  long done = 0;
  POLYOP_UNROLL
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (n & half) {
      __builtin_memcpy(t + done, f + done, half * size);
      done += half * size;
    }
  }
}

#if defined(POLYOP_AVX512)
#define POLYOP_MASKED 1
/* One row per instruction: vector bytes, element bytes, element, mask word, load, store. */
#define POLYOP_MASKED_ROWS(X)                                    \
  X(64, 8, long long, u8, loaddqudi512_mask, storedqudi512_mask) \
  X(64, 4, int, u16, loaddqusi512_mask, storedqusi512_mask)      \
  X(64, 2, short, u32, loaddquhi512_mask, storedquhi512_mask)    \
  X(64, 1, char, u64, loaddquqi512_mask, storedquqi512_mask)     \
  X(32, 8, long long, u8, loaddqudi256_mask, storedqudi256_mask) \
  X(32, 4, int, u8, loaddqusi256_mask, storedqusi256_mask)       \
  X(32, 2, short, u16, loaddquhi256_mask, storedquhi256_mask)    \
  X(32, 1, char, u32, loaddquqi256_mask, storedquqi256_mask)     \
  X(16, 8, long long, u8, loaddqudi128_mask, storedqudi128_mask) \
  X(16, 4, int, u8, loaddqusi128_mask, storedqusi128_mask)       \
  X(16, 2, short, u8, loaddquhi128_mask, storedquhi128_mask)     \
  X(16, 1, char, u16, loaddquqi128_mask, storedquqi128_mask)

POLYOP_FN u64 polyop_first(long n, int lanes) {
  u64 all = ~(u64)0 >> (64 - lanes);
  return n >= lanes ? all : n <= 0 ? 0 : (((u64)1 << n) - 1);
}
#define POLYOP_ROW(B, S, E, K, LOAD, STORE)                                          \
  typedef E polyop_masked##B##_##S __attribute__((vector_size(B)));                  \
  POLYOP_FN polyop_masked##B##_##S polyop_mload##B##_##S(const void* p, u64 k) {     \
    return __builtin_ia32_##LOAD((const void*)p, (polyop_masked##B##_##S){0}, (K)k); \
  }                                                                                  \
  POLYOP_FN void polyop_mstore##B##_##S(void* p, polyop_masked##B##_##S v, u64 k) {  \
    __builtin_ia32_##STORE((void*)p, v, (K)k);                                       \
  }
POLYOP_MASKED_ROWS(POLYOP_ROW)
#undef POLYOP_ROW
#define POLYOP_ROW(B, S, E, K, LOAD, STORE)                 \
  if (bytes == B && size == S) {                            \
    polyop_masked##B##_##S v = polyop_mload##B##_##S(p, k); \
    __builtin_memcpy(to, &v, lanes * size);                 \
  }
/* Loads the first n elements at p into the vector `to`, followed by zeros. */
POLYOP_FN void polyop_load_n(void* to, const void* p, long n, int lanes, int size) {
  int bytes = lanes * size < 16 ? 16 : lanes * size;
  u64 k = polyop_first(n, lanes);
  POLYOP_MASKED_ROWS(POLYOP_ROW)
}
#undef POLYOP_ROW
#define POLYOP_ROW(B, S, E, K, LOAD, STORE)   \
  if (bytes == B && size == S) {              \
    polyop_masked##B##_##S v = {0};           \
    __builtin_memcpy(&v, from, lanes * size); \
    polyop_mstore##B##_##S(p, v, k);          \
  }
POLYOP_FN void polyop_store_n(void* p, const void* from, long n, int lanes, int size) {
  int bytes = lanes * size < 16 ? 16 : lanes * size;
  u64 k = polyop_first(n, lanes);
  POLYOP_MASKED_ROWS(POLYOP_ROW)
}
#undef POLYOP_ROW
#else
#if defined(__AVX2__)
typedef long long polyop_words8 __attribute__((vector_size(32)));
typedef int polyop_words4 __attribute__((vector_size(32)));
/* Pieces that are put together in memory and read as a vector wait for each other, some 20 cycles; a masked
 * load does not. */
POLYOP_FN void polyop_load_part(void* to, const void* p, long n, int size) {
  if (size == 8) {
    polyop_words8 on = (polyop_words8){0, 1, 2, 3} < n;
    polyop_words8 v = __builtin_ia32_maskloadq256((const polyop_words8*)p, on);
    __builtin_memcpy(to, &v, sizeof v);
  } else {
    polyop_words4 on = (polyop_words4){0, 1, 2, 3, 4, 5, 6, 7} < (int)n;
    polyop_words4 v = __builtin_ia32_maskloadd256((const polyop_words4*)p, on);
    __builtin_memcpy(to, &v, sizeof v);
  }
}
#endif
POLYOP_FN void polyop_load_n(void* to, const void* p, long n, int lanes, int size) {
  if (n >= lanes) {
    __builtin_memcpy(to, p, lanes * size);
    return;
  }
#if defined(__AVX2__)
  if (n > 0 && (size == 8 || size == 4) && lanes * size % 32 == 0) {
    POLYOP_UNROLL
    for (int done = 0; done < lanes; done += 32 / size) {
      polyop_load_part((char*)to + done * size, (const char*)p + done * size, n - done, size);
    }
    return;
  }
#endif
  if (n > 0) polyop_copy_n(to, p, n, lanes, size);
}
POLYOP_FN void polyop_store_n(void* p, const void* from, long n, int lanes, int size) {
  if (n >= lanes)
    __builtin_memcpy(p, from, lanes * size);
  else if (n > 0)
    polyop_copy_n(p, from, n, lanes, size);
}
#endif

POLYOP_FN void polyop_fetch(const void* from, i64 offset) {
  __builtin_prefetch((const void*)((uintptr_t)from + (uintptr_t)offset));
}
POLYOP_FN void polyop_fetch_later(const void* from, i64 offset) {
  __builtin_prefetch((const void*)((uintptr_t)from + (uintptr_t)offset), 0, 2);
}

#if defined(POLYOP_GCC) && defined(POLYOP_AVX512)
#ifndef POLYOP_CONCAT_LANES
#define POLYOP_CONCAT_LANES 1
#endif
typedef long long polyop_lanes8 __attribute__((vector_size(64)));
typedef int polyop_lanes4 __attribute__((vector_size(64)));
#define POLYOP_CONCAT_8(a, b, n) \
  __builtin_ia32_alignq512_mask((polyop_lanes8)(b), (polyop_lanes8)(a), n, (polyop_lanes8){0}, (u8) - 1)
#define POLYOP_CONCAT_4(a, b, n) \
  __builtin_ia32_alignd512_mask((polyop_lanes4)(b), (polyop_lanes4)(a), n, (polyop_lanes4){0}, (u16) - 1)
#define polyop_concat_lanes(T, w, a, b, n) \
  ((n) == POLYOP_LANES(w) ? (b) : (T)POLYOP_CONCAT_##w(a, b, (n) % POLYOP_LANES(w)))
#endif

/* Whether a condition holds, and the compiler knows it. */
#if defined(__clang__) /* has no shuffle by a vector */
#define POLYOP_KNOWN(condition) 0
#define POLYOP_SECOND(a, b, from) (a)
#else
#define POLYOP_KNOWN(condition) (__builtin_constant_p(condition) && (condition))
#define POLYOP_SECOND(a, b, from) __builtin_shuffle(a, b, from)
#endif

/* Not inlined: they run once at the end of a loop, and inlined they would be most of the code. */
#define POLYOP_CALLED static __attribute__((noinline, unused))
#define POLYOP_ROW(E, W, S, U)                                                                        \
  POLYOP_FN E##v##W load_##E##v##W(const E* p) { return *(const E##v##W##_mem*)p; }                   \
  POLYOP_FN void store_##E##v##W(E* p, E##v##W v) { *(E##v##W##_mem*)p = v; }                         \
  POLYOP_FN E##v##W load_n_##E##v##W(const E* p, long n) {                                            \
    E##v##W v = {0};                                                                                  \
    polyop_load_n(&v, p, n, POLYOP_LANES(W), sizeof(E));                                              \
    return v;                                                                                         \
  }                                                                                                   \
  /* p[0], p[2], ...: the second load starts one element early, so that none is read past the last */ \
  POLYOP_FN E##v##W every_second_##E##v##W(const E* p) {                                              \
    const E##v##W a = load_##E##v##W(p), b = load_##E##v##W(p + POLYOP_LANES(W) - 1);                 \
    S##v##W from;                                                                                     \
    POLYOP_UNROLL for (int i = 0; i < POLYOP_LANES(W); i++) {                                         \
      from[i] = 2 * i + (i >= POLYOP_LANES(W) / 2);                                                   \
    }                                                                                                 \
    return POLYOP_SECOND(a, b, from);                                                                 \
  }                                                                                                   \
  POLYOP_FN void store_n_##E##v##W(E* p, E##v##W v, long n) {                                         \
    polyop_store_n(p, &v, n, POLYOP_LANES(W), sizeof(E));                                             \
  }                                                                                                   \
  POLYOP_FN E##v##W gather_##E##v##W(const E* p, long stride) {                                       \
    if (POLYOP_KNOWN(stride == 2)) return every_second_##E##v##W(p);                                  \
    E t[POLYOP_LANES(W)];                                                                             \
    POLYOP_UNROLL for (long i = 0; i < POLYOP_LANES(W); i++) t[i] = p[i * stride];                    \
    return load_##E##v##W(t);                                                                         \
  }                                                                                                   \
  POLYOP_CALLED E##v##W gather_n_##E##v##W(const E* p, long stride, long n) {                         \
    E t[POLYOP_LANES(W)] = {0};                                                                       \
    for (long i = 0; i < POLYOP_LANES(W) && i < n; i++) t[i] = p[i * stride];                         \
    return load_##E##v##W(t);                                                                         \
  }                                                                                                   \
  POLYOP_FN void scatter_##E##v##W(E* p, long stride, E##v##W v) {                                    \
    POLYOP_UNROLL for (long i = 0; i < POLYOP_LANES(W); i++) p[i * stride] = v[i];                    \
  }                                                                                                   \
  POLYOP_CALLED void scatter_n_##E##v##W(E* p, long stride, E##v##W v, long n) {                      \
    E t[POLYOP_LANES(W)];                                                                             \
    store_##E##v##W(t, v);                                                                            \
    for (long i = 0; i < POLYOP_LANES(W) && i < n; i++) p[i * stride] = t[i];                         \
  }                                                                                                   \
  POLYOP_FN E##v##W gatherx_##E##v##W(const E* p, const i64* idx) {                                   \
    E t[POLYOP_LANES(W)];                                                                             \
    POLYOP_UNROLL for (long i = 0; i < POLYOP_LANES(W); i++) t[i] = p[idx[i]];                        \
    return load_##E##v##W(t);                                                                         \
  }                                                                                                   \
  POLYOP_CALLED E##v##W gatherx_n_##E##v##W(const E* p, const i64* idx, long n) {                     \
    E t[POLYOP_LANES(W)] = {0};                                                                       \
    for (long i = 0; i < POLYOP_LANES(W) && i < n; i++) t[i] = p[idx[i]];                             \
    return load_##E##v##W(t);                                                                         \
  }
POLYOP_TYPES(POLYOP_ROW)
#undef POLYOP_ROW

#endif
