"""The parameters of a kernel in OpenCL C, read from its text."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..c_parameters import definitions

_NUMBERS = {
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
_DTYPES = {**_NUMBERS, "float2": "complex64", "double2": "complex128"}
_NO_TYPES = frozenset(("const", "volatile", "restrict", "signed"))
_SPACES = {"__global": "global", "__constant": "global", "__local": "local", "__private": ""}
_SPACES |= {name.removeprefix("__"): space for name, space in _SPACES.items()}
_PARAMETER = re.compile(
    r"(?P<words>[\w\s]*?)\s*(?P<star>\*?)\s*(?:(?:__)?restrict\b|const\b|\s)*(?P<name>\w+)"
)


class Parameter(NamedTuple):
    """A parameter: ``dtype`` is that of a number, or of a pointer's elements, None where it is not known."""

    name: str
    text: str
    is_pointer: bool
    dtype: str | None


class UnknownParameterError(ValueError):
    """A parameter that a call cannot pass; the text says which and why."""


def parameters(text: str, function: str) -> tuple[Parameter, ...] | None:
    """Return the parameters of a kernel; None if the text has not one definition that can be read.

    Raises ``UnknownParameterError``.

    >>> parameters("__kernel void f(__global const uchar *x, unsigned long n) {}", "f")[0].dtype
    'uint8'
    """
    found = [
        one for one in definitions(text, function, "c") if {"kernel", "__kernel"} & {*one.result.split()}
    ]
    return tuple(map(_parameter, found[0].parameters)) if len(found) == 1 else None


def kernels(text: str) -> list[str]:
    """Return the names of the kernels that a text defines.

    >>> kernels("kernel void f(global int *x) {}")
    ['f']
    """
    return re.findall(r"\b(?:__)?kernel\s+void\s+(\w+)\s*\(", text)


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text.strip())
    if match is None:
        raise UnknownParameterError(f"the parameter {text!r} is no pointer to memory and no number")
    words = [word for word in match["words"].split() if word.removeprefix("__") not in _NO_TYPES]
    spaces = {_SPACES[word] for word in words if word in _SPACES}
    kind = " ".join(word for word in words if word not in _SPACES)
    kind = re.sub(r"^unsigned(?: (?=\w))?", "u", kind) if kind != "unsigned" else "uint"
    name, is_pointer = match["name"], bool(match["star"])
    subject = f"the parameter {name}"
    if "local" in spaces:
        raise UnknownParameterError(
            f"{subject} is local memory: declare it in the kernel, as local float t[64]"
        )
    if is_pointer != ("global" in spaces):
        raise UnknownParameterError(f"{subject} must be a number, or a pointer to global or constant memory")
    if not is_pointer and kind not in _NUMBERS:
        raise UnknownParameterError(f"{subject} must be a number of OpenCL C, and is {kind or 'of no type'}")
    return Parameter(name, text, is_pointer, _DTYPES.get(kind))
