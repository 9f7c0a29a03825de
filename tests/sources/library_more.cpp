// The second file: more of the same namespace, and another one.
#include "polyop/library.h"

using polyop::Tensor;

POLYOP_LIBRARY(libmore, m) { m.def("sum_of(Tensor x, Tensor y) -> Tensor"); }
POLYOP_LIBRARY_FRAGMENT(libops, m) { m.def("later(Tensor x) -> Tensor"); }

namespace {

Tensor sum_of(const Tensor& x, const Tensor& y) {
  static auto add = polyop::Dispatcher::singleton()
                        .findSchemaOrThrow("libops::add", "")
                        .typed<Tensor(const Tensor&, const Tensor&)>();
  return add.call(x, y);
}
Tensor halved(const Tensor& x) {
  Tensor out = polyop::empty_like(x);
  polyop::launch("half", {x}, {out}, [&] {
    for (size_t i = 0; i < x.numel(); ++i) out.data_ptr<float>()[i] = x.data_ptr<float>()[i] / 2;
  });
  return out;
}

}  // namespace

POLYOP_LIBRARY_IMPL(libmore, CPU, m) { m.impl("sum_of", &sum_of); }
POLYOP_LIBRARY_IMPL(libops, CPU, m) {
  m.impl("half", &halved);
  m.impl("later", &halved);
}
