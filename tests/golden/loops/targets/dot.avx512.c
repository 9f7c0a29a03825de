/* by_rows: the loop kernel by_rows of test_dots.py, for avx512 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
#pragma GCC target("prefer-vector-width=512")
#endif
#define POLYOP_WANT_W1
#define POLYOP_WANT_W4
#include "polyop/loops/vector.h"
#include "polyop/loops/transpose.h"
#include "polyop/loops/dot.h"
#include "polyop/loops/run.h"

struct kernel {
  struct polyop_failure failure;
  const i8* a;
  const i8* b;
  i32* c;
  int64_t a_n0;
  int64_t a_n1;
  int64_t b_n0;
  int64_t b_n1;
  int64_t c_n0;
  int64_t c_n1;
};

static void part0(void* context, int64_t begin, int64_t end, int thread) {
  struct kernel* const k = context;
  const i8* const restrict a = k->a;
  const int64_t a_n0 = k->a_n0;
  const int64_t a_n1 = k->a_n1;
  const i8* const restrict b = k->b;
  const int64_t b_n0 = k->b_n0;
  const int64_t b_n1 = k->b_n1;
  i32* const restrict c = k->c;
  const int64_t c_n0 = k->c_n0;
  const int64_t c_n1 = k->c_n1;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t i_last = end;
    const int64_t d0__n = max_i64(0, a_n1 - (0));
    const int64_t d0__steps = (d0__n + 3) / 4;
    const int64_t i_rows = max_i64(1, 4194304 / max_i64(1, (d0__steps + 1) * 4) / 6) * 6;
    for (int64_t i_lo = begin; i_lo < i_last; i_lo += i_rows) {
      const int64_t i_end = min_i64(i_lo + i_rows, i_last);
      const int64_t j_lo = 0, j_end = b_n0;
      i32* const d0__rows = polyop_scratch((i_end - i_lo) * (d0__steps + 1) * 4);
      i32* const d0__panel = polyop_scratch((d0__steps + POLYOP_LANES(4)) * (4 * POLYOP_LANES(4)) * 4 + 64);
      const int64_t d0__step = (d0__steps + POLYOP_LANES(4) - 1) / POLYOP_LANES(4) * POLYOP_LANES(4) + POLYOP_LANES(4);
      i32* const d0__part = polyop_scratch(d0__step * (4 * POLYOP_LANES(4)) * 4);
      if (!d0__rows || !d0__panel || !d0__part) { polyop_release(d0__rows); polyop_release(d0__panel); polyop_release(d0__part); polyop_out_of_memory(k); return; }
      const int d0__check = i_end - i_lo < 4;
      for (int64_t i = i_lo; i < i_end; ++i) {
        i32* const d0_ = d0__rows + (i - i_lo) * (d0__steps + 1);
        if (d0__steps > 0) (d0_ + 1)[d0__steps - 1] = 0;
        for (int64_t k_ = 0, k__end = a_n1; k_ < k__end; k_ += POLYOP_LANES(1)) {
          store_n_i8v1((i8*)(d0_ + 1) + (k_ - (0)), load_n_i8v1(&a[(i) * a_n1 + k_], (k__end - k_)), k__end - k_);
        }
        d0_[0] = polyop_dot_start_i8(d0_ + 1, d0__steps);
      }
      for (int64_t j = j_lo; j < j_end; j += 4 * POLYOP_LANES(4)) {
        if (polyop_stops(k, (i_end - i_lo) * (1 + a_n1))) break;
        {
          const int64_t j_q_end = min_i64(j + 4 * POLYOP_LANES(4), j_end);
          for (int64_t j_q = j; j_q < j_q_end; ++j_q) {
            if (d0__steps > 0) (d0__part + (j_q - j) * d0__step)[d0__steps - 1] = 0;
            for (int64_t k_ = 0, k__end = a_n1; k_ < k__end; k_ += POLYOP_LANES(1)) {
              store_n_i8v1((i8*)(d0__part + (j_q - j) * d0__step) + (k_ - (0)), load_n_i8v1(&b[(j_q) * b_n1 + k_], (k__end - k_)), k__end - k_);
            }
          }
          if (!d0__check) polyop_dot_panel(d0__panel, 4 * POLYOP_LANES(4), d0__part, d0__step, d0__steps, (i32)0x80808080u);
        }
        int64_t i = i_lo;
        for (; i + 6 <= i_end; i += 6) {
          if (j + 4 * POLYOP_LANES(4) <= j_end) {
            i32 d0__to[24 * POLYOP_LANES(4)] __attribute__((aligned(64)));
            polyop_dot_i8_6x4(d0__to, d0__rows + (i - i_lo) * (d0__steps + 1), d0__steps + 1, d0__panel + 0, 4 * POLYOP_LANES(4), d0__steps);
            i32v4 total_r0_u0 = {0};
            i32v4 total_r0_u1 = {0};
            i32v4 total_r0_u2 = {0};
            i32v4 total_r0_u3 = {0};
            i32v4 total_r1_u0 = {0};
            i32v4 total_r1_u1 = {0};
            i32v4 total_r1_u2 = {0};
            i32v4 total_r1_u3 = {0};
            i32v4 total_r2_u0 = {0};
            i32v4 total_r2_u1 = {0};
            i32v4 total_r2_u2 = {0};
            i32v4 total_r2_u3 = {0};
            i32v4 total_r3_u0 = {0};
            i32v4 total_r3_u1 = {0};
            i32v4 total_r3_u2 = {0};
            i32v4 total_r3_u3 = {0};
            i32v4 total_r4_u0 = {0};
            i32v4 total_r4_u1 = {0};
            i32v4 total_r4_u2 = {0};
            i32v4 total_r4_u3 = {0};
            i32v4 total_r5_u0 = {0};
            i32v4 total_r5_u1 = {0};
            i32v4 total_r5_u2 = {0};
            i32v4 total_r5_u3 = {0};
            /* 40: total = int32(0) */
            total_r0_u0 = bcast_i32v4((i32)0);
            total_r0_u1 = bcast_i32v4((i32)0);
            total_r0_u2 = bcast_i32v4((i32)0);
            total_r0_u3 = bcast_i32v4((i32)0);
            total_r1_u0 = bcast_i32v4((i32)0);
            total_r1_u1 = bcast_i32v4((i32)0);
            total_r1_u2 = bcast_i32v4((i32)0);
            total_r1_u3 = bcast_i32v4((i32)0);
            total_r2_u0 = bcast_i32v4((i32)0);
            total_r2_u1 = bcast_i32v4((i32)0);
            total_r2_u2 = bcast_i32v4((i32)0);
            total_r2_u3 = bcast_i32v4((i32)0);
            total_r3_u0 = bcast_i32v4((i32)0);
            total_r3_u1 = bcast_i32v4((i32)0);
            total_r3_u2 = bcast_i32v4((i32)0);
            total_r3_u3 = bcast_i32v4((i32)0);
            total_r4_u0 = bcast_i32v4((i32)0);
            total_r4_u1 = bcast_i32v4((i32)0);
            total_r4_u2 = bcast_i32v4((i32)0);
            total_r4_u3 = bcast_i32v4((i32)0);
            total_r5_u0 = bcast_i32v4((i32)0);
            total_r5_u1 = bcast_i32v4((i32)0);
            total_r5_u2 = bcast_i32v4((i32)0);
            total_r5_u3 = bcast_i32v4((i32)0);
            /* 42: total += int32(a[i, k]) * int32(b[j, k]) */
            total_r0_u0 = total_r0_u0 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
            total_r0_u1 = total_r0_u1 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4));
            total_r0_u2 = total_r0_u2 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4));
            total_r0_u3 = total_r0_u3 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4));
            total_r1_u0 = total_r1_u0 + load_i32v4((i32*)d0__to + 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
            total_r1_u1 = total_r1_u1 + load_i32v4((i32*)d0__to + 4 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4));
            total_r1_u2 = total_r1_u2 + load_i32v4((i32*)d0__to + 4 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4));
            total_r1_u3 = total_r1_u3 + load_i32v4((i32*)d0__to + 4 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4));
            total_r2_u0 = total_r2_u0 + load_i32v4((i32*)d0__to + 8 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
            total_r2_u1 = total_r2_u1 + load_i32v4((i32*)d0__to + 8 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4));
            total_r2_u2 = total_r2_u2 + load_i32v4((i32*)d0__to + 8 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4));
            total_r2_u3 = total_r2_u3 + load_i32v4((i32*)d0__to + 8 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4));
            total_r3_u0 = total_r3_u0 + load_i32v4((i32*)d0__to + 12 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
            total_r3_u1 = total_r3_u1 + load_i32v4((i32*)d0__to + 12 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4));
            total_r3_u2 = total_r3_u2 + load_i32v4((i32*)d0__to + 12 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4));
            total_r3_u3 = total_r3_u3 + load_i32v4((i32*)d0__to + 12 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4));
            total_r4_u0 = total_r4_u0 + load_i32v4((i32*)d0__to + 16 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
            total_r4_u1 = total_r4_u1 + load_i32v4((i32*)d0__to + 16 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4));
            total_r4_u2 = total_r4_u2 + load_i32v4((i32*)d0__to + 16 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4));
            total_r4_u3 = total_r4_u3 + load_i32v4((i32*)d0__to + 16 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4));
            total_r5_u0 = total_r5_u0 + load_i32v4((i32*)d0__to + 20 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
            total_r5_u1 = total_r5_u1 + load_i32v4((i32*)d0__to + 20 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4));
            total_r5_u2 = total_r5_u2 + load_i32v4((i32*)d0__to + 20 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4));
            total_r5_u3 = total_r5_u3 + load_i32v4((i32*)d0__to + 20 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4));
            /* 43: c[i, j] = total */
            store_i32v4(&c[(i) * c_n1 + j], total_r0_u0);
            store_i32v4(&c[(i) * c_n1 + (j + 1 * POLYOP_LANES(4))], total_r0_u1);
            store_i32v4(&c[(i) * c_n1 + (j + 2 * POLYOP_LANES(4))], total_r0_u2);
            store_i32v4(&c[(i) * c_n1 + (j + 3 * POLYOP_LANES(4))], total_r0_u3);
            store_i32v4(&c[((i + 1)) * c_n1 + j], total_r1_u0);
            store_i32v4(&c[((i + 1)) * c_n1 + (j + 1 * POLYOP_LANES(4))], total_r1_u1);
            store_i32v4(&c[((i + 1)) * c_n1 + (j + 2 * POLYOP_LANES(4))], total_r1_u2);
            store_i32v4(&c[((i + 1)) * c_n1 + (j + 3 * POLYOP_LANES(4))], total_r1_u3);
            store_i32v4(&c[((i + 2)) * c_n1 + j], total_r2_u0);
            store_i32v4(&c[((i + 2)) * c_n1 + (j + 1 * POLYOP_LANES(4))], total_r2_u1);
            store_i32v4(&c[((i + 2)) * c_n1 + (j + 2 * POLYOP_LANES(4))], total_r2_u2);
            store_i32v4(&c[((i + 2)) * c_n1 + (j + 3 * POLYOP_LANES(4))], total_r2_u3);
            store_i32v4(&c[((i + 3)) * c_n1 + j], total_r3_u0);
            store_i32v4(&c[((i + 3)) * c_n1 + (j + 1 * POLYOP_LANES(4))], total_r3_u1);
            store_i32v4(&c[((i + 3)) * c_n1 + (j + 2 * POLYOP_LANES(4))], total_r3_u2);
            store_i32v4(&c[((i + 3)) * c_n1 + (j + 3 * POLYOP_LANES(4))], total_r3_u3);
            store_i32v4(&c[((i + 4)) * c_n1 + j], total_r4_u0);
            store_i32v4(&c[((i + 4)) * c_n1 + (j + 1 * POLYOP_LANES(4))], total_r4_u1);
            store_i32v4(&c[((i + 4)) * c_n1 + (j + 2 * POLYOP_LANES(4))], total_r4_u2);
            store_i32v4(&c[((i + 4)) * c_n1 + (j + 3 * POLYOP_LANES(4))], total_r4_u3);
            store_i32v4(&c[((i + 5)) * c_n1 + j], total_r5_u0);
            store_i32v4(&c[((i + 5)) * c_n1 + (j + 1 * POLYOP_LANES(4))], total_r5_u1);
            store_i32v4(&c[((i + 5)) * c_n1 + (j + 2 * POLYOP_LANES(4))], total_r5_u2);
            store_i32v4(&c[((i + 5)) * c_n1 + (j + 3 * POLYOP_LANES(4))], total_r5_u3);
          }
          else {
            for (int64_t u = 0; u < 4 && j + u * POLYOP_LANES(4) < j_end; ++u) {
              i32 d0__to[6 * POLYOP_LANES(4)] __attribute__((aligned(64)));
              polyop_dot_i8_6x1(d0__to, d0__rows + (i - i_lo) * (d0__steps + 1), d0__steps + 1, d0__panel + u * POLYOP_LANES(4), 4 * POLYOP_LANES(4), d0__steps);
              i32v4 total_r0 = {0};
              i32v4 total_r1 = {0};
              i32v4 total_r2 = {0};
              i32v4 total_r3 = {0};
              i32v4 total_r4 = {0};
              i32v4 total_r5 = {0};
              /* 40: total = int32(0) */
              total_r0 = bcast_i32v4((i32)0);
              total_r1 = bcast_i32v4((i32)0);
              total_r2 = bcast_i32v4((i32)0);
              total_r3 = bcast_i32v4((i32)0);
              total_r4 = bcast_i32v4((i32)0);
              total_r5 = bcast_i32v4((i32)0);
              /* 42: total += int32(a[i, k]) * int32(b[j, k]) */
              total_r0 = total_r0 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
              total_r1 = total_r1 + load_i32v4((i32*)d0__to + 1 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
              total_r2 = total_r2 + load_i32v4((i32*)d0__to + 2 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
              total_r3 = total_r3 + load_i32v4((i32*)d0__to + 3 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
              total_r4 = total_r4 + load_i32v4((i32*)d0__to + 4 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
              total_r5 = total_r5 + load_i32v4((i32*)d0__to + 5 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
              /* 43: c[i, j] = total */
              store_n_i32v4(&c[(i) * c_n1 + (j + u * POLYOP_LANES(4))], total_r0, (j_end - (j + u * POLYOP_LANES(4))));
              store_n_i32v4(&c[((i + 1)) * c_n1 + (j + u * POLYOP_LANES(4))], total_r1, (j_end - (j + u * POLYOP_LANES(4))));
              store_n_i32v4(&c[((i + 2)) * c_n1 + (j + u * POLYOP_LANES(4))], total_r2, (j_end - (j + u * POLYOP_LANES(4))));
              store_n_i32v4(&c[((i + 3)) * c_n1 + (j + u * POLYOP_LANES(4))], total_r3, (j_end - (j + u * POLYOP_LANES(4))));
              store_n_i32v4(&c[((i + 4)) * c_n1 + (j + u * POLYOP_LANES(4))], total_r4, (j_end - (j + u * POLYOP_LANES(4))));
              store_n_i32v4(&c[((i + 5)) * c_n1 + (j + u * POLYOP_LANES(4))], total_r5, (j_end - (j + u * POLYOP_LANES(4))));
            }
          }
        }
        for (; i + 1 <= i_end; i += 1) {
          if (j + 4 * POLYOP_LANES(4) <= j_end) {
            i32 d0__to[4 * POLYOP_LANES(4)] __attribute__((aligned(64)));
            if (d0__check) polyop_dot_thin_i8(d0__to, d0__rows + (i - i_lo) * (d0__steps + 1), d0__part + (0) * d0__step, d0__step, 4 * POLYOP_LANES(4), d0__steps, (i32)0x80808080u);
            else polyop_dot_i8_1x4(d0__to, d0__rows + (i - i_lo) * (d0__steps + 1), d0__steps + 1, d0__panel + 0, 4 * POLYOP_LANES(4), d0__steps);
            i32v4 total_u0 = {0};
            i32v4 total_u1 = {0};
            i32v4 total_u2 = {0};
            i32v4 total_u3 = {0};
            /* 40: total = int32(0) */
            total_u0 = bcast_i32v4((i32)0);
            total_u1 = bcast_i32v4((i32)0);
            total_u2 = bcast_i32v4((i32)0);
            total_u3 = bcast_i32v4((i32)0);
            /* 42: total += int32(a[i, k]) * int32(b[j, k]) */
            total_u0 = total_u0 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
            total_u1 = total_u1 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 1 * POLYOP_LANES(4));
            total_u2 = total_u2 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 2 * POLYOP_LANES(4));
            total_u3 = total_u3 + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 3 * POLYOP_LANES(4));
            /* 43: c[i, j] = total */
            store_i32v4(&c[(i) * c_n1 + j], total_u0);
            store_i32v4(&c[(i) * c_n1 + (j + 1 * POLYOP_LANES(4))], total_u1);
            store_i32v4(&c[(i) * c_n1 + (j + 2 * POLYOP_LANES(4))], total_u2);
            store_i32v4(&c[(i) * c_n1 + (j + 3 * POLYOP_LANES(4))], total_u3);
          }
          else {
            for (int64_t u = 0; u < 4 && j + u * POLYOP_LANES(4) < j_end; ++u) {
              i32 d0__to[1 * POLYOP_LANES(4)] __attribute__((aligned(64)));
              if (d0__check) polyop_dot_thin_i8(d0__to, d0__rows + (i - i_lo) * (d0__steps + 1), d0__part + (u * POLYOP_LANES(4)) * d0__step, d0__step, 1 * POLYOP_LANES(4), d0__steps, (i32)0x80808080u);
              else polyop_dot_i8_1x1(d0__to, d0__rows + (i - i_lo) * (d0__steps + 1), d0__steps + 1, d0__panel + u * POLYOP_LANES(4), 4 * POLYOP_LANES(4), d0__steps);
              i32v4 total = {0};
              /* 40: total = int32(0) */
              total = bcast_i32v4((i32)0);
              /* 42: total += int32(a[i, k]) * int32(b[j, k]) */
              total = total + load_i32v4((i32*)d0__to + 0 * POLYOP_LANES(4) + 0 * POLYOP_LANES(4));
              /* 43: c[i, j] = total */
              store_n_i32v4(&c[(i) * c_n1 + (j + u * POLYOP_LANES(4))], total, (j_end - (j + u * POLYOP_LANES(4))));
            }
          }
        }
      }
      polyop_release(d0__rows);
      polyop_release(d0__panel);
      polyop_release(d0__part);
    }
  }
  (void)thread, (void)polyop_fuel;
}

