#include "dense.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "scratch.h"
#include "thread_count.h"
#include "threads.h"

namespace polyop {

namespace {

constexpr int32_t kMostDims = 64;  // NumPy's limit
constexpr int64_t kByteBits = 8;
constexpr int64_t kLine = 64;              // bytes of a line of the cache
constexpr int64_t kUnitItems = 1 << 14;    // of a unit of work, roughly
constexpr int64_t kUnitTiles = 4;          // rows of tiles in a unit: lines of one page are read together
constexpr int64_t kSerialBytes = 1 << 17;  // threads cost more than they save for fewer

struct Complex128 {
  double real, imaginary;
};

// A dimension: its size, and the bytes from one element to the next in the tensor and in the copy.
struct Dim {
  int64_t size, from, to;
};

// How a tensor is copied: planes of rows x columns, one for each place in the outer dimensions. A unit of
// work is a block of a plane.
struct Plan {
  const char* from;
  char* to;
  Dim outer[kMostDims];
  int32_t outer_count;
  Dim rows, columns;
  int64_t block_rows, block_columns;
  void (*copy)(const Plan& plan, const char* from, char* to, int64_t rows, int64_t columns);

  int64_t blocks_down() const { return (rows.size + block_rows - 1) / block_rows; }
  int64_t blocks_across() const { return (columns.size + block_columns - 1) / block_columns; }
  int64_t units() const {
    int64_t count = blocks_down() * blocks_across();
    for (int32_t i = 0; i < outer_count; ++i) count *= outer[i].size;
    return count;
  }
};

// The rows and columns of a tile: a line of the cache has that many items.
template <typename Item>
constexpr int64_t kEdge = std::max<int64_t>(kLine / static_cast<int64_t>(sizeof(Item)), 8);

template <typename Item>
Item load(const char* from) {
  Item item;
  std::memcpy(&item, from, sizeof item);
  return item;
}

template <typename Item>
void copy_rows(const Plan& plan, const char* from, char* to, int64_t rows, int64_t columns) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  const int64_t bytes = columns * kItem, step = plan.columns.from;
  for (int64_t i = 0; i < rows; ++i, from += plan.rows.from, to += plan.rows.to) {
    if (step == kItem && bytes >= kLine) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    } else {
      for (int64_t k = 0; k < columns; ++k) std::memcpy(to + k * kItem, from + k * step, sizeof(Item));
    }
  }
}

// Reads a whole tile, whose rows are contiguous in the tensor, and transposes it.
template <typename Item>
void transpose(const char* from, int64_t step, Item (*tile)[kEdge<Item>]) {
  for (int64_t k = 0; k < kEdge<Item>; ++k, from += step) {
    for (int64_t i = 0; i < kEdge<Item>; ++i) {
      tile[i][k] = load<Item>(from + i * static_cast<int64_t>(sizeof(Item)));
    }
  }
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
// The same, four by four: compilers make scalar code of the loops above.
template <>
void transpose<uint32_t>(const char* from, int64_t step, uint32_t (*tile)[kEdge<uint32_t>]) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  for (int64_t k = 0; k < kEdge<uint32_t>; k += 4) {
    for (int64_t i = 0; i < kEdge<uint32_t>; i += 4) {
      const char* at = from + k * step + i * 4;
      const Four a = load<Four>(at), b = load<Four>(at + step);
      const Four c = load<Four>(at + 2 * step), d = load<Four>(at + 3 * step);
      const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                 cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const Four turned[] = {
          __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
          __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5), __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
      for (int r = 0; r < 4; ++r) std::memcpy(&tile[i + r][k], &turned[r], sizeof(Four));
    }
  }
}

