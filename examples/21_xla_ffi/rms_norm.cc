#include <cmath>

#include "xla/ffi/api/ffi.h"  // of jaxlib

namespace ffi = xla::ffi;

static ffi::Error Compute(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  const int64_t n = x.dimensions().back();
  for (size_t row = 0; row < x.element_count(); row += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x.typed_data()[row + i] * x.typed_data()[row + i];
    const float scale = 1 / std::sqrt(sum / n + eps);
    for (int64_t i = 0; i < n; ++i) y->typed_data()[row + i] = x.typed_data()[row + i] * scale;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, Compute,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
