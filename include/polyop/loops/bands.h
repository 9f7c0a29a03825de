/* Shift-and-peel: loops (members) that run row by row together. Each thread runs them on a band of rows. A
 * generated file with such loops includes this.
 *
 * A band is a piece of the range of rows that covers all loops. In a band each loop runs `behind` rows behind
 * the first loop and begins `inset` rows after the band begins. So some rows at the edges of a band remain.
 * They need rows of two bands, so they run after all bands. */
#ifndef POLYOP_LOOPS_BANDS_H
#define POLYOP_LOOPS_BANDS_H
#include "run.h"

enum { POLYOP_MEMBERS = 8 };
/* The least number of rows in a band for each row that remains at its edges. With fewer, the loops run one
 * after another. */
#ifndef POLYOP_BAND
#define POLYOP_BAND 32
#endif
/* The least cost of the rows of a step, in the unit of polyop_parts; the cost of calling a function is small
 * beside it. */
#ifndef POLYOP_STEP
#define POLYOP_STEP 4e3
#endif
_Static_assert(POLYOP_BAND >= 1, "the edges of a band must not meet");

/* The beginning of every kernel's struct. */
struct polyop_failed {
  struct polyop_failure failure;
};
struct polyop_member {
  polyop_body body;
  int64_t lo, hi, behind, inset;
  double cost;
};
/* The caller sets `k`, `count` and `members`; polyop_run_bands sets the rest. A member's `cost` is that of
 * all its rows, as for polyop_parts. `size`: rows of a band. `step`: the rows of one loop that run before
 * those of the next. */
struct polyop_bands {
  void* k;
  int count;
  struct polyop_member members[POLYOP_MEMBERS];
  int64_t lo, hi, size, step;
};

static void polyop_band(void* context, int64_t begin, int64_t end, int thread) {
  const struct polyop_bands* const all = context;
  int64_t next_rows[POLYOP_MEMBERS];
  for (int m = 0; m < all->count; ++m) {
    const struct polyop_member member = all->members[m];
    next_rows[m] = begin == all->lo ? member.lo : max(member.lo, begin + member.inset);
  }
  struct polyop_failed* const k = all->k;
  /* polyop_stops (stop.h) counts it down: a kernel can be interrupted between two steps. */
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  for (int64_t row = begin; row < end; row += all->step) {
    if (polyop_stops(k, POLYOP_CALL)) break;
    const int64_t next = min(row + all->step, end);
    for (int m = 0; m < all->count; ++m) {
      const struct polyop_member member = all->members[m];
      const int64_t to = next == all->hi ? member.hi : min(member.hi, next - member.behind);
      if (to <= next_rows[m]) continue;
      member.body(all->k, next_rows[m], to, thread);
      next_rows[m] = to;
    }
  }
}

/* Runs the rows that remain at edges number `begin` to `end` - 1. Edge n is between the bands n - 1 and n. */
static void polyop_edges(void* context, int64_t begin, int64_t end, int thread) {
  const struct polyop_bands* const all = context;
  for (int64_t edge = begin; edge < end; ++edge) {
    const int64_t row = all->lo + edge * all->size;
    for (int m = 0; m < all->count; ++m) {
      const struct polyop_member member = all->members[m];
      const int64_t from = max(member.lo, row - member.behind), to = min(member.hi, row + member.inset);
      if (from < to) member.body(all->k, from, to, thread);
    }
  }
}

POLYOP_RUN_FN void polyop_one_by_one(const struct polyop_bands* all) {
  for (int m = 0; m < all->count; ++m) {
    const struct polyop_member member = all->members[m];
    if (member.lo >= member.hi) continue;
    const int parts = polyop_parts(member.cost, member.hi - member.lo);
    polyop_run(member.body, all->k, member.lo, member.hi, polyop_piece(member.hi - member.lo, parts), parts);
  }
}

/* Runs all members. */
POLYOP_RUN_FN void polyop_run_bands(struct polyop_bands* all) {
  int64_t remaining = 0;
  double cost = 0;
  all->lo = INT64_MAX, all->hi = INT64_MIN;
  for (int m = 0; m < all->count; ++m) {
    const struct polyop_member member = all->members[m];
    if (member.lo >= member.hi) continue;
    all->lo = min(all->lo, member.lo);
    all->hi = max(all->hi, member.hi);
    remaining = max(remaining, member.behind + member.inset);
    cost += member.cost;
  }
  if (all->lo >= all->hi) return;
  const int64_t rows = all->hi - all->lo;
  const int parts = polyop_parts(cost, rows);
  all->step = cost > POLYOP_STEP ? max(1, (int64_t)(POLYOP_STEP / cost * rows)) : rows;
  all->size = parts > 1 ? (rows + parts - 1) / parts : rows;
  if (parts > 1 && all->size < POLYOP_BAND * remaining) {
    polyop_one_by_one(all);
    return;
  }
  polyop_run(polyop_band, all, all->lo, all->hi, all->size, parts);
  const int64_t edges = (rows - 1) / all->size;
  if (remaining)
    polyop_run(polyop_edges, all, 1, edges + 1, 1, polyop_parts(cost / rows * remaining * edges, edges));
}

#endif
