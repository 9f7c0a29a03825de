"""A kernel that is an aclnn operator, found by its name (``aclnnMul``) when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core import late
from ..core.schema import Schema
from ..core.spec import Spec
from .base import flatten
from .python import PythonKernel, empty


class ProviderKernel(PythonKernel):
    """The aclnn operator ``name``, with or without the prefix ``aclnn``.

    Tensors are passed in order, attributes by name. For tensors on Ascend CANN runs the operator, or the
    CPU in rehearsal; for other tensors the CPU does. With ``for_ascend`` tensors of every device are
    treated as Ascend's.
    """

    def __init__(self, name: str, *, for_ascend: bool = False) -> None:
        """Store the name; whether the operator exists is checked at the first call."""
        super().__init__(self._call_outside, device="any")
        self.name = name
        self.for_ascend = for_ascend

    def __str__(self) -> str:
        """Return ``provider operator name``."""
        return f"provider operator {self.name}"

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return None: every spec is accepted here.

        Raises ``UnsupportedError`` for a name that no provider implements, with the nearest names, and
        ``HostError`` for Ascend if there is neither CANN nor a rehearsal.
        """
        _aclnn().check(self.name, self._device((*flatten(inputs), *outputs)))
        return None

    def call(
        self,
        schema: Schema,
        arguments: Sequence[Any],
        outputs: Sequence[Spec],
        fixed: Mapping[str, Any],
        new: Callable[[Spec], Any] = empty,
    ) -> list[Any]:
        """Return the new outputs, of exactly the inferred specs.

        Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for arguments, attributes or
        output shapes that the operator's prototype does not allow.
        """
        results = [new(spec) for spec in outputs]
        values = [
            value if argument.type.writes else self._view(value)
            for argument, value in zip(schema.arguments, arguments, strict=True)
        ]
        _aclnn().launch_named(self.name, schema, values, fixed, results, self._device(outputs))
        return results

    def _device(self, specs: Sequence[Spec | None]) -> str:
        if self.for_ascend:
            return "npu"
        return next((spec.device for spec in specs if spec is not None), "cpu")

    def _call_outside(self, *_: Any) -> Any:
        raise NotImplementedError  # never called: ``call`` is overridden, as the operator writes into outputs


def _aclnn() -> Any:
    # late, because kernels may not import providers
    return late.load("provider", "aclnn")
