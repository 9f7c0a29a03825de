// What ms::Tensor can do, and every kind of argument and result that m.def() binds.
#include <numeric>
#include <thread>

#include "ms_extension/api.h"

namespace {

using ms::Tensor;

// Tensors in, tensors out.
Tensor reshape(const Tensor& x, const std::vector<int64_t>& shape) { return x.reshape(shape); }
Tensor flatten(const Tensor& x, int64_t start, int64_t end) { return x.flatten(start, end); }
Tensor cast(const Tensor& x, ms::TypeId type) { return x.cast(type); }
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) { return x.chunk(chunks, dim); }
Tensor dense(const Tensor& x) { return x.contiguous(); }
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) { return x.index_select(dim, index); }
Tensor repeat(const Tensor& x, const std::vector<int64_t>& times) { return x.repeat(times); }
Tensor repeat_each(const Tensor& x, int64_t times, std::optional<int64_t> dim) { return x.repeat_interleave(times, dim); }
Tensor repeat_by(const Tensor& x, const Tensor& times, std::optional<int64_t> dim, std::optional<int64_t> size) {
  return x.repeat_interleave(times, dim, size);
}

// Numbers in, tensors out.
std::vector<Tensor> made() {
  return {ms::tensor(int64_t{7}),
          ms::tensor(2.5),
          ms::tensor(std::vector<int64_t>{1, 2, 3}, ms::kNumberTypeInt32),
          ms::tensor(std::vector<double>{0.5, 1.5}, ms::kNumberTypeFloat16),
          ms::zeros({2, 2}),
          ms::ones({3}, ms::kNumberTypeInt8)};
}
Tensor ones(const std::vector<int64_t>& shape, ms::TypeId type) { return ms::ones(shape, type); }

// What a tensor says of itself.
std::string described(const Tensor& x) {
  if (!x.is_defined()) return "undefined";
  std::string text = std::to_string(static_cast<int>(x.data_type())) + " " + std::to_string(x.numel());
  for (const int64_t size : x.shape()) text += " " + std::to_string(size);
  text += x.is_contiguous() ? " dense" : " strided";
  for (const int64_t step : x.stride()) text += " " + std::to_string(step);
  return text;
}
std::string text_of_undefined() { return described(Tensor()) + (Tensor().need_contiguous() ? " needs" : ""); }
std::string use_of_undefined() { return std::to_string(Tensor().numel()); }
// The shape and the layout as tensors, as only tensors and numbers come out of an operator.
Tensor layout(const Tensor& x) {
  std::vector<int64_t> all = {static_cast<int64_t>(x.data_type()), x.storage_offset(), x.is_contiguous()};
  all.insert(all.end(), x.shape().begin(), x.shape().end());
  for (const int64_t step : x.stride()) all.push_back(step);
  return ms::tensor(all);
}

// Arguments and results of every kind.
std::string kinds(int64_t i, double f, bool b, const std::string& s, const std::vector<int64_t>& list,
                  std::tuple<int64_t, int64_t> pair, ms::TypeId type, std::optional<int64_t> maybe,
                  const std::vector<double>& reals, const std::vector<std::string>& texts, int32_t narrow) {
  std::string text = std::to_string(i) + " " + std::to_string(f) + (b ? " on " : " off ") + s;
  for (const int64_t n : list) text += " " + std::to_string(n);
  text += " (" + std::to_string(std::get<0>(pair)) + "," + std::to_string(std::get<1>(pair)) + ") " +
          std::to_string(static_cast<int>(type)) + (maybe ? " " + std::to_string(*maybe) : " none");
  for (const double r : reals) text += " " + std::to_string(r);
  for (const auto& t : texts) text += " " + t;
  return text + " " + std::to_string(narrow);
}
std::tuple<int64_t, double, bool, std::string> results() { return {1, 2.5, true, "t\xc3\xa9xt"}; }
std::vector<int64_t> range(int64_t n) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}
void nothing() {}
Tensor scaled(const Tensor& x, double factor) {
  Tensor out(x.data_type(), x.shape());
  polyop::launch_aclnn("aclnnMuls", x, factor, out);
  return out;
}
std::tuple<Tensor, Tensor> pair_of(const Tensor& x) { return {scaled(x, 2), scaled(x, 3)}; }
void unit(const Tensor& x) { polyop::launch_aclnn("aclnnInplaceOne", x); }
Tensor first_defined(const std::vector<std::optional<Tensor>>& all) {
  for (const auto& one : all) {
    if (one) return scaled(*one, 1);
  }
  return Tensor();
}
Tensor longest(const Tensor& x, const std::optional<std::vector<Tensor>>& more, const Tensor& last) {
  return scaled(last, static_cast<double>(more ? more->size() : 100) + static_cast<double>(x.numel()));
}
double mean(const Tensor& x) { return static_cast<const float*>(x.GetDataPtr())[0]; }

