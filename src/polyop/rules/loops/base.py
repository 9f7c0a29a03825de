"""The base of the rules that polyop derives from loop kernels: each calls the operator of one form.

What that operator takes and returns is in kernels/loop/forms.py. A rule knows how a framework asks for it.
Exported programs hold digests with the names of the rules' classes and files, so these stay.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.rule import Rule
from ...core import locks
from ...kernels.loop.derived import DerivedKernel, Form
from .parts import Complete, loop_kernels, make_part


class PartCache:
    """A cache of parts. Each is made once, even if several threads ask for it."""

    def __init__(self) -> None:
        """Make nothing yet."""
        self._parts: dict[Hashable, BoundOperator] = {}

    def get(self, key: Hashable, make: Callable[[], BoundOperator | None]) -> BoundOperator | None:
        """Return the part for a key, which ``make`` makes if it is missing. A None is not cached."""
        with locks.define:
            part = self._parts.get(key)
            if part is None:
                part = make()
                if part is not None:
                    self._parts[key] = part
            return part

    def values(self) -> list[BoundOperator]:
        """Return the parts that exist so far."""
        return list(self._parts.values())


class LoopRule(Rule):
    """A rule of an operator whose kernels are loop kernels: it calls ``<name>__<suffix>``, the part.

    The part is made at its first use. Its kernels are of the form ``form``, and its own rules are derived in
    the same way.
    """

    is_derived = True
    form: ClassVar[Form]

    def __init__(self, operator: Operator, complete: Complete) -> None:
        """Derive nothing yet; ``complete`` derives the rules that the part lacks, if its form has any."""
        self.schema, self.operator = operator.schema, operator
        self.complete = complete if self.form.has_rules else lambda part: part
        self.kernels = loop_kernels(operator)
        self._cache = PartCache()

    def main_part(self) -> BoundOperator:
        """Return the operator ``<name>__<suffix>``."""
        part = self._cache.get(self.form.suffix, self._make)
        assert part is not None
        return part

    def _make(self) -> BoundOperator:
        kernels = [DerivedKernel.of(kernel, self.form) for kernel in self.kernels]
        return make_part(self.operator, self.form.suffix, kernels, self.complete, self.given_gradient())

    def given_gradient(self) -> Rule | None:
        """Return the gradient rule of the part, or None if it is derived."""

    @property
    def kernel(self) -> DerivedKernel:
        """The part's kernel for the CPU."""
        kernel: Any = self.main_part().operator.kernels[0]
        assert isinstance(kernel, DerivedKernel)
        return kernel

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the part ``<name>__<suffix>``, or None."""
        return self.main_part() if suffix == self.form.suffix else None

    def parts_made(self) -> list[BoundOperator]:
        """Return the parts that exist so far."""
        return self._cache.values()
