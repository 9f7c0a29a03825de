// An operator library in two files: schemas, kernels, Meta functions and gradients of each form.
#include "polyop/library.h"

using polyop::Tensor;

POLYOP_LIBRARY(libops, m) {
  m.def("add(Tensor self, Tensor other) -> Tensor");
  m.def("add_backward(Tensor self) -> (Tensor, Tensor)");
  m.def("scale(Tensor x, float alpha=2.0, *, str mode=\"plain\", bool negate=False) -> Tensor");
  m.def("tile(Tensor x, int[] counts, Tensor? bias=None, Scalar factor=1) -> Tensor[]");
  m.def("total(Tensor[] xs, int start=0) -> Tensor");
  m.def("fill_(Tensor(a!) self, float value) -> Tensor(a!)");
  m.def("reads_data(Tensor x) -> Tensor");
  m.def("cuda_only(Tensor x) -> Tensor");
  m.def("schema_only(Tensor x) -> Tensor");
  m.def("npu_only(Tensor x) -> Tensor");
  m.def("half(Tensor x) -> Tensor");
  m.def("raises(Tensor x) -> Tensor");
  m.def("strides(Tensor x, bool kept) -> Tensor");
  m.def("count_to(int n) -> Tensor");
  m.def("full(Tensor like, int[2] size, float? value=None, ScalarType? dtype=None, str note=\"\") -> Tensor");
  // a kernel for every device, made of other operators
  m.def("thrice(Tensor x) -> Tensor", [](const Tensor& x) {
    using Add = Tensor(const Tensor&, const Tensor&);
    const auto add = polyop::Dispatcher::singleton().findSchemaOrThrow("libops::add", "").typed<Add>();
    return add.call(add.call(x, x), x);
  });
}

namespace {

template <typename Loop>
Tensor mapped(const Tensor& x, const Loop& loop) {
  Tensor out = polyop::empty_like(x);
  polyop::for_floats(x.dtype(), "libops", [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data_ptr<T>();
    T* to = out.data_ptr<T>();
    for (size_t i = 0; i < x.numel(); ++i) to[i] = static_cast<T>(loop(from[i], i));
  });
  return out;
}

Tensor add_cpu(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) throw std::invalid_argument("add takes tensors of one shape");
  Tensor out = polyop::empty_like(self);
  polyop::for_floats(self.dtype(), "add", [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < self.numel(); ++i) {
      out.data_ptr<T>()[i] = self.data_ptr<T>()[i] + other.data_ptr<T>()[i];
    }
  });
  return out;
}
std::tuple<Tensor, Tensor> add_backward_cpu(const Tensor& self) {
  const auto copied = [&] { return mapped(self, [](double value, size_t) { return value; }); };
  return {copied(), copied()};
}
Tensor add_meta(const Tensor& self, const Tensor&) { return polyop::empty_like(self); }
std::tuple<Tensor, Tensor> add_backward_meta(const Tensor& self) {
  return {polyop::empty_like(self), polyop::empty_like(self)};
}

Tensor add_dispatched(const Tensor& self, const Tensor& other) {
  static auto op =
      polyop::Dispatcher::singleton().findSchemaOrThrow("libops::add", "").typed<decltype(add_dispatched)>();
  return op.call(self, other);
}
std::tuple<Tensor, Tensor> add_backward_dispatched(const Tensor& self) {
  static auto op = polyop::Dispatcher::singleton()
                       .findSchemaOrThrow("libops::add_backward", "")
                       .typed<decltype(add_backward_dispatched)>();
  return op.call(self);
}

class AddFunction : public polyop::Function<AddFunction> {
 public:
  static Tensor forward(polyop::AutogradContext*, Tensor self, Tensor other) {
    polyop::AutoDispatchBelowADInplaceOrView guard;
    return add_dispatched(self, other);
  }
  static polyop::tensor_list backward(polyop::AutogradContext*, polyop::tensor_list grad_outputs) {
    const auto result = add_backward_dispatched(grad_outputs[0]);
    return {std::get<0>(result), std::get<1>(result)};
  }
};
Tensor add_autograd(const Tensor& self, const Tensor& other) { return AddFunction::apply(self, other); }

// derived from this: its loop is in a launch, and there is no Meta function
Tensor scale_cpu(const Tensor& x, double alpha, const std::string& mode, bool negate) {
  if (mode != "plain" && mode != "square") throw std::invalid_argument("no mode " + mode);
  Tensor out = polyop::empty_like(x);
  polyop::launch("scale", {x}, {out}, [&] {
    polyop::for_floats(x.dtype(), "scale", [&](auto zero) {
      using T = decltype(zero);
      for (size_t i = 0; i < x.numel(); ++i) {
        const T value = x.data_ptr<T>()[i];
        const T scaled = static_cast<T>(alpha) * (mode == "square" ? value * value : value);
        out.data_ptr<T>()[i] = negate ? -scaled : scaled;
      }
    });
  });
  return out;
}

