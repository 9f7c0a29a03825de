/* stencil: the loop kernel stencil of small.py, for CUDA: compiled, not run on hardware */
#include "polyop/loops/device.h"

namespace polyop_loops_stencil {
struct numbers {
  int64_t x_n0;
  int64_t y_n0;
  int64_t partials;
};

struct kernel : numbers {
  const f32* x;
  f32* y;
};

__global__ void part0(const kernel self) {
  const f32* const __restrict__ x = self.x;
  const int64_t x_n0 = self.x_n0;
  f32* const y = self.y;
  for (int64_t row_ = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row_ < 1; row_ += (int64_t)gridDim.y * blockDim.y) {
    for (int64_t i = 0 + (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i_end = (x_n0 - 2); i < i_end; i += (int64_t)gridDim.x * blockDim.x) {
      /* 43: y[i] = x[i] - 2 * x[i + 1] + x[i + 2] */
      y[i] = ((x[i] - (2.0f * x[(i + 1)])) + x[(i + 2)]);
    }
  }
}

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t x_n0 = self.x_n0;
  {
    const int64_t rows_ = 1;
    const int64_t lanes_ = max_i64(0, ((x_n0 - 2) - 0));
    if (rows_ > 0 && lanes_ > 0) {
      const int x_ = polyop_cover(lanes_), y_ = 256 / x_;
      POLYOP_LAUNCH(part0, dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535)), dim3(x_, y_), stream, self);
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
  const int64_t y_n0 = self.y_n0 = max_i64(0, (x_n0 - 2));
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  return 0;
}
}  // namespace

extern "C" int stencil(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_stencil::call(nparam, params, shapes, stream, extra);
}
