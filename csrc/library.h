// Opening shared libraries and calling the companions of a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "extra.h"

namespace polyop {

// A tensor without data. Dimensions may be -1 (unknown); a shape of {-2} has unknown rank.
struct TensorSpec {
  std::vector<int64_t> shape;
  std::string dtype;
};

// The handle of a library, whose loops are given threads; throws std::runtime_error with the
// loader's own text. Libraries stay open for the life of the process: kernel data and
// thread-locals of theirs may outlive a call. Where an open file is given it is loaded, and path is
// what it is called.
uintptr_t open_library(const std::string& path, int file = -1);

// The address of a symbol, or 0.
uintptr_t find_symbol(uintptr_t library, const std::string& name);

// Runs <Func>Init. Returns its code; a C++ exception becomes std::runtime_error.
int call_init(uintptr_t address, const std::vector<TensorSpec>& specs, Extra& extra);

// Runs <Func>InferShape on the inputs, in its one-output or several-outputs form. Throws
// std::runtime_error when what came back cannot be of that form.
std::vector<std::vector<int64_t>> call_infer_shape(uintptr_t address, const std::vector<TensorSpec>& inputs,
                                                   Extra& extra, bool several);

// Runs <Func>InferType on MindSpore's TypeId numbers, likewise.
std::vector<int> call_infer_type(uintptr_t address, const std::vector<int>& types, Extra& extra,
                                 bool several);

}  // namespace polyop
