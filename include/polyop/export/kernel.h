// The operators of an exported library as kernels of polyop (polyop/abi.h), which polyop.load_library calls.
#ifndef POLYOP_EXPORT_KERNEL_H
#define POLYOP_EXPORT_KERNEL_H

#include <cstring>

#include "polyop/export/run.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // Returns the arrays of a call: the inputs, then the outputs. `data` is null in Init.
  inline std::vector<polyop_array> arrays_of(const Operator& op, void** data, int* ndims, int64_t** sizes,
                                             const char** dtypes) {
    const int32_t count = op.input_count + op.output_count;
    int32_t given = 0;
    while (dtypes[given] != nullptr) ++given;
    if (given != count) {
      throw Error(std::string(op.name) + ": got " + std::to_string(given) + " tensors; the schema is " +
                  op.schema);
    }
    std::vector<polyop_array> arrays;
    for (int32_t i = 0; i < count; ++i) {
      int32_t dtype = POLYOP_DTYPE_ABSENT;
      for (int32_t d = 0; d < kDTypes; ++d) {
        if (std::strcmp(kDTypeRows[d].name, dtypes[i]) == 0) dtype = d;
      }
      arrays.push_back({data == nullptr ? nullptr : data[i], sizes[i], ndims[i], dtype});
    }
    return arrays;
  }

  // Returns the values of the attributes. Throws Error for one whose type is not that of the schema.
  inline std::vector<polyop_attribute> attributes_of(const Operator& op, const polyop_extra* extra) {
    std::vector<polyop_attribute> values;
    for (int32_t i = 0; i < op.attribute_count; ++i) {
      const Attribute& attribute = op.attributes[i];
      polyop_attribute value = {};
      const bool there = extra->functions->attribute(extra, attribute.name, &value) == 0;
      const bool none = value.kind == POLYOP_NONE && value.depth == 0;
      const bool empty = value.kind == POLYOP_NONE && value.depth == 1 && attribute.depth == 1;
      const bool fits = value.kind == attribute.kind && value.depth == attribute.depth;
      if (!there || !(fits || empty || (none && attribute.optional))) {
        throw Error(std::string(op.name) + ": the attribute " + attribute.name +
                    (there ? " has another type" : " is missing") + "; the schema is " + op.schema);
      }
      values.push_back(value);
    }
    return values;
  }

  // FuncInit: checks a call as run() does, once for its shapes, dtypes and attributes.
  inline int init_kernel(const Operator& op, int* ndims, int64_t** sizes, const char** dtypes,
                         void* extra) noexcept {
    try {
      const std::vector<polyop_array> arrays = arrays_of(op, nullptr, ndims, sizes, dtypes);
      const std::vector<polyop_attribute> attributes =
          attributes_of(op, static_cast<const polyop_extra*>(extra));
      const Kernel& kernel = kernel_for(op, arrays.data());
      const std::vector<Shape> shapes = infer_for(op, kernel, arrays.data(), attributes.data());
      for (int32_t i = 0; i < op.output_count; ++i)
        check_output(op, i, shapes[i], arrays[op.input_count + i]);
      return kernel.init == nullptr ? 0 : kernel.init(ndims, sizes, dtypes, extra);
    } catch (const std::exception& problem) {
      return polyop_fail(extra, problem.what());
    }
  }

  // Func: calls the kernel for these dtypes and numbers of dimensions.
  inline int call_kernel(const Operator& op, int count, void** data, int* ndims, int64_t** sizes,
                         const char** dtypes, void* stream, void* extra) {
    const Kernel* kernel = op.kernels;
    if (op.kernel_count > 1) kernel = &kernel_for(op, arrays_of(op, data, ndims, sizes, dtypes).data());
    return kernel->run(count, data, ndims, sizes, dtypes, stream, extra);
  }

}  // namespace exported
}  // namespace polyop

#endif
