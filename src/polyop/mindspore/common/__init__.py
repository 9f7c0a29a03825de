"""``mindspore.common``: tensors, dtypes and ``jit`` under the path that some scripts import."""

from __future__ import annotations

from .. import dtype
from ..capture import jit
from ..parameter import Parameter, ParameterTuple
from ..tensor import Tensor

__all__ = ["Parameter", "ParameterTuple", "Tensor", "dtype", "jit"]
