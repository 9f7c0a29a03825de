"""Gradients that a C++ module records: Forward keeps tensors, Backward reads them."""

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
from ...kernels.module.infer import split
from ...kernels.module.kernel import Derived, ModuleKernel


@dataclass(frozen=True, eq=False)
class Recorded(Rule):
    """The gradient rule of a module's function.

    The native core runs the function with its calls of ``Apply`` recorded; what they saved goes
    to the framework as tensors, and the tape stays behind. Where a framework traces, the same
    state is made again from ``Call``, so that forward and backward are two pure operators:
    ``saving_part`` (outputs, then the tensors saved beside them) and ``backward``. ``again`` gives the
    saved tensors of a call as functions of its inputs, for a second derivative.
    """

    kernel: ModuleKernel
    saving_part: Any = None
    backward: Any = None
    again: Any = None
    is_recorded: bool = True


@dataclass(frozen=True)
class Call:
    """A call without its data: specs, attributes and of which tensors a gradient is wanted.

    Its text stands for it where a framework traces.
    """

    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    wanted: tuple[bool, ...]

    @classmethod
    def of(cls, schema: Schema, specs: Sequence[Any], wanted: Sequence[bool]) -> Call:
        """Return the call with bound arguments, each tensor a spec."""
        return cls(*split(schema, specs), tuple(wanted))

    @property
    def specs(self) -> tuple[Spec | None, ...]:
        """The specs of all tensors, lists opened."""
        return tuple(flatten(self.inputs))

    def derive(self, kernel: ModuleKernel) -> Derived | None:
        """Return what the function does, or None where that depends on data."""
        try:
            return kernel.derive(self.inputs, self.attributes, self.wanted)
        except InferError:
            return None

    def __str__(self) -> str:
        """Return the text; sizes are numbers in it."""
        return json.dumps(
            [[_pack(value) for value in self.inputs], self.attributes, [int(flag) for flag in self.wanted]]
        )

    @classmethod
    def parse(cls, text: str) -> Call:
        """Return the call of a text."""
        inputs, attributes, wanted = json.loads(text)
        return cls(
            tuple(map(_unpack, inputs)),
            {name: _frozen(value) for name, value in attributes.items()},
            tuple(map(bool, wanted)),
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
    """Return the error of a Backward that failed, with the author's words."""
    return GradientError(name, f"the C++ Backward failed: {problem}", where=where)
