"""Print the memory that a tile allocates and releases together."""

from __future__ import annotations

from ..common.writer import Writer


class Scratch:
    """Allocations of one tile. ``leave`` is what its function does before it returns early, in C."""

    def __init__(self, out: Writer, leave: str) -> None:
        self.out, self.leave, self.names = out, leave, list[str]()

    def allocate(self, elem: str, name: str, size: str) -> None:
        """Print an allocation of so many bytes."""
        self.out.line(f"{elem}* const {name} = polyop_scratch({size});")
        self.names.append(name)

    def check(self) -> None:
        """Print the end of the function where one of them has failed."""
        if self.names:
            missing = " || ".join(f"!{name}" for name in self.names)
            released = " ".join(f"polyop_release({name});" for name in self.names)
            left = f"{released} {self.leave}".strip()
            self.out.line(f"if ({missing}) {{ {left} polyop_out_of_memory(k); return; }}")

    def release(self) -> None:
        """Print the release of all."""
        for name in self.names:
            self.out.line(f"polyop_release({name});")
