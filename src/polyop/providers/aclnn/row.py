"""One aclnn operator: its prototype, and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from ...core.origin import Origin
from ...core.parse import parse
from ...core.schema import Schema

Function: TypeAlias = Callable[..., Any]
"""What an operator computes, of the array namespace and its inputs."""

DEFAULTS: dict[str, Any] = {"alpha": 1, "beta": 1, "cubeMathType": 0}
"""Values of attributes that a caller may leave out, by name; CANN itself has no defaults."""


@dataclass(frozen=True)
class Row:
    """An operator: ``prototype`` in the grammar of schemas, arguments as in CANN's first phase.

    ``function`` is called with the array namespace and every argument that is not a pure
    output, in order; it returns one value for each written argument, a tuple of several.
    A written argument whose name ends in ``Ref``, or is among ``reads``, is an input too.
    ``ufunc`` names the NumPy ufunc that does the same to dense tensors of one dtype.
    ``direct`` is called instead, with all arguments in order, and writes them itself.
    ``inplace`` says that ``aclnnInplace<Name>`` exists, which writes its first argument.
    """

    prototype: str
    function: Function
    ufunc: str | None = None
    inplace: bool = False
    reads: tuple[str, ...] = ()
    where: Origin | None = None
    direct: Callable[[Sequence[Any]], None] | None = None

    @property
    def name(self) -> str:
        """The name with its prefix: ``aclnnMul``."""
        return self.prototype.split("(", 1)[0].strip()

    @cached_property
    def schema(self) -> Schema:
        """The parsed prototype; raises ``SchemaError``."""
        return parse(self.prototype)

    @cached_property
    def written(self) -> tuple[int, ...]:
        """Positions of the arguments that are written."""
        return tuple(i for i, a in enumerate(self.schema.arguments) if a.type.writes)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """Positions of the arguments that are written and not read."""
        arguments = self.schema.arguments
        return tuple(
            i
            for i in self.written
            if not arguments[i].name.endswith("Ref") and arguments[i].name not in self.reads
        )

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Positions of the arguments that the function gets."""
        return tuple(i for i in range(len(self.schema.arguments)) if i not in self.outputs)

    def in_place(self) -> Row:
        """Return the row that writes its first argument instead of ``out``.

        >>> Row("aclnnNeg(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: -x).in_place().prototype
        'aclnnInplaceNeg(Tensor(a!) selfRef) -> ()'
        """
        text = self.prototype.replace("aclnn", "aclnnInplace", 1).replace(", Tensor(a!) out", "", 1)
        text = text.replace("(Tensor self", "(Tensor(a!) selfRef", 1)
        return replace(self, prototype=text, ufunc=None, inplace=False)
