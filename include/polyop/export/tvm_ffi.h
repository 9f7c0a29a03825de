// Calls of an exported library through tvm-ffi: the inputs, the attributes, then the outputs, which are
// written. Nothing is returned. No file of tvm-ffi is needed to build or to load the library.
#ifndef POLYOP_EXPORT_TVM_FFI_H
#define POLYOP_EXPORT_TVM_FFI_H

#include <dlfcn.h>

#include <string>
#include <vector>

#include "polyop/export/operator.h"
#include "polyop/export/owned_attribute.h"
#include "polyop/export/run.h"
#include "polyop/export/tvm_ffi_api.h"

// Weak, because before glibc 2.34 it is in a library of its own, which the process may lack.
extern "C" __attribute__((weak)) decltype(dlsym) dlsym;

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  inline int32_t dtype_of(const dlpack::DataType& type) {
    for (int32_t i = 0; i < kDTypes && type.lanes == 1; ++i) {
      if (type.code == kDTypeRows[i].dlpack_code && type.bits == kDTypeRows[i].dlpack_bits) return i;
    }
    return POLYOP_DTYPE_ABSENT;
  }

  inline bool is_dense(const dlpack::Tensor& tensor) {
    if (tensor.strides == nullptr) return true;
    int64_t step = 1;
    bool dense = true;
    for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
      if (tensor.shape[i] == 0) return true;
      dense = dense && (tensor.shape[i] == 1 || tensor.strides[i] == step);
      step *= tensor.shape[i];
    }
    return dense;
  }

  inline std::string text_of(const tvm_ffi::Any& value) {
    switch (value.type) {
      case tvm_ffi::kNone:
        return "None";
      case tvm_ffi::kInt:
        return "an int";
      case tvm_ffi::kBool:
        return "a bool";
      case tvm_ffi::kFloat:
        return "a float";
      case tvm_ffi::kText:
      case tvm_ffi::kSmallText:
      case tvm_ffi::kTextObject:
        return "a text";
      case tvm_ffi::kTensorPointer:
      case tvm_ffi::kTensor:
        return "a tensor";
      case tvm_ffi::kShape:
      case tvm_ffi::kArray:
      case tvm_ffi::kList:
        return "a list";
      default:
        return "a value of tvm-ffi's type " + std::to_string(value.type);
    }
  }

  // The array of a tensor. Throws Error for one that the CPU cannot read as it is.
  inline polyop_array array_of(const tvm_ffi::Any& value, const std::string& name, bool optional) {
    if (value.type == tvm_ffi::kNone && optional) return {nullptr, nullptr, 0, POLYOP_DTYPE_ABSENT};
    if (value.type != tvm_ffi::kTensorPointer && value.type != tvm_ffi::kTensor) {
      throw Error("the argument " + name + " must be a tensor, not " + text_of(value));
    }
    const dlpack::Tensor& tensor = value.type == tvm_ffi::kTensor
                                       ? static_cast<const tvm_ffi::TensorObject*>(value.pointer)->tensor
                                       : *static_cast<const dlpack::Tensor*>(value.pointer);
    constexpr int32_t cpu = 1;
    if (tensor.device.type != cpu) {
      throw Error("the tensor " + name + " must be on the CPU, not on DLPack's device type " +
                  std::to_string(tensor.device.type));
    }
    const int32_t dtype = dtype_of(tensor.dtype);
    if (dtype < 0) {
      throw Error("the tensor " + name + " has a dtype that polyop does not know: DLPack's code " +
                  std::to_string(tensor.dtype.code) + " of " + std::to_string(tensor.dtype.bits) +
                  " bits and " + std::to_string(tensor.dtype.lanes) + " lanes");
    }
    if (!is_dense(tensor)) throw Error("the tensor " + name + " must be dense and row-major; copy it first");
    return {static_cast<char*>(tensor.data) + tensor.byte_offset, tensor.shape, tensor.ndim, dtype};
  }

  // Adds a single value. Throws Error if it does not fit the attribute.
  inline void add_value(OwnedAttribute & attribute, const tvm_ffi::Any& value) {
    switch (value.type) {
      case tvm_ffi::kInt:
      case tvm_ffi::kBool:
        return attribute.add_int(value.integer);
      case tvm_ffi::kFloat:
        return attribute.add_float(value.number);
      case tvm_ffi::kText:
        return attribute.add_text(value.text, std::char_traits<char>::length(value.text));
      case tvm_ffi::kSmallText:
        return attribute.add_text(value.small_text, value.small_size);
      case tvm_ffi::kTextObject: {
        const tvm_ffi::Bytes& text = static_cast<const tvm_ffi::TextObject*>(value.pointer)->text;
        return attribute.add_text(text.data, text.size);
      }
      default:
        throw attribute.wrong(text_of(value));
    }
  }

  inline void add_values(OwnedAttribute & attribute, const tvm_ffi::Any& value) {
    if (value.type == tvm_ffi::kShape) {
      const auto* shape = static_cast<const tvm_ffi::ShapeObject*>(value.pointer);
      for (size_t i = 0; i < shape->count; ++i) attribute.add_int(shape->sizes[i]);
    } else if (value.type == tvm_ffi::kArray || value.type == tvm_ffi::kList) {
      const auto* list = static_cast<const tvm_ffi::SequenceObject*>(value.pointer);
      for (int64_t i = 0; i < list->count; ++i) add_value(attribute, list->items[i]);
    } else {
      throw attribute.wrong(text_of(value));
    }
  }

  // Returns "x, factor, out".
  inline std::string tvm_ffi_arguments(const Operator& op) {
    std::string text;
    const auto add = [&](const char* name) { text += (text.empty() ? "" : ", ") + std::string(name); };
    for (int32_t i = 0; i < op.input_count; ++i) add(op.inputs[i].name);
    for (int32_t i = 0; i < op.attribute_count; ++i) add(op.attributes[i].name);
    for (int32_t i = 0; i < op.output_count; ++i) add(op.outputs[i]);
    return text;
  }

  // Converts the arguments and runs the operator. Throws Error.
  inline void run_from_tvm_ffi(const Operator& op, const tvm_ffi::Any* arguments, int32_t count) {
    const int32_t expected = op.input_count + op.attribute_count + op.output_count;
    if (count != expected) {
      throw Error("it takes " + std::to_string(expected) + " arguments (" + tvm_ffi_arguments(op) +
                  "), not " + std::to_string(count));
    }
    std::vector<polyop_array> inputs;
    std::vector<polyop_array> outputs;
    std::vector<OwnedAttribute> owned;
    for (int32_t i = 0; i < op.input_count; ++i) {
      inputs.push_back(array_of(*arguments++, op.inputs[i].name, op.inputs[i].optional));
    }
    for (int32_t i = 0; i < op.attribute_count; ++i, ++arguments) {
      owned.emplace_back(op.attributes[i]);
      if (arguments->type == tvm_ffi::kNone) {
        owned.back().set_none();
      } else if (op.attributes[i].depth == 0) {
        add_value(owned.back(), *arguments);
      } else {
        add_values(owned.back(), *arguments);
      }
    }
    for (int32_t i = 0; i < op.output_count; ++i) {
      outputs.push_back(array_of(*arguments++, op.outputs[i], false));
    }
    run(op, inputs.data(), values_of(owned).data(), outputs.data(), nullptr);
  }

  // Sets tvm-ffi's error, if libtvm_ffi.so is loaded: maybe later than this library. Returns -1.
  inline int fail_in_tvm_ffi(const std::string& text) {
    using SetError = void (*)(const char* kind, const char* message);
    void* function = dlsym == nullptr ? nullptr : dlsym(RTLD_DEFAULT, "TVMFFIErrorSetRaisedFromCStr");
    if (function != nullptr) reinterpret_cast<SetError>(function)("ValueError", text.c_str());
    return -1;
  }

  // What the function of an operator does. Returns 0, or -1 with the error set.
  inline int call_from_tvm_ffi(const Operator& op, const tvm_ffi::Any* arguments, int32_t count,
                               tvm_ffi::Any* result) noexcept {
    try {
      run_from_tvm_ffi(op, arguments, count);
      *result = {tvm_ffi::kNone, 0, {0}};
      return 0;
    } catch (const std::exception& problem) {
      return fail_in_tvm_ffi(failure(op, problem.what()));
    } catch (...) {
      return fail_in_tvm_ffi(failure(op, "the kernel threw something that is no std::exception"));
    }
  }

}  // namespace exported
}  // namespace polyop

#endif
