// A call in a graph of MindSpore. No type of the standard library is in these declarations: see the .cc file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyop {

// The target (target.h) of a text. Imports polyop if the process has not: a graph that was loaded from a
// file.
void* mindspore_target(const char* text, size_t length);

// Runs the call on the inputs that are present, then all outputs. Throws errors: MindSpore shows the text of
// an exception, and none for a return code.
void mindspore_run(void* target, size_t inputs, int count, void** params, const int* ndims, int64_t** shapes,
                   const char** dtypes);

// Calls `add` with the shape of each output, for those of the inputs: -1 is a size that is not known, a shape
// of -2 alone a number of dimensions that is not. `dtypes` are the names of the inputs' dtypes, by commas.
// Throws errors.
void mindspore_shapes(const char* text, const char* dtypes, size_t inputs, const int* ndims, int64_t** shapes,
                      void (*add)(void* outputs, const int64_t* shape, size_t ndim), void* outputs);

}  // namespace polyop
