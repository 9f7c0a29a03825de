#ifndef FUNCTION_H
#define FUNCTION_H

#include <polyop/library.h>

// The operator for whatever device its tensors are on.
polyop::Tensor my_op_impl(const polyop::Tensor& self, const polyop::Tensor& other);
std::tuple<polyop::Tensor, polyop::Tensor> my_op_backward_impl(const polyop::Tensor& self);

#endif
