/* gather: the loop kernel gather of small.py, for CUDA: compiled, not run on hardware */
#include "polyop/loops/device.h"

namespace polyop_loops_gather {
struct numbers {
  int64_t table_n0;
  int64_t at_n0;
  int64_t y_n0;
  int64_t partials;
};

struct kernel : numbers {
  const f32* table;
  const i64* at;
  f32* y;
  struct polyop_failure* failure;
};

__global__ void part0(const kernel self) {
  const f32* const __restrict__ table = self.table;
  const int64_t table_n0 = self.table_n0;
  const i64* const __restrict__ at = self.at;
  const int64_t at_n0 = self.at_n0;
  f32* const y = self.y;
  for (int64_t row_ = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row_ < 1; row_ += (int64_t)gridDim.y * blockDim.y) {
    for (int64_t i = 0 + (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i_end = at_n0; i < i_end; i += (int64_t)gridDim.x * blockDim.x) {
      /* 50: y[i] = table[at[i]] */
      y[i] = (polyop_inside(self.failure, at[i], table_n0, 1) ? table[polyop_from_end(at[i], table_n0)] : 0);
    }
  }
}

static const char* run(kernel& self, polyop_stream stream) {
  const int64_t at_n0 = self.at_n0;
  {
    const int64_t rows_ = 1;
    const int64_t lanes_ = max_i64(0, (at_n0 - 0));
    if (rows_ > 0 && lanes_ > 0) {
      const int x_ = polyop_cover(lanes_), y_ = 256 / x_;
      POLYOP_LAUNCH(part0, dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535)), dim3(x_, y_), stream, self);
    }
  }
  return nullptr;
}

static const struct polyop_place places[] = {{50, 0, "table"}};
static int call(int nparam, void** params, int64_t** shapes, void* given, void* extra) {
  if (nparam < 3) return polyop_fail(extra, "too few tensors");
  (void)shapes;
  const polyop_stream stream = (polyop_stream)given;
  kernel self = {};
  self.table = (const f32*)params[0];
  self.at = (const i64*)params[1];
  self.y = (f32*)params[2];
  const int64_t table_n0 = self.table_n0 = shapes[0][0];
  const int64_t at_n0 = self.at_n0 = shapes[1][0];
  const int64_t y_n0 = self.y_n0 = max_i64(0, at_n0);
  const polyop_taken taken0_((int64_t)sizeof(polyop_failure), stream);
  if (taken0_.wrong) return polyop_fail(extra, taken0_.wrong);
  self.failure = (struct polyop_failure*)taken0_.data;
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
