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

// Opens a library, sets its hooks for threads and scratch memory, and returns its handle. Throws
// std::runtime_error with the loader's text. Libraries stay open for the life of the process, because their
// kernel data and thread-locals may outlive a call. With `file`, the descriptor of an open file, that file is
// loaded whatever is at `path` by now; `path` is only its name.
uintptr_t open_library(const std::string& path, int file = -1);

// Returns the address of a symbol that the library itself defines, or 0. The loader searches what the library
// needs too, so it would give libc's function for a name that the library lacks.
uintptr_t find_symbol(uintptr_t library, const std::string& name);

// Where code is: the file that it was loaded from, its symbol ("" if it has none), its offset in the file's
// image. Everything is empty for code of no file.
struct Place {
  std::string file, symbol;
  uint64_t offset;
};
Place place_of(uintptr_t address);

// Runs <Func>Init and returns its code. A C++ exception of Init passes through.
int call_init(uintptr_t address, const std::vector<TensorSpec>& specs, Extra& extra);

// Runs <Func>InferShape on the inputs. It has two C++ return types: one shape, or (`several`) a list of
// shapes. Throws std::runtime_error when the returned value is evidently of the other type.
std::vector<std::vector<int64_t>> call_infer_shape(uintptr_t address, const std::vector<TensorSpec>& inputs,
                                                   Extra& extra, bool several);

// Runs <Func>InferType on MindSpore's TypeId numbers. It returns one number, or (`several`) a list.
std::vector<int> call_infer_type(uintptr_t address, const std::vector<int>& types, Extra& extra,
                                 bool several);

}  // namespace polyop
