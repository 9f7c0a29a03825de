"""Run MindSpore scripts on PyTorch, on a machine without MindSpore.

A script writes ``import polyop.mindspore as ms`` in place of ``import mindspore as ms``. Tensors,
cells, gradients and graphs are PyTorch's; ``ops.Custom``, ``ops.kernel`` and ``ops.CustomOpBuilder``
are polyop's own. The package has the names that programs with custom operators use. It never uses a
MindSpore that is installed.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from ..core.errors import HostError as _HostError

if importlib.util.find_spec("torch") is None:
    raise _HostError(
        "polyop.mindspore", "runs on PyTorch, which is not installed", hint="pip install 'polyop[torch]'"
    )

import torch as _torch

from . import common, context, dtype, nn, ops, runtime
from .capture import jit
from .checkpoint import load_checkpoint, load_param_into_net, save_checkpoint
from .context import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context, set_device
from .dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype_to_nptype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    pytype_to_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .function import _Function
from .grad import grad, value_and_grad
from .nearest import OF_ALL as _OF_ALL
from .nearest import missing as _missing
from .parameter import Parameter, ParameterTuple
from .tensor import Tensor, is_tensor, tensor
from .transforms import jacfwd, jacrev, jvp, vjp, vmap

mstype = dtype
ms_function = jit


def set_seed(seed: int) -> None:
    """Set the seed of all random numbers."""
    _torch.manual_seed(seed)


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """Return the value unchanged: every input of a graph may change here."""
    del dynamic_len
    return input_data


def jit_class(cls: Any) -> Any:
    """Return the class unchanged: PyTorch traces through any class."""
    return cls


__all__ = [
    "GRAPH_MODE", "PYNATIVE_MODE", "Parameter", "ParameterTuple", "Tensor", "_Function", "bfloat16",
    "bool_", "common", "complex64", "complex128", "context", "dtype", "dtype_to_nptype", "float16",
    "float32", "float64", "get_context", "grad", "int8", "int16", "int32", "int64", "is_tensor", "jacfwd",
    "jacrev", "jit", "jit_class", "jvp", "load_checkpoint", "load_param_into_net", "ms_function",
    "mstype", "mutable", "nn", "ops", "pytype_to_dtype", "runtime", "save_checkpoint", "set_context",
    "set_device", "set_seed", "tensor", "uint8", "uint16", "uint32", "uint64", "value_and_grad", "vjp",
    "vmap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise _missing(__name__, name, __all__, _OF_ALL)
