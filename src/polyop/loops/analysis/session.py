"""The isl context of one compilation, its quota of operations and the sizes that proofs may assume.

isl is the library of integer sets that proves which loops may run in parallel. A context and all values
made in it must not be used by two threads at once, while contexts are independent of each other. So each
compilation makes a session for itself and passes it to every analysis; nothing here is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.locks import cached_property

MAX_OPERATIONS = 4_000_000
"""Default quota of isl operations, a few hundred milliseconds. Beyond it the author's order is kept."""
SUBSET_OPERATIONS = 150_000
"""The quota of one question whether a set is part of another, which may take exponential time."""


@dataclass(frozen=True, eq=False)
class IslSession:
    """An isl context, created at its first use, for the analyses of one kernel.

    Any operation beyond ``max_operations`` raises ``islpy.Error``.
    """

    max_operations: int = MAX_OPERATIONS
    blind: bool = False
    """Whether indices count as unknown: each access may touch any element. Proofs are few, but cheap."""
    sizes: tuple[Any, ...] = ()
    """isl sets of the sizes that calls are checked for: proofs ignore all other sizes."""
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Sets and maps by the text that they were read from; models of one kernel share most of them."""

    @cached_property
    def context(self) -> Any:
        """The ``islpy.Context``."""
        import islpy

        context = islpy.Context()
        context.set_max_operations(self.max_operations)
        return context

    def is_subset(self, one: Any, other: Any) -> bool:
        """Whether isl can tell within a quota of its own that a set is part of another."""
        import islpy

        self.context.reset_operations()
        self.context.set_max_operations(min(self.max_operations, SUBSET_OPERATIONS))
        try:
            return bool(one.is_subset(other))
        except islpy.Error:
            return False
        finally:
            self.context.reset_operations()
            self.context.set_max_operations(self.max_operations)

    def assuming(self, sizes: Sequence[Any]) -> IslSession:
        """Return a session in the same context, with the same quota, whose proofs assume these sizes."""
        session = replace(self, sizes=tuple(sizes), cache={})
        session.__dict__["context"] = self.context
        return session
