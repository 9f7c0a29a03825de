/* loop_softmax: the loop kernel softmax of <softmax>, for CUDA: compiled, not run on hardware */
#include "polyop/loops/device.h"

namespace polyop_loops_loop_softmax {
struct numbers {
  int64_t x_n0;
  int64_t x_n1;
  int64_t y_n0;
  int64_t y_n1;
  int64_t partials;
};

struct kernel : numbers {
  const f32* x;
  f32* y;
};

__global__ void part0(const kernel self) {
  const f32* const __restrict__ x = self.x;
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  f32* const y = self.y;
  const int64_t y_n1 = self.y_n1;
  const int lane_ = threadIdx.x, width_ = blockDim.x;
  const int64_t slot_ = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  const int64_t i_lo = 0, i_n1 = max_i64(0, x_n0 - i_lo);
  for (int64_t row_ = slot_; row_ < i_n1; row_ += (int64_t)gridDim.x * blockDim.y) {
    int64_t i_r0 = row_;
    const int64_t i = i_lo + i_r0;
    f32 top = 0;
    f32 total = 0;
    /* 4: top = x[i, 0] */
    top = x[(i) * x_n1 + 0];
    {
      f32 top_v0 = -__builtin_inf();
      for (int64_t j = 0 + lane_, j_end = x_n1; j < j_end; j += width_) {
        /* 6: top = max(top, x[i, j]) */
        top_v0 = max_f32(top_v0, x[(i) * x_n1 + j]);
      }
      top = max_f32(top, polyop_combine<polyop_greatest>(top_v0, width_));
    }
    /* 7: total = float32(0) */
    total = 0.0f;
    polyop_sync(width_);
    {
      f32 total_v0 = 0;
      for (int64_t j_1 = 0 + lane_, j_1_end = x_n1; j_1 < j_1_end; j_1 += width_) {
        /* 9: y[i, j] = exp(x[i, j] - top) */
        y[(i) * y_n1 + j_1] = pl_exp_f32((x[(i) * x_n1 + j_1] - top));
        /* 10: total += y[i, j] */
        total_v0 = total_v0 + y[(i) * y_n1 + j_1];
      }
      total = total + polyop_combine<polyop_plus>(total_v0, width_);
    }
    polyop_sync(width_);
    {
      for (int64_t j_2 = 0 + lane_, j_2_end = x_n1; j_2 < j_2_end; j_2 += width_) {
        /* 12: y[i, j] = y[i, j] / total */
        y[(i) * y_n1 + j_2] = (y[(i) * y_n1 + j_2] / total);
      }
    }
    polyop_sync(width_);
  }
}

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  {
    const int64_t i_lo = 0, i_n1 = max_i64(0, x_n0 - i_lo);
    const int64_t rows_ = i_n1;
    if (rows_ > 0) {
      const int width_ = polyop_width(max_i64(0, (x_n1 - 0)));
      const int each_ = width_ == 32 ? 4 : 1;
      const unsigned blocks_ = polyop_blocks(rows_, each_, 1 << 30);
      POLYOP_LAUNCH(part0, blocks_, dim3(width_, each_), stream, self);
    }
  }
  return nullptr;
}

static int call(int nparam, void** params, int64_t** shapes, void* given, void* extra) {
  if (nparam < 2) return polyop_fail(extra, "too few tensors");
  (void)shapes;
  const polyop_stream stream = (polyop_stream)given;
  kernel self = {};
  self.x = (const f32*)params[0];
  self.y = (f32*)params[1];
  const int64_t x_n0 = self.x_n0 = shapes[0][0];
  const int64_t x_n1 = self.x_n1 = shapes[0][1];
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n0);
  const int64_t y_n1 = self.y_n1 = max_i64(0, x_n1);
  if (((x_n0 >= 1) && (x_n1 == 0))) return polyop_misfit(extra, (struct polyop_place){4, 1, "x"}, x_n1);
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  return 0;
}
}  // namespace

extern "C" int loop_softmax(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_loop_softmax::call(nparam, params, shapes, stream, extra);
}
