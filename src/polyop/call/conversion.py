"""Suggest, for errors, how to make an array of an argument that is no tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

_METHODS = ("toarray", "todense", "to_dense", "to_numpy")
"""What makes an array of SciPy's and JAX's sparse matrices, and of columns of pandas, polars and pyarrow."""


_WAYS: dict[type[Any], str | None] = {
    str: None,
    bytes: "np.frombuffer({}, np.uint8)",
    bytearray: "np.frombuffer({}, np.uint8)",
    memoryview: "np.asarray({})",
    complex: "np.asarray({}, np.complex64)",
    Mapping: "np.asarray(list({}.values()), np.float32)",
    Sequence: "np.asarray({}, np.float32)",
    Number: "np.asarray({}, np.float32)",
    Iterable: "np.fromiter({}, np.float32)",
}
"""By the class of a value, the first that fits."""


def way_to_array(name: str, value: Any) -> str | None:
    """Return in code how an argument that is no tensor becomes one; None if there is no way.

    >>> way_to_array("x", [1.0, 2.0])
    'np.asarray(x, np.float32)'
    >>> way_to_array("x", b"ab")
    'np.frombuffer(x, np.uint8)'
    """
    method = next((one for one in _METHODS if hasattr(value, one)), None)
    if method is not None:
        return f"{name}.{method}()"
    for kind, way in _WAYS.items():
        if isinstance(value, kind):
            return way and way.format(name)
    return f"np.asarray({name}, np.float32)" if hasattr(value, "__array__") else None


def way_to_numbers(kind: np.dtype[Any]) -> str | None:
    """Return how an array of a dtype that kernels do not take becomes one of numbers; None: nobody knows.

    >>> way_to_numbers(np.dtype(object))
    'convert it: .astype(np.float32), if all its elements are numbers'
    """
    if kind.names:
        return f"pass one of its fields: [{kind.names[0]!r}]"
    return {
        "O": "convert it: .astype(np.float32), if all its elements are numbers",
        "U": "convert it: .astype(np.float32), if its texts are numbers",
        "S": "convert it: .astype(np.float32), if its texts are numbers",
        "M": "convert it: .astype(np.int64), in its units since 1970",
        "m": "convert it: .astype(np.int64), in its units",
        "f": "convert it: .astype(np.float64)",
        "c": "convert it: .astype(np.complex128)",
    }.get(kind.kind)