// The same, two by two.
template <>
void transpose<uint64_t>(const char* from, int64_t step, uint64_t (*tile)[kEdge<uint64_t>]) {
  typedef uint64_t Two __attribute__((vector_size(16)));
  for (int64_t k = 0; k < kEdge<uint64_t>; k += 2) {
    for (int64_t i = 0; i < kEdge<uint64_t>; i += 2) {
      const char* at = from + k * step + i * 8;
      const Two a = load<Two>(at), b = load<Two>(at + step);
      const Two first = __builtin_shufflevector(a, b, 0, 2), second = __builtin_shufflevector(a, b, 1, 3);
      std::memcpy(&tile[i][k], &first, sizeof(Two));
      std::memcpy(&tile[i + 1][k], &second, sizeof(Two));
    }
  }
}
#endif
#endif

// Copies one tile, whose rows are close to each other in the tensor. A whole one is transposed in memory of
// its own, so that each line of the cache is read once and written once: lines that are a power of two apart
// displace each other from the cache.
template <typename Item>
void copy_tile(const Plan& plan, const char* from, char* to, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = kEdge<Item>;
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  if (rows == kSide && columns == kSide && plan.rows.from == kItem) {
    alignas(kLine) Item tile[kSide][kSide];
    transpose<Item>(from, plan.columns.from, tile);
    for (int64_t i = 0; i < kSide; ++i) std::memcpy(to + i * plan.rows.to, tile[i], sizeof tile[i]);
    return;
  }
  for (int64_t k = 0; k < columns; ++k, from += plan.columns.from, to += kItem) {
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(to + i * plan.rows.to, from + i * plan.rows.from, sizeof(Item));
    }
  }
}

template <typename Item>
void copy_tiles(const Plan& plan, const char* from, char* to, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = kEdge<Item>;
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  for (int64_t k = 0; k < columns; k += kSide) {
    const char* source = from + k * plan.columns.from;
    char* target = to + k * kItem;
    for (int64_t i = 0; i < rows; i += kSide) {
      copy_tile<Item>(plan, source + i * plan.rows.from, target + i * plan.rows.to, std::min(kSide, rows - i),
                      std::min(kSide, columns - k));
    }
  }
}

void copy_units(void* context, int64_t begin, int64_t end, int) {
  const Plan& plan = *static_cast<const Plan*>(context);
  const int64_t down = plan.blocks_down(), across = plan.blocks_across();
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit / across % down * plan.block_rows, column = unit % across * plan.block_columns;
    const char* from = plan.from + row * plan.rows.from + column * plan.columns.from;
    char* to = plan.to + row * plan.rows.to + column * plan.columns.to;
    int64_t place = unit / across / down;
    for (int32_t i = plan.outer_count; place != 0 && i-- > 0;) {
      const Dim& dim = plan.outer[i];
      from += place % dim.size * dim.from;
      to += place % dim.size * dim.to;
      place /= dim.size;
    }
    plan.copy(plan, from, to, std::min(plan.block_rows, plan.rows.size - row),
              std::min(plan.block_columns, plan.columns.size - column));
  }
}

// The dimensions of a view, without those of size 1; neighbours that have one step in common are one.
int32_t merged_dims(const View& view, int64_t item_size, Dim* dims) {
  int32_t count = 0;
  int64_t to = item_size;
  for (int32_t i = view.ndim; i-- > 0; to *= view.shape[i]) {
    const int64_t size = view.shape[i], from = view.strides[i] * (view.byte_strides ? 1 : item_size);
    if (size == 1) continue;
    if (count > 0 && from == dims[count - 1].size * dims[count - 1].from) {
      dims[count - 1].size *= size;
    } else {
      dims[count++] = {size, from, to};
    }
  }
  std::reverse(dims, dims + count);
  return count;
}

// The dimension whose elements are the closest in the tensor, -1 if there is none; elements that are all one
// do not count.
int32_t closest(const Dim* dims, int32_t count) {
  int32_t best = -1;
  for (int32_t i = 0; i < count; ++i) {
    if (dims[i].from != 0 && (best < 0 || std::abs(dims[i].from) < std::abs(dims[best].from))) best = i;
  }
  return best;
}

