// The types of operator libraries: polyop::Tensor, its dtypes, scalars, and new tensors.
#ifndef POLYOP_LIBRARY_TENSOR_H
#define POLYOP_LIBRARY_TENSOR_H

#include <string_view>

#include "../module/convert.h"
#include "../module/operations.h"

namespace polyop {

using Tensor = ms::Tensor;
using ScalarType = ms::TypeId;
using TensorList = std::vector<Tensor>;
using IntArrayRef = std::vector<int64_t>;
using string_view = std::string_view;

constexpr ScalarType kBool = ms::kNumberTypeBool;
constexpr ScalarType kByte = ms::kNumberTypeUInt8;
constexpr ScalarType kInt = ms::kNumberTypeInt32;
constexpr ScalarType kLong = ms::kNumberTypeInt64;
constexpr ScalarType kHalf = ms::kNumberTypeFloat16;
constexpr ScalarType kBFloat16 = ms::kNumberTypeBFloat16;
constexpr ScalarType kFloat = ms::kNumberTypeFloat32;
constexpr ScalarType kDouble = ms::kNumberTypeFloat64;

// A dense tensor with uninitialised memory, on the device of the call's first tensor.
inline Tensor empty(const std::vector<int64_t>& sizes, ScalarType dtype) { return Tensor(dtype, sizes); }
inline Tensor empty_like(const Tensor& like) { return Tensor(like.data_type(), like.shape()); }
inline Tensor empty_like(const Tensor& like, ScalarType dtype) { return Tensor(dtype, like.shape()); }

// The stream of the caller's framework, as a cudaStream_t; null on the CPU.
inline void* current_stream() { return functions()->stream(); }

// Calls `loop` with a zero of the C++ type of `dtype`: float or double. Throws std::invalid_argument for
// other dtypes; `what` is the subject of its text.
template <typename Loop>
void for_floats(ScalarType dtype, const char* what, Loop&& loop) {
  if (dtype == kFloat) return loop(float());
  if (dtype == kDouble) return loop(double());
  throw std::invalid_argument(std::string(what) + " takes float32 and float64");
}

// An argument of the schema's type Scalar: an integer, a floating-point number or a truth value.
class Scalar {
 public:
  Scalar() = default;
  Scalar(double number) : is_integral_(false), real_(number) {}  // NOLINT: implicit, as numbers convert
  Scalar(int64_t number) : integer_(number) {}                   // NOLINT
  bool isFloatingPoint() const { return !is_integral_; }
  bool isIntegral() const { return is_integral_; }
  template <typename T>
  T to() const {
    return is_integral_ ? static_cast<T>(integer_) : static_cast<T>(real_);
  }
  double toDouble() const { return to<double>(); }
  int64_t toLong() const { return to<int64_t>(); }

 private:
  bool is_integral_ = true;
  int64_t integer_ = 0;
  double real_ = 0;
};

template <>
struct Convert<Scalar> {
  static std::string schema() { return "Scalar"; }
  static Scalar in(const polyop_value& value) {
    if (value.kind == POLYOP_VALUE_FLOAT) return {value.as.real};
    if (value.kind != POLYOP_VALUE_INT && value.kind != POLYOP_VALUE_BOOL) mismatch("number");
    return {value.as.integer};
  }
  static void out(const Scalar& number, polyop_value* value) {
    if (number.isIntegral()) return Convert<int64_t>::out(number.toLong(), value);
    Convert<double>::out(number.toDouble(), value);
  }
};

// The text is valid during the call.
template <>
struct Convert<std::string_view> {
  static std::string schema() { return "str"; }
  static std::string_view in(const polyop_value& value) {
    if (value.kind != POLYOP_VALUE_STRING) mismatch("string");
    return {value.as.text, value.count};
  }
  static void out(std::string_view text, polyop_value* value) {
    Convert<std::string>::out(std::string(text), value);
  }
};

}  // namespace polyop

#endif
