#include "dense.h"

#include <cstring>

#include "scratch.h"

namespace polyop {

namespace {

constexpr int64_t kMostBytes = 1 << 17;  // more take longer to copy than the framework's call takes
constexpr int32_t kMostDims = 64;        // NumPy's limit
constexpr int64_t kByteBits = 8;

struct Complex128 {
  double real, imaginary;
};

// Copies dimension `dim` and those after it; returns the end of what was written. `steps` are in bytes.
template <typename Item>
char* copy(const char* from, const View& view, const int64_t* steps, int32_t dim, char* to) {
  const int64_t count = view.shape[dim], step = steps[dim];
  if (dim + 1 < view.ndim) {
    for (int64_t i = 0; i < count; ++i) to = copy<Item>(from + i * step, view, steps, dim + 1, to);
    return to;
  }
  for (int64_t i = 0; i < count; ++i, to += sizeof(Item)) std::memcpy(to, from + i * step, sizeof(Item));
  return to;
}

using Copy = char* (*)(const char*, const View&, const int64_t*, int32_t, char*);

Copy copy_of(int64_t item_size) {
  switch (item_size) {
    case 1:
      return copy<uint8_t>;
    case 2:
      return copy<uint16_t>;
    case 4:
      return copy<uint32_t>;
    case 8:
      return copy<uint64_t>;
    case 16:
      return copy<Complex128>;
    default:
      return nullptr;
  }
}

}  // namespace

DenseCopies::~DenseCopies() {
  for (void* block : blocks_) give_scratch(block);
}

bool DenseCopies::make_dense(View* view) {
  const int64_t bits = dtypes()[static_cast<size_t>(view->dtype)].dlpack_bits;
  const int64_t item_size = bits / kByteBits;
  const Copy copy_items = bits % kByteBits == 0 ? copy_of(item_size) : nullptr;
  if (copy_items == nullptr || view->device != kCpu || view->ndim < 1 || view->ndim > kMostDims) return false;
  int64_t bytes = item_size, steps[kMostDims];
  for (int32_t i = 0; i < view->ndim; ++i) {
    steps[i] = view->strides[i] * (view->byte_strides ? 1 : item_size);
    if (view->shape[i] > kMostBytes) return false;
    bytes *= view->shape[i];
    if (bytes > kMostBytes) return false;
  }
  void* block = take_scratch(bytes);
  if (block == nullptr) return false;
  blocks_.push(block);
  copy_items(static_cast<const char*>(view->data), *view, steps, 0, static_cast<char*>(block));
  view->data = block;
  view->strides = nullptr;
  view->byte_strides = false;
  return true;
}

}  // namespace polyop
