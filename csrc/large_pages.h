// Large pages behind memory that is about to be written whole.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace polyop {

// Asks the system for pages of 2 MiB behind new memory of 4 MiB and more, as NumPy does for its arrays. An
// allocator gets so much memory from the system each time, and then each of its pages costs a fault: large
// pages have 512 times fewer. Only those that lie wholly inside the memory are asked for, so none is wasted.
inline void ask_for_large_pages(void* memory, int64_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kPage = 2 << 20;
  if (bytes < (4 << 20)) return;
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (start + kPage - 1) & ~(kPage - 1);
  const uintptr_t end = (start + static_cast<uintptr_t>(bytes)) & ~(kPage - 1);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // without them all works as before
#else
  (void)memory, (void)bytes;
#endif
}

}  // namespace polyop
