// The threads that kernels' loops run on: polyop_parallel of polyop/parallel.h.
//
// No OpenMP: its common runtime hangs in a forked child, hides its locks from ThreadSanitizer, and
// frameworks bring copies of their own into the process.
#pragma once

#define POLYOP_NO_HOOKS  // the core gives the hooks and has none
#include "polyop/parallel.h"

namespace polyop {

// polyop_parallel_fn. Threads start when first needed, are never joined, and do not outlive fork().
int parallel(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk, int threads);

// Sets the hooks of a library that has them; `library` is its handle.
void connect_threads(void* library);

}  // namespace polyop
