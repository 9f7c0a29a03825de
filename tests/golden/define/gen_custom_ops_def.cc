// The operators of op that op_def describes. Written by polyop: changes are lost.
#define POLYOP_BINDS_DEFINITIONS
#include <polyop/module/graph.h>

extern "C" POLYOP_HIDDEN void polyop_bind_definitions(pybind11::module_& m) {
  polyop::graph::define(m, {
      /*name*/ "add4",
      /*function*/ "add4",
      /*schema*/ "(Tensor input, Tensor other, Scalar alpha=1) -> Tensor",
      /*doc*/ "Adds one tensor to another, scaled.\n\nBoth are broadcast.\n\nArgs:\n    input: the first tensor.\n    alpha: the factor of the second.\n\nReturns:\n    the sum.\n\nExamples:\n    >>> module.add4(x, y, 1)",
      /*inplace*/ {-1},
      /*written*/ {},
      /*groups*/ {{0, 1}},
      /*list*/ false});
  polyop::graph::define(m, {
      /*name*/ "add3",
      /*function*/ "add_three",
      /*schema*/ "(Tensor input, Tensor other, Scalar alpha=1) -> Tensor",
      /*doc*/ "",
      /*inplace*/ {-1},
      /*written*/ {},
      /*groups*/ {},
      /*list*/ false});
  polyop::graph::define(m, {
      /*name*/ "batch_norm",
      /*function*/ "batch_norm",
      /*schema*/ "(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor? running_mean=None, Tensor? running_var=None, bool training=False, float momentum=0.1, float eps=1e-05) -> (Tensor, Tensor, Tensor)",
      /*doc*/ "",
      /*inplace*/ {-1, -1, -1},
      /*written*/ {},
      /*groups*/ {},
      /*list*/ false});
  polyop::graph::define(m, {
      /*name*/ "inplace_add",
      /*function*/ "inplace_add",
      /*schema*/ "(Tensor(a!) input, Tensor other) -> Tensor(a!)",
      /*doc*/ "",
      /*inplace*/ {0},
      /*written*/ {0},
      /*groups*/ {},
      /*list*/ false});
  polyop::graph::define(m, {
      /*name*/ "rows",
      /*function*/ "rows",
      /*schema*/ "(Tensor x, int[] lengths, float? scale=None, str mode=\"sum\") -> Tensor",
      /*doc*/ "",
      /*inplace*/ {-1},
      /*written*/ {},
      /*groups*/ {},
      /*list*/ false});
  polyop::graph::define(m, {
      /*name*/ "total",
      /*function*/ "total",
      /*schema*/ "(Tensor[] xs) -> Tensor[]",
      /*doc*/ "",
      /*inplace*/ {-1},
      /*written*/ {},
      /*groups*/ {},
      /*list*/ true});
  polyop::graph::define(m, {
      /*name*/ "first",
      /*function*/ "first",
      /*schema*/ "(Tensor x, Tensor count) -> Tensor",
      /*doc*/ "",
      /*inplace*/ {-1},
      /*written*/ {},
      /*groups*/ {},
      /*list*/ false});
  polyop::graph::define(m, {
      /*name*/ "mix",
      /*function*/ "mix",
      /*schema*/ "(Tensor x, Tensor y) -> Tensor",
      /*doc*/ "",
      /*inplace*/ {-1},
      /*written*/ {},
      /*groups*/ {{0, 1}},
      /*list*/ false});
  polyop::graph::finish(m);
}
