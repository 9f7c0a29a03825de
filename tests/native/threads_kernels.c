/* Loops for test_thread_pool.py, which calls them through ctypes. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "polyop/loops/run.h"
#include "polyop/parallel.h"

int allowed(void) { return polyop_threads ? polyop_threads() : 0; }

struct sum {
  const double* x;
  double* partial;
};

static void add(void* context, int64_t begin, int64_t end, int thread) {
  struct sum* sum = context;
  for (int64_t i = begin; i < end; ++i) sum->partial[thread] += sum->x[i];
}

int sums(const double* x, int64_t n, int64_t chunk, int threads, double* partial) {
  struct sum sum = {x, partial};
  return polyop_for(add, &sum, 0, n, chunk, threads);
}

/* Records each call of the body as a row: begin, end, thread, the system's thread id. */
struct trace {
  int64_t* rows;
  atomic_int count;
  int64_t inner; /* more than 0: the body runs a loop of this length, and only its calls are recorded */
};

static void note(void* context, int64_t begin, int64_t end, int thread) {
  struct trace* trace = context;
  if (trace->inner) {
    const int64_t length = trace->inner;
    struct trace nested = {trace->rows + 16 * begin, 0, 0};
    polyop_for(note, &nested, 0, length, 0, 3);
    return;
  }
  int64_t* row = trace->rows + 4 * atomic_fetch_add(&trace->count, 1);
  row[0] = begin, row[1] = end, row[2] = thread, row[3] = gettid();
}

int traced(int64_t begin, int64_t end, int64_t chunk, int threads, int64_t* rows, int* calls) {
  struct trace trace = {rows, 0, 0};
  const int result = polyop_for(note, &trace, begin, end, chunk, threads);
  *calls = trace.count;
  return result;
}

/* Four outer parts, each of which runs a loop over `inner` in three parts: 16 numbers for each. */
int nested(int64_t inner, int64_t* rows) {
  struct trace trace = {rows, 0, inner};
  return polyop_for(note, &trace, 0, 4, 0, 4);
}

/* Part 0 waits up to ten seconds until all other parts run at the same time. */
struct meeting {
  atomic_int here;
  int expected, met;
};

static void meet(void* context, int64_t begin, int64_t end, int thread) {
  struct meeting* meeting = context;
  (void)begin, (void)end;
  atomic_fetch_add(&meeting->here, 1);
  for (time_t last = time(0) + 10; thread == 0 && time(0) < last && !meeting->met; sched_yield())
    meeting->met = meeting->here == meeting->expected;
}

int meets(int threads) {
  struct meeting meeting = {0, threads, 0};
  polyop_for(meet, &meeting, 0, threads, 0, threads);
  return meeting.met;
}

/* One call waits, up to ten seconds, until all other iterations have run; returns whether they have. */
struct late {
  atomic_llong done;
  int64_t all, waits;
  int met;
};

static void wait(void* context, int64_t begin, int64_t end, int thread) {
  struct late* late = context;
  (void)thread;
  if (begin <= late->waits && late->waits < end) {
    for (time_t last = time(0) + 10; time(0) < last && !late->met; sched_yield())
      late->met = atomic_load(&late->done) == late->all - (end - begin);
  }
  atomic_fetch_add(&late->done, end - begin);
}

int waits(int64_t n, int64_t chunk, int threads, int64_t at) {
  struct late late = {0, n, at, 0};
  polyop_for(wait, &late, 0, n, chunk, threads);
  return late.met && late.done == n;
}

int64_t piece(int64_t trips, int parts) { return polyop_piece(trips, parts); }
int64_t lanes(int64_t trips, int parts) { return polyop_lanes(trips, parts); }
