/* column_sum: the loop kernel column_sum of small.py, for avx512 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
#pragma GCC target("prefer-vector-width=512")
#endif
#define POLYOP_WANT_W4
#include "polyop/loops/vector.h"
#include "polyop/loops/run.h"

struct kernel {
  struct polyop_failure failure;
  const f32* x;
  f32* y;
  int64_t x_n0;
  int64_t x_n1;
  int64_t y_n0;
  void* own_y;
};

static void part0(void* context, int64_t begin, int64_t end, int thread) {
  struct kernel* const k = context;
  const f32* const restrict x = k->x;
  const int64_t x_n0 = k->x_n0;
  const int64_t x_n1 = k->x_n1;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    int64_t j = begin;
    const int64_t j_end = end;
    for (; j + POLYOP_LANES(4) <= j_end;) {
      const int64_t j_check = polyop_next_check(j, j_end);
      if (polyop_stops(k, j_check - j)) break;
      for (; j + POLYOP_LANES(4) <= j_check; j += POLYOP_LANES(4)) {
        /* 66: y[j] = 0 */
        store_f32v4(&y[j], bcast_f32v4(0.0f));
      }
    }
    if (j < j_end) {
      /* 66: y[j] = 0 */
      store_n_f32v4(&y[j], bcast_f32v4(0.0f), (j_end - j));
    }
  }
  (void)thread, (void)polyop_fuel;
}

static void part1(void* context, int64_t begin, int64_t end, int thread) {
  struct kernel* const k = context;
  const f32* const restrict x = k->x;
  const int64_t x_n0 = k->x_n0;
  const int64_t x_n1 = k->x_n1;
  const int64_t y_n0 = k->y_n0;
  f32* const restrict y = thread ? (f32*)k->own_y + (thread - 1) * (y_n0) : k->y;
  if (thread) for (int64_t e = 0; e < (y_n0); ++e) y[e] = 0;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    if (polyop_stops(k, 8 * (1 + x_n1))) break;
    {
      int64_t j_1__ = 0;
      const int64_t j_1___end = x_n1;
      for (; j_1__ + POLYOP_LANES(4) <= j_1___end; j_1__ += POLYOP_LANES(4)) {
        polyop_fetch_later(&x[((i + 7)) * x_n1 + j_1__], 2048);
        /* 69: y[j] += x[i, j] */
        store_f32v4(&y[j_1__], ((((((((load_f32v4(&y[j_1__]) + load_f32v4(&x[((i + 0)) * x_n1 + j_1__])) + load_f32v4(&x[((i + 1)) * x_n1 + j_1__])) + load_f32v4(&x[((i + 2)) * x_n1 + j_1__])) + load_f32v4(&x[((i + 3)) * x_n1 + j_1__])) + load_f32v4(&x[((i + 4)) * x_n1 + j_1__])) + load_f32v4(&x[((i + 5)) * x_n1 + j_1__])) + load_f32v4(&x[((i + 6)) * x_n1 + j_1__])) + load_f32v4(&x[((i + 7)) * x_n1 + j_1__])));
      }
      if (j_1__ < j_1___end) {
        /* 69: y[j] += x[i, j] */
        store_n_f32v4(&y[j_1__], ((((((((load_n_f32v4(&y[j_1__], (j_1___end - j_1__)) + load_n_f32v4(&x[((i + 0)) * x_n1 + j_1__], (j_1___end - j_1__))) + load_n_f32v4(&x[((i + 1)) * x_n1 + j_1__], (j_1___end - j_1__))) + load_n_f32v4(&x[((i + 2)) * x_n1 + j_1__], (j_1___end - j_1__))) + load_n_f32v4(&x[((i + 3)) * x_n1 + j_1__], (j_1___end - j_1__))) + load_n_f32v4(&x[((i + 4)) * x_n1 + j_1__], (j_1___end - j_1__))) + load_n_f32v4(&x[((i + 5)) * x_n1 + j_1__], (j_1___end - j_1__))) + load_n_f32v4(&x[((i + 6)) * x_n1 + j_1__], (j_1___end - j_1__))) + load_n_f32v4(&x[((i + 7)) * x_n1 + j_1__], (j_1___end - j_1__))), (j_1___end - j_1__));
      }
    }
  }
  for (const int64_t i_end = end; i < i_end; ++i) {
    if (polyop_stops(k, 1 + x_n1)) break;
    {
      int64_t j_1 = 0;
      const int64_t j_1_end = x_n1;
      for (; j_1 + POLYOP_LANES(4) <= j_1_end; j_1 += POLYOP_LANES(4)) {
        polyop_fetch_later(&x[(i) * x_n1 + j_1], 2048);
        /* 69: y[j] += x[i, j] */
        store_f32v4(&y[j_1], load_f32v4(&y[j_1]) + load_f32v4(&x[(i) * x_n1 + j_1]));
      }
      if (j_1 < j_1_end) {
        /* 69: y[j] += x[i, j] */
        store_n_f32v4(&y[j_1], load_n_f32v4(&y[j_1], (j_1_end - j_1)) + load_n_f32v4(&x[(i) * x_n1 + j_1], (j_1_end - j_1)), (j_1_end - j_1));
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
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t lo = 0, hi = x_n1;
    const int parts = polyop_parts((double)(hi - lo) * 1.0, hi - lo);
    const int used = polyop_run(part0, k, lo, hi, polyop_lanes(hi - lo, parts), parts);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  {
    const int64_t lo = 0, hi = x_n0;
    const int parts = polyop_parts((double)(hi - lo) * ((f64)((x_n1 - 0)) * 2.0), hi - lo);
    k->own_y = polyop_scratch((parts - 1) * (y_n0) * sizeof(f32));
    if (!k->own_y) { polyop_out_of_memory(k); return; }
    const int used = polyop_run(part1, k, lo, hi, 0, parts);
    for (int p = 1; p < used; ++p) {
      for (int64_t e = 0; e < (y_n0); ++e) y[e] = y[e] + ((f32*)k->own_y)[(p - 1) * (y_n0) + e];
    }
    polyop_release(k->own_y);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{0, 0, 0}};
int column_sum(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims; (void)dtypes; (void)stream; (void)shapes;
  if (nparam < 2) return polyop_fail(extra, "too few tensors");
  struct kernel self = {0}, *const k = &self;
  self.x = params[0];
  self.y = params[1];
  const int64_t x_n0 = self.x_n0 = shapes[0][0];
  const int64_t x_n1 = self.x_n1 = shapes[0][1];
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n1);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
