// Large pages behind memory that is about to be written whole.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace polyop {

// Asks the system for pages of 2 MiB behind memory of more than 32 MiB. The C library gives such memory back
// when it is freed, so it is new each time, and each of its pages costs a fault: large pages have 512 times
// fewer. Only those that lie wholly inside the memory are asked for, so none is wasted. Smaller memory stays
// in the process, where the advice would outlive it.
inline void ask_for_large_pages(void* memory, int64_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kPage = 2 << 20;
  if (bytes <= (32 << 20)) return;
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (start + kPage - 1) & ~(kPage - 1);
  const uintptr_t end = (start + static_cast<uintptr_t>(bytes)) & ~(kPage - 1);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // without them all works as before
#else
  (void)memory, (void)bytes;
#endif
}

}  // namespace polyop
