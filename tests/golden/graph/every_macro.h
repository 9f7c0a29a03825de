// Every macro and attribute type of REG_OP, in the forms that headers have them.
#ifndef EVERY_MACRO_H_
#define EVERY_MACRO_H_
#include "graph/operator_reg.h"
#define LATER(x) \
  x

/* REG_OP(InComment).INPUT(x, TensorType::ALL()) */
using namespace std;
namespace ge {
REG_OP(Tensors)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OPTIONAL_INPUT(bias, ge::TensorType::NumberType())  // may be left out
    .INPUT(index, TensorType({DT_INT64, DT_INT32}))
    .DYNAMIC_INPUT(xs, TensorType({DT_BF16, ge::DT_DOUBLE}))
    .OPTIONAL_INPUT(mask, TensorType({BasicType(), DT_BOOL}))
    .OUTPUT(y, "T")
    .OUTPUT(x, TensorType({FloatingDataType}))
    .DATATYPE(T, TensorType({DT_FLOAT, \
                             DT_FLOAT16}))
    .OP_END_FACTORY_REG(Tensors);

REG_OP(Lists)
    .DYNAMIC_INPUT(xs, "Ts")
    .REQUIRED_ATTR(sizes, ListInt)
    .DYNAMIC_OUTPUT(ys, TensorType::RealNumberType())
    .DATATYPE(Ts, ListTensorType({TensorType::RealNumberType()}))
    .OP_END_FACTORY_REG(Lists)

REG_OP(Attributes)
    .INPUT(x, TensorType(DT_FLOAT))
    .ATTR(axis, Int, -0x10)
    .ATTR(eps, Float, 1e-8)
    .ATTR(slope, Float, -2.5e+3f)
    .ATTR(flag, Bool, true)
    .ATTR(mode, String, "say \"no\"\t" "C:\\tmp")
    .ATTR(dst, Type, DT_FLOAT16)
    .ATTR(wide, Int, ge::DT_BF16)
    .ATTR(ints, ListInt, {1, 2, -3})
    .ATTR(none, ListInt, {})
    .ATTR(floats, ListFloat, {0.5f, 1e-5, INFINITY})
    .ATTR(flags, ListBool, {true, false})
    .ATTR(words, ListString, {"a", "b\"c"})
    .ATTR(dtypes, ListType, {DT_DOUBLE, DT_COMPLEX32})
    .ATTR(table, ListListInt, {{1, 2}, {}, {3}})
    .ATTR(weights, ListListFloat, std::vector<std::vector<float>>{{0.25, 1}})
    .ATTR(lambda, Float, 1)
    .ATTR(x, Int, 0)
    .REQUIRED_ATTR(last, Int)
    .REQUIRED_ATTR(name, String)
    .OUTPUT(y, TensorType::ALL())
    .OP_END_FACTORY_REG(Attributes)

REG_OP(WithFlags)
    .OUTPUT(y, TensorType::ALL())
    .ATTR(flags, ListListBool, {{true}, {false, true}})
    .OP_END_FACTORY_REG(WithFlags)
REG_OP(WithWords)
    .OUTPUT(y, TensorType::ALL())
    .ATTR(words, ListListString, {{"a"}})
    .OP_END_FACTORY_REG(WithWords)
REG_OP(WithTensor)
    .OUTPUT(y, TensorType::ALL())
    .ATTR(value, Tensor, ge::Tensor())
    .OP_END_FACTORY_REG(WithTensor)
REG_OP(MaybeResult)
    .INPUT(x, TensorType::ALL())
    .OPTIONAL_OUTPUT(y, TensorType::ALL())
    .OP_END_FACTORY_REG(MaybeResult)
REG_OP(Branch)
    .INPUT(condition, TensorType::ALL())
    .GRAPH(then_branch)
    .GRAPH(else_branch)
    .OP_END_FACTORY_REG(Branch)
REG_OP(Choose)
    .INPUT(which, TensorType({DT_INT32}))
    .DYNAMIC_GRAPH(branches)
    .OP_END_FACTORY_REG(Choose)
REG_OP(Constant)
    .OUTPUT(y, TensorType::ALL())
    .OP_END_FACTORY_REG(Constant)
#if 0
REG_OP(LeftOut) this is not read
#endif
}  // namespace ge
#endif
