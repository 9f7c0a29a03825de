// Memory that kernels need while they run, kept by each thread between calls.
#pragma once

#include <cstdint>

namespace polyop {

// Sets the hooks of include/polyop/scratch.h in a library that has them.
void connect_scratch(void* library);

// Memory of this size, aligned to 64 bytes, or null. Any thread may give it back.
void* take_scratch(int64_t bytes);
void give_scratch(void* memory);

}  // namespace polyop
