/* Strips: a few columns of as many rows as there are lanes, turned round, so that a loop along the rows loads
 * vectors where it would gather. Included by a generated file that uses them, after vector.h.
 *
 *   polyop_strip_T(to, from, stride, columns, rows)   to[c * lanes + l] = from[l * stride + c], 0 where
 * l >= rows; `to` has room for `columns` rounded up to whole vectors. T is a vector type whose elements have
 * 4 or 8 bytes. */
#ifndef POLYOP_LOOPS_STRIP_H
#define POLYOP_LOOPS_STRIP_H

/* Interleaving the two halves of a square's rows as often as 2 goes into its side turns it round. Meanwhile
 * the rows of the next lanes are asked for: too many places at once for what the processor does by itself. */
#if defined(POLYOP_GCC) && defined(POLYOP_AVX512)
#define POLYOP_TURN(E, W, S)                                                                                 \
  POLYOP_FN void polyop_turn_##E##v##W(E* to, const E* from, long stride, long count) {                      \
    E##v##W r[POLYOP_LANES(W)], t[POLYOP_LANES(W)];                                                          \
    S##v##W low = {0};                                                                                       \
    POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) {                                                \
      polyop_fetch(from, (l + POLYOP_LANES(W)) * stride * (long)sizeof(E));                                  \
      low[l] = l / 2 + l % 2 * POLYOP_LANES(W);                                                              \
      r[l] = count < POLYOP_LANES(W) ? load_n_##E##v##W(from + l * stride, count)                            \
                                     : load_##E##v##W(from + l * stride);                                    \
    }                                                                                                        \
    POLYOP_UNROLL for (int step = 1; step < POLYOP_LANES(W); step *= 2) {                                    \
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) t[l] =                                         \
          __builtin_shuffle(r[l / 2], r[l / 2 + POLYOP_LANES(W) / 2], low + l % 2 * (POLYOP_LANES(W) / 2));  \
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) r[l] = t[l];                                   \
    }                                                                                                        \
    POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) store_##E##v##W(to + l * POLYOP_LANES(W), r[l]); \
  }
#define POLYOP_TURNED(T, rows, lanes) \
  if (rows >= lanes)                  \
    for (; c < columns; c += lanes) polyop_turn_##T(to + c * lanes, from + c, stride, columns - c);
#else
#define POLYOP_TURN(E, W, S)
#define POLYOP_TURNED(T, rows, lanes)
#endif

#define POLYOP_ROW(E, W, S)                                                                               \
  POLYOP_TURN(E, W, S)                                                                                    \
  static __attribute__((noinline, unused)) void polyop_strip_##E##v##W(E* to, const E* from, long stride, \
                                                                       long columns, long rows) {         \
    long c = 0;                                                                                           \
    POLYOP_TURNED(E##v##W, rows, POLYOP_LANES(W))                                                         \
    for (; c < columns; c++)                                                                              \
      for (long l = 0; l < POLYOP_LANES(W); l++)                                                          \
        to[c * POLYOP_LANES(W) + l] = l < rows ? from[l * stride + c] : 0;                                \
  }
#ifdef POLYOP_WANT_W4
POLYOP_ROW(i32, 4, i32)
POLYOP_ROW(u32, 4, i32)
POLYOP_ROW(f32, 4, i32)
#endif
#ifdef POLYOP_WANT_W8
POLYOP_ROW(i32, 8, i32)
POLYOP_ROW(u32, 8, i32)
POLYOP_ROW(f32, 8, i32)
POLYOP_ROW(i64, 8, i64)
POLYOP_ROW(u64, 8, i64)
POLYOP_ROW(f64, 8, i64)
#endif
#undef POLYOP_ROW

#endif