static void run(struct kernel* k) {
  const i8* const restrict a = k->a;
  const int64_t a_n0 = k->a_n0;
  const int64_t a_n1 = k->a_n1;
  const i8* const restrict b = k->b;
  const int64_t b_n0 = k->b_n0;
  const int64_t b_n1 = k->b_n1;
  i32* const restrict c = k->c;
  const int64_t c_n0 = k->c_n0;
  const int64_t c_n1 = k->c_n1;
  int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);
  {
    const int64_t lo = 0, hi = a_n0;
    const int parts = polyop_parts((double)(hi - lo) * ((f64)((b_n0 - 0)) * (((f64)((a_n1 - 0)) * 3.5) + 1.0)), hi - lo);
    const int used = polyop_run(part0, k, lo, hi, 0, parts);
    (void)used;
    polyop_fuel -= POLYOP_CALL;
  }
  (void)polyop_fuel;
}

static const struct polyop_place places[] = {{0, 0, 0}};
int by_rows(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
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
  const int64_t c_n1 = self.c_n1 = max_i64(0, b_n0);
  if ((((a_n0 >= 1) && (b_n0 >= 1)) && (a_n1 >= (b_n1 + 1)))) return polyop_misfit(extra, (struct polyop_place){42, 1, "b"}, b_n1);
  if (!self.failure.place) {
    run(k);
  }
  return polyop_report(extra, &self.failure, places);
}
