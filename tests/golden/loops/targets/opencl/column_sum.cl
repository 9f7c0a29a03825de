/* column_sum: the loop kernel column_sum of small.py, for OpenCL: the host */
#include "polyop/loops/opencl.h"
extern "C" const char column_sum_device[];

namespace polyop_loops_column_sum {
struct numbers {
  int64_t first_x;
  int64_t x_n0;
  int64_t x_n1;
  int64_t first_y;
  int64_t y_n0;
  int64_t partials;
};

struct kernel : numbers {
  polyop_memory x;
  polyop_memory y;
  polyop_memory own_y;
};

static polyop_program program(column_sum_device, 3);

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  const int64_t y_n0 = self.y_n0;
  {
    const int64_t rows_ = 1;
    const int64_t lanes_ = max_i64(0, (x_n1 - 0));
    if (rows_ > 0 && lanes_ > 0) {
      const int x_ = polyop_cover(lanes_), y_ = 256 / x_;
      POLYOP_LAUNCH(0, dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535)), dim3(x_, y_), stream, numbers(self), {self.y});
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
      self.own_y = y_v2.data;
      POLYOP_LAUNCH(1, blocks_, width_, stream, numbers(self), {self.own_y, self.x});
      POLYOP_LAUNCH(2, polyop_blocks(1 + (y_n0), 256, 65535), 256, stream, numbers(self), {self.own_y, self.y});
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

/* column_sum: the loop kernel column_sum of small.py, for OpenCL: the device */
struct numbers {
  int64_t first_x;
  int64_t x_n0;
  int64_t x_n1;
  int64_t first_y;
  int64_t y_n0;
  int64_t partials;
};

__kernel void part0(const struct numbers self, __global f32* y_given) {
  const int64_t x_n1 = self.x_n1;
  __global f32* const y = y_given + self.first_y;
  for (int64_t row_ = (int64_t)get_group_id(1) * get_local_size(1) + get_local_id(1); row_ < 1; row_ += (int64_t)get_num_groups(1) * get_local_size(1)) {
    for (int64_t j = 0 + (int64_t)get_group_id(0) * get_local_size(0) + get_local_id(0), j_end = x_n1; j < j_end; j += (int64_t)get_num_groups(0) * get_local_size(0)) {
      /* 66: y[j] = 0 */
      y[j] = 0.0f;
    }
  }
}

__kernel void part1(const struct numbers self, __global void* own_y_given, __global const f32* x_given) {
  __global const f32* const restrict x = x_given + self.first_x;
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  const int64_t y_n0 = self.y_n0;
  const int lane_ = get_local_id(0), width_ = get_local_size(0);
  const int64_t slot_ = get_group_id(0);
  __global f32* const y = ((__global f32*)own_y_given) + slot_ * (y_n0);
  for (int64_t el_ = lane_; el_ < (y_n0); el_ += width_) y[el_] = 0;
  const int64_t i_lo = 0, i_n1 = max_i64(0, x_n0 - i_lo);
  for (int64_t row_ = slot_; row_ < i_n1; row_ += get_num_groups(0)) {
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

__kernel void part2(const struct numbers self, __global void* own_y_given, __global f32* y_given) {
  __global f32* const y = y_given + self.first_y;
  const int64_t y_n0 = self.y_n0;
  const int64_t lane_ = (int64_t)get_group_id(0) * get_local_size(0) + get_local_id(0);
  for (int64_t el_ = lane_; el_ < (y_n0); el_ += (int64_t)get_num_groups(0) * get_local_size(0)) {
    f32 sum_ = y[el_];
    for (int64_t piece_ = 0; piece_ < self.partials; ++piece_) sum_ = sum_ + ((__global f32*)own_y_given)[piece_ * (y_n0) + el_];
    y[el_] = sum_;
  }
}
