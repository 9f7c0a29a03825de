/* Strips (register transposes): a few columns of as many rows as a vector has lanes, transposed. A loop along
 * the rows then loads and stores vectors, where it would gather and scatter. A generated file that uses them
 * includes this after vector.h. T is a vector type; polyop_untranspose_T is there for elements of 4 or 8
 * bytes.
 *
 *   polyop_transpose_T(to, from, stride, columns, rows)
 *                      to[c * lanes + l] = from[l * stride + c], 0 where l >= rows; `to` has room for whole
 *                      vectors of columns
 *   polyop_untranspose_T(to, stride, from, columns, rows)
 *                      to[l * stride + c] = from[c * lanes + l] where l < rows; `from` as `to` above */
#ifndef POLYOP_LOOPS_TRANSPOSE_H
#define POLYOP_LOOPS_TRANSPOSE_H

#if defined(POLYOP_GCC) && defined(POLYOP_AVX512)
/* Interleaving the two halves of a square's rows log2(side) times transposes it. */
#define POLYOP_SQUARE(E, W, S)                                                                              \
  POLYOP_FN void polyop_square_##E##v##W(E##v##W* r) {                                                      \
    E##v##W t[POLYOP_LANES(W)];                                                                             \
    S##v##W low = {0};                                                                                      \
    POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) low[l] = l / 2 + l % 2 * POLYOP_LANES(W);       \
    POLYOP_UNROLL for (int step = 1; step < POLYOP_LANES(W); step *= 2) {                                   \
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) t[l] =                                        \
          __builtin_shuffle(r[l / 2], r[l / 2 + POLYOP_LANES(W) / 2], low + l % 2 * (POLYOP_LANES(W) / 2)); \
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) r[l] = t[l];                                  \
    }                                                                                                       \
  }
/* A masked load or store takes the last columns. */
#define POLYOP_WHOLE(columns, lanes) (columns)
#define POLYOP_COUNT columns - c
#elif defined(POLYOP_GCC)
/* Swapping the two blocks off the diagonal, of half the side and then of a quarter, transposes a square:
 * fewer instructions, where shuffles work within parts of 16 bytes. */
#define POLYOP_SQUARE(E, W, S)                                                   \
  POLYOP_FN void polyop_square_##E##v##W(E##v##W* r) {                           \
    POLYOP_UNROLL for (int half = POLYOP_LANES(W) / 2; half > 0; half /= 2) {    \
      S##v##W low = {0};                                                         \
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) low[l] =           \
          l & half ? l - half + POLYOP_LANES(W) : l;                             \
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) if (!(l & half)) { \
        E##v##W a = r[l], b = r[l + half];                                       \
        r[l] = __builtin_shuffle(a, b, low);                                     \
        r[l + half] = __builtin_shuffle(a, b, low + half);                       \
      }                                                                          \
    }                                                                            \
  }
#define POLYOP_WHOLE(columns, lanes) ((columns) - (lanes) + 1)
#define POLYOP_COUNT 1 << 30
#endif

#ifdef POLYOP_SQUARE
/* The rows of the next lanes are prefetched, because they are more streams than the processor's own
 * prefetcher follows. */
#define POLYOP_TRANSPOSE_BLOCK(E, W, S)                                                                      \
  POLYOP_SQUARE(E, W, S)                                                                                     \
  POLYOP_FN void polyop_transpose_block_##E##v##W(E* to, const E* from, long stride, long count) {           \
    E##v##W r[POLYOP_LANES(W)];                                                                              \
    POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) {                                                \
      polyop_fetch_later(from, (l + POLYOP_LANES(W)) * stride * (long)sizeof(E));                            \
      r[l] = count < POLYOP_LANES(W) ? load_n_##E##v##W(from + l * stride, count)                            \
                                     : load_##E##v##W(from + l * stride);                                    \
    }                                                                                                        \
    polyop_square_##E##v##W(r);                                                                              \
    POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) store_##E##v##W(to + l * POLYOP_LANES(W), r[l]); \
  }                                                                                                          \
  POLYOP_FN void polyop_untranspose_block_##E##v##W(E* to, long stride, const E* from, long count) {         \
    E##v##W r[POLYOP_LANES(W)];                                                                              \
    POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) r[l] =                                           \
        load_##E##v##W(from + l * POLYOP_LANES(W));                                                          \
    polyop_square_##E##v##W(r);                                                                              \
    POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(W); l++) {                                                \
      if (count < POLYOP_LANES(W))                                                                           \
        store_n_##E##v##W(to + l * stride, r[l], count);                                                     \
      else                                                                                                   \
        store_##E##v##W(to + l * stride, r[l]);                                                              \
    }                                                                                                        \
  }
#define POLYOP_WHOLE_BLOCKS(STATEMENT, rows, lanes) \
  if (rows >= lanes)                                \
    for (; c < POLYOP_WHOLE(columns, lanes); c += lanes) STATEMENT;
#else
#define POLYOP_TRANSPOSE_BLOCK(E, W, S)
#define POLYOP_WHOLE_BLOCKS(STATEMENT, rows, lanes)
#endif

