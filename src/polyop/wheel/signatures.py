"""Signatures of loop kernels that are compiled ahead of time: ``"T[:,:], float"``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..core.dtypes import dtype as as_dtype
from ..core.errors import ArgumentValueError
from ..core.spec import Spec
from ..loops.frontend.language import DTYPES

ANY = "T"
"""The dtype in a signature that stands for each of the extension's dtypes."""
_NUMBERS = {"int": int, "float": float, "bool": bool}
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<axes>:(,:)*|\.\.\.)?\]")
_TEXT = re.compile(r"'(\w+)'|\"(\w+)\"")
FORM = "one word for each parameter, as in 'T[:,:], float32[:], float'"


class Signature(NamedTuple):
    """Dtype and number of dimensions of each tensor, and the types of the numbers behind them.

    None stands for an optional tensor that is missing, and for the number of dimensions where the uses in the
    loops tell it. A string is given by its value.
    """

    tensors: tuple[tuple[str, int | None] | None, ...]
    numbers: tuple[type | str, ...] = ()

    def with_ranks(self, subject: str, ranks: Mapping[str, int | None], where: object) -> Signature:
        """Return the signature with the dimensions that are told by tensor, in their order.

        Raises ``ArgumentValueError`` for a tensor of which nothing tells them.
        """
        rows = list(self.tensors)
        for k, (row, name) in enumerate(zip(self.tensors, ranks, strict=False)):
            if row is not None and row[1] is None:
                if ranks[name] is None:
                    rule = f"nothing says how many dimensions {name} has"
                    hint = f"write a colon for each, as in {row[0]}[:,:]"
                    raise ArgumentValueError(subject, rule, f"{row[0]}[...]", where=where, hint=hint)
                rows[k] = (row[0], ranks[name])
        return self._replace(tensors=tuple(rows))

    def specs(self) -> list[Spec | None]:
        """Return specs of the tensors, without sizes: those of dtypes and dimensions."""
        return [None if row is None else Spec((0,) * (row[1] or 0), as_dtype(row[0])) for row in self.tensors]


def is_general(text: str) -> bool:
    """Whether a signature has T, which stands for several dtypes."""
    return re.search(rf"\b{ANY}\b", text) is not None


def signature(subject: str, text: str, dtype: str) -> Signature:
    """Parse the text of a signature, with a dtype for ``T``; raises ``ArgumentValueError``.

    >>> signature("f", "T[:,:], int64[], bool", "float16").tensors
    (('float16', 2), ('int64', 0))
    >>> signature("f", "T[...]", "float16").tensors
    (('float16', None),)
    """
    tensors: list[tuple[str, int | None] | None] = []
    numbers: list[type | str] = []
    for word in re.split(r",(?![^\[]*\])", re.sub(r"\s", "", text)):
        tensor = _TENSOR.fullmatch(word)
        if tensor is not None and not numbers:
            name = dtype if tensor["dtype"] == ANY else tensor["dtype"]
            check_dtype(subject, name)
            told = tensor["axes"] == "..."
            tensors.append((name, None if told else (tensor["axes"] or "").count(":")))
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
