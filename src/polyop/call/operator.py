"""What an operator is: a value that front ends build and hosts consume.

Vocabulary, used with these meanings everywhere:

operator   name, schema, infer rule, kernels, gradient rule, batch rule, information
spec       shape, dtype and device of a tensor, without its data
kernel     one implementation, for a device and a set of dtypes and formats
host       a framework whose tensors can be passed to an operator
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.dtypes import DType
from ..core.infer import InferRule
from ..core.origin import Origin
from ..core.schema import Schema
from ..core.spec import Spec


class Kernel(Protocol):
    """One implementation; ``str()`` names it in messages."""

    @property
    def device(self) -> str:
        """The device type it runs on: ``"cpu"`` or ``"cuda"``."""

    @property
    def native(self) -> bool:
        """Whether it is machine code behind the C contract, with ``launch`` and inference of its own."""

    @property
    def accepts(self) -> Any:
        """The device and dtypes declared for it, or None; see ``kernels.base.KernelBase``."""

    @property
    def allocates(self) -> bool:
        """Whether it makes its outputs itself."""

    @property
    def for_ascend(self) -> bool:
        """Whether it is an Ascend operator, which finds its device itself."""

    @property
    def declared_dtypes(self) -> tuple[DType, ...]:
        """The dtypes declared for it."""

    def content(self) -> Iterator[bytes]:
        """Yield what tells it from a kernel that does something else."""

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why it cannot take these specs, or None when it can."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator. ``attributes`` are values fixed at definition, beside the schema's own.

    ``attribute_names`` gives the author's name of an attribute where the schema has another;
    ``target`` is the one device that it runs on, wherever its tensors are.

    ``part_of`` names the operator for which this one was made, as ``<name>__backward`` is.
    ``unpacks``: a schema that returns ``Tensor[]`` gives a caller one tensor as itself, several as
    a tuple, and None for none.

    ``gradient`` is called with the inputs, the output (a tuple when several, or when
    ``returns_tuple``) and its gradient in the same form; it returns a tuple with one gradient
    or None per input. ``jvp`` is called with the inputs, the output and the input tangents.
    """

    schema: Schema
    infer: InferRule
    kernels: tuple[Kernel, ...]
    gradient: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    batch: Callable[..., Any] | str | None = None
    information: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    attribute_names: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    returns_tuple: bool = False
    unpacks: bool = False
    autocast: str | None = None
    reference: Callable[..., Any] | None = None
    doc: str = ""
    part_of: str = ""
    origin: Origin | None = None

    @property
    def name(self) -> str:
        """``namespace::name``."""
        return self.schema.qualified_name

    @property
    def several(self) -> bool:
        """Whether rules are given the outputs as a tuple, whatever their number."""
        return self.returns_tuple or self.schema.returns_list or len(self.schema.returns) > 1

    def __str__(self) -> str:
        """Return the text of the schema."""
        return str(self.schema)
