"""Names in derived kernels: ``d_x`` is the adjoint of x; copies of a loop get a number."""

from __future__ import annotations

from ..ir.grammar import Kernel, names_of
from ..ir.types import NARROW


class Names:
    """Makes names that nothing else in a kernel has."""

    def __init__(self, kernel: Kernel) -> None:
        self.taken = names_of(kernel)
        self.loops: set[str] = set()

    def new(self, name: str) -> str:
        """Return ``name``, or ``name`` with a number if it is taken."""
        found, count = name, 1
        while found in self.taken or found in self.loops:
            count += 1
            found = f"{name}_{count}"
        self.taken.add(found)
        return found

    def loop(self, name: str) -> str:
        """Return a name for a copy of the loop ``name``: the first copy keeps the name."""
        if name not in self.loops:
            self.loops.add(name)
            return name
        return self.new(name)


def summed_as(dtype: str) -> str:
    """Return the dtype in which gradients of a dtype are accumulated."""
    return "float32" if dtype in NARROW else dtype
