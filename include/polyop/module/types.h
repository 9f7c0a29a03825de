// The dtypes of tensors, with MindSpore's names and numbers.
#ifndef POLYOP_MODULE_TYPES_H
#define POLYOP_MODULE_TYPES_H

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "../dtypes.h"

using ShapeVector = std::vector<int64_t>;

namespace mindspore {

enum TypeId : int {
  kTypeUnknown = 0,
  kMetaTypeNone = 7,
#define POLYOP_ROW(name, number) kNumberType##name = number,
  POLYOP_MINDSPORE_DTYPES(POLYOP_ROW)
#undef POLYOP_ROW
};

// MindSpore's name of a dtype: "Float32".
inline std::string TypeIdToString(TypeId id) {
  switch (id) {
#define POLYOP_ROW(name, number) \
  case kNumberType##name:        \
    return #name;
    POLYOP_MINDSPORE_DTYPES(POLYOP_ROW)
#undef POLYOP_ROW
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
#define POLYOP_ROW(name, number) using mindspore::kNumberType##name;
POLYOP_MINDSPORE_DTYPES(POLYOP_ROW)
#undef POLYOP_ROW
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
