"""The base of the rules that polyop derives from loop kernels: each calls one part, made at its first use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.rule import Rule
from ...core import locks
from ...core.schema import Argument, Type
from .parts import Complete, loop_kernels, make_part


class PartCache:
    """Parts by a key, each made once, also if several threads ask for it."""

    def __init__(self) -> None:
        """Make nothing yet."""
        self._parts: dict[Hashable, BoundOperator] = {}

    def get(self, key: Hashable, make: Callable[[], BoundOperator | None]) -> BoundOperator | None:
        """Return the part for a key, which ``make`` makes if it is missing. None is not remembered."""
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
    """A rule of an operator whose kernels are loop kernels: one call of ``<name>__<SUFFIX>``.

    A subclass says what that operator is. Its own rules are derived in the same way.
    """

    is_derived = True
    SUFFIX: ClassVar[str]
    KERNEL: ClassVar[Any]
    """The class of its kernels."""

    def __init__(self, operator: Operator, complete: Complete) -> None:
        """Derive nothing yet; ``complete`` derives the rules that the part lacks."""
        self.schema, self.operator, self.complete = operator.schema, operator, complete
        self.kernels = loop_kernels(operator)
        self._cache = PartCache()

    def extra_tensors(self) -> Sequence[str]:
        """Return the names of the tensors that the part takes beside those of the operator."""
        return ()

    def attributes(self, kernel: Any) -> list[Argument]:
        """Return the attributes of a part with this kernel that come before those of the operator."""
        return [Argument(kernel.key_attribute, Type("str"))]

    def results(self) -> int:
        """Return how many tensors the part returns."""
        return len(self.schema.returns)

    def author_rule(self) -> Rule | None:
        """Return the gradient rule of the part, or None if it is derived."""

    def main_part(self) -> BoundOperator:
        """Return the operator ``<name>__<SUFFIX>``."""
        part = self._cache.get(self.SUFFIX, self._make)
        assert part is not None
        return part

    def _make(self) -> BoundOperator:
        kernels = [self.KERNEL.of(k) for k in self.kernels]
        return make_part(
            self.operator,
            self.SUFFIX,
            kernels,
            self.extra_tensors(),
            self.results(),
            self.attributes(kernels[0]),
            self.complete,
            self.author_rule(),
        )

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the part ``<name>__<suffix>``, or None."""
        return self.main_part() if suffix == self.SUFFIX else None

    def parts_made(self) -> list[BoundOperator]:
        """Return the parts that exist so far."""
        return self._cache.values()
