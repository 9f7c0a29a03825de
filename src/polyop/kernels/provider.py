"""A kernel that is somebody else's operator by name: ``aclnnMul``."""

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

    Tensors go to the operator in order, attributes by their names. On Ascend's device CANN
    runs it, or in rehearsal the CPU; on other devices the CPU does. ``for_ascend`` says that
    the operator is bound to Ascend, wherever its tensors are.
    """

    def __init__(self, name: str, *, for_ascend: bool = False) -> None:
        """Name the operator; whether it exists is asked at the first call."""
        super().__init__(self._call_outside, device="any")
        self.name = name
        self.for_ascend = for_ascend

    def __str__(self) -> str:
        """Return ``provider operator name``."""
        return f"provider operator {self.name}"

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return None; raises ``UnsupportedError`` for a name that nobody implements, with the nearest.

        Raises ``HostError`` for Ascend where there is neither CANN nor a rehearsal.
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
        """Return the fresh outputs, of exactly the inferred specs, as the operator wrote them.

        Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for arguments, attributes or
        output shapes that the operator's prototype does not allow.
        """
        made = [new(spec) for spec in outputs]
        values = [
            value if argument.type.writes else self._view(value)
            for argument, value in zip(schema.arguments, arguments, strict=True)
        ]
        _aclnn().launch_named(self.name, schema, values, fixed, made, self._device(outputs))
        return made

    def _device(self, specs: Sequence[Spec | None]) -> str:
        if self.for_ascend:
            return "npu"
        return next((spec.device for spec in specs if spec is not None), "cpu")

    def _call_outside(self, *_: Any) -> Any:
        raise NotImplementedError  # ``call`` does it: the operator writes outputs that exist already


def _aclnn() -> Any:
    # providers come after kernels: they are asked for by name, and only when a call needs one
    return late.load("provider", "aclnn")
