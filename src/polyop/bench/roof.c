/* What this machine can do at most: bytes moved and multiply-adds, on all threads of polyop's pool.
 *
 * VECTOR_BYTES is the width of the target's registers. A wider type would be cut in pieces that do not fit the
 * registers: each sum would go to memory and back. */
#include <stdlib.h>
#include <time.h>

#include "polyop/parallel.h"

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));

enum { COPY, READ, FLOAT32, FLOAT64 };
enum { SUMS = 10, TURNS = 9, MAX_THREADS = 1024 };

struct work {
  float *to, *from;
  int64_t repeats;
  double sums[MAX_THREADS];
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The first touch: each thread gets memory near to it. */
static void fill(void* context, int64_t begin, int64_t end, int thread) {
  struct work* w = context;
  (void)thread;
  for (int64_t i = begin; i < end; ++i) w->to[i] = 0, w->from[i] = 1;
}

static void copy(void* context, int64_t begin, int64_t end, int thread) {
  struct work* w = context;
  (void)thread;
  for (int64_t r = 0; r < w->repeats; ++r) {
    float* restrict to = w->to;
    const float* restrict from = w->from;
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] + 1;
    __asm__ volatile("" ::: "memory");
  }
}

static void reads(void* context, int64_t begin, int64_t end, int thread) {
  struct work* w = context;
  const int64_t lanes = VECTOR_BYTES / sizeof(float);
  begin = (begin + lanes - 1) / lanes * lanes;
  double all = 0;
  for (int64_t r = 0; r < w->repeats; ++r) {
    floats a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0};
    for (int64_t i = begin; i + 8 * lanes <= end; i += 8 * lanes) {
      const floats* p = __builtin_assume_aligned(w->from + i, VECTOR_BYTES);
      a += p[0], b += p[1], c += p[2], d += p[3], e += p[4], f += p[5], g += p[6], h += p[7];
    }
    a += b + c + d + e + f + g + h;
    all += (double)a[0];
    __asm__ volatile("" ::: "memory");
  }
  w->sums[thread % MAX_THREADS] += all;
}

/* Ten sums that do not wait for each other: as many as fit 16 registers beside the two factors, and enough for
 * two units with a latency of five. */
#define MULTIPLY_ADDS(name, vector)                                                                          \
  static void name(void* context, int64_t begin, int64_t end, int thread) {                                  \
    struct work* w = context;                                                                                \
    vector x = (vector){0} + 0.999999f, y = (vector){0} + 1e-7f;                                             \
    vector a = y, b = a + y, c = b + y, d = c + y, e = d + y, f = e + y, g = f + y, h = g + y, k = h + y,    \
           l = k + y;                                                                                        \
    for (int64_t i = begin; i < end; ++i) {                                                                  \
      a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y;                             \
      f = f * x + y, g = g * x + y, h = h * x + y, k = k * x + y, l = l * x + y;                             \
    }                                                                                                        \
    a += b + c + d + e + f + g + h + k + l;                                                                  \
    w->sums[thread % MAX_THREADS] += (double)a[0];                                                           \
  }
MULTIPLY_ADDS(multiply_float32, floats)
MULTIPLY_ADDS(multiply_float64, doubles)

/* COPY: bytes read and written by to[i] = from[i] + 1 over arrays of `count` floats; READ: bytes read. Others:
 * floating-point operations. The best of several turns, per second; 0 without memory. */
double polyop_roof(int kind, int64_t count, int64_t repeats) {
  static struct work w;
  static const polyop_body bodies[] = {copy, reads, multiply_float32, multiply_float64};
  const int moves = kind == COPY || kind == READ;
  float* all = 0;
  if (posix_memalign((void**)&all, 4096, 2 * (size_t)count * sizeof(float) + 8192)) return 0;
  /* half a page apart: equal low bits of the addresses would make stores wait for loads */
  w.from = all, w.to = all + count + 512, w.repeats = repeats;
  if (moves) polyop_for(fill, &w, 0, count, 0, 0);
  const int64_t steps = moves ? count : repeats;
  const double lanes = VECTOR_BYTES / (kind == FLOAT64 ? 8.0 : 4.0);
  const double amount = kind == COPY   ? 8.0 * (double)count * (double)repeats
                        : kind == READ ? 4.0 * (double)count * (double)repeats
                                       : 2.0 * SUMS * lanes * (double)steps;
  double best = 0;
  for (int turn = 0; turn < TURNS; ++turn) {
    const double start = now();
    polyop_for(bodies[kind], &w, 0, steps, 0, 0);
    const double spent = now() - start;
    if (amount / spent > best) best = amount / spent;
  }
  free(all);
  return best;
}
