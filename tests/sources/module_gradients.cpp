// Functions with every kind of state between Forward and Backward, right ones and wrong ones.
#include <cmath>
#include <stdexcept>

#include "ms_extension/api.h"

namespace {

using ms::Tensor;
using List = std::vector<Tensor>;
using Context = ms::AutogradContext;

Tensor like(const Tensor& x) { return Tensor(x.data_type(), x.shape()); }

// Operators of aclnn, on tensors of one shape.
Tensor binary(const char* name, const Tensor& x, const Tensor& y) {
  Tensor out = like(x);
  polyop::launch_aclnn(name, x, y, out);
  return out;
}
Tensor times(const Tensor& x, const Tensor& y) { return binary("aclnnMul", x, y); }
Tensor plus(const Tensor& x, const Tensor& y) {
  Tensor out = like(x);
  polyop::launch_aclnn("aclnnAdd", x, y, int64_t{1}, out);
  return out;
}
Tensor scaled(const Tensor& x, double factor) {
  Tensor out = like(x);
  polyop::launch_aclnn("aclnnMuls", x, factor, out);
  return out;
}
Tensor exponential(const Tensor& x) {
  Tensor out = like(x);
  polyop::launch_aclnn("aclnnExp", x, out);
  return out;
}

// A loop of the module's own over each pair of elements.
template <typename F>
Tensor loop(const char* name, const Tensor& left, const Tensor& right, F each) {
  const Tensor x = left.contiguous(), y = right.contiguous();
  Tensor out = like(x);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const auto* a = static_cast<const T*>(x.GetDataPtr());
    const auto* b = static_cast<const T*>(y.GetDataPtr());
    auto* to = static_cast<T*>(out.GetDataPtr());
    for (size_t i = 0; i < x.numel(); ++i) to[i] = static_cast<T>(each(a[i], b[i]));
  };
  polyop::launch(name, {x, y}, {out}, [&] {
    if (x.data_type() == ms::kNumberTypeFloat64) {
      run(double{});
    } else {
      run(float{});
    }
  });
  return out;
}

// x * x, both ways by loops of its own.
struct Square : ms::Function<Square> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->SaveForBackward({x});
    return loop("square", x, x, [](auto a, auto b) { return a * b; });
  }
  static List Backward(Context* ctx, List grads) {
    const Tensor x = ctx->GetSavedTensors()[0];
    return {loop("square_grad", grads[0], x, [](auto g, auto a) { return 2 * g * a; })};
  }
};

// x * x; Backward changes in place what its loop has written.
struct SquareInPlace : ms::Function<SquareInPlace> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->SaveForBackward({x});
    return times(x, x);
  }
  static List Backward(Context* ctx, List grads) {
    const Tensor out =
        loop("own_product", grads[0], ctx->GetSavedTensors()[0], [](auto g, auto a) { return g * a; });
    polyop::launch_aclnn("aclnnInplaceMuls", out, 2.0);
    return {out};
  }
};

// exp(x) * x, with exp(x) kept; `keep_input` says whether x is, too.
struct ExpTimes : ms::Function<ExpTimes> {
  static Tensor Forward(Context* ctx, const Tensor& x, bool keep_input, bool by_loop) {
    const Tensor e =
        by_loop ? loop("own_exp", x, x, [](auto a, auto) { return std::exp(a); }) : exponential(x);
    const Tensor out = times(e, x);
    ctx->SaveForBackward({e, keep_input ? x : Tensor(), out});
    return out;
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    return {times(grads[0], plus(saved[0], saved[2])), Tensor(), Tensor()};
  }
};

// 1 / (1 + exp(-x)), from the output that is kept: g * y * (1 - y).
struct Sigmoid : ms::Function<Sigmoid> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    Tensor out = like(x);
    polyop::launch_aclnn("aclnnSigmoid", x, out);
    ctx->SaveForBackward({out});
    return out;
  }
  static List Backward(Context* ctx, List grads) {
    const Tensor y = ctx->GetSavedTensors()[0];
    return {times(grads[0], plus(y, scaled(times(y, y), -1)))};
  }
};

