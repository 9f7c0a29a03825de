"""``mindspore.common``: tensors, dtypes and ``jit`` under the paths that some scripts import."""

from __future__ import annotations

import sys

from .. import dtype
from ..capture import jit
from ..parameter import Parameter, ParameterTuple
from ..tensor import Tensor

__all__ = ["Parameter", "ParameterTuple", "Tensor", "dtype", "jit"]

for _path in ("api", "parameter", "tensor"):
    sys.modules[f"{__name__}.{_path}"] = globals()[_path] = sys.modules[__name__]
