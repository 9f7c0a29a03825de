// What PyTorch sources for Ascend include: EXEC_NPU_CMD, and the NPU's dispatch keys in rehearsal.
//
// EXEC_NPU_CMD(aclnnAdd, self, other, alpha, out) runs an operator of Ascend's library on tensors:
// the first phase's arguments without its last two. EXEC_NPU_CMD_EXT is the same, and
// EXEC_NPU_CMD_SYNC waits until it has run. With POLYOP_ASCEND=rehearse polyop runs the operator on
// the CPU. What fails is a std::runtime_error.
//
// The guard is the one that copies of this header in authors' projects have: this one stands in.
#ifndef PYTORCH_NPU_HELPER_HPP_
#define PYTORCH_NPU_HELPER_HPP_

#include "npu/cann.h"
#include "npu/keys.h"
#include "npu/rehearsal.h"

namespace polyop::npu {

template <class... Arguments>
void execute(const char* name, bool wait, const Arguments&... arguments) {
  if (getenv("POLYOP_ASCEND") != nullptr) {
    rehearse(name, arguments...);  // another value than "rehearse" is refused there
  } else {
    run_on_cann(name, wait, arguments...);
  }
}

}  // namespace polyop::npu

#define EXEC_NPU_CMD(aclnn_api, ...)                        \
  do {                                                      \
    ::polyop::npu::execute(#aclnn_api, false, __VA_ARGS__); \
  } while (false)
#define EXEC_NPU_CMD_EXT(aclnn_api, ...) EXEC_NPU_CMD(aclnn_api, __VA_ARGS__)
#define EXEC_NPU_CMD_SYNC(aclnn_api, ...)                  \
  do {                                                     \
    ::polyop::npu::execute(#aclnn_api, true, __VA_ARGS__); \
  } while (false)

#endif
