"""One aclnn operator: its prototype and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...core.locks import cached_property
from ...core.origin import Origin
from ...core.parse import parse
from ...core.schema import Schema

Function: TypeAlias = Callable[..., Any]
"""The function of an operator; it takes the array namespace and the inputs."""

HOW_TO_REGISTER = (
    "register it: polyop.register_aclnn(prototype, function), "
    "or polyop.register_aclnn_library(path, prototypes)"
)

DEFAULTS: dict[str, Any] = {"alpha": 1, "beta": 1, "cubeMathType": 0}
"""Default values of attributes, by name. CANN itself has no defaults."""


@dataclass(frozen=True)
class Row:
    """An operator. ``prototype`` is a schema with the arguments of CANN's first phase.

    ``function``  takes the array namespace and every argument that is not a pure output, in order.
                  Returns one value per written argument, several as a tuple.
    ``ufunc``     the name of a NumPy ufunc that computes the same for dense tensors of one dtype
    ``inplace``   whether ``aclnnInplace<Name>`` exists, which writes its first argument
    ``reads``     written arguments that are inputs too; so is one whose name ends in ``Ref``
    ``where``     the origin of an author's operator; None for polyop's own
    ``direct``    replaces ``function``: takes all arguments in order and writes the outputs itself
    ``of_pytorch``  whether the prototype follows PyTorch's schema: CANN's may be another
    """

    prototype: str
    function: Function
    ufunc: str | None = None
    inplace: bool = False
    reads: tuple[str, ...] = ()
    where: Origin | None = None
    direct: Callable[[Sequence[Any]], None] | None = None
    of_pytorch: bool = False

    @property
    def name(self) -> str:
        """The name with its prefix: ``aclnnMul``."""
        return self.prototype.split("(", 1)[0].strip()

    @cached_property
    def schema(self) -> Schema:
        """The parsed prototype; raises ``SchemaError``."""
        return parse(self.prototype)

    @property
    def shown(self) -> str:
        """The prototype, as errors show it."""
        note = "\n  it follows PyTorch's schema; CANN's prototype may have other arguments"
        return f"its prototype: {self.schema}{note * self.of_pytorch}"

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
        """Positions of the arguments that are passed to the function."""
        return tuple(i for i in range(len(self.schema.arguments)) if i not in self.outputs)

    def in_place(self) -> Row:
        """Return the row that writes its first argument instead of ``out``.

        >>> Row("aclnnNeg(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: -x).in_place().prototype
        'aclnnInplaceNeg(Tensor(a!) selfRef) -> ()'
        """
        text = self.prototype.replace("aclnn", "aclnnInplace", 1).replace(", Tensor(a!) out", "", 1)
        text = text.replace("(Tensor self", "(Tensor(a!) selfRef", 1)
        return replace(self, prototype=text, ufunc=None, inplace=False)
