// The parameters of an aot function as ATen tensors, for kernels that call PyTorch's operators.
//
// The header needs no library. `polyop build kernel.cpp -o kernel.so` finds the installed PyTorch.
#ifndef POLYOP_MS_EXT_H
#define POLYOP_MS_EXT_H

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "dtype_rows.h"

namespace polyop_ms_ext {

inline at::ScalarType scalar_type(const char* name, int position) {
  for (const polyop::DTypeRow& row : polyop::kDTypeRows) {
    const bool known = row.torch >= 0 && row.torch < static_cast<int32_t>(at::ScalarType::NumOptions);
    if (known && std::strcmp(row.name, name) == 0) return static_cast<at::ScalarType>(row.torch);
  }
  throw std::invalid_argument("get_torch_tensors: parameter " + std::to_string(position) +
                              " has the dtype '" + name + "', which PyTorch has no tensors of");
}

}  // namespace polyop_ms_ext

// Returns the inputs and outputs of an aot function as tensors on `device`, in the order of `params`.
//
// The tensors are views: nothing is copied, and writing to an output's tensor writes the output. They must
// not be kept after the function returns. An absent optional input becomes an undefined tensor. A CUDA device
// without an index stands for the device that the memory belongs to.
//
// `nparam` counts workspaces too, but ndims, shapes and dtypes have no entries for them. polyop ends `dtypes`
// with a null pointer, and the result ends there. For a framework that does not, pass `nparam` minus the
// number of workspaces.
//
// Throws std::invalid_argument for an unknown dtype. polyop shows the text to the user.
inline std::vector<at::Tensor> get_torch_tensors(int nparam, void** params, int* ndims, int64_t** shapes,
                                                 const char** dtypes, c10::Device device) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(static_cast<size_t>(nparam));
  for (int i = 0; i < nparam && dtypes[i] != nullptr; ++i) {
    if (dtypes[i][0] == '\0') {
      tensors.emplace_back();
      continue;
    }
    const at::IntArrayRef shape(shapes[i], static_cast<size_t>(ndims[i]));
    const auto options = at::TensorOptions().dtype(polyop_ms_ext::scalar_type(dtypes[i], i)).device(device);
    int64_t elements = 1;
    for (const int64_t size : shape) elements *= size;
    // the data pointer of a tensor without elements may not be memory of the device
    tensors.push_back(elements == 0 ? at::empty(shape, options) : at::from_blob(params[i], shape, options));
  }
  return tensors;
}

#endif
