"""The operator that runs in place of another where a gradient is wanted: it also returns temporaries."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..core.errors import PolyopError
from ..core.operator import Operator
from ..hosts.bound import BoundOperator
from ..kernels.loops.derived import described, specs_of
from ..kernels.loops.derived_saving import SavingKernel, saved
from .loop_parts import make_saving, spec, specs, split

PREFIX, ABSENT = "saving_", "none"


class Savings:
    """``<name>__saving_<dtypes>``, one operator for each set of dtypes and ranks, made when asked for."""

    def __init__(self, operator: Operator, kernels: Sequence[Any]) -> None:
        """Take the operator and its loop kernels."""
        self.operator, self.kernels = operator, kernels
        self._known: dict[Any, BoundOperator | None] = {}
        self._lock = threading.RLock()

    def of(self, arguments: Sequence[Any]) -> BoundOperator | None:
        """Return the operator for bound arguments, or None: there is nothing to hand over, or no gradient."""
        tensors, numbers = split(self.operator.schema, arguments)
        key = tuple((x.dtype, len(x.shape)) if hasattr(x, "dtype") else spec(x) for x in tensors)
        if key not in self._known:
            with self._lock:
                self._known[key] = self.named(described(specs(tensors)), numbers)
        return self._known[key]

    def made(self) -> list[BoundOperator]:
        """Return the operators that were made so far."""
        return [*dict.fromkeys(x for x in self._known.values() if x is not None)]

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the operator of a suffix, in a process that has not made it yet."""
        if not suffix.startswith(PREFIX):
            return None
        defaults = {a.name: a.default for _, a in self.operator.schema.attributes()}
        text = suffix.removeprefix(PREFIX).replace("__", " ").replace("_", ":").replace(ABSENT, "-")
        return self.named(text, defaults)

    def named(self, text: str, numbers: dict[str, Any]) -> BoundOperator | None:
        """Return the operator for described tensors."""
        with self._lock:
            if text not in self._known:
                self._known[text] = self._make(text, numbers)
            return self._known[text]

    def _make(self, text: str, numbers: dict[str, Any]) -> BoundOperator | None:
        try:
            kernel = saved(self.kernels[0], specs_of(text), numbers)
        except PolyopError:  # said when the gradient is asked for
            return None
        if kernel is None:
            return None
        suffix = PREFIX + text.replace("-", ABSENT).replace(":", "_").replace(" ", "__")
        made = [SavingKernel.of(k, len(kernel.outputs)) for k in self.kernels]
        return make_saving(self.operator, suffix, made, len(kernel.outputs))
