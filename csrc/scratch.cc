// Scratch memory: each thread keeps freed blocks for its next kernel.
#include "scratch.h"

#include <dlfcn.h>

#include <cstdlib>

#include "large_pages.h"

#define POLYOP_NO_HOOKS
#include "polyop/scratch.h"

namespace polyop {

namespace {

constexpr int64_t kMinCached = 1 << 16;   // bytes; malloc itself is fast for smaller blocks
constexpr int64_t kMaxCached = 64 << 20;  // bytes that a thread keeps in total
// Bytes before the memory, which hold its size, and after it, where vector loads may read.
constexpr int64_t kPadding = 64;
constexpr int kMaxBlocks = 16;

int64_t& size_of(void* block) { return *static_cast<int64_t*>(block); }
void* memory_of(void* block) { return static_cast<char*>(block) + kPadding; }
void* block_of(void* memory) { return static_cast<char*>(memory) - kPadding; }

// The free blocks that a thread keeps, the oldest first.
struct BlockCache {
  void* blocks[kMaxBlocks];
  int count;
  int64_t bytes;

  ~BlockCache() {
    while (count > 0) std::free(remove(0));
  }

  void* remove(int index) {
    void* block = blocks[index];
    bytes -= size_of(block);
    --count;
    for (int i = index; i < count; ++i) blocks[i] = blocks[i + 1];
    return block;
  }

  // Removes and returns the smallest block of `needed` to `2 * needed` bytes, or null.
  void* find(int64_t needed) {
    int best = -1;
    for (int i = 0; i < count; ++i) {
      const int64_t size = size_of(blocks[i]);
      if (size < needed || size > 2 * needed) continue;
      if (best < 0 || size <= size_of(blocks[best])) best = i;
    }
    return best < 0 ? nullptr : remove(best);
  }

  // Frees the oldest blocks to make room.
  void add(void* block) {
    while (count == kMaxBlocks || bytes + size_of(block) > kMaxCached) std::free(remove(0));
    bytes += size_of(block);
    blocks[count++] = block;
  }
};

thread_local BlockCache cache{};

void* take(int64_t bytes) {
  if (bytes < 0) bytes = 0;
  void* block = bytes < kMinCached ? nullptr : cache.find(bytes);
  if (block == nullptr) {
    if (posix_memalign(&block, 64, static_cast<size_t>(bytes) + 2 * kPadding) != 0) return nullptr;
    ask_for_large_pages(block, bytes);
    size_of(block) = bytes;
  }
  return memory_of(block);
}

void give(void* memory) {
  if (memory == nullptr) return;
  void* block = block_of(memory);
  const int64_t size = size_of(block);
  if (size < kMinCached || size > kMaxCached) {
    std::free(block);
  } else {
    cache.add(block);
  }
}

template <typename Function>
void set(void* library, const char* name, Function function) {
  if (void* hook = dlsym(library, name)) {
    __atomic_store_n(static_cast<Function*>(hook), function, __ATOMIC_RELEASE);
  }
}

}  // namespace

void* take_scratch(int64_t bytes) { return take(bytes); }

void give_scratch(void* memory) { give(memory); }

void connect_scratch(void* library) {
  set<polyop_take_fn>(library, "polyop_take", &take);
  set<polyop_give_fn>(library, "polyop_give", &give);
}

}  // namespace polyop