class ScaleFunction : public polyop::Function<ScaleFunction> {
 public:
  static Tensor Forward(polyop::AutogradContext* ctx, const Tensor& x, double alpha, const std::string& mode,
                        bool negate) {
    ctx->save_for_backward({x});
    ctx->saved_data["alpha"] = ms::MakeValue(negate ? -alpha : alpha);
    ctx->saved_data["square"] = ms::MakeValue(mode == "square");
    return scale_cpu(x.contiguous(), alpha, mode, negate);
  }
  static polyop::tensor_list Backward(polyop::AutogradContext* ctx, polyop::tensor_list grads) {
    const double alpha = ms::GetValue<double>(ctx->saved_data["alpha"]);
    const bool square = ms::GetValue<bool>(ctx->saved_data["square"]);
    const Tensor x = ctx->get_saved_variables()[0].contiguous(), grad = grads[0].contiguous();
    Tensor dx = polyop::empty_like(x);
    polyop::launch("scale_backward", {x, grad}, {dx}, [&] {
      polyop::for_floats(x.dtype(), "scale", [&](auto zero) {
        using T = decltype(zero);
        for (size_t i = 0; i < x.numel(); ++i) {
          dx.data_ptr<T>()[i] =
              grad.data_ptr<T>()[i] * static_cast<T>(alpha) * (square ? 2 * x.data_ptr<T>()[i] : T(1));
        }
      });
    });
    return {dx, Tensor(), Tensor(), Tensor()};
  }
};
Tensor scale_autograd(const Tensor& x, double alpha, const std::string& mode, bool negate) {
  return ScaleFunction::Apply(x, alpha, mode, negate);
}

polyop::TensorList tile_cpu(const Tensor& x, const std::vector<int64_t>& counts,
                            const std::optional<Tensor>& bias, const polyop::Scalar& factor) {
  polyop::TensorList all;
  for (const int64_t count : counts) {
    Tensor out = polyop::empty({count, x.size(-1)}, x.scalar_type());
    polyop::launch("tile", {x}, {out}, [&] {
      for (size_t i = 0; i < out.numel(); ++i) {
        const size_t at = i % x.numel();
        out.data_ptr<float>()[i] =
            x.data_ptr<float>()[at] * factor.to<float>() + (bias ? bias->data_ptr<float>()[at] : 0.0F);
      }
    });
    all.push_back(out);
  }
  return all;
}
Tensor total_cpu(const std::vector<Tensor>& xs, int64_t start) {
  return mapped(xs.at(0), [&](double, size_t i) {
    double sum = static_cast<double>(start);
    for (const Tensor& x : xs) sum += x.data_ptr<float>()[i];
    return sum;
  });
}
Tensor total_meta(const std::vector<Tensor>& xs, int64_t) { return polyop::empty_like(xs.at(0)); }
Tensor& fill_cpu(Tensor& self, double value) {
  for (size_t i = 0; i < self.numel(); ++i) self.data_ptr<float>()[i] = static_cast<float>(value);
  return self;
}
Tensor& fill_meta(Tensor& self, double) { return self; }
Tensor twice(const Tensor& x) {
  return mapped(x, [](double value, size_t) { return 2 * value; });
}
Tensor full(const Tensor& like, std::tuple<int64_t, int64_t> size, std::optional<double> value,
            std::optional<polyop::ScalarType> dtype, polyop::string_view note) {
  Tensor out = polyop::empty({std::get<0>(size), std::get<1>(size)}, dtype.value_or(like.dtype()));
  const double number = value.value_or(1) * (note == "negative" ? -1 : 1);
  polyop::launch("full", {like}, {out}, [&] {
    polyop::for_floats(out.dtype(), "full", [&](auto zero) {
      for (size_t i = 0; i < out.numel(); ++i) {
        out.data_ptr<decltype(zero)>()[i] = static_cast<decltype(zero)>(number);
      }
    });
  });
  return out;
}
Tensor count_to(int64_t n) {
  Tensor out = polyop::empty({n}, polyop::kLong);
  for (int64_t i = 0; i < n; ++i) out.data_ptr<int64_t>()[i] = i + 1;
  return out;
}
Tensor raises(const Tensor&) { throw std::invalid_argument("nothing is good enough"); }
// the stride of each dimension, and how many there are
Tensor strides(const Tensor& x, bool) {
  Tensor out = polyop::empty({x.dim()}, polyop::kLong);
  polyop::launch("strides", {x}, {out}, [&] {
    for (int64_t i = 0; i < x.dim(); ++i) out.data_ptr<int64_t>()[i] = x.stride(i);
  });
  return out;
}

}  // namespace

POLYOP_LIBRARY_IMPL(libops, CPU, m) {
  m.impl("add", &add_cpu);
  m.impl("add_backward", &add_backward_cpu);
  m.impl("scale", &scale_cpu);
  m.impl("tile", &tile_cpu);
  m.impl("total", &total_cpu);
  m.impl("fill_", &fill_cpu);
  m.impl("reads_data", &twice);
  m.impl("raises", &raises);
  m.impl("strides", &strides, polyop::strided);
  m.impl("count_to", &count_to);
  m.impl("full", &full);
}
POLYOP_LIBRARY_IMPL(libops, Meta, m) {
  m.impl("add", &add_meta);
  m.impl("add_backward", &add_backward_meta);
  m.impl("total", &total_meta);
  m.impl("fill_", &fill_meta);
  m.impl("cuda_only", [](const Tensor& x) { return polyop::empty_like(x); });
}
POLYOP_LIBRARY_IMPL(libops, CUDA, m) { m.impl("cuda_only", &twice); }
POLYOP_LIBRARY_IMPL(libops, PrivateUse1, m) { m.impl("npu_only", &twice); }
POLYOP_LIBRARY_IMPL(libops, AutogradCPU, m) {
  m.impl("add", &add_autograd);
  m.impl("scale", &scale_autograd);
}
