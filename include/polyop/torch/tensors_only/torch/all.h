// Stands before PyTorch's header of this name for sources that use tensors and their functions
// only. polyop builds again with the real one when a name is missing.
#ifndef POLYOP_TORCH_TENSORS_ONLY_H
#define POLYOP_TORCH_TENSORS_ONLY_H

#include <torch/types.h>

#endif
