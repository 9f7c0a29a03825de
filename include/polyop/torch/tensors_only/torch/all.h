// Replaces PyTorch's header of this name, for sources that use only tensors and their functions. It compiles
// faster. polyop builds again with the real header when a name is missing.
#ifndef POLYOP_TORCH_TENSORS_ONLY_H
#define POLYOP_TORCH_TENSORS_ONLY_H

#include <torch/types.h>

#endif
