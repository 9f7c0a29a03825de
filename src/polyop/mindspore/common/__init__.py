"""``mindspore.common``: where scripts also look for tensors, dtypes and ``jit``."""

from __future__ import annotations

from .. import dtype
from ..capture import jit
from ..parameter import Parameter, ParameterTuple
from ..tensor import Tensor

__all__ = ["Parameter", "ParameterTuple", "Tensor", "dtype", "jit"]
