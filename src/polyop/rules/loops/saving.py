"""The operator that runs in place of another when a gradient is needed: it also returns temporaries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

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
from ...kernels.loop.temporaries import Numbers, over_limit, saving_kernel
from .base import PartCache
from .parts import Complete, all_attributes, make_part

_STAND_INS = {"int": 0, "float": 0.0, "bool": False, "Scalar": 0.0}
"""By type in the schema, a value for an attribute of an operator that is made without a call."""
PREFIX, WITHOUT = "saving_", "without_"


class SavingKey(NamedTuple):
    """What the name of a saving operator says: the dtypes and ranks it is for, and what it does not save.

    >>> SavingKey.parse("saving_without_0_2__float32_1__none").suffix
    'saving_without_0_2__float32_1__none'
    """

    specs: SpecKey
    omitted: Numbers = ()

    @property
    def suffix(self) -> str:
        """The end of the operator's name."""
        fewer = WITHOUT + "_".join(map(str, self.omitted)) + "__" if self.omitted else ""
        return PREFIX + fewer + self.specs.name_part

    @classmethod
    def parse(cls, suffix: str) -> SavingKey:
        """Return the key that has this suffix, which ``PARTS`` allows."""
        text, omitted = suffix.removeprefix(PREFIX), ""
        if text.startswith(WITHOUT):
            omitted, _, text = text.removeprefix(WITHOUT).partition("__")
        return cls(
            SpecKey.parse_name_part(text), tuple(int(number) for number in omitted.split("_") if number)
        )


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
        self._attribute_types: dict[SavingKey, tuple[type, ...]] = {}

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
                omitted = self._over_limit(inputs, attributes) if limited else ()
                self._by_call[key] = self.named(SavingKey(SpecKey.of(inputs), omitted), attributes)
        return self._by_call[key]

    def _over_limit(self, inputs: Sequence[Any], attributes: dict[str, Any]) -> Numbers:
        """Return the temporaries that are over the limit for these sizes."""
        try:
            return over_limit(self.kernels[0], inputs, all_attributes(self.operator, attributes))
        except PolyopError:  # raised when the gradient runs
            return ()

    def parts_made(self) -> list[BoundOperator]:
        """Return the operators that exist so far."""
        return self._cache.values()

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the operator with this suffix, made now if need be; None for other suffixes."""
        if not re.fullmatch(PARTS["saving"], suffix):
            return None
        attributes = {
            a.name: _STAND_INS.get(a.type.base, 0) if a.default is MISSING else a.default
            for _, a in self.operator.schema.attributes()
        }
        key = SavingKey.parse(suffix)
        fits = len(key.specs.rows) == len(self.operator.schema.tensor_positions)
        return self.named(key, attributes) if fits else None

    def named(self, key: SavingKey, attributes: dict[str, Any]) -> BoundOperator | None:
        """Return the operator for a key. There is one, for the attribute types of the first call.

        With others a kernel may save other temporaries; it is then called as it is.
        """
        types = tuple(map(type, attributes.values()))
        with locks.define:
            part = self._cache.get(key, lambda: self._make(key, attributes))
            if part is None:
                return None
            return part if self._attribute_types.setdefault(key, types) == types else None

    def _make(self, key: SavingKey, attributes: dict[str, Any]) -> BoundOperator | None:
        """Return the operator for a key; None where nothing is saved, or where there is no gradient."""
        first, kernel_attributes = self.kernels[0], all_attributes(self.operator, attributes)
        try:
            kernel = saving_kernel(first, key.specs.specs, kernel_attributes, key.omitted)
        except PolyopError:  # raised when the gradient runs
            return None
        if kernel is None:
            return None
        form = saving(len(kernel.outputs) - first.results, key.omitted)
        kernels = [DerivedKernel.of(one, form) for one in self.kernels]
        return make_part(self.operator, key.suffix, kernels, self._complete)


def _sizes(inputs: Sequence[Spec | None]) -> tuple[Any, ...] | None:
    """Return the sizes of tensors, None where one is a symbol, which cannot be hashed."""
    sizes = tuple(spec.shape for spec in inputs if spec is not None)
    return sizes if all(isinstance(size, int) for shape in sizes for size in shape) else None
