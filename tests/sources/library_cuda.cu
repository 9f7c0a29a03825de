// An operator library with functions for both devices.
#include "polyop/library.h"

using polyop::Tensor;

POLYOP_LIBRARY(libcuda, m) {
  m.def("add_one(Tensor x) -> Tensor");
  m.def("cpu_only(Tensor x) -> Tensor");
}

namespace {

__global__ void add_one(const float* x, float* y, size_t n) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}

Tensor add_one_cuda(const Tensor& x) {
  Tensor y = polyop::empty_like(x);
  polyop::launch("add_one", {x}, {y}, [&] {
    const auto stream = static_cast<cudaStream_t>(polyop::current_stream());
    const size_t n = x.numel();
    if (n > 0) {
      add_one<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    }
  });
  return y;
}
Tensor add_one_cpu(const Tensor& x) {
  Tensor y = polyop::empty_like(x);
  polyop::launch("add_one", {x}, {y}, [&] {
    for (size_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = x.data_ptr<float>()[i] + 1;
  });
  return y;
}

class AddOne : public polyop::Function<AddOne> {
 public:
  static Tensor forward(polyop::AutogradContext*, const Tensor& x) {
    return polyop::Dispatcher::singleton()
        .findSchemaOrThrow("libcuda::add_one", "")
        .typed<Tensor(const Tensor&)>()
        .call(x);
  }
  static polyop::tensor_list backward(polyop::AutogradContext*, polyop::tensor_list grads) {
    return {grads[0]};
  }
};
Tensor add_one_autograd(const Tensor& x) { return AddOne::apply(x); }

}  // namespace

POLYOP_LIBRARY_IMPL(libcuda, CPU, m) {
  m.impl("add_one", &add_one_cpu);
  m.impl("cpu_only", &add_one_cpu);
}
POLYOP_LIBRARY_IMPL(libcuda, CUDA, m) { m.impl("add_one", &add_one_cuda); }
POLYOP_LIBRARY_IMPL(libcuda, Autograd, m) { m.impl("add_one", &add_one_autograd); }
