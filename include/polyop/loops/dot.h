/* Sums of products of narrow numbers, several terms per instruction. A generated file that uses them includes
 * this after vector.h and transpose.h.
 *
 * The terms of a sum are taken in groups: four bytes or two halves are a word of 32 bits. A row has a start,
 * which is added to its sums, and then the words of its groups. A panel has for each group the words of all
 * columns. Products and sums of integers are exact modulo 2^32,
 * whichever instruction computes them.
 *
 *   KIND   terms of a row   terms of a column
 *   i8     signed bytes     unsigned bytes
 *   u8     unsigned bytes   signed bytes
 *   i16    signed halves    signed halves
 *   bf16   bfloat16         bfloat16; sums are float32
 *
 * Where the terms of both have the same sign, those of the columns are stored with their sign bit flipped:
 * that adds or subtracts 128. The row's start takes it back: polyop_dot_start_KIND.
 *
 *   polyop_dot_KIND_RxU(sums, rows, row_step, panel, panel_step, groups)
 *                      the sums of R rows and U vectors of columns
 *   polyop_dot_thin_KIND(sums, row, columns, column_step, number, groups, flip)
 *                      the sums of one row and columns that are in one piece each
 *   polyop_dot_start_KIND(words, groups)   what a row starts with where its columns are flipped
 *   polyop_join_bytes(T, a, b, c, d) polyop_join_halves(T, a, b)   words from the terms in vectors of 32 bits
 *   polyop_dot_panel(to, columns, from, step, groups, flip)        a panel from columns of words
 */
#ifndef POLYOP_LOOPS_DOT_H
#define POLYOP_LOOPS_DOT_H

#define polyop_join_bytes(T, a, b, c, d) \
  (((T)(a) & 255u) | ((T)(b) & 255u) << 8 | ((T)(c) & 255u) << 16 | (T)(d) << 24)
#define polyop_join_halves(T, a, b) (((T)(a) & 65535u) | (T)(b) << 16)

/* Prefetches so many bytes at p + ahead, of which each cache line is 64. */
POLYOP_FN void polyop_fetch_strip(const void* p, i64 ahead, i64 bytes) {
  for (i64 n = 0; n < bytes; n += 64) polyop_fetch(p, ahead + n);
}

typedef i16 polyop_halves __attribute__((vector_size(POLYOP_VB)));
typedef u16 polyop_words __attribute__((vector_size(POLYOP_VB)));

/* The terms of words as halves: of bytes every second one, from the first or from the second. */
POLYOP_FN i32v4 polyop_signed_bytes(i32v4 w, int odd) {
  return (i32v4)((odd ? (polyop_halves)w : (polyop_halves)w << 8) >> 8);
}
POLYOP_FN i32v4 polyop_unsigned_bytes(i32v4 w, int odd) {
  return odd ? (i32v4)((polyop_words)w >> 8) : (i32v4)((polyop_words)w & 255);
}
POLYOP_FN i32v4 polyop_whole_words(i32v4 w, int odd) { return (void)odd, w; }
POLYOP_FN i32v4 polyop_widened_halves(i32v4 w, int odd) {
  return (i32v4)(odd ? (u32v4)w & 0xffff0000u : (u32v4)w << 16);
}

/* Adds to sums the products of two pairs of halves. Assembly has the same text for all compilers, and none of
 * them adds in another order, for which registers would not suffice. */
POLYOP_FN i32v4 polyop_dot_part_i16(i32v4 s, i32v4 a, i32v4 b) {
#if defined(POLYOP_AVX512)
  i32v4 pair;
  __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+v"(s), "=&v"(pair) : "v"(a), "v"(b));
  return s;
#elif defined(__AVX2__)
  i32v4 pair;
  __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(s), "=&x"(pair) : "x"(a), "x"(b));
  return s;
#elif defined(__SSE2__) && !defined(__AVX__)
  __asm__("pmaddwd %2, %1\n\tpaddd %1, %0" : "+x"(s), "+x"(a) : "x"(b));
  return s;
#else
  const i32v4 low = ((i32v4)((u32v4)a << 16) >> 16) * ((i32v4)((u32v4)b << 16) >> 16);
  return (i32v4)((u32v4)s + (u32v4)low + (u32v4)((a >> 16) * (b >> 16)));
