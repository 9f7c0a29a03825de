"""``LoopExtension``: the loop kernels that a setup.py has compiled into a wheel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from setuptools import Extension

from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..loops.frontend.language import DTYPES

ANY = "T"
"""The dtype in a signature that stands for each of the extension's dtypes."""
_NUMBERS = {"int": int, "float": float, "bool": bool}
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<axes>:(,:)*)?\]")
_TEXT = re.compile(r"'(\w+)'|\"(\w+)\"")
_FORM = "one word for each parameter, as in 'T[:,:], float32[:], float'"


class Signature(NamedTuple):
    """Dtype and number of dimensions of each tensor, and the types of the numbers behind them.

    None stands for an optional tensor that is missing. A string is given by its value.
    """

    tensors: tuple[tuple[str, int] | None, ...]
    numbers: tuple[type | str, ...] = ()


class LoopExtension(Extension):  # type: ignore[misc]
    """The loop kernels of one Python module, compiled ahead of time for every instruction set.

    ``name``       the module, such as ``myops.kernels``. It is imported when the wheel is built.
    ``functions``  a signature, or a list of them, for the name of each function to compile:
                   ``{"scale": "T[:,:], float"}``. A tensor is a dtype with a colon for each dimension, a
                   number is ``int``, ``float`` or ``bool``. An optional tensor that is missing is ``None``,
                   and a string is its value: ``"T[:], None, 'mean'"``. The last numbers may be left out
                   if they have defaults.
    ``dtypes``     the dtypes that ``T`` stands for.
    ``gradients``  the functions whose derived gradient is compiled too, for every signature.

    >>> LoopExtension("myops.kernels", {"scale": "T[:], float"}, dtypes=["float32"]).signatures
    {'scale': [Signature(tensors=(('float32', 1),), numbers=(<class 'float'>,))]}

    Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for arguments that cannot be used.
    """

    def __init__(
        self,
        name: str,
        functions: Mapping[str, str | Sequence[str]],
        *,
        dtypes: Sequence[str] = ("float32", "float64"),
        gradients: Sequence[str] = (),
    ) -> None:
        """Check the arguments."""
        if not all(part.isidentifier() for part in name.split(".")):
            raise ArgumentValueError("LoopExtension", "its name must be that of a module", repr(name))
        subject = f"LoopExtension {name}"
        if not isinstance(functions, Mapping) or not functions:
            rule = "needs the signatures of its functions"
            raise ArgumentTypeError(subject, rule, repr(functions), hint='{"scale": "T[:,:], float"}')
        if isinstance(dtypes, str):
            raise ArgumentTypeError(subject, "dtypes must be a list", repr(dtypes), hint=f"[{dtypes!r}]")
        for dtype in dtypes:
            check_dtype(f"{subject}: dtypes", dtype)
        self.signatures = {
            function: _signatures(f"{subject}: {function}", texts, dtypes)
            for function, texts in functions.items()
        }
        self.gradients = _listed(subject, gradients, functions)
        super().__init__(name, [])


def _listed(subject: str, gradients: Sequence[str], functions: Mapping[str, object]) -> list[str]:
    if isinstance(gradients, str):
        rule = "gradients must be a list"
        raise ArgumentTypeError(subject, rule, repr(gradients), hint=f"[{gradients!r}]")
    unknown = [name for name in gradients if name not in functions]
    if unknown:
        raise ArgumentValueError(subject, "gradients must name functions of the list", repr(unknown[0]))
    return list(gradients)


def _signatures(subject: str, texts: str | Sequence[str], dtypes: Sequence[str]) -> list[Signature]:
    signatures: list[Signature] = []
    for text in [texts] if isinstance(texts, str) else texts:
        if not isinstance(text, str):
            raise ArgumentTypeError(subject, "a signature must be a text", repr(text), hint=_FORM)
        signatures += (signature(subject, text, dtype) for dtype in (dtypes if is_general(text) else ("",)))
    if not signatures:
        raise ArgumentValueError(subject, "needs a signature, and a dtype for T", hint=_FORM)
    return list(dict.fromkeys(signatures))


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
            rule = f"its signature must be {_FORM}; tensors come first"
            raise ArgumentValueError(subject, rule, repr(text))
    return Signature(tuple(tensors), tuple(numbers))


def check_dtype(subject: str, dtype: str) -> None:
    """Raise ``ArgumentValueError`` for a name that is no dtype of loops."""
    if dtype not in DTYPES:
        raise ArgumentValueError(subject, f"a dtype must be one of {', '.join(DTYPES)}", repr(dtype))
