/* Every function of polyop/loops/vector.h behind one symbol per type, for test_loop_math.py to compare with
 * NumPy. */
#include <stddef.h>
#include <sys/mman.h>
#define POLYOP_WANT_W1
#define POLYOP_WANT_W2
#define POLYOP_WANT_W4
#define POLYOP_WANT_W8
#define POLYOP_WANT_FLOORDIV
#define POLYOP_WANT_MOD
#include "polyop/loops/math.h"
#include "polyop/loops/vector.h"

int vector_bytes(void) { return POLYOP_VB; }

/* n bytes that end where memory ends: what touches more is killed. */
void* fenced(size_t n) {
  char* p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(p + 4096, 4096, PROT_NONE);
  return p + 4096 - n;
}
void unfence(char* p) { munmap((void*)((size_t)(p - 1) & ~(size_t)4095), 8192); }

enum {
  COPY,
  COPY_N,
  GATHER,
  GATHER_N,
  SCATTER,
  SCATTER_N,
  GATHERX,
  GATHERX_N,
  BCAST,
  IOTA,
  MAX,
  MIN,
  SEL,
  BOOL,
  FROM_BOOL,
  FLOORDIV,
  MOD,
  REDUCE
};

#define ROW(E, W, S, U)                                                                            \
  int run_##E##v##W(int op, const E* a, const E* b, E* out, long n, long stride, const i64* idx) { \
    E##v##W x, y;                                                                                  \
    switch (op) {                                                                                  \
      case COPY:                                                                                   \
        store_##E##v##W(out, load_##E##v##W(a));                                                   \
        return 0;                                                                                  \
      case COPY_N:                                                                                 \
        store_n_##E##v##W(out, load_n_##E##v##W(a, n), n);                                         \
        return 0;                                                                                  \
      case GATHER:                                                                                 \
        store_##E##v##W(out, gather_##E##v##W(a, stride));                                         \
        return 0;                                                                                  \
      case GATHER_N:                                                                               \
        store_##E##v##W(out, gather_n_##E##v##W(a, stride, n));                                    \
        return 0;                                                                                  \
      case SCATTER:                                                                                \
        scatter_##E##v##W(out, stride, load_##E##v##W(a));                                         \
        return 0;                                                                                  \
      case SCATTER_N:                                                                              \
        scatter_n_##E##v##W(out, stride, load_##E##v##W(a), n);                                    \
        return 0;                                                                                  \
      case GATHERX:                                                                                \
        store_##E##v##W(out, gatherx_##E##v##W(a, idx));                                           \
        return 0;                                                                                  \
      case GATHERX_N:                                                                              \
        store_##E##v##W(out, gatherx_n_##E##v##W(a, idx, n));                                      \
        return 0;                                                                                  \
      case BCAST:                                                                                  \
        store_##E##v##W(out, bcast_##E##v##W(a[0]));                                               \
        return 0;                                                                                  \
      case IOTA:                                                                                   \
        store_##E##v##W(out, iota_##E##v##W());                                                    \
        return 0;                                                                                  \
    }                                                                                              \
    x = load_##E##v##W(a), y = load_##E##v##W(b);                                                  \
    S##v##W m = (S##v##W)(x < y);                                                                  \
    switch (op) {                                                                                  \
      case MAX:                                                                                    \
        store_##E##v##W(out, max_##E##v##W(x, y));                                                 \
        break;                                                                                     \
      case MIN:                                                                                    \
        store_##E##v##W(out, min_##E##v##W(x, y));                                                 \
        break;                                                                                     \
      case SEL:                                                                                    \
        store_##E##v##W(out, sel_##E##v##W(m, x, y));                                              \
        break;                                                                                     \
      case BOOL:                                                                                   \
        store_u8v##W((u8*)out, tobool_##E##v##W(m));                                               \
        break;                                                                                     \
      case FROM_BOOL:                                                                              \
        store_##E##v##W(out, sel_##E##v##W(frombool_##E##v##W(tobool_##E##v##W(m) * 7), x, y));    \
        break;                                                                                     \
      case FLOORDIV:                                                                               \
        store_##E##v##W(out, floordiv_##E##v##W(x, y));                                            \
        break;                                                                                     \
      case MOD:                                                                                    \
        store_##E##v##W(out, mod_##E##v##W(x, y));                                                 \
        break;                                                                                     \
      case REDUCE:                                                                                 \
        out[0] = reduce_add_##E##v##W(x), out[1] = reduce_mul_##E##v##W(x);                        \
        out[2] = reduce_max_##E##v##W(x), out[3] = reduce_min_##E##v##W(x);                        \
    }                                                                                              \
    return any_##E##v##W(m);                                                                       \
  }
POLYOP_TYPES(ROW)
#undef ROW

enum { DIV1, MOD1, MAX1, MIN1 };
#define ROW(E)                                                      \
  void scalar_##E(int op, const E* a, const E* b, E* out, long n) { \
    for (long i = 0; i < n; i++)                                    \
      out[i] = op == DIV1   ? floordiv_##E(a[i], b[i])              \
               : op == MOD1 ? mod_##E(a[i], b[i])                   \
               : op == MAX1 ? max_##E(a[i], b[i])                   \
                            : min_##E(a[i], b[i]);                  \
  }
ROW(i8)
ROW(i16)
ROW(i32)
ROW(i64)
ROW(u8) ROW(u16) ROW(u32) ROW(u64) ROW(f32) ROW(f64)
#undef ROW

/* All words of f16 and bf16 to float; floats to words. n a multiple of 64. */
#define ROW(H)                                                                                             \
  void widen_##H(const u16* a, f32* x, f32* x4, f32* x8, long n) {                                         \
    for (long i = 0; i < n; i++) x[i] = cvt_##H##_f32(a[i]);                                               \
    for (long i = 0; i < n; i += POLYOP_LANES(4)) store_f32v4(x4 + i, cvt_##H##_f32v4(load_u16v4(a + i))); \
    for (long i = 0; i < n; i += POLYOP_LANES(8)) store_f32v8(x8 + i, cvt_##H##_f32v8(load_u16v8(a + i))); \
  }                                                                                                        \
  void narrow_##H(const f32* a, u16* x, u16* x4, u16* x8, long n) {                                        \
    for (long i = 0; i < n; i++) x[i] = cvt_f32_##H(a[i]);                                                 \
    for (long i = 0; i < n; i += POLYOP_LANES(4)) store_u16v4(x4 + i, cvt_f32_##H##v4(load_f32v4(a + i))); \
    for (long i = 0; i < n; i += POLYOP_LANES(8)) store_u16v8(x8 + i, cvt_f32_##H##v8(load_f32v8(a + i))); \
  }
    ROW(f16) ROW(bf16)