#endif
}
#define polyop_dot_part_i8 polyop_dot_part_i16
#define polyop_dot_part_u8 polyop_dot_part_i16
POLYOP_FN i32v4 polyop_dot_part_bf16(i32v4 s, i32v4 a, i32v4 b) {
  return (i32v4)((f32v4)s + (f32v4)a * (f32v4)b);
}

/* The same for whole words, in one instruction, and whether the processor has it: AVX512_VNNI and AVX512_BF16
 * beside AVX-512, AVX-VNNI beside AVX2. */
#if defined(__x86_64__) && (defined(POLYOP_AVX512) || defined(__AVX2__))
#ifdef POLYOP_AVX512
#define POLYOP_DOT_ASM(NAME, s, a, b) __asm__(NAME " %2, %1, %0" : "+v"(s) : "v"(a), "v"(b))
#else
#define POLYOP_DOT_ASM(NAME, s, a, b) __asm__("%{vex%} " NAME " %2, %1, %0" : "+x"(s) : "x"(a), "x"(b))
#endif
enum { POLYOP_ASKED = 1, POLYOP_VNNI = 2, POLYOP_BF16 = 4 };
POLYOP_CALLED int polyop_dot_features(void) {
  static int known = 0;
  int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (now) return now;
  u32 a[2] = {7, 7}, c[2] = {0, 1}, b, d;
  for (int page = 0; page < 2; page++)
    __asm__ volatile("cpuid" : "+a"(a[page]), "=b"(b), "+c"(c[page]), "=d"(d));
  (void)b, (void)d;
  if (a[0] < 1) a[1] = 0; /* there is no second page */
#ifdef POLYOP_AVX512
  now = POLYOP_ASKED | (c[0] >> 11 & 1) * POLYOP_VNNI | (a[1] >> 5 & 1) * POLYOP_BF16;
#else
  now = POLYOP_ASKED | (a[1] >> 4 & 1) * POLYOP_VNNI;
#endif
  __atomic_store_n(&known, now, __ATOMIC_RELAXED);
  return now;
}
#ifndef POLYOP_DOT_FEATURES /* a test leaves features out */
#define POLYOP_DOT_FEATURES (POLYOP_VNNI | POLYOP_BF16)
#endif
#define POLYOP_HAS(FEATURE) (polyop_dot_features() & POLYOP_DOT_FEATURES & (FEATURE))
#else
#define POLYOP_DOT_ASM(NAME, s, a, b) (void)0
#define POLYOP_HAS(FEATURE) 0
#endif
/* The first operand of vpdpbusd is unsigned. */
#define POLYOP_DOT_WORD(KIND, NAME, FIRST, SECOND)                           \
  POLYOP_FN i32v4 polyop_dot_word_##KIND(i32v4 s, i32v4 row, i32v4 column) { \
    POLYOP_DOT_ASM(NAME, s, FIRST, SECOND);                                  \
    return (void)row, (void)column, s;                                       \
  }
POLYOP_DOT_WORD(i8, "vpdpbusd", column, row)
POLYOP_DOT_WORD(u8, "vpdpbusd", row, column)
POLYOP_DOT_WORD(i16, "vpdpwssd", row, column)
#ifdef POLYOP_AVX512
POLYOP_DOT_WORD(bf16, "vdpbf16ps", row, column)
#else
#define polyop_dot_word_bf16(s, row, column) ((void)(row), (void)(column), s)
#endif

/* One row per kind: the element of a sum, the instruction's feature, the parts of a word without it, and the
 * functions that take a row's and a column's part. */
#define POLYOP_KIND_i8 i32, POLYOP_VNNI, 2, polyop_signed_bytes, polyop_unsigned_bytes
#define POLYOP_KIND_u8 i32, POLYOP_VNNI, 2, polyop_unsigned_bytes, polyop_signed_bytes
#define POLYOP_KIND_i16 i32, POLYOP_VNNI, 1, polyop_whole_words, polyop_whole_words
#define POLYOP_KIND_bf16 f32, POLYOP_BF16, 2, polyop_widened_halves, polyop_widened_halves

