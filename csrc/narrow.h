// Results of 64 bits for a runtime that has none: copies in 32 bits.
#pragma once

#include <string>

#include "launch.h"

namespace polyop {

// Copies a dense tensor on the CPU into one of the same shape, whose dtype stands for its dtype:
//   int64, uint64 -> int32, uint32 (checked);  float64, complex128 -> float32, complex64 (rounded)
// Returns the first value that does not fit, as a text, or an empty text.
std::string narrow(const View& from, const View& to);

}  // namespace polyop