// Tensors that outlive their call, and tensors on a thread of the module's own.
std::vector<Tensor>& kept() {
  static std::vector<Tensor> all;
  return all;
}
Tensor keep(const Tensor& x) {
  kept().push_back(x);
  kept().push_back(scaled(x, 2));
  kept().push_back(x.reshape({-1}));
  return scaled(x, 1);
}
Tensor kept_one(const Tensor&, int64_t from_end, bool twice) {
  const Tensor& one = kept().at(kept().size() - static_cast<size_t>(from_end));
  return twice ? scaled(one, 2) : one;
}
int64_t forget_but_first() {
  kept().resize(1);
  return 1;
}
int64_t forget() {
  const auto count = static_cast<int64_t>(kept().size());
  kept().clear();
  return count;
}
Tensor on_a_thread(const Tensor& x) {
  std::string problem;
  std::thread other([&] {
    try {
      scaled(x, 2);
    } catch (const std::exception& caught) {
      problem = caught.what();
    }
  });
  other.join();
  if (!problem.empty()) throw std::runtime_error("the thread says: " + problem);
  return scaled(x, 1);
}

struct Scale {
  int64_t factor;
  Tensor operator()(const Tensor& x) const { return scaled(x, static_cast<double>(factor)); }
};
int64_t add_ints(int64_t x, int64_t y) { return x + y; }
Tensor scaled_by_caller(const Tensor& x, double factor) { return scaled(x, factor); }

// Exceptions of every kind.
Tensor throws(const Tensor& x, const std::string& what) {
  if (what == "int") throw 7;
  if (what == "bad_alloc") throw std::bad_alloc();
  if (what == "log") MS_LOG(EXCEPTION) << "logged " << 42;
  if (what == "kind") MS_EXCEPTION(ValueError) << "of a kind";
  if (what == "null") MS_EXCEPTION_IF_NULL(static_cast<int*>(nullptr));
  if (what == "kernel") {
    polyop::launch("thrower", {x}, {x}, [] { throw std::runtime_error("in a kernel"); });
  }
  if (what == "kernel int") polyop::launch("thrower", {}, {}, [] { throw 7; });
  if (what == "aclnn") polyop::launch_aclnn("aclnnNobodyHasThis", x, x);
  if (what == "arguments") polyop::launch_aclnn("aclnnMul", x, x);
  if (what == "negative") return Tensor(ms::kNumberTypeFloat32, {2, -1});
  if (what == "type") return Tensor(static_cast<ms::TypeId>(99), {2});
  if (what == "undefined") return Tensor();
  if (what == "reshape") return x.reshape({1000});
  if (what == "chunk") return x.chunk(0)[0];
  if (what == "dim") return x.flatten(0, 9);
  if (what == "vector") std::vector<int>().at(3);
  return scaled(x, 1);
}

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.doc() = "A module of tensors.";
  m.def("reshape", &reshape, "Return x in another shape.", py::arg("x"), py::arg("shape"));
  m.def("flatten", &flatten, py::arg("x"), py::arg("start") = 0, py::arg("end") = -1);
  m.def("cast", &cast, py::arg("x"), py::arg("dtype") = ms::kNumberTypeFloat64);
  m.def("chunk", &chunk, py::arg("x"), py::arg("chunks"), py::arg("dim") = 0);
  m.def("dense", &dense);
  m.def("index_select", &index_select);
  m.def("repeat", &repeat);
  m.def("repeat_each", &repeat_each, py::arg("x"), py::arg("times"), py::arg("dim") = py::none());
  m.def("repeat_by", &repeat_by, py::arg("x"), py::arg("times"), py::arg("dim") = py::none(),
        py::arg("size") = py::none());
  m.def("made", &made, "Return tensors of numbers.");
  m.def("ones", &ones, py::arg("shape"), py::arg("dtype") = ms::kNumberTypeFloat32);
  m.def("text_of_undefined", &text_of_undefined);
  m.def("use_of_undefined", &use_of_undefined);
  m.def("layout", &layout);
  m.def("kinds", &kinds, py::arg("i"), py::arg("f"), py::arg("b") = false, py::arg("s") = "a \"b\" \\",
        py::arg("list") = std::vector<int64_t>{4, 5}, py::arg("pair") = std::vector<int64_t>{6, 7},
        py::arg("type") = ms::kNumberTypeFloat32, py::arg("maybe") = py::none(), py::arg("reals") = std::vector<double>{},
        py::arg("texts") = std::vector<std::string>{}, py::arg("narrow") = -1);
  m.def("results", &results);
  m.def("range", &range);
  m.def("nothing", &nothing);
  m.def("scaled", &scaled, py::arg("x"), py::arg("factor") = 2.5);
  m.def("pair_of", &pair_of);
  m.def("unit", &unit);
  m.def("first_defined", &first_defined);
  m.def("longest", &longest, py::arg("x"), py::arg("more"), py::arg("last"));
  m.def("mean", &mean);
  m.def("keep", &keep);
  m.def("kept_one", &kept_one);
  m.def("forget", &forget);
  m.def("forget_but_first", &forget_but_first);
  m.def("on_a_thread", &on_a_thread);
  m.def("by_object", Scale{3}, "Return 3 x.");
  int64_t captured = 5;
  m.def("by_lambda", [captured](const Tensor& x) { return scaled(x, static_cast<double>(captured)); });
  m.def("add_ints", &add_ints);
  m.def("by_caller", PYBOOST_CALLER(1, scaled_by_caller), "Return x times a factor.");
  m.def("throws", &throws);
}
