// The infer functions of an exported library call these. They use the words of polyop's own errors.
#ifndef POLYOP_EXPORT_DIMS_H
#define POLYOP_EXPORT_DIMS_H

#include <algorithm>
#include <initializer_list>

#include "polyop/export/operator.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // A dimension of an entry of `dims=`: a name by its position, a fixed size, or any size.
  struct Dimension {
    int32_t name;
    int64_t number;
  };
  constexpr Dimension name(int32_t position) { return {position, -1}; }
  constexpr Dimension number(int64_t size) { return {-1, size}; }
  constexpr Dimension any() { return {-1, -1}; }

  // Returns a shape as Python writes a tuple: "(3,)".
  inline std::string shape_text(const std::vector<int64_t>& sizes) {
    std::string text = "(";
    for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    return text + (sizes.size() == 1 ? ",)" : ")");
  }

  // Binds the names of `dims=` to the sizes of one call.
  class Matcher {
   public:
    explicit Matcher(std::initializer_list<const char*> names) : names_(names), sizes_(names.size()) {}

    // A name that is also an integer attribute has the size that the attribute says.
    void attribute(int32_t position, int64_t value) {
      sizes_[position] = {value, std::string("attribute ") + names_[position]};
    }

    // Checks an array against its entry; one that is absent is ignored. Throws Error.
    void tensor(const char* label, const char* entry, bool ellipsis,
                std::initializer_list<Dimension> dimensions, const polyop_array& array) {
      if (array.dtype < 0) return;
      const std::vector<int64_t> shape(array.sizes, array.sizes + array.ndim);
      if (shape.size() < dimensions.size() || (shape.size() > dimensions.size() && !ellipsis)) {
        const std::string count =
            shape.size() == 1 ? "1 dimension" : std::to_string(shape.size()) + " dimensions";
        throw Error(std::string(label) + " has " + count + " " + shape_text(shape) + ", but its entry '" +
                    entry + "' has " + (ellipsis ? "at least " : "") + std::to_string(dimensions.size()));
      }
      size_t axis = shape.size() - dimensions.size();
      if (ellipsis) leading(label, {shape.begin(), shape.begin() + static_cast<int64_t>(axis)});
      for (const Dimension dimension : dimensions) {
        match(label, dimension, axis, shape[axis]);
        ++axis;
      }
    }

    // Returns the size of a name. Throws Error if no array gave it.
    int64_t size(int32_t position) const {
      const Bound& bound = sizes_[position];
      if (bound.source.empty()) {
        throw Error(std::string("the size ") + names_[position] +
                    " is unknown, because no array is passed that has it");
      }
      return bound.size;
    }

    // Returns the size of an output. Throws Error if it is negative.
    static int64_t checked(const char* label, int64_t size) {
      if (size < 0) throw Error(std::string(label) + " is " + std::to_string(size));
      return size;
    }

    // Returns the shape of an output; `ellipsis` puts the dimensions of `...` before the sizes.
    std::vector<int64_t> shape(bool ellipsis, std::initializer_list<int64_t> sizes) const {
      std::vector<int64_t> whole;
      if (ellipsis) {
        if (leading_source_.empty()) {
          throw Error("the size ... is unknown, because no array is passed that has it");
        }
        whole = leading_;
      }
      whole.insert(whole.end(), sizes);
      return whole;
    }

   private:
    struct Bound {
      int64_t size = 0;
      std::string source;  // the array or attribute that gave the size; empty: none yet
    };

    void leading(const char* label, const std::vector<int64_t>& sizes) {
      if (leading_source_.empty()) {
        leading_ = sizes;
        leading_source_ = label;
      }
      if (sizes == leading_) return;
      throw Error("dimensions ... are " + shape_text(sizes) + " in " + label + " and " +
                  shape_text(leading_) + " in " + leading_source_);
    }

    void match(const char* label, Dimension dimension, size_t axis, int64_t size) {
      if (dimension.name < 0) {
        if (dimension.number < 0 || dimension.number == size) return;
        throw Error("dimension " + std::to_string(axis) + " of " + label + " is " + std::to_string(size) +
                    ", but must be " + std::to_string(dimension.number));
      }
      Bound& bound = sizes_[dimension.name];
      const std::string name = names_[dimension.name];
      if (bound.source.empty()) bound = {size, label};
      if (bound.size == size) return;
      if (bound.source == label) {
        throw Error("dimension " + name + " is " + std::to_string(bound.size) + " and " +
                    std::to_string(size) + " in " + label);
      }
      throw Error("dimension " + name + " is " + std::to_string(size) + " in " + label + " and " +
                  std::to_string(bound.size) + " in " + bound.source);
    }

    std::vector<const char*> names_;
    std::vector<Bound> sizes_;
    std::vector<int64_t> leading_;
    std::string leading_source_;
  };

  // Returns the shape and dtype of an array.
  inline Shape like(const polyop_array& array) {
    if (array.dtype < 0) throw Error("an output is like an argument that is absent");
    return {array.dtype, {array.sizes, array.sizes + array.ndim}};
  }

  // Returns the dtype of the first array that is passed.
  inline int32_t first_dtype(const polyop_array* inputs, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
      if (inputs[i].dtype >= 0) return inputs[i].dtype;
    }
    throw Error("the dtype of an output is unknown, because no array is passed");
  }

  // Throws Error for a size or an integer beyond 2**42: a loop kernel's indices are proved for those below.
  inline void check_provable(const polyop_array* inputs, int32_t input_count,
                             const polyop_attribute* attributes, int32_t attribute_count) {
    constexpr int64_t kMost = INT64_C(1) << 42;
    const auto check = [](int64_t value) {
      if (value > kMost || value < -kMost) {
        throw Error("a loop kernel takes sizes and integers up to 2**42, not " + std::to_string(value));
      }
    };
    for (int32_t i = 0; i < input_count; ++i) {
      for (int32_t axis = 0; inputs[i].dtype >= 0 && axis < inputs[i].ndim; ++axis)
        check(inputs[i].sizes[axis]);
    }
    for (int32_t i = 0; i < attribute_count; ++i) {
      if (attributes[i].kind == POLYOP_INT && attributes[i].depth == 0) check(attributes[i].ints[0]);
    }
  }

}  // namespace exported
}  // namespace polyop

#endif