enum { POLYOP_GROUPS = 64 }; /* groups whose rows are split into halves at once */
#define POLYOP_DOT_TILE(KIND, R, U) POLYOP_DOT_TILE_OF(KIND, R, U, POLYOP_KIND_##KIND)
#define POLYOP_DOT_TILE_OF(...) POLYOP_DOT_TILE_WITH(__VA_ARGS__)
#define POLYOP_DOT_TILE_WITH(KIND, R, U, E, FEATURE, PARTS, ROW, COLUMN)                                    \
  POLYOP_CALLED void polyop_dot_##KIND##_##R##x##U(i32* sums, const i32* rows, int64_t row_step,            \
                                                   const i32* panel, int64_t panel_step, int64_t groups) {  \
    i32v4 s[R][U];                                                                                          \
    POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                             \
      POLYOP_UNROLL for (int u = 0; u < U; u++) s[r][u] = bcast_i32v4(rows[r * row_step]);                  \
    }                                                                                                       \
    rows++;                                                                                                 \
    if (POLYOP_HAS(FEATURE)) {                                                                              \
      for (int64_t g = 0; g < groups; g++, panel += panel_step) {                                           \
        i32v4 column[U];                                                                                    \
        POLYOP_UNROLL for (int u = 0; u < U; u++) column[u] = load_i32v4(panel + u * POLYOP_LANES(4));      \
        POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                         \
          const i32v4 row = bcast_i32v4(rows[r * row_step + g]);                                            \
          POLYOP_UNROLL for (int u = 0; u < U; u++) s[r][u] =                                               \
              polyop_dot_word_##KIND(s[r][u], row, column[u]);                                              \
        }                                                                                                   \
      }                                                                                                     \
    } else {                                                                                                \
      i32 t[PARTS][R][POLYOP_GROUPS] __attribute__((aligned(64)));                                          \
      for (int64_t from = 0; from < groups; from += POLYOP_GROUPS) {                                        \
        const int64_t n = groups - from < POLYOP_GROUPS ? groups - from : POLYOP_GROUPS;                    \
        for (int r = 0; r < R; r++)                                                                         \
          for (int64_t g = 0; g < n; g += POLYOP_LANES(4)) {                                                \
            const i32v4 w = load_n_i32v4(rows + r * row_step + from + g, n - g);                            \
            POLYOP_UNROLL for (int p = 0; p < PARTS; p++) store_i32v4(&t[p][r][g], ROW(w, p));              \
          }                                                                                                 \
        for (int64_t g = 0; g < n; g++, panel += panel_step) {                                              \
          POLYOP_UNROLL for (int p = 0; p < PARTS; p++) {                                                   \
            i32v4 column[U];                                                                                \
            POLYOP_UNROLL for (int u = 0; u < U; u++) column[u] =                                           \
                COLUMN(load_i32v4(panel + u * POLYOP_LANES(4)), p);                                         \
            POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                     \
              const i32v4 row = bcast_i32v4(t[p][r][g]);                                                    \
              POLYOP_UNROLL for (int u = 0; u < U; u++) s[r][u] =                                           \
                  polyop_dot_part_##KIND(s[r][u], row, column[u]);                                          \
            }                                                                                               \
          }                                                                                                 \
        }                                                                                                   \
      }                                                                                                     \
    }                                                                                                       \
    POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                             \
      POLYOP_UNROLL for (int u = 0; u < U; u++) store_i32v4(sums + (r * U + u) * POLYOP_LANES(4), s[r][u]); \
    }                                                                                                       \
  }
/* The tiles that targets have, whole and at their edges. What a kernel does not call costs no time. */
#define POLYOP_DOT_TILES(KIND, X) \
  X(KIND, 6, 4)                   \
  X(KIND, 6, 2) X(KIND, 6, 1) X(KIND, 4, 2) X(KIND, 4, 1) X(KIND, 1, 4) X(KIND, 1, 2) X(KIND, 1, 1)
POLYOP_DOT_TILES(i8, POLYOP_DOT_TILE)
POLYOP_DOT_TILES(u8, POLYOP_DOT_TILE)
POLYOP_DOT_TILES(i16, POLYOP_DOT_TILE)
POLYOP_DOT_TILES(bf16, POLYOP_DOT_TILE)

