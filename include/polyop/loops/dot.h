/* Sums of products of narrow integers, several terms per instruction. A generated file that uses them includes
 * this after vector.h and transpose.h.
 *
 * The terms of a sum are taken in groups: four bytes or two halves are a word of 32 bits. A row has a start,
 * which is added to its sums, and then the words of its groups. A panel has for each group the words of all
 * columns. Products and sums are exact modulo 2^32, whichever instruction computes them.
 *
 *   KIND   terms of a row   terms of a column
 *   i8     signed bytes     unsigned bytes
 *   u8     unsigned bytes   signed bytes
 *   i16    signed halves    signed halves
 *
 * Where the terms of both have the same sign, those of the columns are stored with their sign bit flipped:
 * that adds or subtracts 128. The row's start takes it back: polyop_dot_start_KIND.
 *
 *   POLYOP_DOT_TILE(KIND, R, U)   defines the sums of R rows and U vectors of columns:
 *   polyop_dot_KIND_RxU(sums, rows, row_step, panel, panel_step, groups)
 *   polyop_join_bytes(T, a, b, c, d) polyop_join_halves(T, a, b)   words from the terms in vectors of 32 bits
 *   polyop_dot_panel(to, columns, from, step, groups, flip)        a panel from columns of words
 */
#ifndef POLYOP_LOOPS_DOT_H
#define POLYOP_LOOPS_DOT_H

#define polyop_join_bytes(T, a, b, c, d) \
  (((T)(a)&255u) | ((T)(b)&255u) << 8 | ((T)(c)&255u) << 16 | (T)(d) << 24)
#define polyop_join_halves(T, a, b) (((T)(a)&65535u) | (T)(b) << 16)

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

/* The sum of the products of two pairs of halves. Assembly has the same text for all compilers. */
POLYOP_FN i32v4 polyop_dot_halves(i32v4 a, i32v4 b) {
#if defined(POLYOP_AVX512)
  __asm__("vpmaddwd %1, %0, %0" : "+v"(a) : "v"(b));
  return a;
#elif defined(__AVX2__)
  __asm__("vpmaddwd %1, %0, %0" : "+x"(a) : "x"(b));
  return a;
#elif defined(__SSE2__) && !defined(__AVX__)
  __asm__("pmaddwd %1, %0" : "+x"(a) : "x"(b));
  return a;
#else
  const i32v4 low = ((i32v4)((u32v4)a << 16) >> 16) * ((i32v4)((u32v4)b << 16) >> 16);
  return (i32v4)((u32v4)low + (u32v4)((a >> 16) * (b >> 16)));
#endif
}

/* Whether the processor adds the products of a whole word to a sum in one instruction: AVX512_VNNI beside
 * AVX-512, AVX-VNNI beside AVX2. */
#if defined(__x86_64__) && (defined(POLYOP_AVX512) || defined(__AVX2__)) && !defined(POLYOP_NO_VNNI)
#define POLYOP_VNNI 1
#ifdef POLYOP_AVX512
#define POLYOP_VNNI_ASM(NAME, s, a, b) __asm__(NAME " %2, %1, %0" : "+v"(s) : "v"(a), "v"(b))
#else
#define POLYOP_VNNI_ASM(NAME, s, a, b) __asm__("%{vex%} " NAME " %2, %1, %0" : "+x"(s) : "x"(a), "x"(b))
#endif
POLYOP_FN u32 polyop_cpuid_7(u32 page, int in_a) {
  u32 a = 7, b = 0, c = page, d = 0;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  (void)b, (void)d;
  return in_a ? a : c;
}
POLYOP_CALLED int polyop_has_vnni(void) {
  static int known = 0; /* 0: not asked yet; 1: no; 2: yes */
  int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (now == 0) {
#ifdef POLYOP_AVX512
    now = 1 + (polyop_cpuid_7(0, 0) >> 11 & 1);
#else
    now = 1 + (polyop_cpuid_7(0, 1) >= 1 && (polyop_cpuid_7(1, 1) >> 4 & 1));
#endif
    __atomic_store_n(&known, now, __ATOMIC_RELAXED);
  }
  return now == 2;
}
#else
#define POLYOP_VNNI_ASM(NAME, s, a, b) (void)0
#define polyop_has_vnni() 0
#endif
POLYOP_FN i32v4 polyop_dot_word_i8(i32v4 s, i32v4 row, i32v4 column) {
  POLYOP_VNNI_ASM("vpdpbusd", s, column, row); /* the first operand is unsigned */
  return (void)row, (void)column, s;
}
POLYOP_FN i32v4 polyop_dot_word_u8(i32v4 s, i32v4 row, i32v4 column) {
  POLYOP_VNNI_ASM("vpdpbusd", s, row, column);
  return (void)row, (void)column, s;
}
POLYOP_FN i32v4 polyop_dot_word_i16(i32v4 s, i32v4 row, i32v4 column) {
  POLYOP_VNNI_ASM("vpdpwssd", s, row, column);
  return (void)row, (void)column, s;
}

