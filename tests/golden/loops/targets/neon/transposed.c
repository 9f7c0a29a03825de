/* transposed: the loop kernel transposed of small.py, for neon */
#define POLYOP_WANT_W4
#include "polyop/loops/vector.h"
#include "polyop/loops/transpose.h"
#include "polyop/loops/run.h"

struct kernel {
  struct polyop_failure failure;
  const f32* x;
  f32* y;
  int64_t x_n0;
  int64_t x_n1;
  int64_t y_n0;
  int64_t y_n1;
};

static void part0(void* context, int64_t begin, int64_t end, int thread) {
  struct kernel* const k = context;
  const f32* const restrict x = k->x;
  const int64_t x_n0 = k->x_n0;
  const int64_t x_n1 = k->x_n1;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  const int64_t y_n1 = k->y_n1;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  int64_t j_outer = begin;
  for (const int64_t j_outer_end = end; j_outer < j_outer_end; ++j_outer) {
    if (polyop_stops(k, 1)) break;
    {
      int64_t i = 0;
      const int64_t i_end = x_n0;
      for (; i < i_end; i += POLYOP_LANES(4)) {
        const int64_t i_part = min_i64(POLYOP_LANES(4), i_end - i);
        {
          const int64_t j_lo = (64 * j_outer);
          f32 strip0_panel[(16 + POLYOP_LANES(4)) * POLYOP_LANES(4)] __attribute__((aligned(64)));
          int64_t strip0_lo = 0;
          int64_t j_n0 = 0;
          for (int64_t j = j_lo, j_end = polyop_counted(j, min_i64(((64 * j_outer) + 64), x_n1), &polyop_fuel); j < j_end; ++j) {
            if ((j - j_lo) % 16 == 0) {
              j_n0 = min(16, j_end - j);
              strip0_lo = j;
              polyop_transpose_f32v4(strip0_panel, &x[(i) * x_n1 + strip0_lo], 1 * x_n1, j_n0 + 0, i_part);
            }
            /* 323: y[j, i] = x[i, j] */
            store_n_f32v4(&y[(j) * y_n1 + i], load_f32v4(&strip0_panel[(j - strip0_lo) * POLYOP_LANES(4)]), i_part);
          }
        }
      }
    }
  }
  (void)thread, (void)polyop_fuel;
}

static void run(struct kernel* k) {
  const f32* const restrict x = k->x;
  const int64_t x_n0 = k->x_n0;
  const int64_t x_n1 = k->x_n1;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  const int64_t y_n1 = k->y_n1;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t lo = 0, hi = floordiv_i64(x_n1 + 64 - 1, 64);
    const int parts = polyop_parts((double)(hi - lo) * ((f64)((x_n0 - 0)) * ((f64)((min_i64(((64 * floordiv_i64((0 + floordiv_i64(x_n1 + 64 - 1, 64)), 2)) + 64), x_n1) - (64 * floordiv_i64((0 + floordiv_i64(x_n1 + 64 - 1, 64)), 2)))) * 2.0)), hi - lo);
    const int used = polyop_deal(part0, k, lo, hi, 2 * POLYOP_PIECES, parts);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{0, 0, 0}};
int transposed(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims; (void)dtypes; (void)stream; (void)shapes;
  if (nparam < 2) return polyop_fail(extra, "too few tensors");
  struct kernel self = {0}, *const k = &self;
  self.x = params[0];
  self.y = params[1];
  const int64_t x_n0 = self.x_n0 = shapes[0][0];
  const int64_t x_n1 = self.x_n1 = shapes[0][1];
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n1);
  const int64_t y_n1 = self.y_n1 = max_i64(0, x_n0);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