/* The sums of one row, along columns of words where each is in one piece: `columns` is a multiple of 4. */
#define POLYOP_DOT_THIN(KIND) POLYOP_DOT_THIN_OF(KIND, POLYOP_KIND_##KIND)
#define POLYOP_DOT_THIN_OF(...) POLYOP_DOT_THIN_WITH(__VA_ARGS__)
#define POLYOP_DOT_THIN_WITH(KIND, E, FEATURE, PARTS, ROW, COLUMN)                                    \
  POLYOP_CALLED void polyop_dot_thin_##KIND(i32* sums, const i32* row, const i32* from, int64_t step, \
                                            int64_t columns, int64_t groups, i32 flip) {              \
    const int whole = POLYOP_HAS(FEATURE) != 0;                                                       \
    const i32* words = row + 1;                                                                       \
    for (int64_t c = 0; c < columns; c += 4, from += 4 * step) {                                      \
      i32v4 s[4] = {{0}};                                                                             \
      for (int64_t g = 0; g < groups; g += POLYOP_LANES(4)) {                                         \
        const i32v4 w = load_n_i32v4(words + g, groups - g);                                          \
        POLYOP_UNROLL for (int n = 0; n < 4; n++) {                                                   \
          const i32v4 v = load_n_i32v4(from + n * step + g, groups - g) ^ flip;                       \
          if (whole)                                                                                  \
            s[n] = polyop_dot_word_##KIND(s[n], w, v);                                                \
          else                                                                                        \
            POLYOP_UNROLL for (int p = 0; p < PARTS; p++) s[n] =                                      \
                polyop_dot_part_##KIND(s[n], ROW(w, p), COLUMN(v, p));                                \
        }                                                                                             \
      }                                                                                               \
      POLYOP_UNROLL for (int n = 0; n < 4; n++) {                                                     \
        const E total = reduce_add_##E##v4((E##v4)s[n]);                                              \
        __builtin_memcpy(&sums[c + n], &total, 4);                                                    \
        sums[c + n] = (i32)((u32)sums[c + n] + (u32)row[0]); /* 0 in sums of floats */                \
      }                                                                                               \
    }                                                                                                 \
  }
POLYOP_DOT_THIN(i8)
POLYOP_DOT_THIN(u8)
POLYOP_DOT_THIN(i16)
POLYOP_DOT_THIN(bf16)

#define POLYOP_DOT_START(KIND, V, SIGN)                                         \
  POLYOP_CALLED i32 polyop_dot_start_##KIND(const i32* words, int64_t groups) { \
    u32v4 sum = {0};                                                            \
    for (int64_t g = 0; g < groups; g += POLYOP_LANES(4)) {                     \
      const u32v4 w = (u32v4)load_n_i32v4(words + g, groups - g);               \
      sum += (u32v4)((V)(w << 24) >> 24) + (u32v4)((V)(w << 16) >> 24);         \
      sum += (u32v4)((V)(w << 8) >> 24) + (u32v4)((V)w >> 24);                  \
    }                                                                           \
    return (i32)(SIGN 128u * reduce_add_u32v4(sum));                            \
  }
POLYOP_DOT_START(i8, i32v4, -)
POLYOP_DOT_START(u8, u32v4, +)

/* to[g * columns + c] = from[c * step + g] ^ flip; reads and writes whole vectors of groups. */
POLYOP_CALLED void polyop_dot_panel(i32* to, int64_t columns, const i32* from, int64_t step, int64_t groups,
                                    i32 flip) {
  for (int64_t g = 0; g < groups; g += POLYOP_LANES(4))
    for (int64_t c = 0; c < columns; c += POLYOP_LANES(4)) {
      i32v4 r[POLYOP_LANES(4)];
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(4); l++) r[l] = load_i32v4(from + (c + l) * step + g);
#ifdef POLYOP_SQUARE
      polyop_square_i32v4(r);
#else
      i32v4 t[POLYOP_LANES(4)];
      for (int l = 0; l < POLYOP_LANES(4); l++)
        for (int m = 0; m < POLYOP_LANES(4); m++) t[l][m] = r[m][l];
      __builtin_memcpy(r, t, sizeof(r));
#endif
      POLYOP_UNROLL for (int l = 0; l < POLYOP_LANES(4); l++)
          store_i32v4(to + (g + l) * columns + c, r[l] ^ flip);
    }
}

#endif
