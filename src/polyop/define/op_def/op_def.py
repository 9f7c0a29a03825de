"""An operator as an ``op_def`` file describes it: arguments, results, names.

The files are MindSpore's, in YAML; :mod:`polyop.define.op_def.read` reads and checks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...core.schema import MISSING, Argument, Return, Schema, Type, alias_names

# dtype in op_def: base of the type in a schema
BASES = {"int": "int", "float": "float", "bool": "bool", "number": "Scalar", "tensor": "Tensor", "str": "str"}
SEQUENCES = ("tuple", "list")
DTYPES = (*BASES, *SEQUENCES, *(f"{kind}[{base}]" for kind in SEQUENCES for base in BASES))

# arg_handler in op_def: the type in a schema that the argument has instead of its dtype's
HANDLERS = {
    "dtype_to_type_id": Type("ScalarType"),
    "to_pair": Type("int", ("[2]",)),
    "to_kernel_size": Type("int", ("[2]",)),
    "to_strides": Type("int", ("[2]",)),
    "to_dilations": Type("int", ("[2]",)),
    "to_rates": Type("int", ("[2]",)),
    "to_2d_paddings": Type("int", ("[2]",)),
    "to_output_padding": Type("int", ("[2]",)),
}


@dataclass(frozen=True)
class ArgumentDef:
    """One argument. ``casts`` are further dtypes that it takes, and that are converted to ``dtype``."""

    name: str
    dtype: str
    default: Any = MISSING
    prim_init: bool = False
    casts: tuple[str, ...] = ()
    handler: str = ""

    @property
    def type(self) -> Type:
        """The type in a schema; a plain ``tuple`` or ``list`` is one of numbers.

        >>> str(ArgumentDef("axis", "tuple[int]").type), str(ArgumentDef("bias", "tensor", None).type)
        ('int[]', 'Tensor?')
        """
        optional = ("?",) if self.default is None else ()
        if self.handler:
            kind = HANDLERS[self.handler]
            return Type(kind.base, (*kind.suffixes, *optional))
        sequence, _, item = self.dtype.rstrip("]").partition("[")
        if sequence in SEQUENCES:
            return Type(BASES[item or "number"], ("[]", *optional))
        return Type(BASES[sequence], optional)


@dataclass(frozen=True)
class ReturnDef:
    """One output; ``inplace`` is the name of the argument that it is, or empty."""

    name: str
    dtype: str
    inplace: str = ""


@dataclass(frozen=True)
class OperatorDef:
    """One operator. ``written`` are names of arguments; each group in ``groups`` shares a dtype."""

    name: str
    arguments: tuple[ArgumentDef, ...]
    returns: tuple[ReturnDef, ...]
    written: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    function: str = ""
    function_disabled: bool = False
    class_name: str = ""
    class_disabled: bool = False
    doc: str = ""
    file: str = ""

    @property
    def schema(self) -> Schema:
        """The schema, without a namespace.

        >>> x = ArgumentDef("input", "tensor")
        >>> str(OperatorDef("relu_", (x,), (ReturnDef("out", "tensor", "input"),), function="relu_").schema)
        'relu_(Tensor(a!) input) -> Tensor(a!)'
        """
        marks = dict(zip(self.written_names(), alias_names(), strict=False))
        arguments = tuple(
            Argument(a.name, _marked(a.type, marks.get(a.name)), a.default) for a in self.arguments
        )
        returns = tuple(
            Return(_marked(ArgumentDef(r.name, r.dtype).type, marks.get(r.inplace))) for r in self.returns
        )
        return Schema("", self.function, arguments, returns)

    def written_names(self) -> tuple[str, ...]:
        """Return the arguments that are written (``rw_write`` and ``inplace``), in the order of arguments."""
        names = {*self.written, *(r.inplace for r in self.returns)}
        return tuple(a.name for a in self.arguments if a.name in names)

    def positions(self, names: tuple[str, ...]) -> Iterator[int]:
        """Yield the position of each argument."""
        order = [a.name for a in self.arguments]
        return (order.index(name) for name in names)


def _marked(kind: Type, letter: str | None) -> Type:
    return Type(kind.base, kind.suffixes, f"{letter}!") if letter else kind
