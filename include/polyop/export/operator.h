// The operators of an exported library: what the generated tables say of them, and how they run.
//
// An exported library holds one Operator for each operator. The ways to call it (C functions, PyTorch, ONNX
// Runtime, XLA, tvm-ffi) convert their tensors and attributes, and call infer() and run(). Nothing here needs
// Python, a framework or another part of polyop.
#ifndef POLYOP_EXPORT_OPERATOR_H
#define POLYOP_EXPORT_OPERATOR_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "polyop/abi.h"
#include "polyop/dtype_rows.h"
#include "polyop/export/array.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // A set of dtypes: bit d stands for the polyop_dtype d.
  using DTypes = uint64_t;
  static_assert(kDTypes < 64, "DTypes has a bit for each dtype");
  constexpr DTypes kAnyDType = (DTypes{1} << kDTypes) - 1;

  struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  // The shape and the dtype of an output.
  struct Shape {
    int32_t dtype = POLYOP_DTYPE_ABSENT;
    std::vector<int64_t> sizes;
  };

  // A tensor argument of the schema.
  struct Input {
    const char* name;
    bool optional;
    bool written;  // in place
  };

  // An attribute of the schema. `fallback` is the value of the schema's default, or null if it has none.
  struct Attribute {
    const char* name;
    int32_t kind;   // a polyop_attribute_kind
    int32_t depth;  // 0 for a single value, 1 for a list
    const polyop_attribute* fallback;
    bool optional = false;  // whether None is a value
  };

  // Writes the shapes of the outputs for these inputs and attributes. Throws Error if the inputs do not fit.
  using Infer = void (*)(const polyop_array* inputs, const polyop_attribute* attributes, Shape* outputs);
  using Init = int (*)(int* ndims, int64_t** shapes, const char** dtypes, void* extra);

  // One implementation, for inputs of these dtypes and numbers of dimensions (-1: any).
  struct Kernel {
    const DTypes* dtypes;
    const int32_t* ranks;
    Infer infer;
    polyop_kernel run;
    Init init;  // or null
  };

  struct Operator {
    const char* name;    // "namespace::name"
    const char* schema;  // in PyTorch's grammar
    const Input* inputs;
    int32_t input_count;
    const char* const* outputs;  // their names; new tensors alone
    int32_t output_count;
    const Attribute* attributes;
    int32_t attribute_count;
    const Kernel* kernels;
    int32_t kernel_count;
    const Attribute* fixed = nullptr;  // attributes that no call passes; `fallback` is their value
    int32_t fixed_count = 0;
  };

  // The operators of this library. The generated source defines them.
  extern const Operator* const kOperators[];
  extern const int32_t kOperatorCount;

  // Returns the shapes and dtypes of the outputs. The data of the inputs is not read, and may be null.
  // `attributes` has a value for each attribute of the operator. Throws Error if no kernel takes the inputs.
  std::vector<Shape> infer(const Operator& op, const polyop_array* inputs,
                           const polyop_attribute* attributes);

  // Computes the outputs, whose memory belongs to the caller and has the shapes that infer() returns. Any
  // thread may call it. `stream` is passed to the kernel; null on the CPU. Throws Error.
  void run(const Operator& op, const polyop_array* inputs, const polyop_attribute* attributes,
           const polyop_array* outputs, void* stream);

  // Single values as attributes. The value belongs to the caller and must outlive the attribute.
  inline polyop_attribute int_attribute(const int64_t* value) {
    return {POLYOP_INT, 0, 1, value, nullptr, nullptr, 0, nullptr};
  }
  inline polyop_attribute bool_attribute(const int64_t* value) {
    return {POLYOP_BOOL, 0, 1, value, nullptr, nullptr, 0, nullptr};
  }
  inline polyop_attribute float_attribute(const double* value) {
    return {POLYOP_FLOAT, 0, 1, nullptr, value, nullptr, 0, nullptr};
  }
  inline polyop_attribute string_attribute(const char* const* value) {
    return {POLYOP_STRING, 0, 1, nullptr, nullptr, value, 0, nullptr};
  }
  // Lists of `count` values.
  inline polyop_attribute int_list(const int64_t* values, size_t count) {
    return {count == 0 ? POLYOP_NONE : POLYOP_INT, 1, count, values, nullptr, nullptr, 0, nullptr};
  }
  inline polyop_attribute float_list(const double* values, size_t count) {
    return {count == 0 ? POLYOP_NONE : POLYOP_FLOAT, 1, count, nullptr, values, nullptr, 0, nullptr};
  }

  // Arithmetic of sizes, as Python's: divisions round down.
  inline int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) throw Error("a size is divided by 0");
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  inline int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }
  inline int64_t exact_div(int64_t a, int64_t b) {
    const int64_t quotient = floor_div(a, b);
    if (quotient * b != a) {
      throw Error("a size is not whole: " + std::to_string(a) + " / " + std::to_string(b));
    }
    return quotient;
  }

}  // namespace exported
}  // namespace polyop

#endif
