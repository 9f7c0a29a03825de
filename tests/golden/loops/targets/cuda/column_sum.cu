/* column_sum: the loop kernel column_sum of small.py, for CUDA: compiled, not run on hardware */
#include "polyop/loops/device.h"

namespace polyop_loops_column_sum {
struct numbers {
  int64_t x_n0;
  int64_t x_n1;
  int64_t y_n0;
  int64_t partials;
};

struct kernel : numbers {
  const f32* x;
  f32* y;
  void* own_y;
};

__global__ void part0(const kernel self) {
  const int64_t x_n1 = self.x_n1;
  f32* const y = self.y;
  for (int64_t row_ = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row_ < 1; row_ += (int64_t)gridDim.y * blockDim.y) {
    for (int64_t j = 0 + (int64_t)blockIdx.x * blockDim.x + threadIdx.x, j_end = x_n1; j < j_end; j += (int64_t)gridDim.x * blockDim.x) {
      /* 66: y[j] = 0 */
      y[j] = 0.0f;
    }
  }
}

__global__ void part1(const kernel self) {
  const f32* const __restrict__ x = self.x;
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  const int64_t y_n0 = self.y_n0;
  const int lane_ = threadIdx.x, width_ = blockDim.x;
  const int64_t slot_ = blockIdx.x;
  f32* const y = ((f32*)self.own_y) + slot_ * (y_n0);
  for (int64_t el_ = lane_; el_ < (y_n0); el_ += width_) y[el_] = 0;
  const int64_t i_lo = 0, i_n1 = max_i64(0, x_n0 - i_lo);
  for (int64_t row_ = slot_; row_ < i_n1; row_ += gridDim.x) {
    int64_t i_r0 = row_;
    const int64_t i = i_lo + i_r0;
    polyop_sync(width_);
    {
      for (int64_t j_1 = 0 + lane_, j_1_end = x_n1; j_1 < j_1_end; j_1 += width_) {
        /* 69: y[j] += x[i, j] */
        y[j_1] = y[j_1] + x[(i) * x_n1 + j_1];
      }
    }
    polyop_sync(width_);
  }
}

__global__ void part2(const kernel self) {
  f32* const y = self.y;
  const int64_t y_n0 = self.y_n0;
  const int64_t lane_ = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int64_t el_ = lane_; el_ < (y_n0); el_ += (int64_t)gridDim.x * blockDim.x) {
    f32 sum_ = y[el_];
    for (int64_t piece_ = 0; piece_ < self.partials; ++piece_) sum_ = sum_ + ((f32*)self.own_y)[piece_ * (y_n0) + el_];
    y[el_] = sum_;
  }
}

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  const int64_t y_n0 = self.y_n0;
  {
    const int64_t rows_ = 1;
    const int64_t lanes_ = max_i64(0, (x_n1 - 0));
    if (rows_ > 0 && lanes_ > 0) {
      const int x_ = polyop_cover(lanes_), y_ = 256 / x_;
      POLYOP_LAUNCH(part0, dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535)), dim3(x_, y_), stream, self);
    }
  }
  {
    const int64_t i_lo = 0, i_n1 = max_i64(0, x_n0 - i_lo);
    const int64_t rows_ = i_n1;
    if (rows_ > 0) {
      const int width_ = polyop_width(max_i64(0, (x_n1 - 0)));
      const unsigned blocks_ = polyop_blocks(rows_, 1, 256);
      self.partials = blocks_;
      polyop_taken y_v2((int64_t)blocks_ * (y_n0) * (int64_t)sizeof(f32), stream);
      if (y_v2.wrong) return y_v2.wrong;
      self.own_y = (void*)y_v2.data;
      POLYOP_LAUNCH(part1, blocks_, width_, stream, self);
      POLYOP_LAUNCH(part2, polyop_blocks(1 + (y_n0), 256, 65535), 256, stream, self);
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
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n1);
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  return 0;
}
}  // namespace

extern "C" int column_sum(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_column_sum::call(nparam, params, shapes, stream, extra);
}
