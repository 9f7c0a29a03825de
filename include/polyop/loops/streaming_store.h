/* Streaming stores, past the caches. When no cache can hold a result, such a store saves reading the line
 * that it replaces. A generated file that uses them includes this after vector.h.
 *
 *   polyop_streaming_start(p, count, bytes, size, lanes)
 *                      the number of elements before the first vector at p that can be stored like this;
 *                      -1 when it is not worth it. `count` elements of `size` bytes are stored from p on, in
 *                      a tensor of `bytes` bytes
 *   stream_T(p, v, streaming) store_T; when `streaming` is set, a streaming store, for which p must be
 * aligned polyop_streaming_fence()    orders the streaming stores before later stores of the thread
 */
#ifndef POLYOP_LOOPS_STREAMING_STORE_H
#define POLYOP_LOOPS_STREAMING_STORE_H

/* The least bytes of a row, at least a vector. The ends of a row are stored normally, which would be too much
 * of a shorter one. */
#ifndef POLYOP_LONG_ROW
#define POLYOP_LONG_ROW (1 << 10)
#endif
_Static_assert(POLYOP_LONG_ROW >= 64,
               "a row must be longer than the elements before its first aligned vector");
/* The most bytes of a tensor that caches may hold. The C library's size of the last cache is not used: it is
 * ten times too large on some machines, and other processes share that cache. */
#ifndef POLYOP_CACHED
#define POLYOP_CACHED (32 << 20)
#endif

POLYOP_FN int64_t polyop_streaming_start(const void* p, int64_t count, int64_t bytes, int size, int lanes) {
#if defined(__SSE2__) && (defined(POLYOP_GCC) || defined(__clang__))
  const int64_t off = (int64_t)(-(uintptr_t)p % (uintptr_t)(size * lanes));
  if (count * size < POLYOP_LONG_ROW || bytes <= POLYOP_CACHED || off % size) return -1;
  return off / size;
#else
  (void)p, (void)count, (void)bytes, (void)size, (void)lanes;
  return -1;
#endif
}

POLYOP_FN void polyop_streaming_fence(void) {
#ifdef __SSE2__
  __builtin_ia32_sfence();
#endif
}

#if defined(POLYOP_GCC)
#define POLYOP_STREAM_16(p, v) __builtin_ia32_movntdq(p, v)
#define POLYOP_STREAM_32(p, v) __builtin_ia32_movntdq256(p, v)
#define POLYOP_STREAM_64(p, v) __builtin_ia32_movntdq512(p, v)
#elif defined(__clang__)
#define POLYOP_STREAM_16(p, v) __builtin_nontemporal_store(v, p)
#define POLYOP_STREAM_32(p, v) __builtin_nontemporal_store(v, p)
#define POLYOP_STREAM_64(p, v) __builtin_nontemporal_store(v, p)
#endif
#define POLYOP_BYTES(B)                                             \
  if (bytes == B) {                                                 \
    typedef long long V __attribute__((vector_size(B), may_alias)); \
    V v;                                                            \
    __builtin_memcpy(&v, from, B);                                  \
    POLYOP_STREAM_##B((V*)p, v);                                    \
    return;                                                         \
  }
/* `bytes` is a constant. A vector without such an instruction is stored normally. */
POLYOP_FN void polyop_store_streaming(void* p, const void* from, int bytes) {
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

#define POLYOP_ROW(E, W, S, U)                                      \
  POLYOP_FN void stream_##E##v##W(E* p, E##v##W v, int streaming) { \
    if (streaming)                                                  \
      polyop_store_streaming(p, &v, sizeof v);                      \
    else                                                            \
      store_##E##v##W(p, v);                                        \
  }
POLYOP_TYPES(POLYOP_ROW)
#undef POLYOP_ROW

#endif
