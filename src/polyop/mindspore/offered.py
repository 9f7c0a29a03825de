"""The methods of a ``Tensor`` that scripts can use; PyTorch's others, which differ, are hidden."""

from __future__ import annotations

from typing import Any

import torch

from .interpose import called_by_library
from .nearest import missing

OF_TENSORS = (
    "T", "abs", "add", "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "asnumpy",
    "assign_value", "astype", "broadcast_to", "ceil", "clamp", "clip", "contiguous", "copy", "copy_",
    "cos", "cumsum", "device", "div", "dtype", "eq", "equal", "erf", "exp", "expand_as", "expand_dims",
    "flatten", "float", "floor", "floor_divide", "gather", "ge", "gt", "half", "has_init", "index_select",
    "init_data", "int", "is_contiguous", "isfinite", "isinf", "isnan", "item", "itemsize", "le", "log",
    "logical_and", "logical_not", "logical_or", "logical_xor", "long", "lt", "mT", "masked_fill", "matmul",
    "max", "maximum", "mean", "min", "minimum", "move_to", "mul", "nbytes", "ndim", "ne", "neg", "numpy",
    "permute", "pow", "prod", "reciprocal", "requires_grad_", "reshape", "round", "rsqrt", "shape", "sigmoid",
    "sign", "sin", "size", "softmax", "sort", "split", "sqrt", "square", "squeeze", "std", "strides", "sub",
    "sum", "swapaxes", "swapdims", "tanh", "tile", "to", "tolist", "topk", "transpose", "tril", "triu",
    "type", "unsqueeze", "value", "var", "view", "view_as", "where",
)  # fmt: skip
"""The names that are offered. Each has a row in the comparison with MindSpore."""

PLUMBING = frozenset([
    "add_", "as_strided", "as_subclass", "backward", "clone", "const_data_ptr", "cpu", "cuda", "data",
    "data_ptr", "detach", "detach_", "dim", "div_", "element_size", "fill_", "get_device",
    "grad", "grad_dtype", "grad_fn", "is_complex", "is_conj", "is_cpu", "is_cuda", "is_floating_point",
    "is_inference", "is_leaf", "is_meta", "is_neg", "is_nested", "is_quantized", "is_sparse", "layout",
    "module_load", "mul_", "name", "names", "numel", "output_nr", "register_hook", "requires_grad",
    "retain_grad", "retains_grad", "storage_offset", "stride", "sub_", "untyped_storage",
    "volatile", "zero_",
])  # fmt: skip
"""What hosts, PyTorch's C++ code and gradients need. They have one meaning, whoever calls."""


class Withdrawn:
    """A method or property of PyTorch that a script does not have and PyTorch's own code has."""

    def __init__(self, name: str, method: Any) -> None:
        self.name, self.method = name, method

    def __get__(self, tensor: Any, kind: Any) -> Any:
        if tensor is not None and not torch.compiler.is_dynamo_compiling() and not called_by_library(1):
            raise missing("Tensor", self.name, OF_TENSORS)
        return self.method.__get__(tensor, kind)


def withdraw(tensor_class: Any) -> None:
    """Take PyTorch's methods and properties that are not offered out of a class's attributes for scripts."""
    for name in dir(torch.Tensor):
        if name.startswith("_") or name in PLUMBING or name in OF_TENSORS or name in tensor_class.__dict__:
            continue
        setattr(tensor_class, name, Withdrawn(name, getattr(torch.Tensor, name)))
