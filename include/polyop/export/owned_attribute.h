// The value of an attribute, converted from another interface.
#ifndef POLYOP_EXPORT_OWNED_ATTRIBUTE_H
#define POLYOP_EXPORT_OWNED_ATTRIBUTE_H

#include <string>
#include <vector>

#include "polyop/export/operator.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // Owns one value or a list of values. An int or a bool may be given for a float, and each for the other.
  class OwnedAttribute {
   public:
    explicit OwnedAttribute(const Attribute& attribute) : attribute_(attribute) {}

    void add_int(int64_t value) {
      if (attribute_.kind == POLYOP_FLOAT) return floats_.push_back(static_cast<double>(value));
      if (attribute_.kind == POLYOP_STRING) throw wrong("an int");
      ints_.push_back(attribute_.kind == POLYOP_BOOL ? value != 0 : value);
    }
    void add_float(double value) {
      if (attribute_.kind != POLYOP_FLOAT) throw wrong("a float");
      floats_.push_back(value);
    }
    void add_text(const char* data, size_t size) {
      if (attribute_.kind != POLYOP_STRING) throw wrong("a text");
      texts_.emplace_back(data, size);
    }

    // Takes the default of the schema. Throws Error if there is none.
    void use_default() {
      if (attribute_.fallback == nullptr) {
        throw Error("the attribute " + std::string(attribute_.name) + " must be given: it has no default");
      }
      fallback_ = attribute_.fallback;
    }
    // Throws Error where None is no value.
    void set_none() {
      static const polyop_attribute none = {POLYOP_NONE, 0, 0, nullptr, nullptr, nullptr, 0, nullptr};
      const polyop_attribute* value = attribute_.fallback;
      const bool is_default = value != nullptr && value->kind == POLYOP_NONE && value->depth == 0;
      if (!attribute_.optional && !is_default) throw wrong("None");
      fallback_ = &none;
    }

    // The values belong to this.
    polyop_attribute value() {
      if (fallback_ != nullptr) return *fallback_;
      strings_.clear();
      for (const std::string& text : texts_) strings_.push_back(text.c_str());
      const size_t count = ints_.size() + floats_.size() + texts_.size();
      const int32_t kind = count == 0 ? static_cast<int32_t>(POLYOP_NONE) : attribute_.kind;
      return {kind, attribute_.depth, count, ints_.data(), floats_.data(), strings_.data(), 0, nullptr};
    }

    // "the attribute axes must be a list of ints, not a text"
    Error wrong(const std::string& seen) const {
      const char* names[] = {"value", "bool", "int", "float", "text"};
      const std::string name = names[attribute_.kind];
      const std::string one = (name == "int" ? "an " : "a ") + name;
      return Error("the attribute " + std::string(attribute_.name) + " must be " +
                   (attribute_.depth == 0 ? one : "a list of " + name + "s") + ", not " + seen);
    }

   private:
    const Attribute& attribute_;
    const polyop_attribute* fallback_ = nullptr;
    std::vector<int64_t> ints_;
    std::vector<double> floats_;
    std::vector<std::string> texts_;
    std::vector<const char*> strings_;
  };

  inline std::vector<polyop_attribute> values_of(std::vector<OwnedAttribute> & owned) {
    std::vector<polyop_attribute> values;
    for (OwnedAttribute& one : owned) values.push_back(one.value());
    return values;
  }

}  // namespace exported
}  // namespace polyop

#endif
