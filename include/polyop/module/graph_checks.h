// The checks that infer functions of MindSpore's operators use.
#ifndef POLYOP_MODULE_GRAPH_CHECKS_H
#define POLYOP_MODULE_GRAPH_CHECKS_H

#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "log.h"
#include "types.h"

namespace mindspore {

// A dtype as an object. Each dtype has one object, so pointers can be compared.
class Type {
 public:
  explicit Type(TypeId id) : id_(id) {}
  TypeId type_id() const { return id_; }

 private:
  TypeId id_;
};
using TypePtr = std::shared_ptr<Type>;

inline TypePtr TypeIdToType(TypeId id) {
  static const std::vector<TypePtr> all = [] {
    std::vector<TypePtr> types;
    for (int i = 0; i < 64; ++i) types.push_back(std::make_shared<Type>(static_cast<TypeId>(i)));
    return types;
  }();
  return all.at(static_cast<size_t>(id));
}

inline std::set<TypePtr> polyop_types(const std::vector<TypeId>& more) {
  std::set<TypePtr> all;
  for (int id = kNumberTypeInt8; id <= kNumberTypeBFloat16; ++id)
    all.insert(TypeIdToType(static_cast<TypeId>(id)));
  for (const TypeId id : more) all.insert(TypeIdToType(id));
  return all;
}
inline const std::set<TypePtr> common_valid_types = polyop_types({});
inline const std::set<TypePtr> common_valid_types_with_bool = polyop_types({kNumberTypeBool});
inline const std::set<TypePtr> common_valid_types_with_complex =
    polyop_types({kNumberTypeComplex64, kNumberTypeComplex128});
inline const std::set<TypePtr> common_valid_types_with_complex_and_bool =
    polyop_types({kNumberTypeBool, kNumberTypeComplex64, kNumberTypeComplex128});

struct CheckAndConvertUtils {
  template <typename... Parts>
  static std::string FormatCommMsg(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
  }
};

namespace ops {

inline std::string polyop_sizes(const ShapeVector& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

// The shape of two shapes broadcast together. Throws when they cannot be.
inline ShapeVector CalBroadCastShape(const ShapeVector& x, const ShapeVector& y, const std::string& op_name,
                                     const std::string& x_name = "input1",
                                     const std::string& y_name = "input2") {
  const ShapeVector &longer = x.size() >= y.size() ? x : y, &shorter = x.size() >= y.size() ? y : x;
  ShapeVector sizes = longer;
  const size_t extra = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& size = sizes[extra + i];
    if (size != shorter[i] && size != 1 && shorter[i] != 1) {
      MS_EXCEPTION(ValueError) << "For '" << op_name << "', " << x_name << " of shape " << polyop_sizes(x)
                               << " and " << y_name << " of shape " << polyop_sizes(y)
                               << " cannot be broadcast";
    }
    if (size == 1) size = shorter[i];
  }
  return sizes;
}

}  // namespace ops
}  // namespace mindspore

#define MS_CHECK_VALUE(condition, text)                   \
  do {                                                    \
    if (!(condition)) MS_EXCEPTION(ValueError) << (text); \
  } while (0)

#endif
