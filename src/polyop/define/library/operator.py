"""An operator of a C++ library, bound so that programs can call it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...core.errors import KernelError
from ...core.origin import Origin
from ...core.schema import Schema
from ...core.untraced import untraced
from ...kernels.module.dispatched import EVERYWHERE, ON, DispatchedInfer, DispatchedKernel
from ...kernels.module.function_table import ModuleFunction
from ...kernels.module.registrations import Row
from ...rules.module.pure_operators import SavingTangent, make_backward, make_saving
from ...rules.module.recorded import Recorded
from ...rules.module.second import saved_again
from ..module.operator import ModuleOperator

RECORDS = {"AutogradCPU", "AutogradCUDA", "AutogradPrivateUse1", *EVERYWHERE}
"""The keys whose functions give a gradient."""


class LibraryOperator(ModuleOperator):
    """An operator whose schema and functions are registered by its library.

    ``parts`` are the operator itself and those that its gradient consists of when it is traced.
    """

    def __init__(
        self, function: ModuleFunction, path: Path, rows: Sequence[Row], origin: Origin | None = None
    ) -> None:
        """Bind the operator that ``function`` calls; ``rows`` are its implementations."""
        self.signature, self.author_infer = function.signature, None
        schema = function.signature.schema
        keys = {row.key for row in rows}
        devices = ["cpu", *(["cuda"] if keys & {*ON["cuda"], *EVERYWHERE} else [])]
        kernels = tuple(
            DispatchedKernel(
                path, function.name, function.address, self.signature, schema, device, rows=tuple(rows)
            )
            for device in devices
        )
        recorded: Any = Recorded(kernels[0]) if keys & RECORDS else None
        operator = Operator(
            schema=schema,
            infer=self._own_rule(kernels[0], schema),
            kernels=kernels,
            gradient=recorded,
            origin=origin,
        )
        BoundOperator.__init__(self, operator)
        self.parts: tuple[BoundOperator, ...] = (self,)
        if recorded is None:
            return
        backward = make_backward(self)
        saving = make_saving(self, backward)
        again = functools.partial(saved_again, self.name, kernels[0])
        gradient: Any = dataclasses.replace(recorded, backward=backward, saving_part=saving, again=again)
        self.update(dataclasses.replace(operator, gradient=gradient))
        self.parts = (self, saving, backward)

    def _own_rule(self, kernel: Any, schema: Schema) -> DispatchedInfer:
        return DispatchedInfer(kernel, schema)

    def set_jvp(self, rule: Any) -> None:
        """Give the operator its forward-mode rule, also where it runs as the operator that saves tensors."""
        self.update(dataclasses.replace(self.operator, jvp=rule))
        for saving in self.parts[1:2]:
            saving.update(dataclasses.replace(saving.operator, jvp=SavingTangent(self)))

    def refine_schema(self, arguments: tuple[Any, ...]) -> None:
        """Warn if the kernel only rehearses a call for Ascend; the schema is complete already."""
        del arguments
        kernel: Any = self.operator.kernels[0]
        if kernel.rehearses:
            from ...providers.aclnn.rehearsal import ascend

            ascend()

    @untraced
    def _wrote(self, written: tuple[Any, ...]) -> None:
        del written
        rule = "the C++ function wrote an argument that its schema does not mark as written"
        hint = "write Tensor(a!) for it in m.def()"
        raise KernelError(self.name, rule, where=self.operator.origin, hint=hint)
