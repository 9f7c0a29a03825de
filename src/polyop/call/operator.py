"""The operator as a value: front ends build it, hosts call it.

These words have the same meaning everywhere:

operator   name, schema, infer rule, kernels, gradient rule, batch rule, information
spec       shape, dtype and device of a tensor, without its data
kernel     one implementation, for a device and a set of dtypes and formats
host       a framework whose tensors can be passed to an operator
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.dims.dims import Dims
from ..core.dtypes import DType
from ..core.infer import InferRule
from ..core.origin import Origin
from ..core.schema import Schema
from ..core.spec import DEVICES, Spec
from ..kernels.base import LoopKernelBase


class Kernel(Protocol):
    """One implementation; ``str()`` names it in messages."""

    @property
    def device(self) -> str:
        """The device type it runs on: a row of ``core/spec.py``, or ``"any"``."""

    @property
    def kind(self) -> str:
        """The name of its kind in digests."""

    @property
    def native(self) -> bool:
        """Whether it is machine code behind the C contract; then it has ``launch``."""

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

    def watched(self) -> tuple[tuple[Any, str, Any], ...]:
        """Return where values are found that it was defined with: a dict or cell, a name, and the value."""

    def warn_of_changes(self) -> None:
        """Warn of values that it was defined with, and that have changed; of each name once."""

    def content(self) -> Iterator[bytes]:
        """Yield bytes that differ for kernels that compute different things."""

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why it cannot take these specs, or None when it can."""

    def passed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> frozenset[str]:
        """Return the numbers that each call passes to it and that decide nothing; see ``KernelBase``."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator.

    ``attributes``       values fixed at the definition, which no call passes.
    ``attribute_names``  the author's name of an attribute, if the schema has another name for it.
    ``dims``             the rule of the operator in index notation, if it has one.
    ``target``           the only device that it runs on, wherever its tensors are; None: theirs.
    ``part_of``          the operator that this one belongs to, as ``f__backward`` belongs to ``f``.
    ``unpacks``          with a schema that returns ``Tensor[]``: a caller gets one tensor as itself,
                         several as a tuple, and None for none.
    ``gradient``         called with the inputs, the output and the output's gradient; returns a tuple with
                         a gradient or None for each input. Outputs are a tuple if :attr:`several`.
    ``no_gradient``      why it has no gradient rule, if that is not for its author to give.
    ``jvp``              called with the inputs, the output and the inputs' tangents.
    ``placed``           the rule that makes ``f__placed``, which computes a slice that knows its place.
    """

    schema: Schema
    infer: InferRule
    kernels: tuple[Kernel, ...]
    gradient: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    placed: Any = None
    information: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    attribute_names: Mapping[str, str] = field(default_factory=dict)
    dims: Dims | None = None
    target: str | None = None
    returns_tuple: bool = False
    unpacks: bool = False
    autocast: str | None = None
    reference: Callable[..., Any] | None = None
    doc: str = ""
    part_of: str = ""
    no_gradient: str = ""
    origin: Origin | None = None
    _made: dict[str, tuple[Kernel, ...]] = field(default_factory=dict, init=False, repr=False)

    def kernels_for(self, device: str) -> tuple[Kernel, ...]:
        """Return the kernels of a call on a device: those of the definition, and loops for that device."""
        known = device in DEVICES and DEVICES[device].on_demand
        if not known or any(kernel.device == device for kernel in self.kernels):
            return self.kernels
        if device not in self._made:
            loops = [k for k in self.kernels if isinstance(k, LoopKernelBase) and k.device == "cpu"]
            self._made.setdefault(device, (*self.kernels, *(kernel.on(device) for kernel in loops)))
        return self._made[device]

    @property
    def name(self) -> str:
        """``namespace::name``."""
        return self.schema.qualified_name

    @property
    def several(self) -> bool:
        """Whether rules get the outputs as a tuple, even if there is one."""
        return self.returns_tuple or self.schema.returns_list or len(self.schema.returns) > 1

    @property
    def rules(self) -> tuple[Any, ...]:
        """The rules that it has, given and derived ones."""
        every = (self.gradient, self.jvp, self.batch, self.placed)
        return tuple(rule for rule in every if rule is not None)

    def __str__(self) -> str:
        """Return the text of the schema."""
        return str(self.schema)
