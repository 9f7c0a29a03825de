// The header that PyTorch sources for Ascend include: EXEC_NPU_CMD, and the NPU's dispatch keys in rehearsal.
//
// EXEC_NPU_CMD(aclnnAdd, self, other, alpha, out) runs an operator of Ascend's library. The arguments are
// those of its GetWorkspaceSize function, without the last two. EXEC_NPU_CMD_EXT is the same.
// EXEC_NPU_CMD_SYNC also waits until the operator has run. With POLYOP_ASCEND=rehearse polyop runs the
// operator on the CPU. A failure throws std::runtime_error.
//
// The include guard is that of the copies of this header in authors' projects, which this file replaces.
#ifndef PYTORCH_NPU_HELPER_HPP_
#define PYTORCH_NPU_HELPER_HPP_

#include "npu/cann.h"
#include "npu/keys.h"
#include "npu/rehearsal.h"

namespace polyop::npu {

template <class... Arguments>
void execute(const char* name, bool wait, const Arguments&... arguments) {
  if (getenv("POLYOP_ASCEND") != nullptr) {
    rehearse(name, arguments...);  // throws for any value but "rehearse"
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
