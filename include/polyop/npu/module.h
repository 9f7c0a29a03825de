// PYBIND11_MODULE of a project for Ascend. When its functions are defined, all operators are registered, and
// * without rehearsal, those without a kernel for the CPU get one that says how to rehearse;
// * PyTorch's compiler learns the functions, if polyop is there and the operators have Meta kernels.
#ifndef POLYOP_NPU_MODULE_H
#define POLYOP_NPU_MODULE_H

#include <torch/extension.h>

#include "keys.h"

namespace polyop::npu {

inline void refuse_cpu(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, op.schema().name(),
      ": has kernels for Ascend's NPU, and none for the CPU, but got tensors of the CPU\n"
      "  move them to the NPU: x.npu(); or rehearse on the CPU: set POLYOP_ASCEND=rehearse before the module "
      "is imported");
}

inline void add_refusals() {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto key : {c10::DispatchKey::PrivateUse1, c10::DispatchKey::XLA}) {
    for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(key)) {
      const auto space = name.getNamespace();
      const auto op = dispatcher.findOp(name);
      if (space && op && registered().for_npu.count(std::string(*space)) != 0 && *space != "aten" &&
          !op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
        // a library's registrations end with it, so it lives as long as the process
        auto* library = new torch::Library(torch::Library::IMPL, std::string(*space), c10::DispatchKey::CPU,
                                           __FILE__, __LINE__);
        const std::string full = name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
        library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&refuse_cpu>());
      }
    }
  }
}

// Whether an import found no polyop, or one without the module. Other errors of the import are polyop's.
inline bool is_absent(const pybind11::error_already_set& problem, const std::string& module) {
  if (!problem.matches(PyExc_ModuleNotFoundError)) {
    return false;
  }
  const std::string missing = pybind11::str(problem.value().attr("name"));
  return (module + ".").rfind(missing + ".", 0) == 0;
}

inline void defined(pybind11::module_& module) {
  if (!rehearsed()) {
    add_refusals();
  }
  if (registered().for_meta) {
    const char* compiling = "polyop.providers.npu.compiling";
    try {
      pybind11::module_::import(compiling).attr("offer")(module);
    } catch (pybind11::error_already_set& problem) {
      if (!is_absent(problem, compiling)) {
        throw;
      }  // without polyop, PyTorch's compiler calls the functions between its graphs
    }
  }
}

}  // namespace polyop::npu

#ifdef PYBIND11_MODULE_EXEC  // since pybind11 3, which PyTorch has since 2.9
#undef PYBIND11_MODULE
#define PYBIND11_MODULE(name, variable, ...) POLYOP_NPU_MODULE(name, variable, ##__VA_ARGS__)
#define POLYOP_NPU_MODULE(name, variable, ...)                                 \
  static void PYBIND11_CONCAT(polyop_npu_define_, name)(::pybind11::module_&); \
  PYBIND11_MODULE_PYINIT(name, ##__VA_ARGS__)                                  \
  PYBIND11_MODULE_EXEC(name, polyop_module) {                                  \
    PYBIND11_CONCAT(polyop_npu_define_, name)(polyop_module);                  \
    ::polyop::npu::defined(polyop_module);                                     \
  }                                                                            \
  void PYBIND11_CONCAT(polyop_npu_define_, name)([[maybe_unused]] ::pybind11::module_ & variable)
#endif

#endif
