// XLA's FFI handlers as kernels: calls them as XLA does, with structs of our own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../launch.h"

namespace polyop {

// What a handler says of itself.
struct XlaMetadata {
  int major, minor;  // of the interface that it was built against; -1 if it does not answer
  bool stateful;     // it makes a state, which later calls get
};

// Asks a handler, without running it. Throws std::runtime_error with the handler's text if it fails.
XlaMetadata xla_metadata(uintptr_t handler);

// An attribute as XLA passes it: a scalar, an array, or (with no dtype) a text.
struct XlaAttribute {
  std::string name;
  std::string dtype;
  std::string bytes;
  size_t count;
  bool scalar;
};

// Returns the launch of a handler. `tensors` are the dtypes of the tensors, of which the first `inputs` are
// inputs; "" is an absent one, which the handler does not see. `outputs` are those that a call allocates: all
// or none. Throws std::runtime_error for a dtype that XLA does not have.
Launch make_xla_launch(uintptr_t handler, const std::vector<std::string>& tensors, size_t inputs,
                       std::vector<Output> outputs, std::vector<XlaAttribute> attributes, bool cuda,
                       const std::string& label);

}  // namespace polyop
