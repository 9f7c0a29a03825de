/* Stores past the caches: of a result that no cache can keep, a store need not read what it replaces.
 * Included by a generated file that uses them, after vector.h.
 *
 *   polyop_past(p, count, bytes, size, lanes)
 *                      how many elements come before the first vector at p that can be stored so, or -1:
 *                      `count` elements of `size` bytes, of a tensor of `bytes`, follow there, too few for it
 *   past_T(p, v, past) store_T, past the caches where `past`; p is aligned to the vector then
 *   polyop_passed()    what was stored so comes before what the thread stores from here on */
#ifndef POLYOP_LOOPS_PAST_H
#define POLYOP_LOOPS_PAST_H

/* Bytes of a row, at least a vector: the ends of a shorter one, stored as ever, are too much of it. */
#ifndef POLYOP_LONG_ROW
#define POLYOP_LONG_ROW (1 << 10)
#endif
_Static_assert(POLYOP_LONG_ROW >= 64, "before the first aligned vector there is less than one");
/* Bytes of a tensor that caches keep at most. What the C library says of the last cache is ten times too much
 * on some machines, and others share it. */
#ifndef POLYOP_CACHED
#define POLYOP_CACHED (32 << 20)
#endif

POLYOP_FN int64_t polyop_past(const void* p, int64_t count, int64_t bytes, int size, int lanes) {
#if defined(__SSE2__) && (defined(POLYOP_GCC) || defined(__clang__))
  const int64_t off = (int64_t)(-(uintptr_t)p % (uintptr_t)(size * lanes));
  if (count * size < POLYOP_LONG_ROW || bytes <= POLYOP_CACHED || off % size) return -1;
  return off / size;
#else
  (void)p, (void)count, (void)bytes, (void)size, (void)lanes;
  return -1;
#endif
}

POLYOP_FN void polyop_passed(void) {
#ifdef __SSE2__
  __builtin_ia32_sfence();
#endif
}

#if defined(POLYOP_GCC)
#define POLYOP_PAST_16(p, v) __builtin_ia32_movntdq(p, v)
#define POLYOP_PAST_32(p, v) __builtin_ia32_movntdq256(p, v)
#define POLYOP_PAST_64(p, v) __builtin_ia32_movntdq512(p, v)
#elif defined(__clang__)
#define POLYOP_PAST_16(p, v) __builtin_nontemporal_store(v, p)
#define POLYOP_PAST_32(p, v) __builtin_nontemporal_store(v, p)
#define POLYOP_PAST_64(p, v) __builtin_nontemporal_store(v, p)
#endif
#define POLYOP_BYTES(B)                                             \
  if (bytes == B) {                                                 \
    typedef long long V __attribute__((vector_size(B), may_alias)); \
    V v;                                                            \
    __builtin_memcpy(&v, from, B);                                  \
    POLYOP_PAST_##B((V*)p, v);                                      \
    return;                                                         \
  }
/* `bytes` is a constant; a vector that no such instruction stores is stored as ever. */
POLYOP_FN void polyop_store_past(void* p, const void* from, int bytes) {
#ifdef __SSE2__
  POLYOP_BYTES(16)
#endif
#ifdef __AVX__
  POLYOP_BYTES(32)
#endif
#ifdef POLYOP_AVX512
  POLYOP_BYTES(64)
#endif
  __builtin_memcpy(p, from, (unsigned long)bytes);
}
#undef POLYOP_BYTES

#define POLYOP_ROW(E, W, S, U)                               \
  POLYOP_FN void past_##E##v##W(E* p, E##v##W v, int past) { \
    if (past)                                                \
      polyop_store_past(p, &v, sizeof v);                    \
    else                                                     \
      store_##E##v##W(p, v);                                 \
  }
POLYOP_TYPES(POLYOP_ROW)
#undef POLYOP_ROW

#endif
