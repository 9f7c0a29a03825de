/* running_sum: the loop kernel running_sum of small.py, for OpenCL: the host */
#include "polyop/loops/opencl.h"
extern "C" const char running_sum_device[];

namespace polyop_loops_running_sum {
struct scalars {
  f32 total;
};
struct numbers {
  int64_t first_x;
  int64_t x_n0;
  int64_t first_y;
  int64_t y_n0;
  int64_t partials;
};

struct kernel : numbers {
  polyop_memory x;
  polyop_memory y;
  polyop_memory state;
};

static polyop_program program(running_sum_device, 1);

static const char* run(kernel& self, polyop_stream stream) {
  POLYOP_LAUNCH(0, 1, 1, stream, numbers(self), {self.state, self.x, self.y});
  return nullptr;
}

static int call(int nparam, void** params, int64_t** shapes, void* given, void* extra) {
  if (nparam < 2) return polyop_fail(extra, "too few tensors");
  (void)shapes;
  polyop_queue queue(given, program);
  if (queue.wrong) return polyop_fail(extra, queue.wrong);
  const polyop_stream stream = &queue;
  kernel self = {};
  if (params[0]) self.x = *(const polyop_memory*)params[0];
  self.first_x = self.x.offset / (int64_t)sizeof(f32);
  if (params[1]) self.y = *(const polyop_memory*)params[1];
  self.first_y = self.y.offset / (int64_t)sizeof(f32);
  const int64_t x_n0 = self.x_n0 = shapes[0][0];
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n0);
  const polyop_taken taken0_((int64_t)sizeof(scalars), stream);
  if (taken0_.wrong) return polyop_fail(extra, taken0_.wrong);
  self.state = taken0_.data;
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

/* running_sum: the loop kernel running_sum of small.py, for OpenCL: the device */
struct scalars {
  f32 total;
};
struct numbers {
  int64_t first_x;
  int64_t x_n0;
  int64_t first_y;
  int64_t y_n0;
  int64_t partials;
};

__kernel void part0(const struct numbers self, __global struct scalars* state_given, __global const f32* x_given, __global f32* y_given) {
  __global const f32* const restrict x = x_given + self.first_x;
  const int64_t x_n0 = self.x_n0;
  __global f32* const y = y_given + self.first_y;
  f32 total = state_given->total;
  /* 56: total = float32(0) */
  total = 0.0f;
  for (int64_t i = 0, i_end = x_n0; i < i_end; ++i) {
    /* 58: total += x[i] */
    total = total + x[i];
    /* 59: y[i] = total */
    y[i] = total;
  }
  state_given->total = total;
}
