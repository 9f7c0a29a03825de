"""Weights in a file of safetensors, for an environment that has no PyTorch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.dtypes import dtype
from ..core.errors import HostError, UnsupportedError
from .weights_check import flat, matched, nested

_NAMES = {  # of safetensors -> of polyop
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
    "F64": "float64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_FORM = "polyop"  # the key of the metadata that says whether dictionaries were nested


def save(weights: Mapping[str, Any], file: str | os.PathLike[str]) -> None:
    """Write weights into a file of safetensors, which other programs can read, too.

    ``weights`` is what :func:`to_jax` or :func:`to_mindspore` returned, or any nested dictionary of arrays.
    A name in the file is the path with dots.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"params": {"scale": np.ones(3)}}, f"{folder}/w.safetensors")
    ...     load(f"{folder}/w.safetensors")
    {'params': {'scale': array([1., 1., 1.])}}

    Raises ``UnsupportedError`` for a dtype that such files do not have and for a key with a dot in a nested
    dictionary, ``HostError`` without the package.
    """
    safetensors = _package()
    arrays = {name: np.asarray(value, order="C") for name, value in flat(weights).items()}
    for name, value in arrays.items():
        if str(dtype(value.dtype)) not in _NAMES.values():
            raise UnsupportedError(name, "files of safetensors do not have its dtype", value.dtype)
    nested = any(isinstance(value, Mapping) for value in weights.values())
    form = "nested" if nested else "flat"
    if nested and (dotted := next(_dotted(weights), None)):
        raise UnsupportedError(dotted, "a key of a nested dictionary has no dot", hint="save it by itself")
    safetensors.numpy.save_file(arrays, file, metadata={_FORM: form})


def _dotted(weights: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of nested dictionaries that have a dot, which would be taken for a path."""
    for key, value in weights.items():
        yield from [key] if "." in key else []
        yield from _dotted(value) if isinstance(value, Mapping) else ()


def load(file: str | os.PathLike[str], *, like: Any = None) -> dict[str, Any]:
    """Return the weights that :func:`save` wrote, in the same structure, as NumPy arrays.

    Files of other programs give one dictionary of names. ``like`` is compared as in :func:`to_jax` and
    :func:`to_mindspore`; the errors are theirs.
    """
    safetensors = _package()
    with safetensors.safe_open(file, framework="numpy") as opened:
        form = (opened.metadata() or {}).get(_FORM)
    with open(file, "rb") as stream:  # noqa: PTH123 - a path of either kind
        tensors = safetensors.deserialize(stream.read())
    weights = {}
    for name, entry in tensors:
        row = _NAMES.get(entry["dtype"])
        if row is None:
            raise UnsupportedError(name, "polyop does not have its dtype", entry["dtype"])
        weights[name] = np.frombuffer(entry["data"], dtype(row).numpy).reshape(entry["shape"]).copy()
    if like is not None:
        matched(weights, flat(like))
    return nested(weights) if form == "nested" else weights


def _package() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise HostError(
            "weights", "files need the package safetensors", hint="pip install 'polyop[networks]'"
        ) from None
    return safetensors
