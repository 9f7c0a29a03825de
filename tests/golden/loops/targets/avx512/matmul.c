/* matmul: the loop kernel matmul of small.py, for avx512 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
#pragma GCC target("prefer-vector-width=512")
#endif
#define POLYOP_WANT_W4
#include "polyop/loops/vector.h"
#include "polyop/loops/run.h"

struct kernel {
  struct polyop_failure failure;
  const f32* a;
  const f32* b;
  f32* c;
  int64_t a_n0;
  int64_t a_n1;
  int64_t b_n0;
  int64_t b_n1;
  int64_t c_n0;
  int64_t c_n1;
};

static void part0(void* context, int64_t begin, int64_t end, int thread) {
  struct kernel* const k = context;
  const f32* const restrict a = k->a;
  const int64_t a_n0 = k->a_n0;
  const int64_t a_n1 = k->a_n1;
  const f32* const restrict b = k->b;
  const int64_t b_n0 = k->b_n0;
  const int64_t b_n1 = k->b_n1;
  f32* const restrict c = k->c;
  const int64_t c_n0 = k->c_n0;
  const int64_t c_n1 = k->c_n1;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t i_lo = begin, i_end = end;
    if (i_lo < i_end) {
      const int64_t j_lo = 0, j_end = b_n1;
      const int64_t k__lo = 0, k__stop = max_i64(k__lo, a_n1);
      int64_t k__steps = polyop_steps_of_block(k__stop - k__lo, 4 * POLYOP_LANES(4) * (int64_t)sizeof(f32), (i_end - i_lo) * 4 * POLYOP_LANES(4) * ((int64_t)sizeof(f32)));
      f32* const c_acc1_panel = k__steps < k__stop - k__lo ? polyop_scratch((i_end - i_lo) * 4 * POLYOP_LANES(4) * sizeof(f32)) : 0;
      if (!c_acc1_panel) k__steps = k__stop - k__lo;  /* or there is no memory: one block */
      f32* const b0__panel = polyop_scratch(max_i64(0, k__steps - (0)) * 4 * POLYOP_LANES(4) * sizeof(f32));
      if (!b0__panel) { polyop_release(b0__panel); polyop_out_of_memory(k); return; }
      for (int64_t j = j_lo; j < j_end; j += 4 * POLYOP_LANES(4)) {
        if (polyop_stops(k, (i_end - i_lo) * (1 + a_n1))) break;
        for (int64_t k__from = k__lo;; k__from += k__steps) {
          const int64_t k__to = min_i64(k__from + k__steps, k__stop);
          if (j + 4 * POLYOP_LANES(4) <= j_end) {
            {
              f32* b0_ = b0__panel;
              for (int64_t k_ = k__from, k__end = k__to; k_ < k__end; ++k_) {
                store_f32v4(b0_ + 0 * POLYOP_LANES(4), load_f32v4(&b[(k_) * b_n1 + (j + 0 * POLYOP_LANES(4))]));
                store_f32v4(b0_ + 1 * POLYOP_LANES(4), load_f32v4(&b[(k_) * b_n1 + (j + 1 * POLYOP_LANES(4))]));
                store_f32v4(b0_ + 2 * POLYOP_LANES(4), load_f32v4(&b[(k_) * b_n1 + (j + 2 * POLYOP_LANES(4))]));
                store_f32v4(b0_ + 3 * POLYOP_LANES(4), load_f32v4(&b[(k_) * b_n1 + (j + 3 * POLYOP_LANES(4))]));
                b0_ += 4 * POLYOP_LANES(4);
              }
            }
          }
          else {
            {
              f32* b0_ = b0__panel;
              for (int64_t k_ = k__from, k__end = k__to; k_ < k__end; ++k_) {
                store_f32v4(b0_ + 0 * POLYOP_LANES(4), load_n_f32v4(&b[(k_) * b_n1 + (j + 0 * POLYOP_LANES(4))], (j_end - (j + 0 * POLYOP_LANES(4)))));
                store_f32v4(b0_ + 1 * POLYOP_LANES(4), load_n_f32v4(&b[(k_) * b_n1 + (j + 1 * POLYOP_LANES(4))], (j_end - (j + 1 * POLYOP_LANES(4)))));
                store_f32v4(b0_ + 2 * POLYOP_LANES(4), load_n_f32v4(&b[(k_) * b_n1 + (j + 2 * POLYOP_LANES(4))], (j_end - (j + 2 * POLYOP_LANES(4)))));
                store_f32v4(b0_ + 3 * POLYOP_LANES(4), load_n_f32v4(&b[(k_) * b_n1 + (j + 3 * POLYOP_LANES(4))], (j_end - (j + 3 * POLYOP_LANES(4)))));
                b0_ += 4 * POLYOP_LANES(4);
              }
            }
          }
          int64_t i = i_lo;
          for (; i + 6 <= i_end; i += 6) {
            if (j + 2 * POLYOP_LANES(4) < j_end) {
              const f32* b0_ = b0__panel;
              f32v4 c_acc1_r0_u0 = {0};
              f32v4 c_acc1_r0_u1 = {0};
              f32v4 c_acc1_r0_u2 = {0};
              f32v4 c_acc1_r0_u3 = {0};
              f32v4 c_acc1_r1_u0 = {0};
              f32v4 c_acc1_r1_u1 = {0};
              f32v4 c_acc1_r1_u2 = {0};
              f32v4 c_acc1_r1_u3 = {0};
              f32v4 c_acc1_r2_u0 = {0};
              f32v4 c_acc1_r2_u1 = {0};
              f32v4 c_acc1_r2_u2 = {0};
              f32v4 c_acc1_r2_u3 = {0};
              f32v4 c_acc1_r3_u0 = {0};
              f32v4 c_acc1_r3_u1 = {0};
              f32v4 c_acc1_r3_u2 = {0};
              f32v4 c_acc1_r3_u3 = {0};
              f32v4 c_acc1_r4_u0 = {0};
              f32v4 c_acc1_r4_u1 = {0};
              f32v4 c_acc1_r4_u2 = {0};
              f32v4 c_acc1_r4_u3 = {0};
              f32v4 c_acc1_r5_u0 = {0};
              f32v4 c_acc1_r5_u1 = {0};
              f32v4 c_acc1_r5_u2 = {0};
              f32v4 c_acc1_r5_u3 = {0};
              if (k__from == k__lo) {
                /* 34: c[i, j] = 0 */
                c_acc1_r0_u0 = bcast_f32v4(0.0f);
                c_acc1_r0_u1 = bcast_f32v4(0.0f);
                c_acc1_r0_u2 = bcast_f32v4(0.0f);
                c_acc1_r0_u3 = bcast_f32v4(0.0f);
                c_acc1_r1_u0 = bcast_f32v4(0.0f);
                c_acc1_r1_u1 = bcast_f32v4(0.0f);
                c_acc1_r1_u2 = bcast_f32v4(0.0f);
                c_acc1_r1_u3 = bcast_f32v4(0.0f);
                c_acc1_r2_u0 = bcast_f32v4(0.0f);
                c_acc1_r2_u1 = bcast_f32v4(0.0f);
                c_acc1_r2_u2 = bcast_f32v4(0.0f);
                c_acc1_r2_u3 = bcast_f32v4(0.0f);
                c_acc1_r3_u0 = bcast_f32v4(0.0f);
                c_acc1_r3_u1 = bcast_f32v4(0.0f);
                c_acc1_r3_u2 = bcast_f32v4(0.0f);
                c_acc1_r3_u3 = bcast_f32v4(0.0f);
                c_acc1_r4_u0 = bcast_f32v4(0.0f);
                c_acc1_r4_u1 = bcast_f32v4(0.0f);
                c_acc1_r4_u2 = bcast_f32v4(0.0f);
                c_acc1_r4_u3 = bcast_f32v4(0.0f);
                c_acc1_r5_u0 = bcast_f32v4(0.0f);
                c_acc1_r5_u1 = bcast_f32v4(0.0f);
                c_acc1_r5_u2 = bcast_f32v4(0.0f);
                c_acc1_r5_u3 = bcast_f32v4(0.0f);
              }
              else {
                c_acc1_r0_u0 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)]);
                c_acc1_r0_u1 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)]);
                c_acc1_r0_u2 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)]);
                c_acc1_r0_u3 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)]);
                c_acc1_r1_u0 = load_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)]);
                c_acc1_r1_u1 = load_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)]);
                c_acc1_r1_u2 = load_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)]);
                c_acc1_r1_u3 = load_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)]);
                c_acc1_r2_u0 = load_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)]);
                c_acc1_r2_u1 = load_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)]);
                c_acc1_r2_u2 = load_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)]);
                c_acc1_r2_u3 = load_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)]);
                c_acc1_r3_u0 = load_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)]);
                c_acc1_r3_u1 = load_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)]);
                c_acc1_r3_u2 = load_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)]);
                c_acc1_r3_u3 = load_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)]);
                c_acc1_r4_u0 = load_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)]);
                c_acc1_r4_u1 = load_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)]);
                c_acc1_r4_u2 = load_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)]);
                c_acc1_r4_u3 = load_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)]);
                c_acc1_r5_u0 = load_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)]);
                c_acc1_r5_u1 = load_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)]);
                c_acc1_r5_u2 = load_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)]);
                c_acc1_r5_u3 = load_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)]);
              }
              for (int64_t k_ = k__from, k__end = k__to; k_ < k__end; ++k_) {
                /* 36: c[i, j] += a[i, k] * b[k, j] */
                c_acc1_r0_u0 = c_acc1_r0_u0 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_));
                c_acc1_r0_u1 = c_acc1_r0_u1 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + 1 * POLYOP_LANES(4)));
                c_acc1_r0_u2 = c_acc1_r0_u2 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + 2 * POLYOP_LANES(4)));
                c_acc1_r0_u3 = c_acc1_r0_u3 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + 3 * POLYOP_LANES(4)));
                c_acc1_r1_u0 = c_acc1_r1_u0 + (bcast_f32v4(a[((i + 1)) * a_n1 + k_]) * load_f32v4(b0_));
                c_acc1_r1_u1 = c_acc1_r1_u1 + (bcast_f32v4(a[((i + 1)) * a_n1 + k_]) * load_f32v4(b0_ + 1 * POLYOP_LANES(4)));
                c_acc1_r1_u2 = c_acc1_r1_u2 + (bcast_f32v4(a[((i + 1)) * a_n1 + k_]) * load_f32v4(b0_ + 2 * POLYOP_LANES(4)));
                c_acc1_r1_u3 = c_acc1_r1_u3 + (bcast_f32v4(a[((i + 1)) * a_n1 + k_]) * load_f32v4(b0_ + 3 * POLYOP_LANES(4)));
                c_acc1_r2_u0 = c_acc1_r2_u0 + (bcast_f32v4(a[((i + 2)) * a_n1 + k_]) * load_f32v4(b0_));
                c_acc1_r2_u1 = c_acc1_r2_u1 + (bcast_f32v4(a[((i + 2)) * a_n1 + k_]) * load_f32v4(b0_ + 1 * POLYOP_LANES(4)));
                c_acc1_r2_u2 = c_acc1_r2_u2 + (bcast_f32v4(a[((i + 2)) * a_n1 + k_]) * load_f32v4(b0_ + 2 * POLYOP_LANES(4)));
                c_acc1_r2_u3 = c_acc1_r2_u3 + (bcast_f32v4(a[((i + 2)) * a_n1 + k_]) * load_f32v4(b0_ + 3 * POLYOP_LANES(4)));
                c_acc1_r3_u0 = c_acc1_r3_u0 + (bcast_f32v4(a[((i + 3)) * a_n1 + k_]) * load_f32v4(b0_));
                c_acc1_r3_u1 = c_acc1_r3_u1 + (bcast_f32v4(a[((i + 3)) * a_n1 + k_]) * load_f32v4(b0_ + 1 * POLYOP_LANES(4)));
                c_acc1_r3_u2 = c_acc1_r3_u2 + (bcast_f32v4(a[((i + 3)) * a_n1 + k_]) * load_f32v4(b0_ + 2 * POLYOP_LANES(4)));
                c_acc1_r3_u3 = c_acc1_r3_u3 + (bcast_f32v4(a[((i + 3)) * a_n1 + k_]) * load_f32v4(b0_ + 3 * POLYOP_LANES(4)));
                c_acc1_r4_u0 = c_acc1_r4_u0 + (bcast_f32v4(a[((i + 4)) * a_n1 + k_]) * load_f32v4(b0_));
                c_acc1_r4_u1 = c_acc1_r4_u1 + (bcast_f32v4(a[((i + 4)) * a_n1 + k_]) * load_f32v4(b0_ + 1 * POLYOP_LANES(4)));
                c_acc1_r4_u2 = c_acc1_r4_u2 + (bcast_f32v4(a[((i + 4)) * a_n1 + k_]) * load_f32v4(b0_ + 2 * POLYOP_LANES(4)));
                c_acc1_r4_u3 = c_acc1_r4_u3 + (bcast_f32v4(a[((i + 4)) * a_n1 + k_]) * load_f32v4(b0_ + 3 * POLYOP_LANES(4)));
                c_acc1_r5_u0 = c_acc1_r5_u0 + (bcast_f32v4(a[((i + 5)) * a_n1 + k_]) * load_f32v4(b0_));
                c_acc1_r5_u1 = c_acc1_r5_u1 + (bcast_f32v4(a[((i + 5)) * a_n1 + k_]) * load_f32v4(b0_ + 1 * POLYOP_LANES(4)));
                c_acc1_r5_u2 = c_acc1_r5_u2 + (bcast_f32v4(a[((i + 5)) * a_n1 + k_]) * load_f32v4(b0_ + 2 * POLYOP_LANES(4)));
                c_acc1_r5_u3 = c_acc1_r5_u3 + (bcast_f32v4(a[((i + 5)) * a_n1 + k_]) * load_f32v4(b0_ + 3 * POLYOP_LANES(4)));
                b0_ += 4 * POLYOP_LANES(4);
              }
              if (k__to >= k__stop) {
                if (j + 4 * POLYOP_LANES(4) <= j_end) {
                  /* 35: for k in range(a.shape[1]): */
                  store_f32v4(&c[(i) * c_n1 + j], c_acc1_r0_u0);
                  store_f32v4(&c[(i) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r0_u1);
                  store_f32v4(&c[(i) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r0_u2);
                  store_f32v4(&c[(i) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r0_u3);
                  store_f32v4(&c[((i + 1)) * c_n1 + j], c_acc1_r1_u0);
                  store_f32v4(&c[((i + 1)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r1_u1);
                  store_f32v4(&c[((i + 1)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r1_u2);
                  store_f32v4(&c[((i + 1)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r1_u3);
                  store_f32v4(&c[((i + 2)) * c_n1 + j], c_acc1_r2_u0);
                  store_f32v4(&c[((i + 2)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r2_u1);
                  store_f32v4(&c[((i + 2)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r2_u2);
                  store_f32v4(&c[((i + 2)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r2_u3);
                  store_f32v4(&c[((i + 3)) * c_n1 + j], c_acc1_r3_u0);
                  store_f32v4(&c[((i + 3)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r3_u1);
                  store_f32v4(&c[((i + 3)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r3_u2);
                  store_f32v4(&c[((i + 3)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r3_u3);
                  store_f32v4(&c[((i + 4)) * c_n1 + j], c_acc1_r4_u0);
                  store_f32v4(&c[((i + 4)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r4_u1);
                  store_f32v4(&c[((i + 4)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r4_u2);
                  store_f32v4(&c[((i + 4)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r4_u3);
                  store_f32v4(&c[((i + 5)) * c_n1 + j], c_acc1_r5_u0);
                  store_f32v4(&c[((i + 5)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r5_u1);
                  store_f32v4(&c[((i + 5)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r5_u2);
                  store_f32v4(&c[((i + 5)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r5_u3);
                }
                else {
                  /* 35: for k in range(a.shape[1]): */
                  store_n_f32v4(&c[(i) * c_n1 + j], c_acc1_r0_u0, (j_end - j));
                  store_n_f32v4(&c[(i) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r0_u1, (j_end - (j + 1 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[(i) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r0_u2, (j_end - (j + 2 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[(i) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r0_u3, (j_end - (j + 3 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 1)) * c_n1 + j], c_acc1_r1_u0, (j_end - j));
                  store_n_f32v4(&c[((i + 1)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r1_u1, (j_end - (j + 1 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 1)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r1_u2, (j_end - (j + 2 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 1)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r1_u3, (j_end - (j + 3 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 2)) * c_n1 + j], c_acc1_r2_u0, (j_end - j));
                  store_n_f32v4(&c[((i + 2)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r2_u1, (j_end - (j + 1 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 2)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r2_u2, (j_end - (j + 2 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 2)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r2_u3, (j_end - (j + 3 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 3)) * c_n1 + j], c_acc1_r3_u0, (j_end - j));
                  store_n_f32v4(&c[((i + 3)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r3_u1, (j_end - (j + 1 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 3)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r3_u2, (j_end - (j + 2 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 3)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r3_u3, (j_end - (j + 3 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 4)) * c_n1 + j], c_acc1_r4_u0, (j_end - j));
                  store_n_f32v4(&c[((i + 4)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r4_u1, (j_end - (j + 1 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 4)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r4_u2, (j_end - (j + 2 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 4)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r4_u3, (j_end - (j + 3 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 5)) * c_n1 + j], c_acc1_r5_u0, (j_end - j));
                  store_n_f32v4(&c[((i + 5)) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_r5_u1, (j_end - (j + 1 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 5)) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_r5_u2, (j_end - (j + 2 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 5)) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_r5_u3, (j_end - (j + 3 * POLYOP_LANES(4))));
                }
              }
              else {
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)], c_acc1_r0_u0);
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)], c_acc1_r0_u1);
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)], c_acc1_r0_u2);
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)], c_acc1_r0_u3);
                store_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)], c_acc1_r1_u0);
                store_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)], c_acc1_r1_u1);
                store_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)], c_acc1_r1_u2);
                store_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)], c_acc1_r1_u3);
                store_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)], c_acc1_r2_u0);
                store_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)], c_acc1_r2_u1);
                store_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)], c_acc1_r2_u2);
                store_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)], c_acc1_r2_u3);
                store_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)], c_acc1_r3_u0);
                store_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)], c_acc1_r3_u1);
                store_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)], c_acc1_r3_u2);
                store_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)], c_acc1_r3_u3);
                store_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)], c_acc1_r4_u0);
                store_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)], c_acc1_r4_u1);
                store_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)], c_acc1_r4_u2);
                store_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)], c_acc1_r4_u3);
                store_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)], c_acc1_r5_u0);
                store_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)], c_acc1_r5_u1);
                store_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)], c_acc1_r5_u2);
                store_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)], c_acc1_r5_u3);
              }
            }
            else {
              for (int64_t u = 0; u < 4 && j + u * POLYOP_LANES(4) < j_end; ++u) {
                const f32* b0_ = b0__panel;
                f32v4 c_acc1_r0 = {0};
                f32v4 c_acc1_r1 = {0};
                f32v4 c_acc1_r2 = {0};
                f32v4 c_acc1_r3 = {0};
                f32v4 c_acc1_r4 = {0};
                f32v4 c_acc1_r5 = {0};
                if (k__from == k__lo) {
                  /* 34: c[i, j] = 0 */
                  c_acc1_r0 = bcast_f32v4(0.0f);
                  c_acc1_r1 = bcast_f32v4(0.0f);
                  c_acc1_r2 = bcast_f32v4(0.0f);
                  c_acc1_r3 = bcast_f32v4(0.0f);
                  c_acc1_r4 = bcast_f32v4(0.0f);
                  c_acc1_r5 = bcast_f32v4(0.0f);
                }
                else {
                  c_acc1_r0 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)]);
                  c_acc1_r1 = load_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)]);
                  c_acc1_r2 = load_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)]);
                  c_acc1_r3 = load_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)]);
                  c_acc1_r4 = load_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)]);
                  c_acc1_r5 = load_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)]);
                }
                for (int64_t k_ = k__from, k__end = k__to; k_ < k__end; ++k_) {
                  /* 36: c[i, j] += a[i, k] * b[k, j] */
                  c_acc1_r0 = c_acc1_r0 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + u * POLYOP_LANES(4)));
                  c_acc1_r1 = c_acc1_r1 + (bcast_f32v4(a[((i + 1)) * a_n1 + k_]) * load_f32v4(b0_ + u * POLYOP_LANES(4)));
                  c_acc1_r2 = c_acc1_r2 + (bcast_f32v4(a[((i + 2)) * a_n1 + k_]) * load_f32v4(b0_ + u * POLYOP_LANES(4)));
                  c_acc1_r3 = c_acc1_r3 + (bcast_f32v4(a[((i + 3)) * a_n1 + k_]) * load_f32v4(b0_ + u * POLYOP_LANES(4)));
                  c_acc1_r4 = c_acc1_r4 + (bcast_f32v4(a[((i + 4)) * a_n1 + k_]) * load_f32v4(b0_ + u * POLYOP_LANES(4)));
                  c_acc1_r5 = c_acc1_r5 + (bcast_f32v4(a[((i + 5)) * a_n1 + k_]) * load_f32v4(b0_ + u * POLYOP_LANES(4)));
                  b0_ += 4 * POLYOP_LANES(4);
                }
                if (k__to >= k__stop) {
                  /* 35: for k in range(a.shape[1]): */
                  store_n_f32v4(&c[(i) * c_n1 + (j + u * POLYOP_LANES(4))], c_acc1_r0, (j_end - (j + u * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 1)) * c_n1 + (j + u * POLYOP_LANES(4))], c_acc1_r1, (j_end - (j + u * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 2)) * c_n1 + (j + u * POLYOP_LANES(4))], c_acc1_r2, (j_end - (j + u * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 3)) * c_n1 + (j + u * POLYOP_LANES(4))], c_acc1_r3, (j_end - (j + u * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 4)) * c_n1 + (j + u * POLYOP_LANES(4))], c_acc1_r4, (j_end - (j + u * POLYOP_LANES(4))));
                  store_n_f32v4(&c[((i + 5)) * c_n1 + (j + u * POLYOP_LANES(4))], c_acc1_r5, (j_end - (j + u * POLYOP_LANES(4))));
                }
                else {
                  store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)], c_acc1_r0);
                  store_f32v4(&c_acc1_panel[(i - i_lo + 1) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)], c_acc1_r1);
                  store_f32v4(&c_acc1_panel[(i - i_lo + 2) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)], c_acc1_r2);
                  store_f32v4(&c_acc1_panel[(i - i_lo + 3) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)], c_acc1_r3);
                  store_f32v4(&c_acc1_panel[(i - i_lo + 4) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)], c_acc1_r4);
                  store_f32v4(&c_acc1_panel[(i - i_lo + 5) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)], c_acc1_r5);
                }
              }
            }
          }
          for (; i + 1 <= i_end; i += 1) {
            if (j + 2 * POLYOP_LANES(4) < j_end) {
              const f32* b0_ = b0__panel;
              f32v4 c_acc1_u0 = {0};
              f32v4 c_acc1_u1 = {0};
              f32v4 c_acc1_u2 = {0};
              f32v4 c_acc1_u3 = {0};
              if (k__from == k__lo) {
                /* 34: c[i, j] = 0 */
                c_acc1_u0 = bcast_f32v4(0.0f);
                c_acc1_u1 = bcast_f32v4(0.0f);
                c_acc1_u2 = bcast_f32v4(0.0f);
                c_acc1_u3 = bcast_f32v4(0.0f);
              }
              else {
                c_acc1_u0 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)]);
                c_acc1_u1 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)]);
                c_acc1_u2 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)]);
                c_acc1_u3 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)]);
              }
              for (int64_t k_ = k__from, k__end = k__to; k_ < k__end; ++k_) {
                /* 36: c[i, j] += a[i, k] * b[k, j] */
                c_acc1_u0 = c_acc1_u0 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_));
                c_acc1_u1 = c_acc1_u1 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + 1 * POLYOP_LANES(4)));
                c_acc1_u2 = c_acc1_u2 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + 2 * POLYOP_LANES(4)));
                c_acc1_u3 = c_acc1_u3 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + 3 * POLYOP_LANES(4)));
                b0_ += 4 * POLYOP_LANES(4);
              }
              if (k__to >= k__stop) {
                if (j + 4 * POLYOP_LANES(4) <= j_end) {
                  /* 35: for k in range(a.shape[1]): */
                  store_f32v4(&c[(i) * c_n1 + j], c_acc1_u0);
                  store_f32v4(&c[(i) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_u1);
                  store_f32v4(&c[(i) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_u2);
                  store_f32v4(&c[(i) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_u3);
                }
                else {
                  /* 35: for k in range(a.shape[1]): */
                  store_n_f32v4(&c[(i) * c_n1 + j], c_acc1_u0, (j_end - j));
                  store_n_f32v4(&c[(i) * c_n1 + (j + 1 * POLYOP_LANES(4))], c_acc1_u1, (j_end - (j + 1 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[(i) * c_n1 + (j + 2 * POLYOP_LANES(4))], c_acc1_u2, (j_end - (j + 2 * POLYOP_LANES(4))));
                  store_n_f32v4(&c[(i) * c_n1 + (j + 3 * POLYOP_LANES(4))], c_acc1_u3, (j_end - (j + 3 * POLYOP_LANES(4))));
                }
              }
              else {
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4)], c_acc1_u0);
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4)], c_acc1_u1);
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4)], c_acc1_u2);
                store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4)], c_acc1_u3);
              }
            }
            else {
              for (int64_t u = 0; u < 4 && j + u * POLYOP_LANES(4) < j_end; ++u) {
                const f32* b0_ = b0__panel;
                f32v4 c_acc1 = {0};
                if (k__from == k__lo) {
                  /* 34: c[i, j] = 0 */
                  c_acc1 = bcast_f32v4(0.0f);
                }
                else {
                  c_acc1 = load_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)]);
                }
                for (int64_t k_ = k__from, k__end = k__to; k_ < k__end; ++k_) {
                  /* 36: c[i, j] += a[i, k] * b[k, j] */
                  c_acc1 = c_acc1 + (bcast_f32v4(a[(i) * a_n1 + k_]) * load_f32v4(b0_ + u * POLYOP_LANES(4)));
                  b0_ += 4 * POLYOP_LANES(4);
                }
                if (k__to >= k__stop) {
                  /* 35: for k in range(a.shape[1]): */
                  store_n_f32v4(&c[(i) * c_n1 + (j + u * POLYOP_LANES(4))], c_acc1, (j_end - (j + u * POLYOP_LANES(4))));
                }
                else {
                  store_f32v4(&c_acc1_panel[(i - i_lo + 0) * 4 * POLYOP_LANES(4) + u * POLYOP_LANES(4)], c_acc1);
                }
              }
            }
          }
          if (k__to >= k__stop) break;
        }
      }
      polyop_release(c_acc1_panel);
      polyop_release(b0__panel);
    }
  }
  (void)thread, (void)polyop_fuel;
}

