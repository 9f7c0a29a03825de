"""Operators whose shapes depend on data, with a size that the caller gives, as ``jnp.nonzero`` has it.

This has what such operators share: polyop's own ones, and those of a provider.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core.dtypes import DType
from ..core.errors import ArgumentValueError, UnsupportedError
from ..core.limits import shown
from ..core.schema import Argument, Schema, Type
from .operator import Operator

_INTEGERS = {f"{kind}{bits}": (kind, bits) for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


def padded_schema(schema: Schema, namespace: str, name: str) -> Schema:
    """Return the schema with ``size`` and ``fill_value``, under another name."""
    return dataclasses.replace(
        schema,
        namespace=namespace,
        name=name,
        arguments=(
            *schema.arguments,
            Argument("size", Type("int"), keyword_only=True),
            Argument("fill_value", Type("Scalar"), default=0, keyword_only=True),
        ),
    )


def check_fill_value(schema: Schema, fill: Any, kind: DType) -> None:
    """Raise ``ArgumentValueError`` for a value that would change to fit the dtype."""
    if kind.kind == "complex" or (kind.kind == "float" and not isinstance(fill, complex)):
        return
    least, most = (0, 1) if kind.kind == "bool" else (0, 0)
    if kind.name in _INTEGERS:
        sign, bits = _INTEGERS[kind.name]
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign == "int" else (0, 2**bits - 1)
    if isinstance(fill, complex) or not least <= fill <= most or fill != int(fill):
        subject = f"{schema.qualified_name}: argument fill_value"
        raise ArgumentValueError(subject, f"must be a value of {kind.name}", fill)


class DataSizeError(UnsupportedError):
    """A use of an operator that needs a size before the kernel runs, and only the kernel knows it."""


def refuse_data_sizes(operator: Operator, reason: str) -> None:
    """Raise ``DataSizeError`` if an output has a size that only the kernel knows.

    ``reason`` is a sentence on what needs the size earlier: ``"dask needs sizes before the kernel runs"``.
    """
    names = operator.dims.data_sizes if operator.dims is not None else ()
    if not names:
        return
    size = ", ".join(names)
    rule = f"has outputs whose size {size} depends on data, and {reason}"
    hint = (
        "pass size= (in graphs of MindSpore to op.padded): outputs are cut to it, or filled with fill_value="
    )
    raise DataSizeError(operator.name, rule, shown(str(operator.dims)), where=operator.origin, hint=hint)
