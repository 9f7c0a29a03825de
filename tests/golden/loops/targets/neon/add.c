/* add: the loop kernel add of small.py, for neon */
#define POLYOP_WANT_W4
#include "polyop/loops/vector.h"
#include "polyop/loops/streaming_store.h"
#include "polyop/loops/run.h"

struct kernel {
  struct polyop_failure failure;
  const f32* x;
  const f32* z;
  f32* y;
  int64_t x_n0;
  int64_t z_n0;
  int64_t y_n0;
};

static void part0(void* context, int64_t begin, int64_t end, int thread) {
  struct kernel* const k = context;
  const f32* const restrict x = k->x;
  const int64_t x_n0 = k->x_n0;
  const f32* const restrict z = k->z;
  const int64_t z_n0 = k->z_n0;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    int64_t i = begin;
    const int64_t i_end = end;
    int64_t i_part = polyop_streaming_start(&y[i], i_end - i, y_n0 * 4, 4, POLYOP_LANES(4));
    const int i_stream0 = i_part >= 0;
    if (i_part < 0) i_part = 0;
    for (;;) {
      if (i_part > 0) {
        /* 11: y[i] = x[i] + z[i] */
        store_n_f32v4(&y[i], (load_n_f32v4(&x[i], i_part) + load_n_f32v4(&z[i], i_part)), i_part);
        i += i_part;
      }
      for (; i + POLYOP_LANES(4) <= i_end;) {
        const int64_t i_check = polyop_next_check(i, i_end);
        if (polyop_stops(k, i_check - i)) break;
        for (; i + POLYOP_LANES(4) <= i_check; i += POLYOP_LANES(4)) {
          polyop_fetch_later(&x[i], 2048);
          polyop_fetch_later(&z[i], 2048);
          /* 11: y[i] = x[i] + z[i] */
          stream_f32v4(&y[i], (load_f32v4(&x[i]) + load_f32v4(&z[i])), i_stream0);
        }
      }
      i_part = i_end - i;
      if (i_part <= 0) break;
    }
  }
  polyop_streaming_fence();
  (void)thread, (void)polyop_fuel;
}

static void run(struct kernel* k) {
  const f32* const restrict x = k->x;
  const int64_t x_n0 = k->x_n0;
  const f32* const restrict z = k->z;
  const int64_t z_n0 = k->z_n0;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t lo = 0, hi = x_n0;
    const int parts = polyop_parts((double)(hi - lo) * 3.5, hi - lo);
    const int used = polyop_run(part0, k, lo, hi, polyop_lanes(hi - lo, parts), parts);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{0, 0, 0}};
int add(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims; (void)dtypes; (void)stream; (void)shapes;
  if (nparam < 3) return polyop_fail(extra, "too few tensors");
  struct kernel self = {0}, *const k = &self;
  self.x = params[0];
  self.z = params[1];
  self.y = params[2];
  const int64_t x_n0 = self.x_n0 = shapes[0][0];
  const int64_t z_n0 = self.z_n0 = shapes[1][0];
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n0);
  if ((x_n0 >= (z_n0 + 1))) return polyop_misfit(extra, (struct polyop_place){11, 0, "z"}, z_n0);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