static void run(struct kernel* k) {
  const f32* const restrict a = k->a;
  const int64_t a_n0 = k->a_n0;
  const int64_t a_n1 = k->a_n1;
  const f32* const restrict b = k->b;
  const int64_t b_n0 = k->b_n0;
  const int64_t b_n1 = k->b_n1;
  f32* const restrict c = k->c;
  const int64_t c_n0 = k->c_n0;
  const int64_t c_n1 = k->c_n1;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t lo = 0, hi = a_n0;
    const int parts = polyop_parts((double)(hi - lo) * ((f64)((b_n1 - 0)) * (((f64)((a_n1 - 0)) * 2.5) + 1.0)), hi - lo);
    const int used = polyop_run(part0, k, lo, hi, 0, parts);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{0, 0, 0}};
int matmul(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims; (void)dtypes; (void)stream; (void)shapes;
  if (nparam < 3) return polyop_fail(extra, "too few tensors");
  struct kernel self = {0}, *const k = &self;
  self.a = params[0];
  self.b = params[1];
  self.c = params[2];
  const int64_t a_n0 = self.a_n0 = shapes[0][0];
  const int64_t a_n1 = self.a_n1 = shapes[0][1];
  const int64_t b_n0 = self.b_n0 = shapes[1][0];
  const int64_t b_n1 = self.b_n1 = shapes[1][1];
  const int64_t c_n0 = self.c_n0 = max_i64(0, a_n0);
  const int64_t c_n1 = self.c_n1 = max_i64(0, b_n1);
  if ((((a_n0 >= 1) && (b_n1 >= 1)) && (a_n1 >= (b_n0 + 1)))) return polyop_misfit(extra, (struct polyop_place){36, 0, "b"}, b_n0);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
