// Functions of tvm-ffi, in the two ways in which they are written: typed C++, and the plain C convention.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <string>

using tvm::ffi::Optional;
using tvm::ffi::TensorView;

static float* floats(const TensorView& t) { return static_cast<float*>(t.data_ptr()); }

static void scale(TensorView x, double factor, TensorView out) {
  if (x.ndim() < 1) TVM_FFI_THROW(ValueError) << "needs one dimension, got " << x.ndim();
  int64_t step = 1;
  for (int d = x.ndim() - 1; d >= 0; step *= x.size(d--)) {
    if (x.stride(d) != step) TVM_FFI_THROW(ValueError) << "not dense";
  }
  for (int64_t i = 0; i < x.numel(); ++i) floats(out)[i] = static_cast<float>(factor) * floats(x)[i];
}

static void scale_in_place(TensorView x, double factor) { scale(x, factor, x); }

// The value of each kind of attribute, in one sum.
static void attributes(TensorView x, Optional<TensorView> bias, int64_t i, double f, bool b, std::string s,
                       Optional<int64_t> n, TensorView out) {
  const float length = static_cast<float>(s.size());
  float sum = 1000 * static_cast<float>(i) + static_cast<float>(f) + (b ? 0.25f : 0) + 10 * length;
  sum += s == "ä b" ? 0.125f : 0;
  if (n.has_value()) sum += 100 * static_cast<float>(n.value());
  for (int64_t e = 0; e < x.numel(); ++e) {
    floats(out)[e] = sum * floats(x)[e] + (bias.has_value() ? floats(bias.value())[e] : 0);
  }
}

static int64_t returns_a_number(TensorView, TensorView) { return 7; }

static tvm::ffi::Tensor returns_a_tensor(TensorView x, TensorView) {
  struct Allocator {
    float memory[1];
    void AllocData(DLTensor* tensor) { tensor->data = memory; }
    void FreeData(DLTensor*) {}
  };
  return tvm::ffi::Tensor::FromNDAlloc(Allocator(), x.shape(), x.dtype(), DLDevice{kDLCPU, 0});
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale_in_place, scale_in_place)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(attributes, attributes)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(returns_a_number, returns_a_number)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(returns_a_tensor, returns_a_tensor)

static const DLTensor* tensor_of(const TVMFFIAny& any) {  // Python of tvm-ffi passes objects, not pointers
  if (any.type_index == kTVMFFITensor) return reinterpret_cast<const DLTensor*>(any.v_obj + 1);
  return any.type_index == kTVMFFIDLTensorPtr ? static_cast<const DLTensor*>(any.v_ptr) : nullptr;
}

extern "C" __attribute__((visibility("default"))) int __tvm_ffi_square(void*, const TVMFFIAny* args,
                                                                       int32_t count, TVMFFIAny*) {
  const auto* x = tensor_of(args[0]);
  const auto* out = tensor_of(args[count - 1]);
  if (x == nullptr || x->dtype.code != kDLFloat || x->dtype.bits != 32) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "square takes float32");
    return -1;
  }
  int64_t size = 1;
  for (int d = 0; d < x->ndim; ++d) size *= x->shape[d];
  for (int64_t i = 0; i < size; ++i) {
    const float value = static_cast<const float*>(x->data)[i];
    static_cast<float*>(out->data)[i] = value * value;
  }
  return 0;
}