/* One row per kind: its parts (the halves that a word's terms make), and the functions that take a row's and
 * a column's part. */
#define POLYOP_PARTS_i8 2, polyop_signed_bytes, polyop_unsigned_bytes
#define POLYOP_PARTS_u8 2, polyop_unsigned_bytes, polyop_signed_bytes
#define POLYOP_PARTS_i16 1, polyop_whole_words, polyop_whole_words

enum { POLYOP_GROUPS = 64 }; /* groups whose rows are split into halves at once */
#define POLYOP_DOT_TILE(KIND, R, U) POLYOP_DOT_TILE_OF(KIND, R, U, POLYOP_PARTS_##KIND)
#define POLYOP_DOT_TILE_OF(...) POLYOP_DOT_TILE_WITH(__VA_ARGS__)
#define POLYOP_DOT_TILE_WITH(KIND, R, U, PARTS, ROW, COLUMN)                                                  \
  POLYOP_CALLED void polyop_dot_##KIND##_##R##x##U(i32* sums, const i32* rows, int64_t row_step,              \
                                                   const i32* panel, int64_t panel_step, int64_t groups) {    \
    i32v4 s[R][U];                                                                                            \
    POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                               \
      POLYOP_UNROLL for (int u = 0; u < U; u++) s[r][u] = bcast_i32v4(rows[r * row_step]);                    \
    }                                                                                                         \
    rows++;                                                                                                   \
    if (polyop_has_vnni()) {                                                                                  \
      for (int64_t g = 0; g < groups; g++, panel += panel_step) {                                             \
        i32v4 column[U];                                                                                      \
        POLYOP_UNROLL for (int u = 0; u < U; u++) column[u] = load_i32v4(panel + u * POLYOP_LANES(4));        \
        POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                           \
          const i32v4 row = bcast_i32v4(rows[r * row_step + g]);                                              \
          POLYOP_UNROLL for (int u = 0; u < U; u++) s[r][u] =                                                 \
              polyop_dot_word_##KIND(s[r][u], row, column[u]);                                                \
        }                                                                                                     \
      }                                                                                                       \
    } else {                                                                                                  \
      i32 t[PARTS][R][POLYOP_GROUPS] __attribute__((aligned(64)));                                            \
      for (int64_t from = 0; from < groups; from += POLYOP_GROUPS) {                                          \
        const int64_t n = groups - from < POLYOP_GROUPS ? groups - from : POLYOP_GROUPS;                      \
        for (int r = 0; r < R; r++)                                                                           \
          for (int64_t g = 0; g < n; g += POLYOP_LANES(4)) {                                                  \
            const i32v4 w = load_n_i32v4(rows + r * row_step + from + g, n - g);                              \
            POLYOP_UNROLL for (int p = 0; p < PARTS; p++) store_i32v4(&t[p][r][g], ROW(w, p));                \
          }                                                                                                   \
        for (int64_t g = 0; g < n; g++, panel += panel_step) {                                                \
          POLYOP_UNROLL for (int p = 0; p < PARTS; p++) {                                                     \
            i32v4 column[U];                                                                                  \
            POLYOP_UNROLL for (int u = 0; u < U; u++) column[u] =                                             \
                COLUMN(load_i32v4(panel + u * POLYOP_LANES(4)), p);                                           \
            POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                       \
              const i32v4 row = bcast_i32v4(t[p][r][g]);                                                      \
              POLYOP_UNROLL for (int u = 0; u < U; u++) s[r][u] =                                             \
                  (i32v4)((u32v4)s[r][u] + (u32v4)polyop_dot_halves(row, column[u]));                         \
            }                                                                                                 \
          }                                                                                                   \
        }                                                                                                     \
      }                                                                                                       \
    }                                                                                                         \
    POLYOP_UNROLL for (int r = 0; r < R; r++) {                                                               \
      POLYOP_UNROLL for (int u = 0; u < U; u++)                                                               \
          store_i32v4(sums + (r * U + u) * POLYOP_LANES(4), s[r][u]);                                         \
    }                                                                                                         \
  }

/* What a row with terms in `groups` words starts with where its columns are flipped. */
#define POLYOP_DOT_START(KIND, V, SIGN)                                                       \
  POLYOP_CALLED i32 polyop_dot_start_##KIND(const i32* words, int64_t groups) {               \
    u32v4 sum = {0};                                                                          \
    for (int64_t g = 0; g < groups; g += POLYOP_LANES(4)) {                                   \
      const u32v4 w = (u32v4)load_n_i32v4(words + g, groups - g);                             \
      sum += (u32v4)((V)(w << 24) >> 24) + (u32v4)((V)(w << 16) >> 24);                       \
      sum += (u32v4)((V)(w << 8) >> 24) + (u32v4)((V)w >> 24);                                \
    }                                                                                         \
    return (i32)(SIGN 128u * reduce_add_u32v4(sum));                                          \
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
