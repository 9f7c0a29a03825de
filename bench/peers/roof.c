/* What this machine can do at most: bytes moved and multiply-adds, on all threads of polyop's pool. */
#include <stdlib.h>
#include <time.h>

#include "polyop/parallel.h"

typedef float lanes __attribute__((vector_size(64)));

struct work {
  float *a, *b, *c;
  float sums[64 * 16];
  int64_t repeats;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(void* context, int64_t begin, int64_t end, int thread) {
  struct work* w = context;
  (void)thread;
  for (int64_t i = begin; i < end; ++i) w->a[i] = 0, w->b[i] = 1, w->c[i] = 2;
}

static void copy(void* context, int64_t begin, int64_t end, int thread) {
  struct work* w = context;
  (void)thread;
  for (int64_t r = 0; r < w->repeats; ++r) {
    float* restrict a = w->a;
    const float* restrict b = w->b;
    for (int64_t i = begin; i < end; ++i) a[i] = b[i] + 1;
    __asm__ volatile("" ::: "memory");
  }
}

static void reads(void* context, int64_t begin, int64_t end, int thread) {
  struct work* w = context;
  for (int64_t r = 0; r < w->repeats; ++r) {
    lanes sum[8] = {{0}};
    for (int64_t i = begin; i + 128 <= end; i += 128)
      for (int k = 0; k < 8; ++k) sum[k] += *(const lanes*)__builtin_assume_aligned(w->b + (i & ~(int64_t)15) + 16 * k, 64);
    for (int k = 1; k < 8; ++k) sum[0] += sum[k];
    w->sums[thread * 16] += sum[0][0];
    __asm__ volatile("" ::: "memory");
  }
}

static void multiply_adds(void* context, int64_t begin, int64_t end, int thread) {
  struct work* w = context;
  lanes v[12];
  for (int k = 0; k < 12; ++k) v[k] = (lanes){0} + (0.5f + (float)k);
  const lanes x = (lanes){0} + 0.999999f, y = (lanes){0} + 1e-7f;
  for (int64_t i = begin; i < end; ++i)
    for (int k = 0; k < 12; ++k) v[k] = v[k] * x + y;
  for (int k = 1; k < 12; ++k) v[0] += v[k];
  w->sums[thread * 16] += v[0][0];
}

/* kind 0: bytes read and written by a[i] = b[i] + 1 over arrays of `count` floats; 1: bytes read;
 * 2: floating-point operations (float32). The best of several turns, per second; 0 without memory. */
double polyop_bench_roof(int kind, int64_t count, int64_t repeats) {
  static struct work w;
  float* all = 0;
  if (posix_memalign((void**)&all, 64, 3 * (size_t)count * sizeof(float) + 4096)) return 0;
  w.a = all, w.b = all + count, w.c = all + 2 * count, w.repeats = repeats;
  polyop_for(fill, &w, 0, count, 0, 0);
  double best = 0;
  for (int turn = 0; turn < 9; ++turn) {
    const int64_t steps = 1 << 22;
    const double start = now();
    polyop_for(kind == 0 ? copy : kind == 1 ? reads : multiply_adds, &w, 0, kind == 2 ? steps : count, 0, 0);
    const double spent = now() - start;
    const double amount = kind == 0   ? 8.0 * (double)count * (double)repeats
                          : kind == 1 ? 4.0 * (double)count * (double)repeats
                                      : 12.0 * 32.0 * (double)steps;
    if (amount / spent > best) best = amount / spent;
  }
  free(all);
  return best;
}
