/* The runtime of every generated loop kernel: threads, scratch memory, checked indices, errors.
 *
 * The struct of a kernel begins with a polyop_failure. */
#ifndef POLYOP_LOOPS_RUN_H
#define POLYOP_LOOPS_RUN_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "polyop/abi.h"
#include "polyop/loops/stop.h"
#include "polyop/parallel.h"
#include "polyop/scratch.h"

#define POLYOP_RUN_FN static inline __attribute__((unused))
#ifndef POLYOP_GRAIN
#define POLYOP_GRAIN 5e4
#endif

/* The first failure of a kernel. `place`: 0 none, the number of an index that left its dimension, -1 out of
 * memory, or POLYOP_STOPPED. */
struct polyop_failure {
  int place;
  int64_t index, size;
};

/* Whether an index is inside its dimension. A negative index counts from the end, as in NumPy. */
POLYOP_RUN_FN int polyop_is_inside(struct polyop_failure* failure, int64_t* index, int64_t size, int place) {
  const int64_t original = *index;
  if (original < 0) *index += size;
  if ((uint64_t)*index < (uint64_t)size) return 1;
  int none = 0;
  if (__atomic_compare_exchange_n(&failure->place, &none, place, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    failure->index = original;
    failure->size = size;
  }
  return 0;
}
#define polyop_inside(k, index, size, place) polyop_is_inside(&(k)->failure, index, size, place)

POLYOP_RUN_FN void polyop_no_memory(struct polyop_failure* failure) {
  int none = 0;
  __atomic_compare_exchange_n(&failure->place, &none, -1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#define polyop_out_of_memory(k) polyop_no_memory(&(k)->failure)

/* Memory for one call of a part: on the stack when it is small, so that it does not fragment the heap of the
 * tensors. */
struct polyop_stack {
  char bytes[1 << 14] __attribute__((aligned(64)));
};
POLYOP_RUN_FN void* polyop_own(struct polyop_stack* stack, int64_t bytes) {
  return bytes + 64 <= (int64_t)sizeof stack->bytes ? stack->bytes : polyop_scratch(bytes);
}
POLYOP_RUN_FN void polyop_disown(const struct polyop_stack* stack, void* memory) {
  if ((const char*)memory != stack->bytes) polyop_release(memory);
}

/* The number of parts that is worth its cost: each part gets a cost of at least POLYOP_GRAIN. A cost of 1 is
 * about a quarter of a nanosecond. */
POLYOP_RUN_FN int polyop_parts(double cost, int64_t trips) {
  if (cost < 2 * POLYOP_GRAIN || !polyop_threads) return 1;
  const double limit = cost / POLYOP_GRAIN;
  const int allowed = polyop_threads();
  const int parts = allowed > limit ? (int)limit : allowed;
  return parts > trips ? (int)trips : parts;
}

POLYOP_RUN_FN int polyop_run(polyop_body body, void* k, int64_t lo, int64_t hi, int64_t chunk, int parts) {
  if (hi <= lo) return 0;
  if (parts > 1) return polyop_for(body, k, lo, hi, chunk, parts);
  body(k, lo, hi, 0);
  return 1;
}

/* polyop_run with `each` pieces for every thread, dealt out in turn. When the cost of an iteration grows or
 * falls along the loop, each thread gets cheap and expensive ones. */
struct polyop_hand {
  polyop_body body;
  void* k;
  int64_t lo, hi;
  int each, parts;
};
static __attribute__((unused)) void polyop_dealt(void* context, int64_t begin, int64_t end, int thread) {
  const struct polyop_hand* const all = (const struct polyop_hand*)context;
  for (int64_t number = begin; number < end; ++number) {
    const int piece = (int)(number % all->each * all->parts + number / all->each);
    const int64_t from = polyop_part(all->lo, all->hi, piece, all->each * all->parts);
    const int64_t to = polyop_part(all->lo, all->hi, piece + 1, all->each * all->parts);
    if (from < to) all->body(all->k, from, to, thread);
  }
}
POLYOP_RUN_FN int polyop_deal(polyop_body body, void* k, int64_t lo, int64_t hi, int each, int parts) {
  struct polyop_hand all = {body, k, lo, hi, each, parts};
  if (hi > lo && parts > 1) return polyop_for(polyop_dealt, &all, 0, (int64_t)each * parts, 1, parts);
  return polyop_run(body, k, lo, hi, 0, 1);
}

/* How many of the rows that are left a loop runs at once, if they lie behind one another. */
enum { POLYOP_AT_ONCE = 1 << 14 };
POLYOP_RUN_FN int64_t polyop_rows(int64_t left, int64_t length) {
  const int64_t rows = length > 0 ? POLYOP_AT_ONCE / length : left;
  return rows < 1 ? 1 : rows < left ? rows : left;
}

/* Whether a tile packs the rows that it reads down their columns, for so many strips of lanes and rows that
 * are so many bytes apart. Packing takes as long as one strip or two, and pays for many strips. It also pays
 * for three where the distance is a multiple of 2048 bytes: such rows share a few sets of a cache, and push
 * one another out. */
enum { POLYOP_MANY_STRIPS = 8, POLYOP_FEW_STRIPS = 2, POLYOP_FEW_SETS = 2048 };
POLYOP_RUN_FN int polyop_packs_rows(int64_t strips, int64_t apart) {
  return strips > POLYOP_MANY_STRIPS || (strips > POLYOP_FEW_STRIPS && apart % POLYOP_FEW_SETS == 0);
}

/* How many steps a block of a sum has: as many as have panels of about POLYOP_BLOCK bytes, part of a second
 * cache, if a step has so many. The last block may have fewer. There is one block where the sums that wait
 * between two would take too much memory. */
#ifndef POLYOP_BLOCK
#define POLYOP_BLOCK (1 << 19)
#endif
#ifndef POLYOP_WAITING
#define POLYOP_WAITING (1 << 26)
#endif
POLYOP_RUN_FN int64_t polyop_steps_of_block(int64_t steps, int64_t bytes, int64_t waiting) {
  const double blocks = (double)steps * (double)bytes / POLYOP_BLOCK;
  if (blocks <= 1 || waiting > POLYOP_WAITING) return steps;
  return (int64_t)((double)steps / blocks) + 1;
}

/* The number of pieces of a loop per thread. Several pieces balance threads that start late or are slow. */
enum { POLYOP_PIECES = 4 };
POLYOP_RUN_FN int64_t polyop_piece(int64_t trips, int parts) { return trips / (POLYOP_PIECES * parts) + 1; }
/* The same for rows that run as one loop: as many as that takes at once, up to a thread's share. */
POLYOP_RUN_FN int64_t polyop_piece_of_rows(int64_t trips, int64_t length, int parts) {
  const int64_t share = (trips + parts - 1) / parts, rows = polyop_rows(trips, length);
  const int64_t piece = polyop_piece(trips, parts);
  return piece > rows ? piece : rows < share ? rows : share;
}
/* The same for a loop whose iterations are lanes: whole vectors, or 0 (parts of equal size) for few lanes. */
POLYOP_RUN_FN int64_t polyop_lanes(int64_t trips, int parts) {
  return trips / (POLYOP_PIECES * parts) / 64 * 64;
}

/* How many blocks of lanes each of `trips` iterations is divided into: one, unless these are too few for the
 * threads, and at most `most`. */
POLYOP_RUN_FN int64_t polyop_lane_blocks(double cost, int64_t trips, int64_t most) {
  const int64_t wanted = (int64_t)POLYOP_PIECES * polyop_parts(cost, INT64_MAX);
  if (wanted <= POLYOP_PIECES || trips <= 0 || trips >= wanted || most <= 1) return 1;
  const int64_t blocks = (wanted + trips - 1) / trips;
  return blocks < most ? blocks : most;
}
/* Where block `number` of lanes starts, after whole strips. */
POLYOP_RUN_FN int64_t polyop_lane_block(int64_t lo, int64_t hi, int64_t number, int64_t blocks,
                                        int64_t strip) {
  const int64_t strips = (hi - lo + strip - 1) / strip, each = (strips + blocks - 1) / blocks;
  const int64_t start = lo + number * each * strip;
  return start < hi ? start : hi;
}

/* Fills memory with zeros, on several threads when it is large. */
enum { POLYOP_ZEROS = 1 << 16 };
struct polyop_zeros {
  char* start;
  int64_t bytes;
};
POLYOP_RUN_FN void polyop_zero_part(void* context, int64_t begin, int64_t end, int thread) {
  const struct polyop_zeros all = *(const struct polyop_zeros*)context;
  const int64_t stop = end * POLYOP_ZEROS;
  memset(all.start + begin * POLYOP_ZEROS, 0, (stop < all.bytes ? stop : all.bytes) - begin * POLYOP_ZEROS);
  (void)thread;
}
POLYOP_RUN_FN void polyop_zero(void* start, int64_t bytes) {
  struct polyop_zeros all = {(char*)start, bytes};
  const int64_t pieces = (bytes + POLYOP_ZEROS - 1) / POLYOP_ZEROS;
  polyop_run(polyop_zero_part, &all, 0, pieces, 0, polyop_parts(bytes * 0.25, pieces));
}

/* An index in the author's source: `name` is the tensor's. An axis of -1 is no index, but a rule that is
 * broken, and `name` says it. */
struct polyop_place {
  int line, axis;
  const char* name;
};

/* Sets the error of a kernel whose sizes do not fit, and returns 1. */
POLYOP_RUN_FN int polyop_misfit(void* extra, struct polyop_place at, int64_t size) {
  char text[200];
  snprintf(text, sizeof text, "line %d: an index leaves dimension %d of %s, which has size %lld", at.line,
           at.axis, at.name, (long long)size);
  return polyop_fail(extra, text);
}

/* Sets the error of a temporary with a negative size, and returns 1. */
POLYOP_RUN_FN int polyop_negative(void* extra, struct polyop_place at, int64_t size) {
  char text[200];
  snprintf(text, sizeof text, "line %d: a size of %s cannot be negative, but got %lld", at.line, at.name,
           (long long)size);
  return polyop_fail(extra, text);
}

/* Sets the error of a failure and returns 1. Returns 0 when nothing has failed. */
POLYOP_RUN_FN int polyop_report(void* extra, const struct polyop_failure* failure,
                                const struct polyop_place* places) {
  char text[200];
  if (!failure->place) return 0;
  if (failure->place == POLYOP_STOPPED) return polyop_fail(extra, "the kernel was interrupted");
  if (failure->place < 0) return polyop_fail(extra, "out of memory");
  const struct polyop_place at = places[failure->place - 1];
  if (at.axis < 0) {
    snprintf(text, sizeof text, "line %d: %s", at.line, at.name);
    return polyop_fail(extra, text);
  }
  snprintf(text, sizeof text, "line %d: index %lld is outside dimension %d of %s, which has size %lld",
           at.line, (long long)failure->index, at.axis, at.name, (long long)failure->size);
  return polyop_fail(extra, text);
}

POLYOP_RUN_FN int polyop_overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  return (const char*)a < (const char*)b + b_bytes && (const char*)b < (const char*)a + a_bytes;
}

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

#endif
