/* Gradients as one writes them by hand, on the threads of polyop's pool. */
#include <stdlib.h>
#include <string.h>

#include "polyop/parallel.h"

/* b[i][j] = a[i][j] * (a[i+1][j] - a[i-1][j]) + 0.1 * (a[i][j-1] + a[i][j+1]) inside, n rows of m. */
struct stencil {
  const double *a, *g;
  double* da;
  int64_t n, m;
};

static inline int inside(const struct stencil* s, int64_t i, int64_t j) {
  return i > 0 && i < s->n - 1 && j > 0 && j < s->m - 1;
}

/* One element of da, near the border: from those points alone that have a result. */
static double near_border(const struct stencil* s, int64_t i, int64_t j) {
  const int64_t m = s->m, at = i * m + j;
  double sum = 0;
  if (inside(s, i, j)) sum += s->g[at] * (s->a[at + m] - s->a[at - m]);
  if (inside(s, i - 1, j)) sum += s->g[at - m] * s->a[at - m];
  if (inside(s, i + 1, j)) sum -= s->g[at + m] * s->a[at + m];
  if (inside(s, i, j + 1)) sum += 0.1 * s->g[at + 1];
  if (inside(s, i, j - 1)) sum += 0.1 * s->g[at - 1];
  return sum;
}

static void stencil_rows(void* context, int64_t begin, int64_t end, int thread) {
  const struct stencil* s = context;
  const int64_t n = s->n, m = s->m;
  (void)thread;
  for (int64_t i = begin; i < end; ++i) {
    const int whole = i > 1 && i < n - 2 && m > 4;
    const int64_t first = whole ? 2 : 0, last = whole ? m - 2 : 0;
    const double* restrict a = s->a + i * m, * restrict g = s->g + i * m;
    double* restrict da = s->da + i * m;
    for (int64_t j = 0; j < first; ++j) da[j] = near_border(s, i, j);
    for (int64_t j = first; j < last; ++j)
      da[j] = g[j] * (a[j + m] - a[j - m]) + g[j - m] * a[j - m] - g[j + m] * a[j + m] +
              0.1 * (g[j + 1] + g[j - 1]);
    for (int64_t j = last; j < m; ++j) da[j] = near_border(s, i, j);
  }
}

void written_stencil(const double* a, const double* g, double* da, int64_t n, int64_t m) {
  struct stencil s = {a, g, da, n, m};
  polyop_for(stencil_rows, &s, 0, n, 0, 0);
}

/* dgamma[j] = sum over i of g[i][j] * x[i][j]: a sum for each thread, then the sums of those. */
struct dgamma {
  const float *x, *g;
  float *dgamma, *own;
  int64_t m, stride;
  int parts;
};

static void own_sums(void* context, int64_t begin, int64_t end, int thread) {
  const struct dgamma* s = context;
  const int64_t m = s->m;
  float* restrict own = s->own + thread * s->stride;
  memset(own, 0, (size_t)m * sizeof(float));
  int64_t i = begin;
  for (; i + 4 <= end; i += 4) {
    const float* restrict x = s->x + i * m, * restrict g = s->g + i * m;
    for (int64_t j = 0; j < m; ++j)
      own[j] +=
          x[j] * g[j] + x[j + m] * g[j + m] + (x[j + 2 * m] * g[j + 2 * m] + x[j + 3 * m] * g[j + 3 * m]);
  }
  for (; i < end; ++i)
    for (int64_t j = 0; j < m; ++j) own[j] += s->x[i * m + j] * s->g[i * m + j];
}

static void sums_of_all(void* context, int64_t begin, int64_t end, int thread) {
  const struct dgamma* s = context;
  (void)thread;
  for (int64_t j = begin; j < end; ++j) s->dgamma[j] = s->own[j];
  for (int part = 1; part < s->parts; ++part)
    for (int64_t j = begin; j < end; ++j) s->dgamma[j] += s->own[part * s->stride + j];
}

/* Returns 1 without memory. */
int written_dgamma(const float* x, const float* g, float* dgamma, int64_t n, int64_t m) {
  const int most = polyop_threads ? polyop_threads() : 1;
  struct dgamma s = {x, g, dgamma, 0, m, (m + 31) / 16 * 16, 0};
  s.own = aligned_alloc(64, (size_t)(most * s.stride) * sizeof(float));
  if (!s.own) return 1;
  s.parts = polyop_for(own_sums, &s, 0, n, 0, most);
  sums_of_all(&s, 0, m, 0);
  free(s.own);
  return 0;
}
