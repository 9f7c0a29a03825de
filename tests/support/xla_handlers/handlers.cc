// XLA FFI handlers against jaxlib's headers, one for each thing that a handler can ask for.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using F64Result = ffi::ResultBuffer<ffi::F64>;

static int64_t last(const F32& x) { return x.dimensions().back(); }

static ffi::Error RmsNormOf(F32 x, float eps, ffi::ResultBuffer<ffi::F32> y) {
  const int64_t n = last(x);
  for (size_t row = 0; row < x.element_count(); row += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x.typed_data()[row + i] * x.typed_data()[row + i];
    for (int64_t i = 0; i < n; ++i) y->typed_data()[row + i] = x.typed_data()[row + i] / std::sqrt(sum / n + eps);
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, RmsNormOf,
                              ffi::Ffi::Bind().Arg<F32>().Attr<float>("eps").Ret<F32>());

static ffi::Error LargestOf(F32 x, ffi::ResultBuffer<ffi::F32> value, ffi::ResultBuffer<ffi::S32> place) {
  const int64_t n = last(x);
  for (size_t row = 0; row * n < x.element_count(); ++row) {
    const float* begin = x.typed_data() + row * n;
    const float* top = std::max_element(begin, begin + n);
    value->typed_data()[row] = *top;
    place->typed_data()[row] = static_cast<int32_t>(top - begin);
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Largest, LargestOf,
                              ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Ret<ffi::Buffer<ffi::S32>>());

static ffi::Error AttributesOf(F32, int64_t i64, int32_t i32, uint8_t u8, float f32, double f64, bool flag,
                               std::string_view text, ffi::Span<const int64_t> ints,
                               ffi::Span<const float> floats, F64Result y) {
  double* out = y->typed_data();
  for (double value : {double(i64), double(i32), double(u8), double(f32), f64, double(flag)}) *out++ = value;
  *out++ = static_cast<double>(text.size());
  for (int64_t value : ints) *out++ = static_cast<double>(value);
  for (float value : floats) *out++ = value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Attributes, AttributesOf,
                              ffi::Ffi::Bind()
                                  .Arg<F32>()
                                  .Attr<int64_t>("i64")
                                  .Attr<int32_t>("i32")
                                  .Attr<uint8_t>("u8")
                                  .Attr<float>("f32")
                                  .Attr<double>("f64")
                                  .Attr<bool>("flag")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("ints")
                                  .Attr<ffi::Span<const float>>("floats")
                                  .Ret<ffi::Buffer<ffi::F64>>());

static ffi::Error ReversedOf(ffi::ScratchAllocator scratch, F32 x, ffi::ResultBuffer<ffi::F32> y) {
  auto memory = scratch.Allocate(x.size_bytes(), 128);
  if (!memory.has_value()) return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no scratch");
  if (reinterpret_cast<uintptr_t>(*memory) % 128 != 0) return ffi::Error::Internal("scratch is not aligned");
  auto* copy = static_cast<float*>(*memory);
  std::copy_n(x.typed_data(), x.element_count(), copy);
  std::reverse_copy(copy, copy + x.element_count(), y->typed_data());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Reversed, ReversedOf,
                              ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Arg<F32>().Ret<F32>());

static ffi::Error SumOf(ffi::RemainingArgs args, ffi::ResultBuffer<ffi::F32> y) {
  std::fill_n(y->typed_data(), y->element_count(), 0.f);
  for (size_t n = 0; n < args.size(); ++n) {
    auto x = args.get<F32>(n);
    if (!x.has_value()) return x.error();
    for (size_t i = 0; i < y->element_count(); ++i) y->typed_data()[i] += x->typed_data()[i];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Sum, SumOf, ffi::Ffi::Bind().RemainingArgs().Ret<F32>());

static ffi::Error DoubledOf(ffi::ThreadPool pool, F32 x, ffi::ResultBuffer<ffi::F32> y) {
  if (pool.num_threads() < 1) return ffi::Error::Internal("no threads");
  std::atomic<size_t> done{0};
  for (size_t i = 0; i < x.element_count(); ++i) {
    pool.Schedule([i, &done, from = x.typed_data(), to = y->typed_data()] {
      to[i] = 2 * from[i];
      ++done;
    });
  }
  while (done < x.element_count()) std::this_thread::yield();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Doubled, DoubledOf,
                              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<F32>().Ret<F32>());

static ffi::Error SquareOf(F32 x, ffi::ResultBuffer<ffi::F32>) {
  const auto dims = x.dimensions();
  if (dims.size() == 2 && dims[0] == dims[1]) return ffi::Error::Success();
  return ffi::Error::InvalidArgument("x must be square, it has " + std::to_string(dims[0]) + " rows");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Square, SquareOf, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

static ffi::Error Throwing(F32, ffi::ResultBuffer<ffi::F32>) { throw std::runtime_error("thrown inside"); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(Throws, Throwing, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// What polyop does not serve on the CPU.
static ffi::Error OnStream(void*, F32, ffi::ResultBuffer<ffi::F32>) { return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(WantsStream, OnStream,
                              ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Arg<F32>().Ret<F32>());

static ffi::Error InRun(ffi::RunId, F32, ffi::ResultBuffer<ffi::F32>) { return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(WantsRun, InRun, ffi::Ffi::Bind().Ctx<ffi::RunId>().Arg<F32>().Ret<F32>());

static ffi::Future Later(F32, ffi::ResultBuffer<ffi::F32>) {
  ffi::Promise promise;
  promise.SetAvailable();
  return ffi::Future(promise);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(IsAsynchronous, Later, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

struct Counter {
  static ffi::TypeId id;
  int count;
};
ffi::TypeId Counter::id = {7};

static ffi::ErrorOr<std::unique_ptr<Counter>> MakeCounter() { return std::make_unique<Counter>(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakesState, MakeCounter, ffi::Ffi::BindInstantiate());

static ffi::Error Counting(Counter*, F32, ffi::ResultBuffer<ffi::F32>) { return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(WantsState, Counting,
                              ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Arg<F32>().Ret<F32>());

static ffi::Error WithUser(Counter*, F32, ffi::ResultBuffer<ffi::F32>) { return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(WantsUserData, WithUser,
                              ffi::Ffi::Bind().Ctx<ffi::UserData<Counter>>().Arg<F32>().Ret<F32>());
