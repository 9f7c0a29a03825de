/* gather: the loop kernel gather of small.py, for neon */
#define POLYOP_WANT_W1
#include "polyop/loops/vector.h"
#include "polyop/loops/run.h"

struct kernel {
  struct polyop_failure failure;
  const f32* table;
  const i64* at;
  f32* y;
  int64_t table_n0;
  int64_t at_n0;
  int64_t y_n0;
};

static void part0(void* context, int64_t begin, int64_t end, int thread) {
  struct kernel* const k = context;
  const f32* const restrict table = k->table;
  const int64_t table_n0 = k->table_n0;
  const i64* const restrict at = k->at;
  const int64_t at_n0 = k->at_n0;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  int64_t i = begin;
  for (const int64_t i_end = end; i < i_end;) {
    const int64_t i_check = polyop_next_check(i, i_end);
    if (polyop_stops(k, i_check - i)) break;
    for (; i < i_check; ++i) {
      /* 50: y[i] = table[at[i]] */
      y[i] = ({ int64_t q0 = at[i]; polyop_inside(k, &q0, table_n0, 1) ? table[q0] : 0; });
    }
  }
  (void)thread, (void)polyop_fuel;
}

static void run(struct kernel* k) {
  const f32* const restrict table = k->table;
  const int64_t table_n0 = k->table_n0;
  const i64* const restrict at = k->at;
  const int64_t at_n0 = k->at_n0;
  f32* const restrict y = k->y;
  const int64_t y_n0 = k->y_n0;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t lo = 0, hi = at_n0;
    const int parts = polyop_parts((double)(hi - lo) * 3.0, hi - lo);
    const int used = polyop_run(part0, k, lo, hi, polyop_piece(hi - lo, parts), parts);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{50, 0, "table"}};
int gather(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims; (void)dtypes; (void)stream; (void)shapes;
  if (nparam < 3) return polyop_fail(extra, "too few tensors");
  struct kernel self = {0}, *const k = &self;
  self.table = params[0];
  self.at = params[1];
  self.y = params[2];
  const int64_t table_n0 = self.table_n0 = shapes[0][0];
  const int64_t at_n0 = self.at_n0 = shapes[1][0];
  const int64_t y_n0 = self.y_n0 = max_i64(0, at_n0);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
