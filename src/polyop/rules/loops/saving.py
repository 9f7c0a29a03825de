"""The operator that runs in place of another when a gradient is needed: it also returns temporaries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.registry import PARTS
from ...core import locks
from ...core.errors import PolyopError
from ...core.schema import MISSING
from ...core.spec import Spec
from ...core.spec_key import SpecKey
from ...kernels.loop.derived import DerivedKernel
from ...kernels.loop.forms import saving
from ...kernels.loop.temporaries import over_limit, saving_form
from .base import PartCache
from .parts import Complete, all_attributes, make_part

_SAMPLES = {"int": 0, "float": 0.0, "bool": False, "Scalar": 0.0}
PREFIX, WITHOUT = "saving_", "without_"


class Savings:
    """``<name>__saving_<dtypes>``, one operator for each set of dtypes and ranks, made at its first use.

    ``<name>__saving_without_<numbers>__<dtypes>`` saves fewer temporaries: those are over the limit.
    """

    def __init__(self, operator: Operator, kernels: Sequence[Any], complete: Complete) -> None:
        """Take the operator and its loop kernels; ``complete`` derives what the new operators lack."""
        self.operator, self.kernels, self._complete = operator, kernels, complete
        self._by_call: dict[Any, BoundOperator | None] = {}
        self._cache = PartCache()
        self._defaults = {a.name: a.default for _, a in operator.schema.attributes()}
        self._attribute_types: dict[tuple[SpecKey, tuple[int, ...]], tuple[type, ...]] = {}

    def of(self, inputs: Sequence[Spec | None], attributes: dict[str, Any]) -> BoundOperator | None:
        """Return the operator for calls with these specs and attributes (by the schema's names).

        None where no temporary is worth saving, or where there is no gradient. None also for a string that is
        not the default: the name of the operator has no place for it.
        """
        if any(isinstance(value, str) and value != self._defaults.get(n) for n, value in attributes.items()):
            return None
        key: tuple[Any, ...] = (SpecKey.of(inputs), tuple(map(type, attributes.values())))
        limited = self.kernels[0].tape_bytes is not None and self.kernels[0].tape != "none"
        if limited:
            key = (*key, _sizes(inputs), *attributes.values())
        if key not in self._by_call:
            with locks.define:
                omitted_numbers = self._over_limit(inputs, attributes) if limited else ()
                self._by_call[key] = self.named(SpecKey.of(inputs), attributes, omitted_numbers)
        return self._by_call[key]

    def _over_limit(self, input_specs: Sequence[Any], attributes: dict[str, Any]) -> tuple[int, ...]:
        """Return the numbers of the temporaries that are over the limit for these sizes."""
        try:
            omitted = over_limit(self.kernels[0], input_specs, all_attributes(self.operator, attributes))
            return tuple(k for k, name in enumerate(self._names(input_specs, attributes)) if name in omitted)
        except PolyopError:  # raised when the gradient runs
            return ()

    def _names(self, input_specs: Sequence[Any], attributes: dict[str, Any]) -> tuple[str, ...]:
        """Return all temporaries that can be saved."""
        kernel = saving_form(self.kernels[0], input_specs, all_attributes(self.operator, attributes))
        return () if kernel is None else kernel.outputs[self.kernels[0].results :]

    def parts_made(self) -> list[BoundOperator]:
        """Return the operators that exist so far."""
        return self._cache.values()

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the operator with this suffix, made now if need be; None for other suffixes."""
        if not re.fullmatch(PARTS["saving"], suffix):
            return None
        attributes = {
            a.name: _SAMPLES.get(a.type.base, 0) if a.default is MISSING else a.default
            for _, a in self.operator.schema.attributes()
        }
        text = suffix.removeprefix(PREFIX)
        omitted_numbers: tuple[int, ...] = ()
        if text.startswith(WITHOUT):
            first, _, text = text.removeprefix(WITHOUT).partition("__")
            omitted_numbers = tuple(map(int, first.split("_")))
        key = SpecKey.parse_name_part(text)
        fits = len(key.rows) == len(self.operator.schema.tensor_positions)
        return self.named(key, attributes, omitted_numbers) if fits else None

    def named(
        self, key: SpecKey, attributes: dict[str, Any], omitted_numbers: tuple[int, ...] = ()
    ) -> BoundOperator | None:
        """Return the operator for a key. There is one, for the attribute types of the first call.

        With others a kernel may save other temporaries; it is then called as it is.
        """
        types = tuple(map(type, attributes.values()))
        with locks.define:
            part = self._cache.get(
                (key, omitted_numbers), lambda: self._make(key, attributes, omitted_numbers)
            )
            if part is None:
                return None
            return part if self._attribute_types.setdefault((key, omitted_numbers), types) == types else None

    def _make(
        self, key: SpecKey, attributes: dict[str, Any], omitted_numbers: tuple[int, ...]
    ) -> BoundOperator | None:
        input_specs, kernel_attributes = key.specs, all_attributes(self.operator, attributes)
        try:
            names = self._names(input_specs, attributes) if omitted_numbers else ()
            without = frozenset(names[k] for k in omitted_numbers if k < len(names))
            kernel = saving_form(self.kernels[0], input_specs, kernel_attributes, without)
        except PolyopError:  # raised when the gradient runs
            return None
        if kernel is None:
            return None
        fewer = WITHOUT + "_".join(map(str, omitted_numbers)) + "__" if omitted_numbers else ""
        suffix = PREFIX + fewer + key.name_part
        form = saving(len(kernel.outputs) - self.kernels[0].results, without)
        kernels = [DerivedKernel.of(k, form) for k in self.kernels]
        return make_part(self.operator, suffix, kernels, self._complete)


def _sizes(inputs: Sequence[Spec | None]) -> tuple[Any, ...] | None:
    """Return the sizes of tensors, None where one is a symbol, which cannot be hashed."""
    sizes = tuple(spec.shape for spec in inputs if spec is not None)
    return sizes if all(isinstance(size, int) for shape in sizes for size in shape) else None
