// Strided tensors whose last dimension is contiguous: kernels can be compiled to read them where they lie.
#pragma once

#include <algorithm>

#include "key.h"
#include "launch.h"

namespace polyop {

// A tensor seen as a part of a dense tensor in memory: dimension k of that one, of size `sizes[k]`, has
// dimension `order[k]` of the tensor, from its first element on. The last dimension is the last in both.
struct Rows {
  static constexpr int64_t kFewestBytes = 1 << 18;  // a smaller copy takes little time
  static constexpr int32_t kMostDims = 8;
  size_t parameter;  // which parameter of the kernel the tensor is
  int32_t ndim;
  int32_t order[kMostDims];
  int64_t sizes[kMostDims];
};

// Fills in all but `parameter`. False if the view is no such part, or too small for it to matter.
inline bool find_rows(const View& view, Rows* rows) {
  const int32_t last = view.ndim - 1;
  const int64_t item = dtypes()[static_cast<size_t>(view.dtype)].dlpack_bits / 8;
  if (last < 1 || last >= Rows::kMostDims || item == 0 || view.device != kCpu) return false;
  const auto step = [&](int32_t axis) {
    return view.byte_strides ? view.strides[axis] / item : view.strides[axis];
  };
  int64_t bytes = item;
  for (int32_t i = 0; i <= last; ++i) {
    if (__builtin_mul_overflow(bytes, view.shape[i], &bytes)) return false;
    rows->order[i] = i;
  }
  if (bytes < Rows::kFewestBytes || step(last) != 1 || view.shape[last] == 1) return false;
  // a dimension of size 1 may be anywhere: it is put outside, where it cannot come between others
  std::stable_sort(rows->order, rows->order + last, [&](int32_t a, int32_t b) {
    if (view.shape[a] == 1 || view.shape[b] == 1) return view.shape[a] == 1 && view.shape[b] != 1;
    return step(a) > step(b);
  });
  int64_t inner = 1;  // the step of dimension k + 1
  for (int32_t k = last; k-- > 0;) {
    const int32_t axis = rows->order[k];
    const int64_t size = view.shape[rows->order[k + 1]];
    const int64_t outer = view.shape[axis] == 1 ? inner * size : step(axis);
    if (outer <= 0 || outer % inner != 0 || outer / inner < size) return false;
    rows->sizes[k + 1] = outer / inner;
    inner = outer;
  }
  rows->ndim = view.ndim;
  rows->sizes[0] = view.shape[rows->order[0]];
  return true;
}

// Adds what tells these rows from a dense tensor and from other rows.
inline void add_rows(Key& key, const Rows& rows) {
  add_tag(key, Tag::kRows);
  for (int32_t k = 0; k < rows.ndim; ++k) {
    key.push(static_cast<uint64_t>(rows.order[k]));
    key.push(static_cast<uint64_t>(rows.sizes[k]));
  }
}

}  // namespace polyop
