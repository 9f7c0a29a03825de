// Runs one Backward and converts its results to the shapes and dtypes of the inputs.
#pragma once

#include "tape.h"

namespace polyop::module {

// Runs the Backward of a node. Returns one gradient per input of Forward, with the input's shape and dtype,
// or null. Returns nothing when no gradient arrives or none is required. Throws std::runtime_error for a
// wrong number or shape.
std::vector<Ref> run_backward(Frame& frame, Node& node, const std::vector<Ref>& saved,
                              const std::vector<Ref>& gradients);

// Converts the gradient of a dense, reshaped or cast copy to the gradient of the original.
Ref shaped_like(Frame& frame, Ref gradient, const Layout& target);

// The sum of two gradients of one tensor.
Ref add(Frame& frame, const Ref& a, const Ref& b);

}  // namespace polyop::module
