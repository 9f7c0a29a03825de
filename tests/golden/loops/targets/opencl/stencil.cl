/* stencil: the loop kernel stencil of small.py, for OpenCL: the host */
#include "polyop/loops/opencl.h"
extern "C" const char stencil_device[];

namespace polyop_loops_stencil {
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
};

static polyop_program program(stencil_device, 1);

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t x_n0 = self.x_n0;
  {
    const int64_t rows_ = 1;
    const int64_t lanes_ = max_i64(0, ((x_n0 - 2) - 0));
    if (rows_ > 0 && lanes_ > 0) {
      const int x_ = polyop_cover(lanes_), y_ = 256 / x_;
      POLYOP_LAUNCH(0, dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535)), dim3(x_, y_), stream, numbers(self), {self.x, self.y});
    }
  }
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
  const int64_t y_n0 = self.y_n0 = max_i64(0, (x_n0 - 2));
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  return 0;
}
}  // namespace

extern "C" int stencil(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_stencil::call(nparam, params, shapes, stream, extra);
}

/* stencil: the loop kernel stencil of small.py, for OpenCL: the device */
struct numbers {
  int64_t first_x;
  int64_t x_n0;
  int64_t first_y;
  int64_t y_n0;
  int64_t partials;
};

__kernel void part0(const struct numbers self, __global const f32* x_given, __global f32* y_given) {
  __global const f32* const restrict x = x_given + self.first_x;
  const int64_t x_n0 = self.x_n0;
  __global f32* const y = y_given + self.first_y;
  for (int64_t row_ = (int64_t)get_group_id(1) * get_local_size(1) + get_local_id(1); row_ < 1; row_ += (int64_t)get_num_groups(1) * get_local_size(1)) {
    for (int64_t i = 0 + (int64_t)get_group_id(0) * get_local_size(0) + get_local_id(0), i_end = (x_n0 - 2); i < i_end; i += (int64_t)get_num_groups(0) * get_local_size(0)) {
      /* 43: y[i] = x[i] - 2 * x[i + 1] + x[i + 2] */
      y[i] = ((x[i] - (2.0f * x[(i + 1)])) + x[(i + 2)]);
    }
  }
}
