// A function of tvm-ffi, called by polyop and by tvm-ffi's own Python.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

static void square(tvm::ffi::TensorView x, tvm::ffi::TensorView out) {
  const auto* from = static_cast<const float*>(x.data_ptr());
  auto* to = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * from[i];
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(square, square)
