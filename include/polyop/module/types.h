// The dtypes of tensors, with MindSpore's names and numbers.
#ifndef POLYOP_MODULE_TYPES_H
#define POLYOP_MODULE_TYPES_H

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using ShapeVector = std::vector<int64_t>;

namespace mindspore {

enum TypeId : int {
  kTypeUnknown = 0,
  kMetaTypeNone = 7,
  kNumberTypeBool = 30,
  kNumberTypeInt8 = 32,
  kNumberTypeInt16 = 33,
  kNumberTypeInt32 = 34,
  kNumberTypeInt64 = 35,
  kNumberTypeUInt8 = 37,
  kNumberTypeUInt16 = 38,
  kNumberTypeUInt32 = 39,
  kNumberTypeUInt64 = 40,
  kNumberTypeFloat16 = 42,
  kNumberTypeFloat32 = 43,
  kNumberTypeFloat64 = 44,
  kNumberTypeBFloat16 = 45,
  kNumberTypeComplex64 = 47,
  kNumberTypeComplex128 = 48
};

// MindSpore's name of a dtype: "Float32".
inline std::string TypeIdToString(TypeId id) {
  switch (id) {
    case kNumberTypeBool:
      return "Bool";
    case kNumberTypeInt8:
      return "Int8";
    case kNumberTypeInt16:
      return "Int16";
    case kNumberTypeInt32:
      return "Int32";
    case kNumberTypeInt64:
      return "Int64";
    case kNumberTypeUInt8:
      return "UInt8";
    case kNumberTypeUInt16:
      return "UInt16";
    case kNumberTypeUInt32:
      return "UInt32";
    case kNumberTypeUInt64:
      return "UInt64";
    case kNumberTypeFloat16:
      return "Float16";
    case kNumberTypeFloat32:
      return "Float32";
    case kNumberTypeFloat64:
      return "Float64";
    case kNumberTypeBFloat16:
      return "BFloat16";
    case kNumberTypeComplex64:
      return "Complex64";
    case kNumberTypeComplex128:
      return "Complex128";
    case kMetaTypeNone:
      return "None";
    default:
      return "TypeId " + std::to_string(static_cast<int>(id));
  }
}

using ::ShapeVector;
using ShapeArray = std::vector<ShapeVector>;

}  // namespace mindspore

namespace ms {

using ::ShapeVector;
using mindspore::kNumberTypeBFloat16;
using mindspore::kNumberTypeBool;
using mindspore::kNumberTypeComplex128;
using mindspore::kNumberTypeComplex64;
using mindspore::kNumberTypeFloat16;
using mindspore::kNumberTypeFloat32;
using mindspore::kNumberTypeFloat64;
using mindspore::kNumberTypeInt16;
using mindspore::kNumberTypeInt32;
using mindspore::kNumberTypeInt64;
using mindspore::kNumberTypeInt8;
using mindspore::kNumberTypeUInt16;
using mindspore::kNumberTypeUInt32;
using mindspore::kNumberTypeUInt64;
using mindspore::kNumberTypeUInt8;
using mindspore::TypeId;

}  // namespace ms

namespace polyop {

// The TypeId of a C++ number: type_of<float>() is kNumberTypeFloat32.
template <typename T>
constexpr mindspore::TypeId type_of() {
  using namespace mindspore;
  if constexpr (std::is_same_v<T, bool>) return kNumberTypeBool;
  if constexpr (std::is_same_v<T, double>) return kNumberTypeFloat64;
  if constexpr (std::is_same_v<T, float>) return kNumberTypeFloat32;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return sizeof(T) == 8   ? kNumberTypeInt64
           : sizeof(T) == 4 ? kNumberTypeInt32
           : sizeof(T) == 2 ? kNumberTypeInt16
                            : kNumberTypeInt8;
  }
  if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
    return sizeof(T) == 8   ? kNumberTypeUInt64
           : sizeof(T) == 4 ? kNumberTypeUInt32
           : sizeof(T) == 2 ? kNumberTypeUInt16
                            : kNumberTypeUInt8;
  }
  return kTypeUnknown;
}

// NumPy's and PyTorch's name of a dtype: "float32".
inline std::string dtype_name(mindspore::TypeId type) {
  if (type == mindspore::kTypeUnknown) return "a type that no tensor has";
  std::string name = mindspore::TypeIdToString(type);
  for (char& letter : name) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return name;
}

}  // namespace polyop

#endif
