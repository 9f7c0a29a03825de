// Chooses the kernel of an operator, infers its outputs, and runs it.
#ifndef POLYOP_EXPORT_RUN_H
#define POLYOP_EXPORT_RUN_H

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "polyop/export/operator.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // Returns "float32[3, 4]".
  inline std::string text_of(const polyop_array& array) {
    if (array.dtype < 0) return "no array";
    if (array.dtype >= kDTypes) return "the unknown dtype " + std::to_string(array.dtype);
    std::string text = std::string(kDTypeRows[array.dtype].name) + "[";
    for (int32_t i = 0; i < array.ndim; ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(array.sizes[i]);
    }
    return text + "]";
  }

  // Returns "x float32[3, 4], k int64[3]".
  inline std::string inputs_text(const Operator& op, const polyop_array* inputs) {
    std::string text;
    for (int32_t i = 0; i < op.input_count; ++i) {
      text += (i == 0 ? "" : ", ") + std::string(op.inputs[i].name) + " " + text_of(inputs[i]);
    }
    return text;
  }

  // Returns what a kernel takes: "x float32 or float64 of 2 dimensions".
  inline std::string accepted_text(const Operator& op, const Kernel& kernel) {
    std::string text;
    for (int32_t i = 0; i < op.input_count; ++i) {
      text += (i == 0 ? "" : ", ") + std::string(op.inputs[i].name);
      std::string dtypes;
      for (int32_t d = 0; d < kDTypes && kernel.dtypes[i] != kAnyDType; ++d) {
        if ((kernel.dtypes[i] >> d & 1) != 0)
          dtypes += (dtypes.empty() ? " " : " or ") + std::string(kDTypeRows[d].name);
      }
      text += dtypes;
      if (kernel.ranks[i] < 0) continue;
      text +=
          " of " + std::to_string(kernel.ranks[i]) + (kernel.ranks[i] == 1 ? " dimension" : " dimensions");
    }
    return text;
  }

  inline bool takes(const Operator& op, const Kernel& kernel, const polyop_array* inputs) {
    for (int32_t i = 0; i < op.input_count; ++i) {
      if (inputs[i].dtype < 0) continue;
      if (inputs[i].dtype >= kDTypes || (kernel.dtypes[i] >> inputs[i].dtype & 1) == 0) return false;
      if (kernel.ranks[i] >= 0 && kernel.ranks[i] != inputs[i].ndim) return false;
    }
    return true;
  }

  inline const Kernel& kernel_for(const Operator& op, const polyop_array* inputs) {
    for (int32_t i = 0; i < op.input_count; ++i) {
      const polyop_array& input = inputs[i];
      const bool present = input.dtype >= 0;
      if (!present && !op.inputs[i].optional) {
        throw Error(std::string(op.name) + ": " + op.inputs[i].name + " is required, but is null");
      }
      if (present &&
          (input.ndim < 0 || input.ndim > POLYOP_MAX_DIMENSIONS ||
           std::any_of(input.sizes, input.sizes + input.ndim, [](int64_t size) { return size < 0; }))) {
        throw Error(std::string(op.name) + ": " + op.inputs[i].name +
                    " has a negative size, or a number of " + "dimensions outside 0 .. " +
                    std::to_string(POLYOP_MAX_DIMENSIONS));
      }
    }
    std::string accepted;
    for (int32_t k = 0; k < op.kernel_count; ++k) {
      if (takes(op, op.kernels[k], inputs)) return op.kernels[k];
      accepted += "\n  it takes " + accepted_text(op, op.kernels[k]);
    }
    throw Error(std::string(op.name) + ": no kernel of this library takes " + inputs_text(op, inputs) +
                accepted);
  }

  // What a kernel gets as `extra`: its attributes, workspaces and state, for one call.
  class Extra {
   public:
    Extra(const Operator& op, const polyop_attribute* attributes)
        : contract_{POLYOP_ABI_VERSION, sizeof(polyop_extra), &functions(), this},
          op_(op),
          attributes_(attributes) {}
    Extra(const Extra&) = delete;
    Extra& operator=(const Extra&) = delete;
    ~Extra() { set_data(nullptr, nullptr); }

    polyop_extra* contract() { return &contract_; }
    const std::vector<size_t>& workspaces() const { return workspaces_; }
    const std::string& error() const { return error_; }

   private:
    static Extra* of(const polyop_extra* contract) { return static_cast<Extra*>(contract->state); }

    static const polyop_extra_functions& functions() {
      static const polyop_extra_functions table = {
          attribute,
          [](polyop_extra* self, const size_t* bytes, size_t count) {
            of(self)->workspaces_.assign(bytes, bytes + count);
          },
          [](const polyop_extra* self, const size_t** bytes) {
            *bytes = of(self)->workspaces_.data();
            return of(self)->workspaces_.size();
          },
          [](polyop_extra* self, void* data, void (*destroy)(void*)) { of(self)->set_data(data, destroy); },
          [](const polyop_extra* self) { return of(self)->data_; },
          [](polyop_extra* self, const char* text) { of(self)->error_ = text == nullptr ? "" : text; }};
      return table;
    }

    static int attribute(const polyop_extra* self, const char* name, polyop_attribute* value) {
      const Extra& extra = *of(self);
      for (int32_t i = 0; i < extra.op_.attribute_count; ++i) {
        if (std::strcmp(extra.op_.attributes[i].name, name) != 0) continue;
        *value = extra.attributes_[i];
        return 0;
      }
      for (int32_t i = 0; i < extra.op_.fixed_count; ++i) {
        if (std::strcmp(extra.op_.fixed[i].name, name) != 0) continue;
        *value = *extra.op_.fixed[i].fallback;
        return 0;
      }
      return 1;
    }

    void set_data(void* data, void (*destroy)(void*)) {
      if (data_ != nullptr && data_ != data && destroy_ != nullptr) destroy_(data_);
      data_ = data;
      destroy_ = destroy;
    }

    polyop_extra contract_;
    const Operator& op_;
    const polyop_attribute* attributes_;
    std::vector<size_t> workspaces_;
    void* data_ = nullptr;
    void (*destroy_)(void*) = nullptr;
    std::string error_;
  };

  // Throws Error unless a function of a kernel returned 0.
  inline void check(const Operator& op, const char* function, int code, const Extra& extra) {
    if (code == 0) return;
    const std::string text = extra.error().empty() ? "" : " (" + extra.error() + ")";
    throw Error(std::string(op.name) + ": " + function + " returned " + std::to_string(code) + text +
                "; any value other than 0 is its author's error code");
  }

  // Returns the text of an error for the user: it begins with the operator's name, once.
  inline std::string failure(const Operator& op, const std::string& text) {
    const std::string subject = std::string(op.name) + ": ";
    return text.compare(0, subject.size(), subject) == 0 ? text : subject + text;
  }

  inline std::vector<Shape> infer_for(const Operator& op, const Kernel& kernel, const polyop_array* inputs,
                                      const polyop_attribute* attributes) {
    std::vector<Shape> outputs(op.output_count);
    try {
      kernel.infer(inputs, attributes, outputs.data());
      for (const Shape& output : outputs) {
        for (const int64_t size : output.sizes) {
          if (size < 0) throw Error("the size of an output is " + std::to_string(size));
        }
      }
    } catch (const Error& problem) {
      throw Error(failure(op, problem.what()));
    }
    return outputs;
  }

  inline std::vector<Shape> infer(const Operator& op, const polyop_array* inputs,
                                  const polyop_attribute* attributes) {
    return infer_for(op, kernel_for(op, inputs), inputs, attributes);
  }

  inline void check_output(const Operator& op, int32_t number, const Shape& shape,
                           const polyop_array& output) {
    const auto ndim = static_cast<int32_t>(shape.sizes.size());
    if (output.dtype == shape.dtype && output.ndim == ndim &&
        std::equal(shape.sizes.begin(), shape.sizes.end(), output.sizes)) {
      return;
    }
    const polyop_array expected = {nullptr, const_cast<int64_t*>(shape.sizes.data()), ndim, shape.dtype};
    throw Error(std::string(op.name) + ": the output " + op.outputs[number] + " must be " +
                text_of(expected) + ", not " + text_of(output));
  }

  // Aligned memory for the workspaces that a kernel requests.
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;
  inline Memory workspace(const Operator& op, size_t bytes) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, bytes == 0 ? 1 : bytes) != 0) {
      throw Error(std::string(op.name) + ": no " + std::to_string(bytes) + " bytes for a workspace");
    }
    return Memory(memory);
  }

  // The arrays of a call as a kernel takes them.
  struct Parameters {
    std::vector<void*> data;
    std::vector<int> ndims;
    std::vector<int64_t*> sizes;
    std::vector<const char*> dtypes;

    // Throws Error for an array that has elements and no memory.
    void add(const Operator& op, const char* name, const polyop_array& array) {
      static int64_t none[1] = {0};
      static double nothing[2] = {0, 0};
      const bool absent = array.dtype < 0;
      const bool empty = !absent && std::count(array.sizes, array.sizes + array.ndim, 0) != 0;
      if (!absent && !empty && array.data == nullptr) {
        throw Error(std::string(op.name) + ": the memory of " + name + " is null");
      }
      data.push_back(absent || array.data != nullptr ? array.data : nothing);
      ndims.push_back(absent ? 0 : array.ndim);
      sizes.push_back(absent || array.ndim == 0 ? none : array.sizes);
      dtypes.push_back(absent ? "" : kDTypeRows[array.dtype].name);
    }
  };

  inline void run(const Operator& op, const polyop_array* inputs, const polyop_attribute* attributes,
                  const polyop_array* outputs, void* stream) {
    const Kernel& kernel = kernel_for(op, inputs);
    const std::vector<Shape> shapes = infer_for(op, kernel, inputs, attributes);
    Parameters parameters;
    for (int32_t i = 0; i < op.input_count; ++i) parameters.add(op, op.inputs[i].name, inputs[i]);
    for (int32_t i = 0; i < op.output_count; ++i) {
      check_output(op, i, shapes[i], outputs[i]);
      parameters.add(op, op.outputs[i], outputs[i]);
    }
    parameters.dtypes.push_back(nullptr);
    Extra extra(op, attributes);
    std::vector<Memory> memory;
    try {
      if (kernel.init != nullptr) {
        const int code = kernel.init(parameters.ndims.data(), parameters.sizes.data(),
                                     parameters.dtypes.data(), extra.contract());
        check(op, "Init", code, extra);
        for (const size_t bytes : extra.workspaces()) {
          memory.push_back(workspace(op, bytes));
          parameters.data.push_back(memory.back().get());
        }
      }
      const int code = kernel.run(static_cast<int>(parameters.data.size()), parameters.data.data(),
                                  parameters.ndims.data(), parameters.sizes.data(), parameters.dtypes.data(),
                                  stream, extra.contract());
      check(op, "the kernel", code, extra);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& problem) {
      throw Error(std::string(op.name) + ": the kernel threw " + problem.what());
    }
  }

}  // namespace exported
}  // namespace polyop

#endif
