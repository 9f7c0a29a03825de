// The schemas, once for the namespace.
#include <polyop/library.h>

POLYOP_LIBRARY(myops, m) {
  m.def("my_op(Tensor self, Tensor other) -> Tensor");
  m.def("my_op_backward(Tensor self) -> (Tensor, Tensor)");
}
