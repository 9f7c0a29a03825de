/* gather: the loop kernel gather of small.py, for OpenCL: the host */
#include "polyop/loops/opencl.h"
extern "C" const char gather_device[];

namespace polyop_loops_gather {
struct numbers {
  int64_t first_table;
  int64_t table_n0;
  int64_t first_at;
  int64_t at_n0;
  int64_t first_y;
  int64_t y_n0;
  int64_t partials;
};

struct kernel : numbers {
  polyop_memory table;
  polyop_memory at;
  polyop_memory y;
  polyop_memory failure;
};

static polyop_program program(gather_device, 1);

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t at_n0 = self.at_n0;
  {
    const int64_t rows_ = 1;
    const int64_t lanes_ = max_i64(0, (at_n0 - 0));
    if (rows_ > 0 && lanes_ > 0) {
      const int x_ = polyop_cover(lanes_), y_ = 256 / x_;
      POLYOP_LAUNCH(0, dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535)), dim3(x_, y_), stream, numbers(self), {self.failure, self.table, self.at, self.y});
    }
  }
  return nullptr;
}

static const struct polyop_place places[] = {{50, 0, "table"}};
static int call(int nparam, void** params, int64_t** shapes, void* given, void* extra) {
  if (nparam < 3) return polyop_fail(extra, "too few tensors");
  (void)shapes;
  polyop_queue queue(given, program);
  if (queue.wrong) return polyop_fail(extra, queue.wrong);
  const polyop_stream stream = &queue;
  kernel self = {};
  if (params[0]) self.table = *(const polyop_memory*)params[0];
  self.first_table = self.table.offset / (int64_t)sizeof(f32);
  if (params[1]) self.at = *(const polyop_memory*)params[1];
  self.first_at = self.at.offset / (int64_t)sizeof(i64);
  if (params[2]) self.y = *(const polyop_memory*)params[2];
  self.first_y = self.y.offset / (int64_t)sizeof(f32);
  const int64_t table_n0 = self.table_n0 = shapes[0][0];
  const int64_t at_n0 = self.at_n0 = shapes[1][0];
  const int64_t y_n0 = self.y_n0 = max_i64(0, at_n0);
  const polyop_taken taken0_((int64_t)sizeof(polyop_failure), stream);
  if (taken0_.wrong) return polyop_fail(extra, taken0_.wrong);
  self.failure = taken0_.data;
  {
    if (const char* wrong = polyop_clear(self.failure, (int64_t)sizeof(polyop_failure), stream)) return polyop_fail(extra, wrong);
  }
  if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);
  polyop_failure failure = {};
  if (const char* wrong = polyop_fetch(&failure, self.failure, sizeof failure, stream)) return polyop_fail(extra, wrong);
  return polyop_report(extra, &failure, places);
}
}  // namespace

extern "C" int gather(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  (void)ndims, (void)dtypes;
  return polyop_loops_gather::call(nparam, params, shapes, stream, extra);
}

/* gather: the loop kernel gather of small.py, for OpenCL: the device */
struct numbers {
  int64_t first_table;
  int64_t table_n0;
  int64_t first_at;
  int64_t at_n0;
  int64_t first_y;
  int64_t y_n0;
  int64_t partials;
};

__kernel void part0(const struct numbers self, __global struct polyop_failure* failure_given, __global const f32* table_given, __global const i64* at_given, __global f32* y_given) {
  __global const f32* const restrict table = table_given + self.first_table;
  const int64_t table_n0 = self.table_n0;
  __global const i64* const restrict at = at_given + self.first_at;
  const int64_t at_n0 = self.at_n0;
  __global f32* const y = y_given + self.first_y;
  for (int64_t row_ = (int64_t)get_group_id(1) * get_local_size(1) + get_local_id(1); row_ < 1; row_ += (int64_t)get_num_groups(1) * get_local_size(1)) {
    for (int64_t i = 0 + (int64_t)get_group_id(0) * get_local_size(0) + get_local_id(0), i_end = at_n0; i < i_end; i += (int64_t)get_num_groups(0) * get_local_size(0)) {
      /* 50: y[i] = table[at[i]] */
      y[i] = (polyop_inside(failure_given, at[i], table_n0, 1) ? table[polyop_from_end(at[i], table_n0)] : 0);
    }
  }
}
