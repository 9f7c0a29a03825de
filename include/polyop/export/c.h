// The plain C functions of an exported library call these.
#ifndef POLYOP_EXPORT_C_H
#define POLYOP_EXPORT_C_H

#include <algorithm>

#include "polyop/export/owned_attribute.h"
#include "polyop/export/run.h"

#define POLYOP_EXPORTED __attribute__((visibility("default")))

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  int register_in_torch() noexcept;  // defined with the operators for PyTorch

  // The text of the last error of this thread.
  inline std::string& last_error() {
    static thread_local std::string text;
    return text;
  }

  // Calls a function. Returns 0, or 1 with the text of what it threw as the last error.
  template <typename Function>
  int guarded(const Function& function) noexcept {
    try {
      function();
      return 0;
    } catch (const std::exception& problem) {
      last_error() = problem.what();
    } catch (...) {
      last_error() = "something was thrown that is no std::exception";
    }
    return 1;
  }

  // Collects the arguments of one call in the order of the schema, tensors first.
  class CCall {
   public:
    explicit CCall(const Operator& op) : op_(op) { owned_.reserve(op.attribute_count); }

    CCall& input(const polyop_array* array) {
      inputs_.push_back(array == nullptr ? polyop_array{nullptr, nullptr, 0, POLYOP_DTYPE_ABSENT} : *array);
      return *this;
    }
    CCall& value(int64_t number) {
      return add([&](OwnedAttribute& one) { one.add_int(number); });
    }
    CCall& value(int number) { return value(static_cast<int64_t>(number)); }
    CCall& value(double number) {
      return add([&](OwnedAttribute& one) { one.add_float(number); });
    }
    CCall& value(const char* text) {
      return add([&](OwnedAttribute& one) {
        if (text == nullptr) return one.set_none();
        one.add_text(text, std::strlen(text));
      });
    }
    template <typename T>
    CCall& optional(const T* pointer) {
      if (pointer != nullptr) return value(*pointer);
      return add([](OwnedAttribute& one) { one.set_none(); });
    }
    // Of an optional list null is None, and any other pointer with the count 0 an empty list.
    template <typename T>
    CCall& optional_list(const T* items, size_t count) {
      if (items != nullptr || count != 0) return list(items, count);
      return add([](OwnedAttribute& one) { one.set_none(); });
    }
    CCall& list(const int64_t* numbers, size_t count) {
      return add([&](OwnedAttribute& one) {
        need_items(numbers, count);
        for (size_t i = 0; i < count; ++i) one.add_int(numbers[i]);
      });
    }
    CCall& list(const int* numbers, size_t count) {
      return add([&](OwnedAttribute& one) {
        need_items(numbers, count);
        for (size_t i = 0; i < count; ++i) one.add_int(numbers[i]);
      });
    }
    CCall& list(const double* numbers, size_t count) {
      return add([&](OwnedAttribute& one) {
        need_items(numbers, count);
        for (size_t i = 0; i < count; ++i) one.add_float(numbers[i]);
      });
    }
    CCall& list(const char* const* texts, size_t count) {
      return add([&](OwnedAttribute& one) {
        need_items(texts, count);
        for (size_t i = 0; i < count; ++i) {
          if (texts[i] == nullptr) throw Error("text " + std::to_string(i) + " of a list is null");
          one.add_text(texts[i], std::strlen(texts[i]));
        }
      });
    }

    void run(std::initializer_list<polyop_array*> outputs) {
      std::vector<polyop_array> arrays;
      for (const polyop_array* output : outputs) {
        if (output == nullptr) throw Error(std::string(op_.name) + ": an output is null");
        arrays.push_back(*output);
      }
      exported::run(op_, inputs_.data(), values_of(owned_).data(), arrays.data(), nullptr);
    }

    // Writes the dtypes and sizes of the outputs. One that is null is left out.
    void shapes(std::initializer_list<polyop_array*> outputs) {
      const std::vector<Shape> shapes = infer(op_, inputs_.data(), values_of(owned_).data());
      size_t number = 0;
      for (polyop_array* output : outputs) {
        const Shape& shape = shapes[number++];
        if (output == nullptr) continue;
        if (output->sizes == nullptr || shape.sizes.size() > POLYOP_MAX_DIMENSIONS) {
          throw Error(std::string(op_.name) + ": the sizes of an output need memory for " +
                      std::to_string(POLYOP_MAX_DIMENSIONS) + " numbers");
        }
        output->dtype = shape.dtype;
        output->ndim = static_cast<int32_t>(shape.sizes.size());
        std::copy(shape.sizes.begin(), shape.sizes.end(), output->sizes);
      }
    }

   private:
    static void need_items(const void* items, size_t count) {
      if (items == nullptr && count != 0)
        throw Error("a list is null, but its count is " + std::to_string(count));
    }

    template <typename Set>
    CCall& add(const Set& set) {
      owned_.emplace_back(op_.attributes[owned_.size()]);
      try {
        set(owned_.back());
      } catch (const Error& problem) {
        throw Error(std::string(op_.name) + ": " + problem.what());
      }
      return *this;
    }

    const Operator& op_;
    std::vector<polyop_array> inputs_;
    std::vector<OwnedAttribute> owned_;
  };

}  // namespace exported
}  // namespace polyop

#endif
