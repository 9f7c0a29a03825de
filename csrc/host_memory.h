// Workspaces in the memory of the process, which is freed after a call.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "small.h"
#include "target.h"

namespace polyop {

class HostMemory : public Workspaces {
 public:
  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() override {
    for (void* block : blocks_) std::free(block);
  }
  void* allocate(size_t bytes) override {
    if (bytes > static_cast<size_t>(PTRDIFF_MAX)) return nullptr;
    constexpr size_t kAlign = 64;
    void* block = std::aligned_alloc(kAlign, (bytes / kAlign + 1) * kAlign);
    if (block != nullptr) blocks_.push(block);
    return block;
  }

 private:
  Small<void*, 4> blocks_;
};

}  // namespace polyop
