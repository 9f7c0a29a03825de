"""MindSpore's functions by the names of the array API: for rules that serve every framework.

``mindspore.numpy`` has most of them under NumPy's names. While a rule is recorded (symbols.py), a function
that is called on symbols is written down, and NumPy's function of that name tells the shape and the dtype of
the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore.numpy
import numpy as np
from mindspore import Tensor, ops

from ...core.dtypes import dtype
from ...core.spec import Spec
from .symbols import Recording, Symbol, current, result_spec
from .tensors import MS_DTYPES

_NUMPY = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "concat": "concatenate",
    "cumulative_prod": "cumprod",
    "cumulative_sum": "cumsum",
    "permute_dims": "transpose",
    "pow": "power",
}
"""Names of the array API, and NumPy's."""

_PERMUTES = {"moveaxis", "swapaxes", "transpose"}
_RESHAPES = {"expand_dims", "reshape", "squeeze"}
"""Functions that only change shapes, by NumPy's names."""

_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f"}


def _isdtype(kind: Any, name: str) -> bool:
    return dtype(kind).numpy.kind in _KINDS[name]


def _asarray(value: Any) -> Any:
    return value if isinstance(value, (Tensor, Symbol)) else Tensor(value)


def _astype(x: Any, kind: Any) -> Any:
    row, recording = dtype(kind), current()
    if recording is None or not isinstance(x, Symbol):
        return ops.cast(x, MS_DTYPES[row.name])
    return recording.apply(ops.cast, (x, MS_DTYPES[row.name]), {}, Spec(x.shape, row, "cpu"))


_OTHER: dict[str, Any] = {"asarray": _asarray, "astype": _astype, "isdtype": _isdtype, **MS_DTYPES}
"""What has no function of MindSpore's behind it."""

_OPS = {name: getattr(ops, name) for name in ("all", "any", "broadcast_to", "prod", "round")}
"""What ``mindspore.numpy`` does not have, or not as a primitive, by NumPy's names."""


class _Namespace:
    """The functions, as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name in _OTHER:
            return _OTHER[name]
        numpy_name = _NUMPY.get(name, name)
        return _recorded(numpy_name, _OPS[name] if name in _OPS else getattr(mindspore.numpy, numpy_name))


def _recorded(numpy_name: str, function: Any) -> Callable[..., Any]:
    """Return a function of MindSpore's that is written down when it is called on symbols."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        recording = current()
        if recording is None or not any(map(_has_symbol, arguments)):
            return function(*arguments, **keywords)
        spec = result_spec(getattr(np, numpy_name), arguments, keywords)
        if numpy_name in _PERMUTES or numpy_name in _RESHAPES:
            return _view(recording, numpy_name, arguments, keywords, spec)
        return recording.apply(function, arguments, keywords, spec)

    return call


def _view(
    recording: Recording, name: str, arguments: Sequence[Any], keywords: dict[str, Any], spec: Spec
) -> Symbol:
    """Write a change of the shape alone, as a primitive, or not at all."""
    x, *rest = arguments
    if name in _RESHAPES:
        return x if spec.shape == x.shape else recording.apply(ops.reshape, (x, spec.shape), {}, spec)
    sizes = tuple(range(2, 2 + x.ndim))  # different ones, which show where each axis goes
    moved = getattr(np, name)(np.broadcast_to(np.zeros(()), sizes), *rest, **keywords).shape
    order = tuple(sizes.index(size) for size in moved)
    return x if moved == sizes else recording.apply(ops.transpose, (x, order), {}, spec)


def _has_symbol(value: Any) -> bool:
    return any(map(_has_symbol, value)) if isinstance(value, (list, tuple)) else isinstance(value, Symbol)


NAMESPACE = _Namespace()
