// Operators of MindSpore's graph mode: OpFuncImpl, kernel classes, and the macros that register them.
//
// A YAML file has the arguments of each operator: CustomOpBuilder(op_def=...).
#ifndef POLYOP_MODULE_GRAPH_H
#define POLYOP_MODULE_GRAPH_H

#include "graph_call.h"
#include "graph_checks.h"
#include "graph_def.h"
#include "log.h"

namespace mindspore {
using ops::InferInfo;
using ops::InferInfoPtr;
using ops::InferInfoPtrList;
using ops::OpFuncImpl;
namespace ops {
using kernel::KernelTensor;
}
}  // namespace mindspore

#ifndef POLYOP_BINDS_DEFINITIONS  // the source that the builder writes from op_def sets it
extern "C" __attribute__((weak, visibility("hidden"))) void polyop_bind_definitions(pybind11::module_& m) {
  polyop::graph::finish(m);
}
#endif

// MS_CUSTOM_OP_REGISTER(add, AddInfer, AddKernel); the classes may be in mindspore::ops and
// mindspore::kernel.
#define POLYOP_REGISTER_INFER(op, Infer)                                                         \
  namespace mindspore::ops {                                                                     \
  static Infer polyop_infer_##op;                                                                \
  static const bool polyop_has_infer_##op = ::polyop::graph::add_infer(#op, &polyop_infer_##op); \
  }
#define POLYOP_REGISTER_KERNEL(op, name, Kernel) \
  static const bool polyop_has_kernel_##op =     \
      ::polyop::graph::add_kernel(name, [] { return std::make_shared<Kernel>(); });

#define MS_CUSTOM_OPS_REGISTER(op, Infer, Kernel) \
  POLYOP_REGISTER_INFER(op, Infer)                \
  namespace mindspore::kernel {                   \
  POLYOP_REGISTER_KERNEL(op, #op, Kernel)         \
  }
#define MS_CUSTOM_OP_REGISTER(op, Infer, Kernel) MS_CUSTOM_OPS_REGISTER(op, Infer, Kernel)
#define MS_CUSTOM_ACLNN_OPS_REGISTER(op, Infer, Kernel) MS_CUSTOM_OPS_REGISTER(op, Infer, Kernel)

// Registers only the kernel. The name is that of the operator with "Custom_" in front.
#define MS_ACLNN_KERNEL_FACTORY_REG(name, Kernel) POLYOP_REGISTER_KERNEL(name, #name, Kernel)
#define POLYOP_JOIN_(a, b) a##b
#define POLYOP_JOIN(a, b) POLYOP_JOIN_(a, b)
#define MS_CUSTOM_KERNEL_FACTORY_REG(name, Kernel) \
  POLYOP_REGISTER_KERNEL(POLYOP_JOIN(counted_, __COUNTER__), name, Kernel)

// The guard of the header module.h in MindSpore's examples, which defines the same names.
#ifndef MS_CUSTOM_OPS_MODULE_H_
#define MS_CUSTOM_OPS_MODULE_H_

using ModuleRegisterFunction = std::function<void(pybind11::module_&)>;

// Collects binding functions of several sources. PYBIND11_MODULE calls RegisterAll(m).
class POLYOP_HIDDEN ModuleRegistry {
 public:
  static ModuleRegistry& Instance() {
    static ModuleRegistry registry;
    return registry;
  }
  void Register(ModuleRegisterFunction function, bool pynative = true) {
    (pynative ? first_ : second_).push_back(std::move(function));
  }
  void RegisterAll(pybind11::module_& m) {
    for (const auto& function : first_) function(m);
    for (const auto& function : second_) function(m);
  }

 private:
  std::vector<ModuleRegisterFunction> first_, second_;
};

#define POLYOP_GRAPH_OP_1(op) static const bool polyop_has_graph_##op = ::polyop::graph::add_operator(#op)
#define POLYOP_GRAPH_OP_3(op, Infer, Kernel) \
  MS_CUSTOM_OPS_REGISTER(op, Infer, Kernel)  \
  POLYOP_GRAPH_OP_1(op)
#define POLYOP_THIRD(a, b, c, d, ...) d
// REG_GRAPH_MODE_OP(op) for an operator that the macros above register, or REG_GRAPH_MODE_OP(op, Infer,
// Kernel).
#define REG_GRAPH_MODE_OP(...) \
  POLYOP_THIRD(__VA_ARGS__, POLYOP_GRAPH_OP_3, unused, POLYOP_GRAPH_OP_1, )(__VA_ARGS__)

// MS_CUSTOM_OPS_EXTENSION_MODULE(m) { m.def(...); } binds functions in a source without PYBIND11_MODULE.
#define MS_CUSTOM_OPS_EXTENSION_MODULE(m)                                      \
  static void POLYOP_JOIN(polyop_binds_, __LINE__)(pybind11::module_&);        \
  static const bool POLYOP_JOIN(polyop_bound_, __LINE__) = [] {                \
    ModuleRegistry::Instance().Register(POLYOP_JOIN(polyop_binds_, __LINE__)); \
    return true;                                                               \
  }();                                                                         \
  static void POLYOP_JOIN(polyop_binds_, __LINE__)(pybind11::module_ & m)

#endif  // MS_CUSTOM_OPS_MODULE_H_

#endif
