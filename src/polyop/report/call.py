"""The call that a report is of: its specs, the kernel that is chosen, and the typed loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..call.bound import BoundOperator
from ..call.explain import arguments_of
from ..call.prepare import prepare
from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError
from ..core.spec import Spec
from ..kernels.base import LoopKernelBase, flatten
from ..loops.ir.grammar import Kernel


@dataclass(frozen=True)
class Called:
    """A call with specs in place of tensors. ``typed`` is None where the chosen kernel is no loop kernel."""

    arguments: tuple[Any, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Spec, ...]
    kernel: Any
    attributes: Mapping[str, Any]
    typed: Kernel | None
    given: tuple[Any, ...] = ()
    """The specs as the caller gave them."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """The attributes as the caller gave them."""

    def specs(self) -> dict[str, Spec | None]:
        """Return the specs of the typed kernel's tensors, by name."""
        assert self.typed is not None
        tensors = self.typed.tensor_parameters
        return dict(zip(tensors, self.inputs, strict=True))


def called(bound: BoundOperator, specs: Sequence[Any], attributes: Mapping[str, Any]) -> Called:
    """Return the call of an operator with these specs, on the CPU.

    Raises what a call with such tensors raises: ``ArgumentTypeError``, ``InferError``, ``NoKernelError``.
    """
    arguments = arguments_of(bound, tuple(specs), attributes)
    if bound.is_module:
        module: Any = bound
        module.refine_schema(arguments)
    prepared = prepare(bound.operator, arguments, infer=True)
    inputs = tuple(flatten(prepared.inputs))
    kernel: Any = prepared.kernel
    is_loops = isinstance(prepared.kernel, LoopKernelBase)
    typed = kernel.typed(inputs, prepared.attributes) if is_loops else None
    return Called(
        arguments, inputs, prepared.outputs, kernel, prepared.attributes, typed, tuple(specs), attributes
    )


def spec_of(value: Any, subject: str) -> Any:
    """Return the spec of a tensor, an array or a spec, None for None, and a tuple for a list of them.

    Raises ``ArgumentTypeError`` for anything else.
    """
    if value is None or isinstance(value, Spec):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(spec_of(one, subject) for one in value)
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        rule = "takes tensors, arrays or specs: Spec((2, 3), dtype('float32'), 'cpu')"
        raise ArgumentTypeError(subject, rule, repr(value))
    return Spec(tuple(value.shape), dtype(value.dtype), "cpu")
