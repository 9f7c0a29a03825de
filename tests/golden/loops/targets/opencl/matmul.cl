/* matmul: the loop kernel matmul of small.py, for OpenCL: the host */
#include "polyop/loops/opencl.h"
extern "C" const char matmul_device[];

namespace polyop_loops_matmul {
struct numbers {
  int64_t first_a;
  int64_t a_n0;
  int64_t a_n1;
  int64_t first_b;
  int64_t b_n0;
  int64_t b_n1;
  int64_t first_c;
  int64_t c_n0;
  int64_t c_n1;
  int64_t partials;
};

struct kernel : numbers {
  polyop_memory a;
  polyop_memory b;
  polyop_memory c;
};

static polyop_program program(matmul_device, 1);

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t a_n0 = self.a_n0;
  const int64_t b_n1 = self.b_n1;
  {
    const int64_t first_ = 0, last_ = a_n0;
    const int64_t left_ = 0, right_ = b_n1;
    const int64_t rows_ = last_ > first_ ? (last_ - first_ + 63) / 64 : 0;
    const int64_t lanes_ = right_ > left_ ? (right_ - left_ + 63) / 64 : 0;
    const int64_t tiles_ = rows_ * lanes_;
    if (tiles_ > 0) {
      POLYOP_LAUNCH(0, polyop_blocks(tiles_, 1, 1 << 30), 256, stream, numbers(self), {self.a, self.b, self.c});
    }
  }
  return nullptr;
}

static int call(int nparam, void** params, int64_t** shapes, void* given, void* extra) {
  if (nparam < 3) return polyop_fail(extra, "too few tensors");
  (void)shapes;
  polyop_queue queue(given, program);
  if (queue.wrong) return polyop_fail(extra, queue.wrong);
  const polyop_stream stream = &queue;
  kernel self = {};
  if (params[0]) self.a = *(const polyop_memory*)params[0];
  self.first_a = self.a.offset / (int64_t)sizeof(f32);
  if (params[1]) self.b = *(const polyop_memory*)params[1];
  self.first_b = self.b.offset / (int64_t)sizeof(f32);
  if (params[2]) self.c = *(const polyop_memory*)params[2];
  self.first_c = self.c.offset / (int64_t)sizeof(f32);
  const int64_t a_n0 = self.a_n0 = shapes[0][0];
  const int64_t a_n1 = self.a_n1 = shapes[0][1];
  const int64_t b_n0 = self.b_n0 = shapes[1][0];
  const int64_t b_n1 = self.b_n1 = shapes[1][1];
  const int64_t c_n0 = self.c_n0 = max_i64(0, a_n0);
  const int64_t c_n1 = self.c_n1 = max_i64(0, b_n1);
  if ((((a_n0 >= 1) && (b_n1 >= 1)) && (a_n1 >= (b_n0 + 1)))) return polyop_misfit(extra, (struct polyop_place){36, 0, "b"}, b_n0);
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  return 0;
}
}  // namespace

extern "C" int matmul(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_matmul::call(nparam, params, shapes, stream, extra);
}

/* matmul: the loop kernel matmul of small.py, for OpenCL: the device */
struct numbers {
  int64_t first_a;
  int64_t a_n0;
  int64_t a_n1;
  int64_t first_b;
  int64_t b_n0;
  int64_t b_n1;
  int64_t first_c;
  int64_t c_n0;
  int64_t c_n1;
  int64_t partials;
};

__kernel void part0(const struct numbers self, __global const f32* a_given, __global const f32* b_given, __global f32* c_given) {
  __global const f32* const restrict a = a_given + self.first_a;
  const int64_t a_n0 = self.a_n0;
  const int64_t a_n1 = self.a_n1;
  __global const f32* const restrict b = b_given + self.first_b;
  const int64_t b_n1 = self.b_n1;
  __global f32* const c = c_given + self.first_c;
  const int64_t c_n1 = self.c_n1;
  const int64_t first_ = 0, last_ = a_n0;
  const int64_t left_ = 0, right_ = b_n1;
  const int64_t rows_ = last_ > first_ ? (last_ - first_ + 63) / 64 : 0;
  const int64_t lanes_ = right_ > left_ ? (right_ - left_ + 63) / 64 : 0;
  const int x_ = get_local_id(0) % 16, y_ = get_local_id(0) / 16;
  __local f32 part_0_all[16][65];
  __local f32 part_1_all[16][65];
  for (int64_t tile_ = get_group_id(0); tile_ < rows_ * lanes_; tile_ += get_num_groups(0)) {
    int64_t rest_ = tile_;
    const int64_t j_lo = left_ + 64 * polyop_split(&rest_, lanes_);
    const int64_t i_lo = first_ + 64 * polyop_split(&rest_, rows_);
    f32 c_acc1[4][4] = {{0}};
    POLYOP_UNROLL for (int m_ = 0; m_ < 4; ++m_) {
      POLYOP_UNROLL for (int n_ = 0; n_ < 4; ++n_) {
        const int64_t i = i_lo + y_ + 16 * m_;
        const int64_t j = j_lo + x_ + 16 * n_;
        if (i >= last_ || j < 0 || j >= b_n1) continue;
        /* 34: c[i, j] = 0 */
        c_acc1[m_][n_] = 0.0f;
      }
    }
    for (int64_t k__lo = 0, k__end = a_n1; k__lo < k__end; k__lo += 16) {
      barrier(CLK_LOCAL_MEM_FENCE);
      const int steps_ = (int)min_i64(16, k__end - k__lo);
      for (int el_ = get_local_id(0); el_ < 1024; el_ += 256) {
        const int64_t k_ = k__lo + el_ % 16, i = i_lo + el_ / 16;
        part_0_all[el_ % 16][el_ / 16] = k_ < k__end && i < last_ ? a[(i) * a_n1 + k_] : 0;
      }
      for (int el_ = get_local_id(0); el_ < 1024; el_ += 256) {
        const int64_t k_ = k__lo + el_ / 64, j = j_lo + el_ % 64;
        part_1_all[el_ / 64][el_ % 64] = k_ < k__end && j < right_ ? b[(k_) * b_n1 + j] : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int step_ = 0; step_ < steps_; ++step_) {
        const int64_t k_ = k__lo + step_;
        (void)k_;
        f32 part_0_own[4];
        POLYOP_UNROLL for (int m_ = 0; m_ < 4; ++m_) part_0_own[m_] = part_0_all[step_][y_ + 16 * m_];
        f32 part_1_own[4];
        POLYOP_UNROLL for (int m_ = 0; m_ < 4; ++m_) part_1_own[m_] = part_1_all[step_][x_ + 16 * m_];
        POLYOP_UNROLL for (int m_ = 0; m_ < 4; ++m_) {
          POLYOP_UNROLL for (int n_ = 0; n_ < 4; ++n_) {
            /* 36: c[i, j] += a[i, k] * b[k, j] */
            c_acc1[m_][n_] = c_acc1[m_][n_] + (part_0_own[m_] * part_1_own[n_]);
          }
        }
      }
    }
    POLYOP_UNROLL for (int m_ = 0; m_ < 4; ++m_) {
      POLYOP_UNROLL for (int n_ = 0; n_ < 4; ++n_) {
        const int64_t i = i_lo + y_ + 16 * m_;
        const int64_t j = j_lo + x_ + 16 * n_;
        if (i >= last_ || j < 0 || j >= b_n1) continue;
        /* 35: for k in range(a.shape[1]): */
        c[(i) * c_n1 + j] = c_acc1[m_][n_];
      }
    }
  }
}
