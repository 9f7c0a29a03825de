// Replaces PyTorch's header of this name, for sources that do not use Python's API. The real header takes
// longer to compile than most kernels. polyop builds again with the real header when a name is missing.
#ifndef POLYOP_TORCH_WITHOUT_PYTHON_H
#define POLYOP_TORCH_WITHOUT_PYTHON_H
#endif
