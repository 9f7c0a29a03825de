// The header of C++ operator modules: ms::Tensor, PyboostRunner, Function, PYBIND11_MODULE.
//
// The names and their meaning are those of MindSpore's documents on custom operators. Compiling needs no
// framework and no Python.
#ifndef POLYOP_MS_EXTENSION_API_H
#define POLYOP_MS_EXTENSION_API_H

#include <map>
#include <set>

#include "../module/bind.h"
#include "../module/function.h"
#include "../module/log.h"
#include "../module/operations.h"
#include "../module/runner.h"

// The older names, in all namespaces in which documents and programs use them.
namespace mindspore::pynative {
namespace autograd {
using namespace ::mindspore::tensor;
namespace tensor = ::mindspore::tensor;
namespace custom = ::mindspore::custom;
using ::ShapeVector;
using ::mindspore::GetValue;
using ::mindspore::MakeValue;
using ::mindspore::TypeId;
using ::mindspore::ValuePtr;
using ::mindspore::ValuePtrList;
using ::mindspore::ValueTuple;
}  // namespace autograd
}  // namespace mindspore::pynative

namespace mindspore::pyboost {
using namespace ::mindspore::tensor;
using ::mindspore::pynative::autograd::AutogradContext;
using ::mindspore::pynative::autograd::Function;
namespace tensor = ::mindspore::tensor;
namespace custom = ::mindspore::custom;
}  // namespace mindspore::pyboost

#endif
