// AotExtra: the C++ view of an aot kernel's `extra` pointer.
//
// Source-compatible with MindSpore's header of the same name: AotKernelData, AotExtra with
// HasAttr, Attr<T>, SetWorkSpace, WorkSpace, SetKernelData, KernelData, DestructKernelData.
// Only C structs cross the boundary (polyop/abi.h). So a library works with any C++ string ABI, standard
// library and compiler version.
//
//   extern "C" int ScaleInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra);
//   extern "C" std::vector<int64_t> ScaleInferShape(int *ndims, int64_t **shapes, AotExtra *extra);
//   extern "C" TypeId ScaleInferType(std::vector<TypeId> types, AotExtra *extra);
#ifndef POLYOP_CUSTOM_AOT_EXTRA_H
#define POLYOP_CUSTOM_AOT_EXTRA_H

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "polyop/abi.h"

// State that a kernel keeps between calls. Derive from it, and create the object in <Func>Init.
class AotKernelData {
 public:
  AotKernelData() = default;
  AotKernelData(const AotKernelData&) = delete;
  AotKernelData& operator=(const AotKernelData&) = delete;
  virtual ~AotKernelData() = default;
};

class AotExtra : private polyop_extra {
 public:
  AotExtra() = delete;

  // Whether the operator has an attribute of this name.
  bool HasAttr(const std::string& name) const {
    polyop_attribute value{};
    return functions->attribute(this, name.c_str(), &value) == 0;
  }

  // The value of an attribute. T is bool, an integer, float, double or std::string, a std::vector of these,
  // or a std::vector of such vectors. Throws std::runtime_error when there is no such attribute or it has
  // another type.
  template <typename T>
  T Attr(const std::string& name) const {
    polyop_attribute value{};
    if (name.empty() || functions->attribute(this, name.c_str(), &value) != 0) {
      throw std::runtime_error("there is no attribute called " + name + "!");
    }
    return Read<T>::from(value, name);
  }

  // Requests workspaces of these sizes in BYTES. Only <Func>Init may call it.
  void SetWorkSpace(const std::vector<size_t>& bytes) {
    functions->set_workspaces(this, bytes.data(), bytes.size());
  }

  // The sizes of the requested workspaces. The reference is valid until this thread calls it again.
  const std::vector<size_t>& WorkSpace() const {
    static thread_local std::vector<size_t> sizes;
    const size_t* first = nullptr;
    const size_t count = functions->workspaces(this, &first);
    sizes.assign(first, first + count);
    return sizes;
  }

  // Stores the kernel's state. polyop deletes it with the operator, or when other state replaces it.
  void SetKernelData(AotKernelData* data) {
    functions->set_kernel_data(this, data, [](void* old) { delete static_cast<AotKernelData*>(old); });
  }

  // The state, or null. MindSpore's tutorials cast it to a pointer with const or without: both compile.
  AotKernelData* KernelData() const { return static_cast<AotKernelData*>(functions->kernel_data(this)); }

  // Deletes the state.
  void DestructKernelData() { functions->set_kernel_data(this, nullptr, nullptr); }

  // Sets the text of the error and returns 1: `return extra->Fail("...");`.
  int Fail(const std::string& text) { return polyop_fail(static_cast<polyop_extra*>(this), text.c_str()); }

 private:
  static void require(bool fits, const std::string& name, const char* type) {
    if (!fits) throw std::runtime_error("the attribute " + name + " is not " + type + "!");
  }

  template <typename T, typename = void>
  struct Item;  // not defined: Attr<T> does not compile for a T that no attribute can have

  template <typename T>
  struct Read {
    static T from(const polyop_attribute& value, const std::string& name) {
      require(value.depth == 0 && Item<T>::fits(value.kind), name, Item<T>::type);
      return Item<T>::at(value, 0);
    }
  };

  template <typename T>
  struct Read<std::vector<T>> {
    static std::vector<T> from(const polyop_attribute& value, const std::string& name) {
      require(value.depth == 1 && (value.count == 0 || Item<T>::fits(value.kind)), name,
              "a list of the requested type");
      std::vector<T> items;
      for (size_t i = 0; i < value.count; ++i) items.push_back(Item<T>::at(value, i));
      return items;
    }
  };

  template <typename T>
  struct Read<std::vector<std::vector<T>>> {
    static std::vector<std::vector<T>> from(const polyop_attribute& value, const std::string& name) {
      const bool empty = value.depth == 1 && value.count == 0;
      require(empty || (value.depth == 2 && (value.count == 0 || Item<T>::fits(value.kind))), name,
              "a list of lists of the requested type");
      std::vector<std::vector<T>> rows;
      size_t at = 0;
      for (size_t row = 0; row < value.rows; ++row) {
        std::vector<T> items;
        for (size_t i = 0; i < value.row_lengths[row]; ++i) items.push_back(Item<T>::at(value, at++));
        rows.push_back(items);
      }
      return rows;
    }
  };
};

template <typename T>
struct AotExtra::Item<T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>> {
  static constexpr const char* type = "an integer";
  static bool fits(int32_t kind) { return kind == POLYOP_INT; }
  static T at(const polyop_attribute& value, size_t i) { return static_cast<T>(value.ints[i]); }
};

template <typename T>
struct AotExtra::Item<T, std::enable_if_t<std::is_floating_point<T>::value>> {
  static constexpr const char* type = "a number";
  static bool fits(int32_t kind) { return kind == POLYOP_FLOAT || kind == POLYOP_INT; }
  static T at(const polyop_attribute& value, size_t i) {
    return value.kind == POLYOP_INT ? static_cast<T>(value.ints[i]) : static_cast<T>(value.floats[i]);
  }
};

template <>
struct AotExtra::Item<bool> {
  static constexpr const char* type = "a bool";
  static bool fits(int32_t kind) { return kind == POLYOP_BOOL; }
  static bool at(const polyop_attribute& value, size_t i) { return value.ints[i] != 0; }
};

template <>
struct AotExtra::Item<std::string> {
  static constexpr const char* type = "a string";
  static bool fits(int32_t kind) { return kind == POLYOP_STRING; }
  static std::string at(const polyop_attribute& value, size_t i) { return value.strings[i]; }
};

#endif
