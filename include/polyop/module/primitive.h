// Primitive: the name and the attributes of an operator, as MindSpore's kernels see them.
#ifndef POLYOP_MODULE_PRIMITIVE_H
#define POLYOP_MODULE_PRIMITIVE_H

#include <unordered_map>

#include "value.h"

#define OPS_API
#define OPS_ASCEND_API

namespace mindspore {

class Primitive : public Value {
 public:
  explicit Primitive(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  // The value of an attribute; null when there is none.
  ValuePtr GetAttr(const std::string& name) const {
    const auto entry = attributes_.find(name);
    return entry == attributes_.end() ? nullptr : entry->second;
  }
  bool HasAttr(const std::string& name) const { return attributes_.count(name) != 0; }
  void AddAttr(const std::string& name, ValuePtr value) { attributes_[name] = std::move(value); }
  void write(polyop_value*, std::vector<std::unique_ptr<polyop_value[]>>*) const override {}

 private:
  std::string name_;
  std::unordered_map<std::string, ValuePtr> attributes_;
};
using PrimitivePtr = std::shared_ptr<Primitive>;

}  // namespace mindspore

#endif