// (x * y, x + y)
int64_t absent = 0;
struct Both : ms::Function<Both> {
  static List Forward(Context* ctx, const Tensor& x, const Tensor& y, bool materialize) {
    ctx->SetMaterializeGrads(materialize);
    ctx->SaveForBackward({x, y});
    return {times(x, y), plus(x, y)};
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    Tensor to_x, to_y;
    absent = 0;
    for (size_t k = 0; k < 2; ++k) {
      if (!grads[k].is_defined()) {
        ++absent;
        continue;
      }
      const Tensor x_part = k == 0 ? times(grads[0], saved[1]) : grads[1];
      const Tensor y_part = k == 0 ? times(grads[0], saved[0]) : grads[1];
      to_x = to_x.is_defined() ? plus(to_x, x_part) : x_part;
      to_y = to_y.is_defined() ? plus(to_y, y_part) : y_part;
    }
    return {to_x, to_y, Tensor()};
  }
};

// (2 x, 3 x), of which the second has no gradient.
struct Marked : ms::Function<Marked> {
  static List Forward(Context* ctx, const Tensor& x) {
    const Tensor second = scaled(x, 3);
    ctx->MarkNonDifferentiable({second});
    return {scaled(x, 2), second};
  }
  static List Backward(Context*, List grads) { return {scaled(grads[0], 2)}; }
};

// (x * y, y), where the returned argument has no gradient.
struct MarkedInput : ms::Function<MarkedInput> {
  static List Forward(Context* ctx, const Tensor& x, const Tensor& y) {
    ctx->MarkNonDifferentiable({y});
    ctx->SaveForBackward({x, y});
    return {times(x, y), y};
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    return {times(grads[0], saved[1]), times(grads[0], saved[0])};
  }
};

// x * scale * powers[0] * powers[1] + offset, with all of it in saved_data.
struct State : ms::Function<State> {
  static Tensor Forward(Context* ctx, const Tensor& x, int64_t scale, const std::vector<int64_t>& powers,
                        const std::string& label, double offset) {
    const Tensor mask = scaled(x, 0);
    ctx->saved_data["scale"] = mindspore::MakeValue<int64_t>(scale);
    ctx->saved_data["powers"] = mindspore::MakeValue(powers);
    ctx->saved_data["label"] = mindspore::MakeValue(label);
    ctx->saved_data["offset"] = mindspore::MakeValue<double>(offset);
    ctx->saved_data["on"] = mindspore::MakeValue<bool>(true);
    ctx->saved_data["mask"] = std::make_shared<mindspore::tensor::Tensor>(mask);
    ctx->SaveForBackward({Tensor(), x, Tensor()});
    Tensor out = like(x);
    const Tensor product = scaled(x, static_cast<double>(scale * powers.at(0) * powers.at(1)));
    polyop::launch_aclnn("aclnnAdds", product, offset, int64_t{1}, out);
    return out;
  }
  static List Backward(Context* ctx, List grads) {
    const List saved = ctx->GetSavedTensors();
    if (saved.size() != 3 || saved[0].is_defined() || !saved[1].is_defined() || saved[2].is_defined()) {
      throw std::runtime_error("undefined tensors lost their places");
    }
    const auto powers = mindspore::GetValue<std::vector<int64_t>>(ctx->saved_data["powers"]);
    const auto scale = mindspore::GetValue<int64_t>(ctx->saved_data["scale"]);
    if (mindspore::GetValue<std::string>(ctx->saved_data["label"]) != "a \"label\" \xc3\xa9" ||
        mindspore::GetValue<double>(ctx->saved_data["offset"]) != 0.5 ||
        !mindspore::GetValue<bool>(ctx->saved_data["on"])) {
      throw std::runtime_error("the state is another");
    }
    const Tensor mask(ctx->saved_data["mask"]);  // zeros
    const Tensor found = plus(scaled(grads[0], static_cast<double>(scale * powers[0] * powers[1])), mask);
    return {found, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

// x + bias, where there is one.
struct Bias : ms::Function<Bias> {
  static Tensor Forward(Context*, const Tensor& x, const std::optional<Tensor>& bias) {
    return bias ? plus(x, *bias) : scaled(x, 1);
  }
  static List Backward(Context* ctx, List grads) {
    return {grads[0], ctx->NeedsInputGrad(1) ? grads[0] : Tensor()};
  }
};

struct Plus : ms::Function<Plus> {
  static Tensor Forward(Context*, const Tensor& x, const Tensor& y) { return plus(x, y); }
  static List Backward(Context*, List grads) { return {grads[0], grads[0]}; }
};
Tensor sum_list(const List& all) {
  Tensor total = all.at(0);
  for (size_t i = 1; i < all.size(); ++i) total = Plus::Apply(total, all[i]);
  return total;
}
struct OfList : ms::Function<OfList> {
  static Tensor Forward(Context*, const List& all) { return plus(all.at(0), all.at(1)); }
  static List Backward(Context*, List) { return {Tensor()}; }
};

// What NeedGrad and NeedsInputGrad said last, as bits.
int64_t forward_bits = -1, backward_bits = -1;
struct Needs : ms::Function<Needs> {
  static Tensor Forward(Context* ctx, const Tensor& x, int64_t, const Tensor& y) {
    forward_bits = ctx->NeedGrad(x) + 2 * ctx->NeedGrad(y) + 4 * ctx->NeedsInputGrad(0) + 8 * ctx->NeedsInputGrad(1);
    return plus(x, y);
  }
  static List Backward(Context* ctx, List grads) {
    backward_bits = ctx->NeedsInputGrad(0) + 2 * ctx->NeedsInputGrad(1);
    return {grads[0], Tensor(), grads[0]};
  }
};

// An integer output beside a real one.
struct WithIndex : ms::Function<WithIndex> {
  static List Forward(Context*, const Tensor& x) {
    return {scaled(x, 2), scaled(x, 10).cast(ms::kNumberTypeInt64)};
  }
  static List Backward(Context*, List grads) { return {scaled(grads[0], 2)}; }
};

// Gradients in another dtype: they are brought to the input's.
struct WideGradient : ms::Function<WideGradient> {
  static Tensor Forward(Context*, const Tensor& x) { return scaled(x, 4); }
  static List Backward(Context*, List grads) { return {scaled(grads[0].cast(ms::kNumberTypeFloat64), 4)}; }
};

// In-place without a word of it, and a word of it that is not true.
struct SilentWrite : ms::Function<SilentWrite> {
  static Tensor Forward(Context*, const Tensor& x) {
    polyop::launch_aclnn("aclnnInplaceMuls", x, 2.0);
    return x;
  }
  static List Backward(Context*, List grads) { return {scaled(grads[0], 2)}; }
};
struct DirtyElsewhere : ms::Function<DirtyElsewhere> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->MarkDirty({x});
    return scaled(x, 2);
  }
  static List Backward(Context*, List grads) { return grads; }
};
// x *= 2 and y += x, both returned, and a new tensor between them.
struct TwoInPlace : ms::Function<TwoInPlace> {
  static List Forward(Context* ctx, const Tensor& x, const Tensor& y) {
    ctx->MarkDirty({x, y});
    polyop::launch_aclnn("aclnnInplaceMuls", x, 2.0);
    polyop::launch_aclnn("aclnnInplaceAdd", y, x, int64_t{1});
    return {x, scaled(y, 3), y};
  }
  static List Backward(Context*, List grads) {
    const Tensor to_y = plus(scaled(grads[1], 3), grads[2]);
    return {scaled(plus(grads[0], to_y), 2), to_y};
  }
};

// Apply inside of Forward, and inside of Backward.
struct Nested : ms::Function<Nested> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    ctx->SaveForBackward({x});
    return Plus::Apply(Square::Apply(x), x);
  }
  static List Backward(Context* ctx, List grads) {
    const Tensor x = ctx->GetSavedTensors()[0];
    return {times(grads[0], Plus::Apply(scaled(x, 2), ms::ones(x.shape(), x.data_type())))};
  }
};