/* What is left costs as much as the rows that there are, which may be few. */
#define POLYOP_ROW(E, W, S)                                                                                 \
  POLYOP_TRANSPOSE_BLOCK(E, W, S)                                                                           \
  POLYOP_CALLED void polyop_transpose_##E##v##W(E* to, const E* from, long stride, long columns,            \
                                                long rows) {                                                \
    long c = 0;                                                                                             \
    POLYOP_WHOLE_BLOCKS(                                                                                    \
        polyop_transpose_block_##E##v##W(to + c * POLYOP_LANES(W), from + c, stride, POLYOP_COUNT), rows,   \
        POLYOP_LANES(W))                                                                                    \
    for (long d = c; d < columns && rows < POLYOP_LANES(W); d++)                                            \
      store_##E##v##W(to + d * POLYOP_LANES(W), (E##v##W){0});                                              \
    for (long l = 0; l < POLYOP_LANES(W) && l < rows; l++)                                                  \
      for (long d = c; d < columns; d++) to[d * POLYOP_LANES(W) + l] = from[l * stride + d];                \
  }                                                                                                         \
  POLYOP_CALLED void polyop_untranspose_##E##v##W(E* to, long stride, const E* from, long columns,          \
                                                  long rows) {                                              \
    long c = 0;                                                                                             \
    POLYOP_WHOLE_BLOCKS(                                                                                    \
        polyop_untranspose_block_##E##v##W(to + c, stride, from + c * POLYOP_LANES(W), POLYOP_COUNT), rows, \
        POLYOP_LANES(W))                                                                                    \
    for (; c < columns; c++)                                                                                \
      for (long l = 0; l < POLYOP_LANES(W) && l < rows; l++)                                                \
        to[l * stride + c] = from[c * POLYOP_LANES(W) + l];                                                 \
  }
/* Narrow elements go through vectors of 16 bytes: squares of 8 or 16 of them, by interleaving. */
#ifdef POLYOP_GCC
#define POLYOP_SMALL_SQUARE(E)                                                                      \
  typedef E polyop_part_##E __attribute__((vector_size(16)));                                       \
  typedef E polyop_part_##E##_mem __attribute__((vector_size(16), aligned(1), may_alias));          \
  POLYOP_FN void polyop_transpose_part_##E(E* to, long lanes, const E* from, long stride) {         \
    enum { SIDE = 16 / sizeof(E) };                                                                 \
    polyop_part_##E r[SIDE], t[SIDE], low = {0};                                                    \
    POLYOP_UNROLL for (int l = 0; l < SIDE; l++) low[l] = l / 2 + l % 2 * SIDE;                     \
    POLYOP_UNROLL for (int l = 0; l < SIDE; l++) {                                                  \
      polyop_fetch_later(from, (l + lanes) * stride * (long)sizeof(E));                             \
      r[l] = *(const polyop_part_##E##_mem*)(from + l * stride);                                    \
    }                                                                                               \
    POLYOP_UNROLL for (int step = 1; step < SIDE; step *= 2) {                                      \
      POLYOP_UNROLL for (int l = 0; l < SIDE; l++) t[l] =                                           \
          __builtin_shuffle(r[l / 2], r[l / 2 + SIDE / 2], low + (E)(l % 2 * (SIDE / 2)));          \
      POLYOP_UNROLL for (int l = 0; l < SIDE; l++) r[l] = t[l];                                     \
    }                                                                                               \
    POLYOP_UNROLL for (int l = 0; l < SIDE; l++) * (polyop_part_##E##_mem*)(to + l * lanes) = r[l]; \
  }
#define POLYOP_SMALL_WHOLE_BLOCKS(E, lanes)                          \
  if (rows >= lanes && lanes % (16 / sizeof(E)) == 0)                \
    for (; c + 16 / (long)sizeof(E) <= columns; c += 16 / sizeof(E)) \
      for (long l = 0; l < lanes; l += 16 / sizeof(E))               \
        polyop_transpose_part_##E(to + c * lanes + l, lanes, from + l * stride + c, stride);
POLYOP_SMALL_SQUARE(i8)
POLYOP_SMALL_SQUARE(u8)
POLYOP_SMALL_SQUARE(i16)
POLYOP_SMALL_SQUARE(u16)
#else
#define POLYOP_SMALL_WHOLE_BLOCKS(E, lanes)
#endif
#define POLYOP_SMALL(E, W)                                                                       \
  POLYOP_CALLED void polyop_transpose_##E##v##W(E* to, const E* from, long stride, long columns, \
                                                long rows) {                                     \
    long c = 0;                                                                                  \
    POLYOP_SMALL_WHOLE_BLOCKS(E, POLYOP_LANES(W))                                                \
    for (long d = c; d < columns && rows < POLYOP_LANES(W); d++)                                 \
      store_##E##v##W(to + d * POLYOP_LANES(W), (E##v##W){0});                                   \
    for (long l = 0; l < POLYOP_LANES(W) && l < rows; l++)                                       \
      for (long d = c; d < columns; d++) to[d * POLYOP_LANES(W) + l] = from[l * stride + d];     \
  }
#define POLYOP_BYTES(W) POLYOP_SMALL(i8, W) POLYOP_SMALL(u8, W)
#define POLYOP_HALVES(W) POLYOP_BYTES(W) POLYOP_SMALL(i16, W) POLYOP_SMALL(u16, W)
#ifdef POLYOP_WANT_W1
POLYOP_BYTES(1)
#endif
#ifdef POLYOP_WANT_W2
POLYOP_HALVES(2)
#endif
#ifdef POLYOP_WANT_W4
POLYOP_HALVES(4)
POLYOP_ROW(i32, 4, i32)
POLYOP_ROW(u32, 4, i32)
POLYOP_ROW(f32, 4, i32)
#endif
#ifdef POLYOP_WANT_W8
POLYOP_HALVES(8)
POLYOP_ROW(i32, 8, i32)
POLYOP_ROW(u32, 8, i32)
POLYOP_ROW(f32, 8, i32)
POLYOP_ROW(i64, 8, i64)
POLYOP_ROW(u64, 8, i64)
POLYOP_ROW(f64, 8, i64)
#endif
#undef POLYOP_ROW

#endif