// Plans the copy of a view. Columns are the last dimension, which is contiguous in the copy. Rows are one
// whose elements are closer in the tensor, else the dimension before the last.
template <typename Item>
Plan plan_copy(const View& view, void* block) {
  Plan plan;
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  plan.from = static_cast<const char*>(view.data);
  plan.to = static_cast<char*>(block);
  Dim* dims = plan.outer;
  int32_t count = merged_dims(view, kItem, dims);
  const Dim one{1, kItem, kItem};
  plan.columns = count == 0 ? one : dims[--count];
  const int32_t close = closest(dims, count);
  const bool tiled = close >= 0 && std::abs(dims[close].from) < std::abs(plan.columns.from);
  plan.rows = count == 0 ? one : dims[tiled ? close : count - 1];
  if (tiled) std::copy(dims + close + 1, dims + count, dims + close);
  plan.outer_count = std::max(count - 1, 0);
  const int64_t most_rows = tiled ? kUnitTiles * kEdge<Item> : kUnitItems / plan.columns.size;
  plan.block_rows = std::clamp<int64_t>(most_rows, 1, plan.rows.size);
  plan.block_columns = std::clamp<int64_t>(kUnitItems / plan.block_rows, 1, plan.columns.size);
  plan.copy = tiled ? copy_tiles<Item> : copy_rows<Item>;
  return plan;
}

using Planner = Plan (*)(const View&, void*);

Planner planner_of(int64_t item_size) {
  switch (item_size) {
    case 1:
      return plan_copy<uint8_t>;
    case 2:
      return plan_copy<uint16_t>;
    case 4:
      return plan_copy<uint32_t>;
    case 8:
      return plan_copy<uint64_t>;
    case 16:
      return plan_copy<Complex128>;
    default:
      return nullptr;
  }
}

int64_t bits_of(const View& view) { return dtypes()[static_cast<size_t>(view.dtype)].dlpack_bits; }

// The bytes of the elements of a view; -1 for too many, or elements that copies do not have.
int64_t bytes_of(const View& view) {
  const int64_t bits = bits_of(view);
  int64_t bytes = bits / kByteBits;
  if (bits % kByteBits != 0 || planner_of(bytes) == nullptr || view.ndim > kMostDims) return -1;
  for (int32_t i = 0; i < view.ndim; ++i) {
    if (__builtin_mul_overflow(bytes, view.shape[i], &bytes)) return -1;
  }
  return bytes;
}

}  // namespace

bool copy_to_dense(const View& view, void* to, bool on_threads) {
  const int64_t bytes = bytes_of(view);
  if (bytes <= 0) return bytes == 0;
  Plan plan = planner_of(bits_of(view) / kByteBits)(view, to);
  if (bytes <= kSerialBytes || !on_threads) {
    copy_units(&plan, 0, plan.units(), 0);
  } else {
    parallel(copy_units, &plan, 0, plan.units(), 0, 0);
  }
  return true;
}

DenseCopies::~DenseCopies() {
  for (const Copy& copy : copies_) give_scratch(copy.block);
}

bool DenseCopies::plan(const View& view, size_t parameter) {
  const int64_t bytes = bytes_of(view);
  if (view.device != kCpu || bytes < 0) return false;
  if (bytes > kSerialBytes) thread_count();  // reads os.environ once, which make() cannot do
  copies_.push({view, parameter, nullptr, false});
  return true;
}

void DenseCopies::leave(size_t parameter) {
  for (Copy& copy : copies_) copy.left = copy.left || copy.parameter == parameter;
}

void DenseCopies::make(void** data) {
  for (Copy& copy : copies_) {
    if (copy.left) continue;
    copy.block = take_scratch(bytes_of(copy.view));
    if (copy.block == nullptr) throw std::bad_alloc();
    copy_to_dense(copy.view, copy.block, true);
    data[copy.parameter] = copy.block;
  }
}

}  // namespace polyop
