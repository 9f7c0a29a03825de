// Functions whose dimensions are given beside them: dims= of a module.
#include <algorithm>
#include <stdexcept>

#include "ms_extension/api.h"

namespace {

using ms::Tensor;
using List = std::vector<Tensor>;
using Context = ms::AutogradContext;

// How many loops over data have run.
int64_t calls = 0;
int64_t call_count() { return calls; }

// x (b, i) times w (i, o), or their transposes.
Tensor product(const char* name, const Tensor& left, bool flip_left, const Tensor& right, bool flip_right) {
  const Tensor x = left.contiguous(), w = right.contiguous();
  if (x.shape().size() != 2 || w.shape().size() != 2) throw std::invalid_argument("needs matrices");
  const auto rows = x.shape()[flip_left ? 1 : 0], inner = x.shape()[flip_left ? 0 : 1];
  const auto columns = w.shape()[flip_right ? 0 : 1];
  Tensor out(x.data_type(), {rows, columns});
  polyop::launch(name, {x, w}, {out}, [=] {
    ++calls;
    const float *a = x.data<float>(), *b = w.data<float>();
    float* to = static_cast<float*>(out.GetDataPtr());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += a[flip_left ? k * rows + r : r * inner + k] * b[flip_right ? c * inner + k : k * columns + c];
        }
        to[r * columns + c] = sum;
      }
    }
  });
  return out;
}

struct Linear : ms::Function<Linear> {
  static Tensor Forward(Context* ctx, const Tensor& x, const Tensor& w) {
    ctx->SaveForBackward({x, w});
    return product("linear", x, false, w, false);
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    return {product("linear_x", grads[0], false, saved[1], true),
            product("linear_w", saved[0], true, grads[0], false)};
  }
};

// Each element by a function of it and of a second tensor of this shape.
template <typename F>
Tensor each(const char* name, const Tensor& left, const Tensor& right, F f) {
  const Tensor x = left.contiguous(), y = right.contiguous();
  Tensor out(x.data_type(), x.shape());
  polyop::launch(name, {x, y}, {out}, [=] {
    const float *a = x.data<float>(), *b = y.data<float>();
    float* to = static_cast<float*>(out.GetDataPtr());
    ++calls;
    for (size_t i = 0; i < x.numel(); ++i) to[i] = f(a[i], b[i], i == 0 ? 0 : to[i - 1], i);
  });
  return out;
}

// x * x; saves its argument.
struct Square : ms::Function<Square> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->SaveForBackward({x});
    return each("square", x, x, [](float a, float b, float, size_t) { return a * b; });
  }
  static List Backward(Context* ctx, List grads) {
    return {each("square_grad", grads[0], ctx->GetSavedTensors()[0],
                 [](float g, float x, float, size_t) { return 2 * g * x; })};
  }
};

// x again, with a gradient of its own: that of an element is multiplied by all elements up to it.
struct RunningProduct : ms::Function<RunningProduct> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->SaveForBackward({each("products", x, x, [](float a, float, float last, size_t i) {
      return i == 0 ? a : last * a;
    })});
    return each("same", x, x, [](float a, float, float, size_t) { return a; });
  }
  static List Backward(Context* ctx, List grads) {
    return {each("same_grad", grads[0], ctx->GetSavedTensors()[0],
                 [](float g, float product, float, size_t) { return g * product; })};
  }
};

// A number from all elements of two tensors of one shape.
template <typename F>
Tensor total(const char* name, const Tensor& left, const Tensor& right, F f) {
  const Tensor x = left.contiguous(), y = right.contiguous();
  Tensor out(x.data_type(), ShapeVector{});
  polyop::launch(name, {x, y}, {out}, [=] {
    const float *a = x.data<float>(), *b = y.data<float>();
    float sum = 0;  // the elements are positive
    for (size_t i = 0; i < x.numel(); ++i) sum = f(sum, a[i], b[i]);
    *static_cast<float*>(out.GetDataPtr()) = sum;
  });
  return out;
}

// x by a factor, which is a tensor of no dimensions.
struct Times : ms::Function<Times> {
  static Tensor by(const char* name, const Tensor& left, const Tensor& factor) {
    const Tensor x = left.contiguous(), y = factor.contiguous();
    Tensor out(x.data_type(), x.shape());
    polyop::launch(name, {x, y}, {out}, [=] {
      float* to = static_cast<float*>(out.GetDataPtr());
      for (size_t i = 0; i < x.numel(); ++i) to[i] = x.data<float>()[i] * *y.data<float>();
    });
    return out;
  }
  static Tensor Forward(Context* ctx, const Tensor& x, const Tensor& factor) {
    ctx->SaveForBackward({x, factor});
    return by("times", x, factor);
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    const auto add = [](float sum, float g, float x) { return sum + g * x; };
    return {by("times_x", grads[0], saved[1]), total("times_factor", grads[0], saved[0], add)};
  }
};

