"""The gradient rule of a C++ module's function, and a call of that function as a value.

``Forward`` saves tensors and ``Backward`` reads them, as in PyTorch's ``autograd::Function``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...call.rule import Rule
from ...core.dtypes import DTYPES
from ...core.errors import GradientError, InferError
from ...core.schema import Schema
from ...core.spec import Spec
from ...kernels.base import flatten
from ...kernels.module.kernel import Derived, ModuleKernel


@dataclass(frozen=True, eq=False)
class Recorded(Rule):
    """The gradient rule of a module's function.

    Eager: the native core runs the function and records its calls of ``Apply``. The framework keeps the
    tensors that they saved; the autograd node owns the tape.

    Traced: forward and backward are two pure operators, ``saving_part`` (outputs, then the tensors saved
    beside them) and ``backward``. Both rebuild the rest of the state from a :class:`Call`.

    ``again`` computes the saved tensors of a call again, as functions of its inputs, for a second derivative.
    """

    kernel: ModuleKernel
    saving_part: Any = None
    backward: Any = None
    again: Any = None
    is_recorded: bool = True


@dataclass(frozen=True)
class Call:
    """A call without its data: specs, attributes, and which tensors need a gradient.

    ``inputs`` has a spec, a tuple of specs, or None for each tensor argument. ``needs_gradient`` has a flag
    for each tensor, lists flattened. In traced programs the call is passed as text: ``str(call)``.
    """

    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    needs_gradient: tuple[bool, ...]

    @classmethod
    def of(cls, schema: Schema, specs: Sequence[Any], needs_gradient: Sequence[bool]) -> Call:
        """Return the call for bound arguments, in which each tensor is replaced by its spec."""
        return cls(*schema.tensors_and_attributes(specs), tuple(needs_gradient))

    @property
    def specs(self) -> tuple[Spec | None, ...]:
        """The specs of all tensors, lists flattened."""
        return tuple(flatten(self.inputs))

    def derive(self, kernel: ModuleKernel) -> Derived | None:
        """Return what the function does for these specs, or None if that depends on the data."""
        try:
            return kernel.derive(self.inputs, self.attributes, self.needs_gradient)
        except InferError:
            return None

    def __str__(self) -> str:
        """Return the call as text, with all sizes as numbers."""
        return json.dumps(
            [
                [_pack(value) for value in self.inputs],
                self.attributes,
                [int(flag) for flag in self.needs_gradient],
            ]
        )

    @classmethod
    def parse(cls, text: str) -> Call:
        """Return the call for the result of ``str(call)``."""
        inputs, attributes, flags = json.loads(text)
        return cls(
            tuple(map(_unpack, inputs)),
            {name: _frozen(value) for name, value in attributes.items()},
            tuple(map(bool, flags)),
        )


def _pack(value: Any) -> Any:
    if isinstance(value, Spec):
        return {
            "shape": [int(size) for size in value.shape],
            "dtype": value.dtype.name,
            "device": value.device,
        }
    return None if value is None else [_pack(item) for item in value]


_ROWS = {row.name: row for row in DTYPES}


def _unpack(value: Any) -> Any:
    if isinstance(value, dict):
        return Spec(tuple(value["shape"]), _ROWS[value["dtype"]], value["device"])
    return None if value is None else tuple(map(_unpack, value))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def failed(name: str, problem: RuntimeError, where: Any) -> GradientError:
    """Return the error for a Backward that failed, with the author's message."""
    return GradientError(name, f"the C++ Backward failed: {problem}", where=where)
