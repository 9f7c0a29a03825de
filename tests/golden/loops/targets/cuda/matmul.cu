/* matmul: the loop kernel matmul of small.py, for CUDA: compiled, not run on hardware */
#include "polyop/loops/device.h"

namespace polyop_loops_matmul {
struct numbers {
  int64_t a_n0;
  int64_t a_n1;
  int64_t b_n0;
  int64_t b_n1;
  int64_t c_n0;
  int64_t c_n1;
  int64_t partials;
};

struct kernel : numbers {
  const f32* a;
  const f32* b;
  f32* c;
};

__global__ void __launch_bounds__(256) part0(const kernel self) {
  const f32* const __restrict__ a = self.a;
  const int64_t a_n0 = self.a_n0;
  const int64_t a_n1 = self.a_n1;
  const f32* const __restrict__ b = self.b;
  const int64_t b_n1 = self.b_n1;
  f32* const c = self.c;
  const int64_t c_n1 = self.c_n1;
  const int64_t first_ = 0, last_ = a_n0;
  const int64_t left_ = 0, right_ = b_n1;
  const int64_t rows_ = last_ > first_ ? (last_ - first_ + 63) / 64 : 0;
  const int64_t lanes_ = right_ > left_ ? (right_ - left_ + 63) / 64 : 0;
  const int x_ = threadIdx.x % 16, y_ = threadIdx.x / 16;
  __shared__ f32 part_0_all[16][65];
  __shared__ f32 part_1_all[16][65];
  for (int64_t tile_ = blockIdx.x; tile_ < rows_ * lanes_; tile_ += gridDim.x) {
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
      __syncthreads();
      const int steps_ = (int)min_i64(16, k__end - k__lo);
      for (int el_ = threadIdx.x; el_ < 1024; el_ += 256) {
        const int64_t k_ = k__lo + el_ % 16, i = i_lo + el_ / 16;
        part_0_all[el_ % 16][el_ / 16] = k_ < k__end && i < last_ ? a[(i) * a_n1 + k_] : 0;
      }
      for (int el_ = threadIdx.x; el_ < 1024; el_ += 256) {
        const int64_t k_ = k__lo + el_ / 64, j = j_lo + el_ % 64;
        part_1_all[el_ / 64][el_ % 64] = k_ < k__end && j < right_ ? b[(k_) * b_n1 + j] : 0;
      }
      __syncthreads();
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
      POLYOP_LAUNCH(part0, polyop_blocks(tiles_, 1, 1 << 30), 256, stream, self);
    }
  }
  return nullptr;
}

static int call(int nparam, void** params, int64_t** shapes, void* given, void* extra) {
  if (nparam < 3) return polyop_fail(extra, "too few tensors");
  (void)shapes;
  const polyop_stream stream = (polyop_stream)given;
  kernel self = {};
  self.a = (const f32*)params[0];
  self.b = (const f32*)params[1];
  self.c = (f32*)params[2];
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
