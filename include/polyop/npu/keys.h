// TORCH_LIBRARY_IMPL for the NPU's dispatch keys. In rehearsal it registers for the CPU's keys.
//
// Otherwise npu/module.h gives the operators a kernel for the CPU that says how to rehearse.
//
// The environment is read when the library is loaded, so one build serves both. Registrations for PyTorch's
// own operators, or for a whole back end (fallbacks), keep their keys.
#ifndef POLYOP_NPU_KEYS_H
#define POLYOP_NPU_KEYS_H

#include <stdlib.h>
#include <string.h>
#include <torch/library.h>

#include <set>
#include <string>

namespace polyop::npu {

inline bool rehearsed() {
  const char* value = getenv("POLYOP_ASCEND");
  return value != nullptr && strcmp(value, "rehearse") == 0;
}

// What one library registers.
struct Registered {
  std::set<std::string> for_npu;  // the namespaces with kernels for the NPU
  bool for_meta = false;          // whether there are Meta kernels
};

__attribute__((visibility("hidden"))) inline Registered& registered() {
  static Registered library;
  return library;
}

inline c10::DispatchKey key(const char* library, c10::DispatchKey requested) {
  registered().for_meta |= requested == c10::DispatchKey::Meta;
  if (requested == c10::DispatchKey::PrivateUse1 || requested == c10::DispatchKey::XLA) {
    registered().for_npu.insert(library);
  }
  if (!rehearsed() || strcmp(library, "_") == 0 || strcmp(library, "aten") == 0) {
    return requested;
  }
  switch (requested) {
    case c10::DispatchKey::PrivateUse1:
    case c10::DispatchKey::XLA:  // the NPU's key before PyTorch 2.1
      return c10::DispatchKey::CPU;
    case c10::DispatchKey::AutogradPrivateUse1:
    case c10::DispatchKey::AutogradXLA:
      return c10::DispatchKey::AutogradCPU;
    default:
      return requested;
  }
}

}  // namespace polyop::npu

#undef TORCH_LIBRARY_IMPL
#define TORCH_LIBRARY_IMPL(ns, k, m) POLYOP_NPU_IMPL(ns, k, m, C10_UID)
#define POLYOP_NPU_IMPL(ns, k, m, uid)                                                              \
  static void C10_CONCATENATE(polyop_npu_##ns##_##k##_, uid)(torch::Library&);                      \
  static const torch::detail::TorchLibraryInit C10_CONCATENATE(polyop_npu_init_##ns##_##k##_, uid)( \
      torch::Library::IMPL, &C10_CONCATENATE(polyop_npu_##ns##_##k##_, uid), C10_STRINGIZE(ns),     \
      ::polyop::npu::key(C10_STRINGIZE(ns), c10::DispatchKey::k), __FILE__, __LINE__);              \
  void C10_CONCATENATE(polyop_npu_##ns##_##k##_, uid)(torch::Library & m)

#endif
