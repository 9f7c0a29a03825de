"""``np.finfo(x.dtype).max`` and ``np.iinfo(x.dtype).min``: numbers that are known when the dtype is."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ...core.dtypes import dtype
from ..ir.types import BYTE_FLOATS


def finfo(of: Any) -> Any:
    """Return NumPy's ``finfo`` of a dtype of a kernel, also of bfloat16 and floats of one byte.

    >>> float(finfo("bfloat16").eps)
    0.0078125
    """
    of = dtype(of)
    return _InFloat32(ml_dtypes.finfo(of.numpy)) if of.name in BYTE_FLOATS else ml_dtypes.finfo(of.numpy)


class _InFloat32:
    """The ``finfo`` of a float of one byte, whose numbers are float32, as elements of tensors are."""

    def __init__(self, info: Any) -> None:
        self._info = info

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._info, name)
        return np.float32(value) if isinstance(value, np.generic) else value


def iinfo(of: Any) -> Any:
    """Return NumPy's ``iinfo`` of a dtype of a kernel."""
    return np.iinfo(dtype(of).numpy)


def limit(word: str, of: str, attribute: str) -> Any:
    """Return an attribute of ``finfo`` or ``iinfo`` of a dtype, None if there is no such number."""
    try:
        value = getattr({"finfo": finfo, "iinfo": iinfo}[word](of), attribute)
    except (ValueError, TypeError, AttributeError):
        return None
    return value if isinstance(value, (int, float, np.generic)) else None
