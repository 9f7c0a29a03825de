// MindSpore's aot launch takes a library and the name of a function in it, and no other argument. So there is
// a table of functions, and each is assigned one call to make: an operator with its attributes.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "../target.h"
#include "mindspore.h"

namespace polyop {

namespace {

constexpr int kSlots = 1024;

struct Slot {
  std::atomic<Target*> target{nullptr};
  size_t inputs = 0;
};
Slot slots[kSlots];
int used = 0;  // under Python's lock

class HostMemory : public Scratch {
 public:
  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() override {
    for (void* block : blocks_) std::free(block);
  }
  void* allocate(size_t bytes) override {
    constexpr size_t kAlign = 64;
    void* block = std::aligned_alloc(kAlign, (bytes / kAlign + 1) * kAlign);
    if (block != nullptr) blocks_.push(block);
    return block;
  }

 private:
  Small<void*, 4> blocks_;
};

int32_t row_of(const char* name) {
  for (size_t row = 0; row < dtypes().size(); ++row) {
    if (dtypes()[row].name == name) return static_cast<int32_t>(row);
  }
  return -1;
}

// Throws errors: MindSpore shows the text of an exception, and none for a return code.
int run_slot(int number, int count, void** params, int* ndims, int64_t** shapes, const char** dtypes) {
  static const int64_t no_dims = 0;
  Slot& slot = slots[number];
  Target* target = slot.target.load(std::memory_order_acquire);
  if (target == nullptr) throw std::runtime_error("polyop: no call was assigned to this function");
  Views views;
  for (int i = 0; i < count; ++i) {
    const int32_t row = row_of(dtypes[i]);
    if (row < 0) throw std::runtime_error(std::string("polyop: no kernel takes dtype ") + dtypes[i]);
    views.push(
        {params[i], ndims[i] == 0 ? &no_dims : shapes[i], ndims[i], row, kCpu, 0, nullptr, false, false});
  }
  HostMemory scratch;
  const std::string error = target->run(views, slot.inputs, nullptr, scratch);
  if (!error.empty()) throw std::runtime_error(error);
  return 0;
}

}  // namespace

const char* mindspore_slot_name(int number) {
  static thread_local char name[32];
  std::snprintf(name, sizeof name, "polyop_slot_%d%c%c", number >> 8, "0123456789abcdef"[number >> 4 & 15],
                "0123456789abcdef"[number & 15]);
  return name;
}

int mindspore_take_slot(const char* text, size_t length, size_t inputs) {
  Target* target = &Target::of({text, length});
  for (int i = 0; i < used; ++i) {
    if (slots[i].target.load(std::memory_order_relaxed) == target && slots[i].inputs == inputs) return i;
  }
  if (used == kSlots) return -1;
  slots[used].inputs = inputs;
  slots[used].target.store(target, std::memory_order_release);
  return used++;
}

}  // namespace polyop

// polyop_slot_000 to polyop_slot_3ff
// clang-format off
#define POLYOP_SLOT(x, y, z)                                                                           \
  extern "C" __attribute__((visibility("default"), used)) int polyop_slot_##x##y##z(                   \
      int count, void** params, int* ndims, int64_t** shapes, const char** dtypes, void*, void*) {     \
    return polyop::run_slot(0x##x##y##z, count, params, ndims, shapes, dtypes);                        \
  }
#define POLYOP_SLOTS_16(x, y)                                                                          \
  POLYOP_SLOT(x, y, 0) POLYOP_SLOT(x, y, 1) POLYOP_SLOT(x, y, 2) POLYOP_SLOT(x, y, 3)                  \
  POLYOP_SLOT(x, y, 4) POLYOP_SLOT(x, y, 5) POLYOP_SLOT(x, y, 6) POLYOP_SLOT(x, y, 7)                  \
  POLYOP_SLOT(x, y, 8) POLYOP_SLOT(x, y, 9) POLYOP_SLOT(x, y, a) POLYOP_SLOT(x, y, b)                  \
  POLYOP_SLOT(x, y, c) POLYOP_SLOT(x, y, d) POLYOP_SLOT(x, y, e) POLYOP_SLOT(x, y, f)
#define POLYOP_SLOTS_256(x)                                                                            \
  POLYOP_SLOTS_16(x, 0) POLYOP_SLOTS_16(x, 1) POLYOP_SLOTS_16(x, 2) POLYOP_SLOTS_16(x, 3)              \
  POLYOP_SLOTS_16(x, 4) POLYOP_SLOTS_16(x, 5) POLYOP_SLOTS_16(x, 6) POLYOP_SLOTS_16(x, 7)              \
  POLYOP_SLOTS_16(x, 8) POLYOP_SLOTS_16(x, 9) POLYOP_SLOTS_16(x, a) POLYOP_SLOTS_16(x, b)              \
  POLYOP_SLOTS_16(x, c) POLYOP_SLOTS_16(x, d) POLYOP_SLOTS_16(x, e) POLYOP_SLOTS_16(x, f)
POLYOP_SLOTS_256(0)
POLYOP_SLOTS_256(1)
POLYOP_SLOTS_256(2)
POLYOP_SLOTS_256(3)
