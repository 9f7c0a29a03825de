// Calls functions of both return types of <Func>InferShape as both types, and prints the results. test_infer_forms.py
// builds it with different positions of the heap.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "extra.h"
#include "library.h"

namespace polyop {
void connect_threads(void*) {}
void connect_scratch(void*) {}
}  // namespace polyop

using One = std::vector<int64_t>;
using Several = std::vector<One>;

namespace {

Several rows(int*, int64_t**, void*) { return {{2, 3}, {5}}; }
Several scalars_and_row(int*, int64_t**, void*) { return {{}, {7}}; }
One shape(int*, int64_t**, void*) { return {2, 3, 4}; }
One large(int*, int64_t**, void*) { return {1 << 21, 1 << 10, 1 << 21}; }
One empty(int*, int64_t**, void*) { return {0, 0, 0}; }
One flat(int*, int64_t**, void*) { return {int64_t{1} << 33}; }

std::string result_of(void* function, bool several) {
  polyop::Extra extra({});
  try {
    const Several shapes = polyop::call_infer_shape(reinterpret_cast<uintptr_t>(function), {}, extra, several);
    std::string text;
    for (const One& row : shapes) {
      text += "[";
      for (int64_t size : row) text += std::to_string(size) + ",";
      text += "]";
    }
    return text;
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
}

}  // namespace

int main() {
  std::printf("low %d\n", reinterpret_cast<uintptr_t>(new char[64]) < (uintptr_t{1} << 34));
  for (bool several : {true, false}) {
    std::printf("rows %s\n", result_of(reinterpret_cast<void*>(rows), several).c_str());
    std::printf("scalars_and_row %s\n", result_of(reinterpret_cast<void*>(scalars_and_row), several).c_str());
    std::printf("shape %s\n", result_of(reinterpret_cast<void*>(shape), several).c_str());
    std::printf("large %s\n", result_of(reinterpret_cast<void*>(large), several).c_str());
    std::printf("flat %s\n", result_of(reinterpret_cast<void*>(flat), several).c_str());
  }
  std::printf("empty %s\n", result_of(reinterpret_cast<void*>(empty), false).c_str());
}
