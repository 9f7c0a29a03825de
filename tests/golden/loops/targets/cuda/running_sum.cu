/* running_sum: the loop kernel running_sum of small.py, for CUDA: compiled, not run on hardware */
#include "polyop/loops/device.h"

namespace polyop_loops_running_sum {
struct scalars {
  f32 total;
};
struct numbers {
  int64_t x_n0;
  int64_t y_n0;
  int64_t partials;
};

struct kernel : numbers {
  const f32* x;
  f32* y;
  struct scalars* state;
};

__global__ void part0(const kernel self) {
  const f32* const __restrict__ x = self.x;
  const int64_t x_n0 = self.x_n0;
  f32* const y = self.y;
  f32 total = self.state->total;
  /* 56: total = float32(0) */
  total = 0.0f;
  for (int64_t i = 0, i_end = x_n0; i < i_end; ++i) {
    /* 58: total += x[i] */
    total = total + x[i];
    /* 59: y[i] = total */
    y[i] = total;
  }
  self.state->total = total;
}

static const char* run(kernel& self, polyop_stream stream) {
  POLYOP_LAUNCH(part0, 1, 1, stream, self);
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
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n0);
  const polyop_taken taken0_((int64_t)sizeof(scalars), stream);
  if (taken0_.wrong) return polyop_fail(extra, taken0_.wrong);
  self.state = (struct scalars*)taken0_.data;
  {
    if (const char* wrong = polyop_clear(self.state, (int64_t)sizeof(scalars), stream)) return polyop_fail(extra, wrong);
  }
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  return 0;
}
}  // namespace

extern "C" int running_sum(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_running_sum::call(nparam, params, shapes, stream, extra);
}
