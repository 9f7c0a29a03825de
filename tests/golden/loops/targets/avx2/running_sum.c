/* running_sum: the loop kernel running_sum of small.py, for avx2 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#endif
#define POLYOP_WANT_W1
#include "polyop/loops/vector.h"
#include "polyop/loops/run.h"

struct kernel {
  struct polyop_failure failure;
  const f32* x;
  f32* y;
  int64_t x_n0;
  int64_t y_n0;
};

static void run(struct kernel* k) {
  const f32* const restrict x = k->x;
  const int64_t x_n0 = k->x_n0;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  f32 total = 0;
  /* 56: total = float32(0) */
  total = 0.0f;
  for (int64_t i = 0, i_end = x_n0; i < i_end;) {
    const int64_t i_check = polyop_next_check(i, i_end);
    if (polyop_stops(k, i_check - i)) break;
    for (; i < i_check; ++i) {
      /* 58: total += x[i] */
      total = total + x[i];
      /* 59: y[i] = total */
      y[i] = total;
    }
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{0, 0, 0}};
int running_sum(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims; (void)dtypes; (void)stream; (void)shapes;
  if (nparam < 2) return polyop_fail(extra, "too few tensors");
  struct kernel self = {0}, *const k = &self;
  self.x = params[0];
  self.y = params[1];
  const int64_t x_n0 = self.x_n0 = shapes[0][0];
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n0);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