// x * x by operators of aclnn, whose gradients are known.
struct SmoothSquare : ms::Function<SmoothSquare> {
  static Tensor times(const Tensor& x, const Tensor& y) {
    Tensor out(x.data_type(), x.shape());
    polyop::launch_aclnn("aclnnMul", x, y, out);
    return out;
  }
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->SaveForBackward({x});
    return times(x, x);
  }
  static List Backward(Context* ctx, List grads) {
    const Tensor half = times(grads[0], ctx->GetSavedTensors()[0]);
    Tensor out(half.data_type(), half.shape());
    polyop::launch_aclnn("aclnnMuls", half, 2.0, out);
    return {out};
  }
};

// The largest element; the gradient is that element's.
struct Largest : ms::Function<Largest> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    const Tensor out = total("largest", x, x, [](float most, float a, float) { return std::max(most, a); });
    ctx->SaveForBackward({x, out});
    return out;
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    const Tensor x = saved[0], most = saved[1], g = grads[0].contiguous();
    Tensor out(x.data_type(), x.shape());
    polyop::launch("largest_x", {x, most, g}, {out}, [=] {
      float* to = static_cast<float*>(out.GetDataPtr());
      const float largest = *most.data<float>();
      for (size_t i = 0; i < x.numel(); ++i) to[i] = x.data<float>()[i] == largest ? *g.data<float>() : 0;
    });
    return {out};
  }
};

// Its argument is multiplied in place and returned.
struct Scale : ms::Function<Scale> {
  static Tensor Forward(Context* ctx, const Tensor& x, double factor) {
    ctx->MarkDirty({x});
    Tensor out = x;
    polyop::launch("scale_", {x}, {out}, [=] {
      float* to = static_cast<float*>(out.GetDataPtr());
      for (size_t i = 0; i < out.numel(); ++i) to[i] *= static_cast<float>(factor);
    });
    return out;
  }
  static List Backward(Context*, List grads) { return {grads[0], Tensor()}; }
};

// The first elements of x; it reads data before the shape of the output is known.
Tensor first(const Tensor& x, int64_t count) {
  const Tensor in = x.contiguous();
  const float* from = in.data<float>();
  Tensor out(in.data_type(), {count});
  float* to = static_cast<float*>(out.GetDataPtr());
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
  return out;
}

// x without its last element, in double precision.
Tensor shorter(const Tensor& x) {
  const Tensor in = x.contiguous();
  Tensor out(ms::kNumberTypeFloat64, {in.shape()[0] - 1});
  polyop::launch("shorter", {in}, {out}, [=] {
    const float* from = in.data<float>();
    double* to = static_cast<double*>(out.GetDataPtr());
    for (size_t i = 0; i < out.numel(); ++i) to[i] = from[i];
  });
  return out;
}

List halves(const Tensor& x) { return {x, x}; }

Tensor linear(const Tensor& x, const Tensor& w) { return Linear::Apply(x, w); }
Tensor square(const Tensor& x) { return Square::Apply(x); }
Tensor running_product(const Tensor& x) { return RunningProduct::Apply(x); }
Tensor times(const Tensor& x, const Tensor& factor) { return Times::Apply(x, factor); }
Tensor smooth_square(const Tensor& x) { return SmoothSquare::Apply(x); }
Tensor largest(const Tensor& x) { return Largest::Apply(x); }
Tensor scale_(const Tensor& x, double factor) { return Scale::Apply(x, factor); }

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("linear", &linear, py::arg("x"), py::arg("w"));
  m.def("square", &square, py::arg("x"));
  m.def("running_product", &running_product, py::arg("x"));
  m.def("times", &times, py::arg("x"), py::arg("factor"));
  m.def("smooth_square", &smooth_square, py::arg("x"));
  m.def("largest", &largest, py::arg("x"));
  m.def("scale_", &scale_, py::arg("x"), py::arg("factor"));
  m.def("first", &first, py::arg("x"), py::arg("count"));
  m.def("shorter", &shorter, py::arg("x"));
  m.def("halves", &halves, py::arg("x"));
  m.def("call_count", &call_count);
}
