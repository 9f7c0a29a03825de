#include "scratch.h"

#include <dlfcn.h>

#include <cstdlib>

#define POLYOP_NO_HOOKS
#include "polyop/scratch.h"

namespace polyop {

namespace {

constexpr int64_t kLeast = 1 << 16;  // the C library has less than this at hand itself
constexpr int64_t kMost = 64 << 20;  // what a thread keeps
constexpr int64_t kSlack = 64;       // what a kernel may read beyond the end, and where the size is noted
constexpr int kBlocks = 16;

int64_t& size_of(void* block) { return *static_cast<int64_t*>(block); }
void* memory_of(void* block) { return static_cast<char*>(block) + kSlack; }
void* block_of(void* memory) { return static_cast<char*>(memory) - kSlack; }

// What a thread keeps, the oldest first.
struct Kept {
  void* blocks[kBlocks];
  int count;
  int64_t bytes;

  ~Kept() {
    while (count > 0) std::free(remove(0));
  }

  void* remove(int place) {
    void* found = blocks[place];
    bytes -= size_of(found);
    --count;
    for (int i = place; i < count; ++i) blocks[i] = blocks[i + 1];
    return found;
  }

  void* find(int64_t wanted) {
    int best = -1;
    for (int i = 0; i < count; ++i) {
      const int64_t size = size_of(blocks[i]);
      if (size < wanted || size > 2 * wanted) continue;
      if (best < 0 || size <= size_of(blocks[best])) best = i;
    }
    return best < 0 ? nullptr : remove(best);
  }

  void add(void* block) {
    while (count == kBlocks || bytes + size_of(block) > kMost) std::free(remove(0));
    bytes += size_of(block);
    blocks[count++] = block;
  }
};

thread_local Kept kept{};

void* take(int64_t bytes) {
  if (bytes < 0) bytes = 0;
  void* block = bytes < kLeast ? nullptr : kept.find(bytes);
  if (block == nullptr) {
    if (posix_memalign(&block, 64, static_cast<size_t>(bytes) + 2 * kSlack) != 0) return nullptr;
    size_of(block) = bytes;
  }
  return memory_of(block);
}

void give(void* memory) {
  if (memory == nullptr) return;
  void* block = block_of(memory);
  const int64_t size = size_of(block);
  if (size < kLeast || size > kMost) {
    std::free(block);
  } else {
    kept.add(block);
  }
}

template <typename Function>
void set(void* library, const char* name, Function function) {
  if (void* hook = dlsym(library, name)) {
    __atomic_store_n(static_cast<Function*>(hook), function, __ATOMIC_RELEASE);
  }
}

}  // namespace

void connect_scratch(void* library) {
  set<polyop_take_fn>(library, "polyop_take", &take);
  set<polyop_give_fn>(library, "polyop_give", &give);
}

}  // namespace polyop
