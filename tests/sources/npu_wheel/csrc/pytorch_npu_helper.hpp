// The project's own copy needs CANN: polyop's is read in its place.
#ifndef PYTORCH_NPU_HELPER_HPP_
#define PYTORCH_NPU_HELPER_HPP_
#include <acl/acl_base.h>
#include <torch_npu/csrc/framework/utils/OpAdapter.h>
#endif
