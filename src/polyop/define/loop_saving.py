"""The operator that runs in place of another where a gradient is wanted: it also returns temporaries."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..core.errors import PolyopError
from ..core.operator import Operator
from ..core.schema import MISSING
from ..hosts.bound import BoundOperator
from ..kernels.loops.derived import described, specs_of
from ..kernels.loops.derived_saving import SavingKernel, saved
from .loop_parts import make_saving, spec, specs, split

_SAMPLES = {"int": 0, "float": 0.0, "bool": False, "Scalar": 0.0}
PREFIX, ABSENT = "saving_", "none"


class Savings:
    """``<name>__saving_<dtypes>``, one operator for each set of dtypes and ranks, made when asked for."""

    def __init__(self, operator: Operator, kernels: Sequence[Any]) -> None:
        """Take the operator and its loop kernels."""
        self.operator, self.kernels = operator, kernels
        self._known: dict[Any, BoundOperator | None] = {}
        self._made: dict[str, tuple[Any, BoundOperator]] = {}
        self._lock = threading.RLock()

    def of(self, arguments: Sequence[Any]) -> BoundOperator | None:
        """Return the operator for bound arguments, or None: there is nothing to hand over, or no gradient."""
        tensors, numbers = split(self.operator.schema, arguments)
        types = tuple(map(type, numbers.values()))
        key = (*((x.dtype, len(x.shape)) if hasattr(x, "dtype") else spec(x) for x in tensors), types)
        if key not in self._known:
            with self._lock:
                self._known[key] = self.named(described(specs(tensors)), numbers)
        return self._known[key]

    def made(self) -> list[BoundOperator]:
        """Return the operators that were made so far."""
        return [made for _, made in self._made.values()]

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the operator of a suffix, in a process that has not made it yet."""
        if not suffix.startswith(PREFIX):
            return None
        numbers = {
            a.name: _SAMPLES.get(a.type.base, 0) if a.default is MISSING else a.default
            for _, a in self.operator.schema.attributes()
        }
        text = suffix.removeprefix(PREFIX).replace("__", " ").replace("_", ":").replace(ABSENT, "-")
        return self.named(text, numbers)

    def named(self, text: str, numbers: dict[str, Any]) -> BoundOperator | None:
        """Return the operator for described tensors: one, for attributes of the types that came first.

        With others a kernel may hand over other temporaries; it is then called as it is.
        """
        types = tuple(map(type, numbers.values()))
        with self._lock:
            if text not in self._made:
                made = self._make(text, numbers)
                if made is None:
                    return None
                self._made[text] = (types, made)
            first, made = self._made[text]
            return made if first == types else None

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
