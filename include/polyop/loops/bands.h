/* Loops that run row by row together, each thread with a band of rows. Included by a generated file that has
 * such loops.
 *
 * A band is its own piece of the range that all loops are in. Inside it each loop runs `behind` rows behind
 * the first and begins `inset` rows after the band does. The rows at its edges that are left then share with
 * two bands: they are run when all bands are through. */
#ifndef POLYOP_LOOPS_BANDS_H
#define POLYOP_LOOPS_BANDS_H
#include "run.h"

enum { POLYOP_MEMBERS = 8 };
/* Rows of a band for each that is left at its edges; where there are fewer, loops run one after another. */
#ifndef POLYOP_BAND
#define POLYOP_BAND 32
#endif
/* What the rows of a step cost at least, beside which a call of their function is nothing. */
#ifndef POLYOP_STEP
#define POLYOP_STEP 4e3
#endif
_Static_assert(POLYOP_BAND >= 1, "the edges of a band are not to meet");

/* What every kernel's struct begins with. */
struct polyop_failed {
  struct polyop_failure failure;
};
struct polyop_member {
  polyop_body body;
  int64_t lo, hi, behind, inset;
  double cost;
};
/* The caller gives what is before `lo`; `cost` is of all rows, as polyop_parts takes it. `step`: how many
 * rows of one loop come before those of the next. */
struct polyop_bands {
  void* k;
  int count;
  struct polyop_member members[POLYOP_MEMBERS];
  int64_t lo, hi, size, step;
};

static void polyop_band(void* context, int64_t begin, int64_t end, int thread) {
  const struct polyop_bands* const all = context;
  int64_t done[POLYOP_MEMBERS];
  for (int m = 0; m < all->count; ++m) {
    const struct polyop_member of = all->members[m];
    done[m] = begin == all->lo ? of.lo : max(of.lo, begin + of.inset);
  }
  struct polyop_failed* const k = all->k;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  for (int64_t row = begin; row < end; row += all->step) {
    if (polyop_stops(k, POLYOP_CALL)) break;
    const int64_t next = min(row + all->step, end);
    for (int m = 0; m < all->count; ++m) {
      const struct polyop_member of = all->members[m];
      const int64_t to = next == all->hi ? of.hi : min(of.hi, next - of.behind);
      if (to <= done[m]) continue;
      of.body(all->k, done[m], to, thread);
      done[m] = to;
    }
  }
}

/* What bands leave at the edges between number `begin` - 1 and `begin`, and on to `end`. */
static void polyop_edges(void* context, int64_t begin, int64_t end, int thread) {
  const struct polyop_bands* const all = context;
  for (int64_t edge = begin; edge < end; ++edge) {
    const int64_t row = all->lo + edge * all->size;
    for (int m = 0; m < all->count; ++m) {
      const struct polyop_member of = all->members[m];
      const int64_t from = max(of.lo, row - of.behind), to = min(of.hi, row + of.inset);
      if (from < to) of.body(all->k, from, to, thread);
    }
  }
}

POLYOP_RUN_FN void polyop_one_by_one(const struct polyop_bands* all) {
  for (int m = 0; m < all->count; ++m) {
    const struct polyop_member of = all->members[m];
    if (of.lo >= of.hi) continue;
    const int parts = polyop_parts(of.cost, of.hi - of.lo);
    polyop_run(of.body, all->k, of.lo, of.hi, polyop_piece(of.hi - of.lo, parts), parts);
  }
}

/* Run all members. */
POLYOP_RUN_FN void polyop_run_bands(struct polyop_bands* all) {
  int64_t left = 0;
  double cost = 0;
  all->lo = INT64_MAX, all->hi = INT64_MIN;
  for (int m = 0; m < all->count; ++m) {
    const struct polyop_member of = all->members[m];
    if (of.lo >= of.hi) continue;
    all->lo = min(all->lo, of.lo);
    all->hi = max(all->hi, of.hi);
    left = max(left, of.behind + of.inset);
    cost += of.cost;
  }
  if (all->lo >= all->hi) return;
  const int64_t rows = all->hi - all->lo;
  const int parts = polyop_parts(cost, rows);
  all->step = cost > POLYOP_STEP ? max(1, (int64_t)(POLYOP_STEP / cost * rows)) : rows;
  all->size = parts > 1 ? (rows + parts - 1) / parts : rows;
  if (parts > 1 && all->size < POLYOP_BAND * left) {
    polyop_one_by_one(all);
    return;
  }
  polyop_run(polyop_band, all, all->lo, all->hi, all->size, parts);
  const int64_t edges = (rows - 1) / all->size;
  if (left) polyop_run(polyop_edges, all, 1, edges + 1, 1, polyop_parts(cost / rows * left * edges, edges));
}

#endif