// Arguments, views of them and one result, returned in several ways.
List returned(const Tensor& x, const std::string& how) {
  const Tensor y = Square::Apply(x);
  if (how == "twice") return {y, y};
  if (how == "argument") return {x, y};
  if (how == "view") return {x.reshape({-1}), y.reshape({-1})};
  if (how == "parts") return y.flatten().chunk(2);
  if (how == "unused") return {scaled(x, 0).reshape({-1}), Plus::Apply(x, x)};
  return {Plus::Apply(y, y), y};
}

// Wrong ones. `how` chooses.
struct Wrong : ms::Function<Wrong> {
  static List Forward(Context* ctx, const Tensor& x, const std::string& how) {
    ctx->saved_data["how"] = mindspore::MakeValue(how);
    if (how == "no output") return {};
    if (how == "throws early") throw std::invalid_argument("Forward does not like this");
    if (how == "throws an int early") throw 7;
    return {scaled(x, 2)};
  }
  static List Backward(Context* ctx, List grads) {
    const auto how = mindspore::GetValue<std::string>(ctx->saved_data["how"]);
    if (how == "too few") return {grads[0]};
    if (how == "too many") return {grads[0], Tensor(), Tensor()};
    if (how == "of a text") return {grads[0], grads[0]};
    if (how == "shape") return {Tensor(grads[0].data_type(), {7}), Tensor()};
    if (how == "throws") throw std::out_of_range("Backward does not like this");
    if (how == "throws an int") throw 7;
    if (how == "index") ctx->NeedsInputGrad(1);
    return {grads[0], Tensor()};
  }
};

