// The name under which torch_npu's own examples include EXEC_NPU_CMD_EXT.
#ifndef POLYOP_NPU_CPP_EXTENSION_H
#define POLYOP_NPU_CPP_EXTENSION_H

#include "pytorch_npu_helper.hpp"

#endif
