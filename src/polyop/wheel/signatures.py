"""Signatures of loop kernels that are compiled ahead of time: ``"T[:,:], float"``."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..core.errors import ArgumentValueError
from ..loops.frontend.language import DTYPES

ANY = "T"
"""The dtype in a signature that stands for each of the extension's dtypes."""
_NUMBERS = {"int": int, "float": float, "bool": bool}
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<axes>:(,:)*)?\]")
_TEXT = re.compile(r"'(\w+)'|\"(\w+)\"")
FORM = "one word for each parameter, as in 'T[:,:], float32[:], float'"


class Signature(NamedTuple):
    """Dtype and number of dimensions of each tensor, and the types of the numbers behind them.

    None stands for an optional tensor that is missing. A string is given by its value.
    """

    tensors: tuple[tuple[str, int] | None, ...]
    numbers: tuple[type | str, ...] = ()


def is_general(text: str) -> bool:
    """Whether a signature has T, which stands for several dtypes."""
    return re.search(rf"\b{ANY}\b", text) is not None


def signature(subject: str, text: str, dtype: str) -> Signature:
    """Parse the text of a signature, with a dtype for ``T``; raises ``ArgumentValueError``.

    >>> signature("f", "T[:,:], int64[], bool", "float16").tensors
    (('float16', 2), ('int64', 0))
    """
    tensors: list[tuple[str, int] | None] = []
    numbers: list[type | str] = []
    for word in re.split(r",(?![^\[]*\])", re.sub(r"\s", "", text)):
        tensor = _TENSOR.fullmatch(word)
        if tensor is not None and not numbers:
            name = dtype if tensor["dtype"] == ANY else tensor["dtype"]
            check_dtype(subject, name)
            tensors.append((name, (tensor["axes"] or "").count(":")))
        elif word == "None" and not numbers:
            tensors.append(None)
        elif word in _NUMBERS:
            numbers.append(_NUMBERS[word])
        elif text_of := _TEXT.fullmatch(word):
            numbers.append(text_of[1] or text_of[2])
        else:
            rule = f"its signature must be {FORM}; tensors come first"
            raise ArgumentValueError(subject, rule, repr(text))
    return Signature(tuple(tensors), tuple(numbers))


def check_dtype(subject: str, dtype: str) -> None:
    """Raise ``ArgumentValueError`` for a name that is no dtype of loops."""
    if dtype not in DTYPES:
        raise ArgumentValueError(subject, f"a dtype must be one of {', '.join(DTYPES)}", repr(dtype))
