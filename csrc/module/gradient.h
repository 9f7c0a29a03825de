// Running one Backward, and bringing its results to the form of the inputs.
#pragma once

#include "tape.h"

namespace polyop::module {

// Run the Backward of a node. One gradient per input of Forward, each with the input's shape and
// dtype, or null. Throws std::runtime_error for a wrong number or shape.
std::vector<Ref> run_backward(Frame& frame, Node& node, const std::vector<Ref>& saved,
                              const std::vector<Ref>& gradients);

// A gradient as that of a tensor from which a dense, reshaped or cast copy was taken.
Ref shaped_like(Frame& frame, Ref gradient, const Layout& target);

// The sum of two gradients of one tensor.
Ref add(Frame& frame, const Ref& a, const Ref& b);

}  // namespace polyop::module
