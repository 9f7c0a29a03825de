/* softmax: the loop kernel softmax of small.py, for neon */
#define POLYOP_WANT_EXP
#define POLYOP_WANT_W4
#include "polyop/loops/vector.h"
#include "polyop/loops/math.h"
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
  int64_t i = begin;
  for (const int64_t i_end = end; i < i_end; ++i) {
    if (polyop_stops(k, 1 + x_n1 + x_n1 + x_n1)) break;
    f32 top = 0;
    f32 total = 0;
    /* 18: top = x[i, 0] */
    top = x[(i) * x_n1 + 0];
    /* 19: total = float32(0) */
    total = 0.0f;
    {
      int64_t j = 0;
      const int64_t j_end = x_n1;
      f32v4 top_v0 = bcast_f32v4(-__builtin_inf());
      f32v4 top_v1 = bcast_f32v4(-__builtin_inf());
      f32v4 top_v2 = bcast_f32v4(-__builtin_inf());
      f32v4 top_v3 = bcast_f32v4(-__builtin_inf());
      for (; j + 4 * POLYOP_LANES(4) <= j_end; j += 4 * POLYOP_LANES(4)) {
        polyop_fetch_later(&x[(i) * x_n1 + j], 2048);
        polyop_fetch_later(&x[(i) * x_n1 + (j + 1 * POLYOP_LANES(4))], 2048);
        polyop_fetch_later(&x[(i) * x_n1 + (j + 2 * POLYOP_LANES(4))], 2048);
        polyop_fetch_later(&x[(i) * x_n1 + (j + 3 * POLYOP_LANES(4))], 2048);
        /* 21: top = max(top, x[i, j]) */
        top_v0 = max_f32v4(top_v0, load_f32v4(&x[(i) * x_n1 + j]));
        top_v1 = max_f32v4(top_v1, load_f32v4(&x[(i) * x_n1 + (j + 1 * POLYOP_LANES(4))]));
        top_v2 = max_f32v4(top_v2, load_f32v4(&x[(i) * x_n1 + (j + 2 * POLYOP_LANES(4))]));
        top_v3 = max_f32v4(top_v3, load_f32v4(&x[(i) * x_n1 + (j + 3 * POLYOP_LANES(4))]));
      }
      for (; j + POLYOP_LANES(4) <= j_end; j += POLYOP_LANES(4)) {
        /* 21: top = max(top, x[i, j]) */
        top_v0 = max_f32v4(top_v0, load_f32v4(&x[(i) * x_n1 + j]));
      }
      if (j < j_end) {
        /* 21: top = max(top, x[i, j]) */
        top_v0 = max_f32v4(top_v0, sel_f32v4((iota_i32v4() < bcast_i32v4((i32)((j_end - j) > 64 ? 64 : (j_end - j)))), load_n_f32v4(&x[(i) * x_n1 + j], (j_end - j)), bcast_f32v4(-__builtin_inf())));
      }
      top = max_f32(top, reduce_max_f32v4(max_f32v4(max_f32v4(max_f32v4(top_v0, top_v1), top_v2), top_v3)));
    }
    {
      int64_t j_1 = 0;
      const int64_t j_1_end = x_n1;
      f32v4 total_v0 = bcast_f32v4(0);
      for (; j_1 + POLYOP_LANES(4) <= j_1_end; j_1 += POLYOP_LANES(4)) {
        polyop_fetch(&y[(i) * y_n1 + j_1], 2048);
        polyop_fetch_later(x, (((i + 1)) * x_n1 + j_1) * (int64_t)sizeof(f32));
        /* 23: y[i, j] = exp(x[i, j] - top) */
        store_f32v4(&y[(i) * y_n1 + j_1], pl_exp_f32v4((load_f32v4(&x[(i) * x_n1 + j_1]) - bcast_f32v4(top))));
        /* 24: total += y[i, j] */
        total_v0 = total_v0 + load_f32v4(&y[(i) * y_n1 + j_1]);
      }
      if (j_1 < j_1_end) {
        /* 23: y[i, j] = exp(x[i, j] - top) */
        store_n_f32v4(&y[(i) * y_n1 + j_1], pl_exp_f32v4((load_n_f32v4(&x[(i) * x_n1 + j_1], (j_1_end - j_1)) - bcast_f32v4(top))), (j_1_end - j_1));
        /* 24: total += y[i, j] */
        total_v0 = total_v0 + sel_f32v4((iota_i32v4() < bcast_i32v4((i32)((j_1_end - j_1) > 64 ? 64 : (j_1_end - j_1)))), load_n_f32v4(&y[(i) * y_n1 + j_1], (j_1_end - j_1)), bcast_f32v4(0));
      }
      total = total + reduce_add_f32v4(total_v0);
    }
    {
      int64_t j_2 = 0;
      const int64_t j_2_end = x_n1;
      for (; j_2 + POLYOP_LANES(4) <= j_2_end; j_2 += POLYOP_LANES(4)) {
        polyop_fetch_later(&y[(i) * y_n1 + j_2], 2048);
        /* 26: y[i, j] = y[i, j] / total */
        store_f32v4(&y[(i) * y_n1 + j_2], (load_f32v4(&y[(i) * y_n1 + j_2]) / bcast_f32v4(total)));
      }
      if (j_2 < j_2_end) {
        /* 26: y[i, j] = y[i, j] / total */
        store_n_f32v4(&y[(i) * y_n1 + j_2], (load_n_f32v4(&y[(i) * y_n1 + j_2], (j_2_end - j_2)) / bcast_f32v4(total)), (j_2_end - j_2));
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
    const int64_t lo = 0, hi = x_n0;
    const int parts = polyop_parts((double)(hi - lo) * (((1.0 + ((f64)((x_n1 - 0)) * 1.0)) + ((f64)((x_n1 - 0)) * 11.5)) + ((f64)((x_n1 - 0)) * 10.0)), hi - lo);
    const int used = polyop_run(part0, k, lo, hi, polyop_piece(hi - lo, parts), parts);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{0, 0, 0}};
int softmax(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims; (void)dtypes; (void)stream; (void)shapes;
  if (nparam < 2) return polyop_fail(extra, "too few tensors");
  struct kernel self = {0}, *const k = &self;
  self.x = params[0];
  self.y = params[1];
  const int64_t x_n0 = self.x_n0 = shapes[0][0];
  const int64_t x_n1 = self.x_n1 = shapes[0][1];
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n0);
  const int64_t y_n1 = self.y_n1 = max_i64(0, x_n1);
  if (((x_n0 >= 1) && (x_n1 == 0))) return polyop_misfit(extra, (struct polyop_place){18, 1, "x"}, x_n1);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
