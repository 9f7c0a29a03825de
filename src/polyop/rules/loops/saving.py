"""The operator that runs in place of another where a gradient is wanted: it also returns temporaries."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.registry import PARTS
from ...core.errors import PolyopError
from ...core.schema import MISSING
from ...core.spec import Spec
from ...core.spec_key import SpecKey
from ...kernels.loop.saving import SavingKernel
from ...kernels.loop.temporaries import over_limit, saving_form
from .parts import Complete, all_attributes, make_saving

_SAMPLES = {"int": 0, "float": 0.0, "bool": False, "Scalar": 0.0}
PREFIX, WITHOUT = "saving_", "without_"


class Savings:
    """``<name>__saving_<dtypes>``, one operator for each set of dtypes and ranks, made when asked for.

    ``<name>__saving_without_<numbers>__<dtypes>`` saves fewer temporaries: those are over the limit.
    """

    def __init__(self, operator: Operator, kernels: Sequence[Any], complete: Complete) -> None:
        """Take the operator and its loop kernels; ``complete`` derives what the new operators lack."""
        self.operator, self.kernels, self._complete = operator, kernels, complete
        self._known: dict[Any, BoundOperator | None] = {}
        self._made: dict[tuple[SpecKey, tuple[int, ...]], tuple[Any, BoundOperator]] = {}
        self._lock = threading.RLock()

    def of(self, inputs: Sequence[Spec | None], attributes: dict[str, Any]) -> BoundOperator | None:
        """Return the operator for calls with these specs and attributes (by the schema's names).

        None where no temporary is worth saving, or where there is no gradient.
        """
        key: tuple[Any, ...] = (SpecKey.of(inputs), tuple(map(type, attributes.values())))
        limited = self.kernels[0].tape_bytes is not None and self.kernels[0].tape != "none"
        if limited:
            key = (*key, _sizes(inputs), *attributes.values())
        if key not in self._known:
            with self._lock:
                left = self._beyond(inputs, attributes) if limited else ()
                self._known[key] = self.named(SpecKey.of(inputs), attributes, left)
        return self._known[key]

    def _beyond(self, seen: Sequence[Any], numbers: dict[str, Any]) -> tuple[int, ...]:
        """Return the numbers of the temporaries that the limit forbids for these sizes."""
        try:
            omitted = over_limit(self.kernels[0], seen, all_attributes(self.operator, numbers))
            return tuple(k for k, name in enumerate(self._names(seen, numbers)) if name in omitted)
        except PolyopError:  # said when the gradient is asked for
            return ()

    def _names(self, seen: Sequence[Any], numbers: dict[str, Any]) -> tuple[str, ...]:
        """Return all temporaries that can be saved."""
        kernel = saving_form(self.kernels[0], seen, all_attributes(self.operator, numbers))
        return () if kernel is None else kernel.outputs[self.kernels[0].results :]

    def parts_made(self) -> list[BoundOperator]:
        """Return the operators that were made so far."""
        return [made for _, made in self._made.values()]

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the operator of a suffix, in a process that has not made it yet; None for other suffixes."""
        if not re.fullmatch(PARTS["saving"], suffix):
            return None
        numbers = {
            a.name: _SAMPLES.get(a.type.base, 0) if a.default is MISSING else a.default
            for _, a in self.operator.schema.attributes()
        }
        text = suffix.removeprefix(PREFIX)
        left: tuple[int, ...] = ()
        if text.startswith(WITHOUT):
            first, _, text = text.removeprefix(WITHOUT).partition("__")
            left = tuple(map(int, first.split("_")))
        key = SpecKey.parse_word(text)
        fits = len(key.rows) == len(self.operator.schema.tensor_positions)
        return self.named(key, numbers, left) if fits else None

    def named(
        self, key: SpecKey, numbers: dict[str, Any], left: tuple[int, ...] = ()
    ) -> BoundOperator | None:
        """Return the operator of a key: one, for attributes of the types that came first.

        With others a kernel may save other temporaries; it is then called as it is.
        """
        types = tuple(map(type, numbers.values()))
        with self._lock:
            if (key, left) not in self._made:
                made = self._make(key, numbers, left)
                if made is None:
                    return None
                self._made[key, left] = (types, made)
            first, made = self._made[key, left]
            return made if first == types else None

    def _make(self, key: SpecKey, numbers: dict[str, Any], left: tuple[int, ...]) -> BoundOperator | None:
        seen, given = key.specs, all_attributes(self.operator, numbers)
        try:
            names = self._names(seen, numbers) if left else ()
            without = frozenset(names[k] for k in left if k < len(names))
            kernel = saving_form(self.kernels[0], seen, given, without)
        except PolyopError:  # said when the gradient is asked for
            return None
        if kernel is None:
            return None
        fewer = WITHOUT + "_".join(map(str, left)) + "__" if left else ""
        suffix = PREFIX + fewer + key.word
        made = [SavingKernel.of(k, count=len(kernel.outputs), omitted=without) for k in self.kernels]
        return make_saving(self.operator, suffix, made, len(kernel.outputs), self._complete)


def _sizes(inputs: Sequence[Spec | None]) -> tuple[Any, ...] | None:
    """Return the sizes of tensors, None where one is a symbol, which cannot be hashed."""
    sizes = tuple(spec.shape for spec in inputs if spec is not None)
    return sizes if all(isinstance(size, int) for shape in sizes for size in shape) else None
