// Handlers of XLA's custom calls (XLA FFI) on the CPU: one for each operator of an exported library. The
// arguments are the inputs, the results the outputs, and attributes are found by name.
#ifndef POLYOP_EXPORT_XLA_H
#define POLYOP_EXPORT_XLA_H

#include <cstring>
#include <string>
#include <vector>

#include "polyop/export/operator.h"
#include "polyop/export/owned_attribute.h"
#include "polyop/export/run.h"
#include "polyop/export/xla_api.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // The name of one of XLA's dtypes, or its number as a text.
  inline std::string xla_dtype_name(int number) {
    const int32_t dtype = dtype_with(&DTypeRow::xla, number);
    return dtype < 0 ? "XLA's dtype " + std::to_string(number) : kDTypeRows[dtype].name;
  }

  inline polyop_array array_of(const xla::Buffers& buffers, int64_t position, const char* name) {
    if (buffers.kinds[position] != xla::kBuffer) {
      throw Error("the argument " + std::string(name) + " is no buffer");
    }
    const xla::Buffer& buffer = *buffers.items[position];
    const int32_t dtype = dtype_with(&DTypeRow::xla, buffer.dtype);
    if (dtype < 0) {
      throw Error("the array " + std::string(name) +
                  " has a dtype that polyop does not know: " + xla_dtype_name(buffer.dtype));
    }
    return {buffer.data, buffer.shape, static_cast<int32_t>(buffer.rank), dtype};
  }

  template <typename T>
  T read(const void* data, size_t position) {
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + position * sizeof value, sizeof value);
    return value;
  }

  // Adds a number of an attribute. Throws Error if it does not fit the attribute.
  inline void add_number(OwnedAttribute & attribute, int dtype, const void* data, size_t i) {
    const std::string name = xla_dtype_name(dtype);
    if (name == "bool") return attribute.add_int(read<uint8_t>(data, i) != 0);
    if (name == "int8") return attribute.add_int(read<int8_t>(data, i));
    if (name == "int16") return attribute.add_int(read<int16_t>(data, i));
    if (name == "int32") return attribute.add_int(read<int32_t>(data, i));
    if (name == "int64") return attribute.add_int(read<int64_t>(data, i));
    if (name == "uint8") return attribute.add_int(read<uint8_t>(data, i));
    if (name == "uint16") return attribute.add_int(read<uint16_t>(data, i));
    if (name == "uint32") return attribute.add_int(read<uint32_t>(data, i));
    if (name == "float32") return attribute.add_float(read<float>(data, i));
    if (name == "float64") return attribute.add_float(read<double>(data, i));
    if (name == "uint64" && read<int64_t>(data, i) >= 0) return attribute.add_int(read<int64_t>(data, i));
    throw attribute.wrong("a number of type " + name);
  }

  inline void set_attribute(OwnedAttribute & owned, const Attribute& attribute, int kind, const void* value) {
    if (kind == xla::kText) {
      const auto* text = static_cast<const xla::Span*>(value);
      if (attribute.depth != 0) throw owned.wrong("a text");
      owned.add_text(text->data, text->size);
    } else if (kind == xla::kScalar) {
      const auto* scalar = static_cast<const xla::Scalar*>(value);
      if (attribute.depth != 0) throw owned.wrong("a number");
      add_number(owned, scalar->dtype, scalar->value, 0);
    } else if (kind == xla::kArray) {
      const auto* array = static_cast<const xla::Array*>(value);
      if (attribute.depth != 1) throw owned.wrong("an array");
      for (size_t i = 0; i < array->count; ++i) add_number(owned, array->dtype, array->data, i);
    } else {
      throw owned.wrong("a dictionary");
    }
  }

  // Reads the attributes of a call; those that it lacks have their defaults. Throws Error.
  inline std::vector<OwnedAttribute> attributes_of(const Operator& op, const xla::Attributes& given) {
    std::vector<OwnedAttribute> owned;
    for (int32_t i = 0; i < op.attribute_count; ++i) owned.emplace_back(op.attributes[i]);
    std::vector<bool> seen(op.attribute_count, false);
    for (int64_t g = 0; g < given.count; ++g) {
      const std::string name(given.names[g]->data, given.names[g]->size);
      int32_t i = 0;
      while (i < op.attribute_count && name != op.attributes[i].name) ++i;
      if (i == op.attribute_count) {
        throw Error("there is no attribute called " + name + "; the schema is " + op.schema);
      }
      set_attribute(owned[i], op.attributes[i], given.kinds[g], given.values[g]);
      seen[i] = true;
    }
    for (int32_t i = 0; i < op.attribute_count; ++i) {
      if (!seen[i]) owned[i].use_default();
    }
    return owned;
  }

  // The inputs of a call. XLA has no absent array, so all optional ones are given or none.
  inline std::vector<polyop_array> inputs_of(const Operator& op, const xla::Buffers& buffers) {
    int32_t required = 0;
    for (int32_t i = 0; i < op.input_count; ++i) required += op.inputs[i].optional ? 0 : 1;
    const bool all = buffers.count == op.input_count;
    if (!all && buffers.count != required) {
      const std::string or_all = required == op.input_count ? "" : " or " + std::to_string(op.input_count);
      throw Error("it takes " + std::to_string(required) + or_all + " arrays, not " +
                  std::to_string(buffers.count) + "; the schema is " + op.schema);
    }
    std::vector<polyop_array> inputs;
    int64_t next = 0;
    for (int32_t i = 0; i < op.input_count; ++i) {
      const bool given = all || !op.inputs[i].optional;
      inputs.push_back(given ? array_of(buffers, next++, op.inputs[i].name)
                             : polyop_array{nullptr, nullptr, 0, POLYOP_DTYPE_ABSENT});
    }
    return inputs;
  }

  // Converts the arguments and runs the operator. Throws Error.
  inline void run_from_xla(const Operator& op, const xla::Frame& frame) {
    if (frame.stage != xla::kExecute) throw Error("its handler is for the stage 'execute' alone");
    const std::vector<polyop_array> inputs = inputs_of(op, frame.arguments);
    std::vector<OwnedAttribute> owned = attributes_of(op, frame.attributes);
    if (frame.results.count != op.output_count) {
      throw Error("its number of results is " + std::to_string(op.output_count) + ", not " +
                  std::to_string(frame.results.count) + "; the schema is " + op.schema);
    }
    std::vector<polyop_array> outputs;
    for (int32_t i = 0; i < op.output_count; ++i) {
      outputs.push_back(array_of(frame.results, i, op.outputs[i]));
    }
    run(op, inputs.data(), values_of(owned).data(), outputs.data(), nullptr);
  }

  // Whether XLA asks for the version, and runs nothing.
  inline bool answers_metadata(const xla::Frame& frame) {
    auto* extension = static_cast<xla::Extension*>(frame.header.extensions);
    while (extension != nullptr && extension->kind != xla::kMetadata) extension = extension->next;
    if (extension == nullptr) return false;
    xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(extension)->metadata;
    metadata.version.major = xla::kMajor;
    metadata.version.minor = xla::kMinor;
    return true;
  }

  // What the handler of an operator does. Returns null, or an error that XLA made.
  inline xla::Error* call_from_xla(const Operator& op, xla::Frame* frame) noexcept {
    const auto fail = [&](const std::string& text) {
      xla::CreateError arguments = {{sizeof arguments, nullptr}, text.c_str(), xla::kInternal};
      return frame->api->create_error(&arguments);
    };
    if (answers_metadata(*frame)) return nullptr;
    try {
      run_from_xla(op, *frame);
      return nullptr;
    } catch (const std::exception& problem) {
      return fail(failure(op, problem.what()));
    } catch (...) {
      return fail(failure(op, "the kernel threw something that is no std::exception"));
    }
  }

}  // namespace exported
}  // namespace polyop

#endif
