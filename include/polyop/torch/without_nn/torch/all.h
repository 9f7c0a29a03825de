// Replaces PyTorch's header of this name, for sources that do not use torch::nn or what is built on it
// (optim, data, jit, serialize). These are by far its largest parts. polyop builds again with the real header
// when a name is missing.
#ifndef POLYOP_TORCH_WITHOUT_NN_H
#define POLYOP_TORCH_WITHOUT_NN_H

#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/enum.h>
#include <torch/fft.h>
#include <torch/sparse.h>
#include <torch/special.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>
#if __has_include(<torch/nested.h>)
#include <torch/nested.h>
#endif

#endif
