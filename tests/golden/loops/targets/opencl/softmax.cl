/* softmax: the loop kernel softmax of small.py, for OpenCL: the host */
#include "polyop/loops/opencl.h"
extern "C" const char softmax_device[];

namespace polyop_loops_softmax {
struct numbers {
  int64_t first_x;
  int64_t x_n0;
  int64_t x_n1;
  int64_t first_y;
  int64_t y_n0;
  int64_t y_n1;
  int64_t partials;
};

struct kernel : numbers {
  polyop_memory x;
  polyop_memory y;
};

static polyop_program program(softmax_device, 1);

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  {
    const int64_t i_lo = 0, i_n1 = max_i64(0, x_n0 - i_lo);
    const int64_t rows_ = i_n1;
    if (rows_ > 0) {
      const int width_ = polyop_width(max_i64(0, (x_n1 - 0)));
      const int each_ = 1;
      const unsigned blocks_ = polyop_blocks(rows_, each_, 1 << 30);
      POLYOP_LAUNCH(0, blocks_, dim3(width_, each_), stream, numbers(self), {self.x, self.y});
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
  const int64_t y_n0 = self.y_n0 = max_i64(0, x_n0);
  const int64_t y_n1 = self.y_n1 = max_i64(0, x_n1);
  if (((x_n0 >= 1) && (x_n1 == 0))) return polyop_misfit(extra, (struct polyop_place){18, 1, "x"}, x_n1);
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  return 0;
}
}  // namespace

extern "C" int softmax(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_softmax::call(nparam, params, shapes, stream, extra);
}

/* softmax: the loop kernel softmax of small.py, for OpenCL: the device */
struct numbers {
  int64_t first_x;
  int64_t x_n0;
  int64_t x_n1;
  int64_t first_y;
  int64_t y_n0;
  int64_t y_n1;
  int64_t partials;
};

__kernel void part0(const struct numbers self, __global const f32* x_given, __global f32* y_given) {
  __local u64 shared_[256];
  __global const f32* const restrict x = x_given + self.first_x;
  const int64_t x_n0 = self.x_n0;
  const int64_t x_n1 = self.x_n1;
  __global f32* const y = y_given + self.first_y;
  const int64_t y_n1 = self.y_n1;
  const int lane_ = get_local_id(0), width_ = get_local_size(0);
  const int64_t slot_ = (int64_t)get_group_id(0) * get_local_size(1) + get_local_id(1);
  const int64_t i_lo = 0, i_n1 = max_i64(0, x_n0 - i_lo);
  for (int64_t row_ = slot_; row_ < i_n1; row_ += (int64_t)get_num_groups(0) * get_local_size(1)) {
    int64_t i_r0 = row_;
    const int64_t i = i_lo + i_r0;
    f32 top = 0;
    f32 total = 0;
    /* 18: top = x[i, 0] */
    top = x[(i) * x_n1 + 0];
    /* 19: total = float32(0) */
    total = 0.0f;
    {
      f32 top_v0 = -__builtin_inf();
      for (int64_t j = 0 + lane_, j_end = x_n1; j < j_end; j += width_) {
        /* 21: top = max(top, x[i, j]) */
        top_v0 = max_f32(top_v0, x[(i) * x_n1 + j]);
      }
      top = max_f32(top, polyop_combine_greatest_f32(top_v0, width_, shared_));
    }
    polyop_sync(width_);
    {
      f32 total_v0 = 0;
      for (int64_t j_1 = 0 + lane_, j_1_end = x_n1; j_1 < j_1_end; j_1 += width_) {
        /* 23: y[i, j] = exp(x[i, j] - top) */
        y[(i) * y_n1 + j_1] = pl_exp_f32((x[(i) * x_n1 + j_1] - top));
        /* 24: total += y[i, j] */
        total_v0 = total_v0 + y[(i) * y_n1 + j_1];
      }
      total = total + polyop_combine_plus_f32(total_v0, width_, shared_);
    }
    polyop_sync(width_);
    {
      for (int64_t j_2 = 0 + lane_, j_2_end = x_n1; j_2 < j_2_end; j_2 += width_) {
        /* 26: y[i, j] = y[i, j] / total */
        y[(i) * y_n1 + j_2] = (y[(i) * y_n1 + j_2] / total);
      }
    }
    polyop_sync(width_);
  }
}
