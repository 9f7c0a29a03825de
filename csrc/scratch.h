// Memory that kernels need while they run, kept by each thread between calls.
#pragma once

#include <cstdint>

namespace polyop {

// Sets the hooks of include/polyop/scratch.h in a library that has them.
void connect_scratch(void* library);

}  // namespace polyop
