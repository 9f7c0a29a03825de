"""An operator of a C++ library as a kernel for one device; its C++ chooses the registered function."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.spec import Spec
from ..base import flatten
from .infer import ModuleInfer
from .kernel import Derived, ModuleKernel
from .registrations import Row

ON = {"cpu": ("CPU", "AutogradCPU"), "cuda": ("CUDA", "AutogradCUDA")}
NPU = ("PrivateUse1", "AutogradPrivateUse1")
EVERYWHERE = ("CompositeImplicitAutograd", "Autograd")


@dataclass(eq=False)
class DispatchedKernel(ModuleKernel):
    """The functions of an operator; ``rows`` are the registered implementations."""

    rows: tuple[Row, ...] = ()
    wants_infer: ClassVar[str] = (
        "its CPU function reads data, so the shape of the output cannot be derived from it: register a Meta "
        "function, or wrap the loop over data in polyop::launch(), which is skipped"
    )

    def __str__(self) -> str:
        """Return name and library."""
        return f"{self.schema.qualified_name} of {self.path.name}"

    @property
    def rehearses(self) -> bool:
        """Whether the functions for an NPU run on the CPU, in rehearsal (POLYOP_ASCEND=rehearse)."""
        keys = {row.key for row in self.rows}
        return (
            self.device == "cpu" and "PrivateUse1" in keys and os.environ.get("POLYOP_ASCEND") == "rehearse"
        )

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return which functions are registered, if none is for the device; else as for every module."""
        keys = [row.key for row in self.rows]
        if not self.rehearses and not {*ON[self.device], *EVERYWHERE} & set(keys):
            registered = ", ".join(f"{row.key} ({row.place})" for row in self.rows) or "none"
            text = f"no implementation for {ON[self.device][0]} is registered; there are: {registered}"
            if set(NPU) & set(keys):
                text += "; POLYOP_ASCEND=rehearse runs the one for PrivateUse1 on the CPU"
            return text
        return super().refuse(inputs, outputs)


class DispatchedInfer(ModuleInfer):
    """Output specs from the Meta function, or from a dry run of the device's."""

    def derived(self, inputs: Sequence[Any], attributes: dict[str, Any]) -> Derived:
        """Return what the functions do without gradients, so below the autograd keys."""
        return self.kernel.derive(inputs, attributes, tuple(False for _ in flatten(inputs)))
