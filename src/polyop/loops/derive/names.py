"""Names in derived kernels: ``d_x`` is what x is handed, loops keep theirs with a number."""

from __future__ import annotations

from ..ir.grammar import Kernel, names_of

HALF = ("float16", "bfloat16")


class Names:
    """Hands out names that nothing else in a kernel has."""

    def __init__(self, kernel: Kernel) -> None:
        self.taken = names_of(kernel)
        self.loops: set[str] = set()

    def new(self, name: str) -> str:
        """Return a name that is not taken: the one given, or it with a number."""
        found, count = name, 1
        while found in self.taken or found in self.loops:
            count += 1
            found = f"{name}_{count}"
        self.taken.add(found)
        return found

    def loop(self, name: str) -> str:
        """Return the name of another loop like ``name``: the loops of the origin are gone."""
        if name not in self.loops:
            self.loops.add(name)
            return name
        return self.new(name)


def summed_as(dtype: str) -> str:
    """Return the dtype in which gradients of a dtype are added up."""
    return "float32" if dtype in HALF else dtype