// Data read and written by plain loops, in no kernel and no Forward.
Tensor doubled_plainly(const Tensor& x) {
  Tensor out = like(x);
  for (size_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(out.GetDataPtr())[i] = 2 * static_cast<const float*>(x.GetDataPtr())[i];
  }
  return out;
}
Tensor plain_loop(const Tensor& x) { return doubled_plainly(x); }
Tensor plain_loop_before(const Tensor& x) { return Plus::Apply(x, doubled_plainly(x)); }
List plain_loop_beside(const Tensor& x) { return {Plus::Apply(x, x), doubled_plainly(x)}; }
Tensor constant_before(const Tensor& x) {
  Tensor ones = like(x);
  for (size_t i = 0; i < x.numel(); ++i) static_cast<float*>(ones.GetDataPtr())[i] = 1;
  return Plus::Apply(x, ones);
}
Tensor launched_beside(const Tensor& x) {
  Plus::Apply(x, x);
  return loop("beside", x, x, [](auto a, auto b) { return a + b; });
}

// Forward reads data; its gradient is right all the same.
struct ByMaximum : ms::Function<ByMaximum> {
  static Tensor Forward(Context* ctx, const Tensor& x) {
    float most = 0;
    for (size_t i = 0; i < x.numel(); ++i) most = std::max(most, static_cast<const float*>(x.GetDataPtr())[i]);
    ctx->saved_data["most"] = mindspore::MakeValue<double>(most);
    return scaled(x, most);
  }
  static List Backward(Context* ctx, List grads) {
    return {scaled(grads[0], mindspore::GetValue<double>(ctx->saved_data["most"]))};
  }
};

int64_t seen(const std::string& what) {
  return what == "absent" ? absent : what == "forward" ? forward_bits : backward_bits;
}

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("square", [](const Tensor& x) { return Square::Apply(x); });
  m.def("square_in_place", [](const Tensor& x) { return SquareInPlace::Apply(x); });
  m.def("exp_times", [](const Tensor& x, bool keep_input, bool by_loop) { return ExpTimes::Apply(x, keep_input, by_loop); },
        py::arg("x"), py::arg("keep_input") = true, py::arg("by_loop") = false);
  m.def("sigmoid", [](const Tensor& x) { return Sigmoid::Apply(x); });
  m.def("both", [](const Tensor& x, const Tensor& y, bool materialize) { return Both::Apply(x, y, materialize); },
        py::arg("x"), py::arg("y"), py::arg("materialize") = true);
  m.def("marked", [](const Tensor& x) { return Marked::Apply(x); });
  m.def("marked_input", [](const Tensor& x, const Tensor& y) { return MarkedInput::Apply(x, y); });
  m.def("state", [](const Tensor& x, int64_t scale, const std::vector<int64_t>& powers, const std::string& label) {
    return State::Apply(x, scale, powers, label, 0.5);
  });
  m.def("bias", [](const Tensor& x, const std::optional<Tensor>& bias) { return Bias::Apply(x, bias); },
        py::arg("x"), py::arg("bias") = py::none());
  m.def("sum_list", &sum_list);
  m.def("of_list", [](const List& all) { return OfList::Apply(all); });
  m.def("needs", [](const Tensor& x, const Tensor& y) { return Needs::Apply(x, int64_t{1}, y); });
  m.def("with_index", [](const Tensor& x) { return WithIndex::Apply(x); });
  m.def("wide_gradient", [](const Tensor& x) { return WideGradient::Apply(x); });
  m.def("silent_write", [](const Tensor& x) { return SilentWrite::Apply(x); });
  m.def("dirty_elsewhere", [](const Tensor& x) { return DirtyElsewhere::Apply(x); });
  m.def("two_in_place", [](const Tensor& x, const Tensor& y) { return TwoInPlace::Apply(x, y); });
  m.def("nested", [](const Tensor& x) { return Nested::Apply(x); });
  m.def("returned", &returned);
  m.def("wrong", [](const Tensor& x, const std::string& how) { return Wrong::Apply(x, how); });
  m.def("plain_loop", &plain_loop);
  m.def("plain_loop_before", &plain_loop_before);
  m.def("plain_loop_beside", &plain_loop_beside);
  m.def("constant_before", &constant_before);
  m.def("launched_beside", &launched_beside);
  m.def("by_maximum", [](const Tensor& x) { return ByMaximum::Apply(x); });
  m.def("seen", &seen);
}
