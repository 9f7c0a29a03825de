// A PyTorch (ATen) operator as an aot kernel, on a CUDA device.
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include "ms_ext.h"

extern "C" int LeakyRelu(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                         void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCUDA);
  at::Tensor input = tensors[0];
  at::Tensor output = tensors[1];
  // Make PyTorch use the caller's stream. On its own stream, the results would have to be waited for.
  const auto device = input.device().index();
  c10::cuda::CUDAStreamGuard guard(
      c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), device));
  torch::leaky_relu_out(output, input);
  return 0;
}
