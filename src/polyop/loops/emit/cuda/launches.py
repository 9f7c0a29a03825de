"""CUDA kernels and their launches: what the printers of all kinds of pieces share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ...ir.grammar import Assign, Expr, For, Kernel, Stmt, Type, statements
from ...ir.uses import assigned_by, variables_of
from ..common.ctypes import identifier, memory, size_name
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer
from .bodies import c_type
from .shapes import Mapper
from .sizes import longest

BLOCK = 256
"""Threads of a block, which is also called a group."""


class Launches:
    """The CUDA kernels print_body so far, and what they need from the host."""

    def __init__(
        self, kernel: Kernel, expressions: Expressions, mapper: Mapper, owners: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.kernel, self.expressions, self.mapper, self.owners = kernel, expressions, mapper, owners
        self.parts: list[str] = []
        self.slotted: set[str] = set()
        """Temporaries that a launch allocates for itself, one for each group of threads."""
        self.private: dict[str, None] = {}
        """Targets of reductions with partial results."""
        self.variables: dict[str, None] = {}
        """Loops on the host."""
        self.types = {s.name: s.type for s in statements(kernel.body) if isinstance(s, Assign)}
        self.outer: dict[str, Type] = {}
        """Scalars that several launches share, in device memory."""
        self.guards: tuple[Expr, ...] = ()
        """Conditions on such scalars, without which a launch does nothing."""

    @contextlib.contextmanager
    def guarded(self, condition: Expr) -> Iterator[None]:
        """Context in which launches test a condition first."""
        before, self.guards = self.guards, (*self.guards, condition)
        yield
        self.guards = before

    def unpack(
        self, out: Writer, names: AbstractSet[str], *, device: bool, declared: Sequence[str] = ()
    ) -> None:
        """Declare the sizes and attributes among the C names that a function uses.

        A function of the device also gets tensors, without those ``declared`` in its text, and the variables
        of loops on the host.
        """
        for name, buffer in self.kernel.buffers.items():
            c, elem = identifier(name), memory(buffer.dtype)
            if device and c in names and name not in declared:
                pointer = f"const {elem}* const __restrict__" if buffer.role == "input" else f"{elem}* const"
                out.line(f"{pointer} {c} = self.{c};")
            for axis in range(len(buffer.shape)):
                if (size := size_name(name, axis)) in names:
                    out.line(f"const int64_t {size} = self.{size};")
        for name, kind in self.kernel.attributes.items():
            if (c := identifier(name)) in names:
                out.line(f"const {c_type(kind)} {c} = self.{c};")
        for name in self.variables if device else ():
            if (c := identifier(name)) in names:
                out.line(f"const int64_t {c} = self.at_{name};")

    def function(
        self,
        nodes: Sequence[Stmt],
        print_body: Callable[[Writer, frozenset[str]], None],
        bounds: str = "",
        declared: Sequence[str] = (),
    ) -> str:
        """Write the kernel of some statements and return its name; ``bounds`` are its launch bounds.

        ``print_body`` gets the scalars that are declared before its text. It declares the tensors and scalars
        in ``declared`` itself.
        """
        number = len(self.parts)
        name = f"part{number}"
        self.parts.append("")
        reads = variables_of(*statements(tuple(nodes)))
        reads |= assigned_by(nodes) | variables_of(*self.guards)
        live = {n: t for n, t in self.outer.items() if n in reads}
        inner = Writer(1)
        with self.expressions.names_of_function() as names:
            tests = [self.expressions.scalar(guard, Scope()) for guard in self.guards]
            print_body(inner, frozenset(live))
        out = Writer()
        with out.block(f"__global__ void {bounds}{name}(const kernel self)"):
            out.line("const kernel* const k = &self;")
            out.line("(void)k;")
            self.unpack(out, names, device=True, declared=declared)
            for scalar, kind in live.items():
                if scalar not in declared:
                    c = identifier(scalar)
                    out.line(f"{c_type(kind)} {c} = self.state->{c};")
            for test in tests:
                out.line(f"if (!({test})) return;")
            out.lines += inner.lines
        self.parts[number] = out.text()
        return name

    def launch(self, out: Writer, name: str, grid: str, block: str) -> None:
        """Print a launch and the check of its error."""
        out.line(f"POLYOP_LAUNCH({name}, {grid}, {block}, stream, self);")
        out.line("if (const cudaError_t wrong = cudaGetLastError()) return cudaGetErrorString(wrong);")

    def length(self, name: str) -> str:
        """Return the number of a buffer's elements, in C."""
        axes = range(len(self.kernel.buffers[name].shape))
        return "(" + (" * ".join(self.expressions.size(name, a) for a in axes) or "1") + ")"

    def slots(self, out: Writer, names: Sequence[str]) -> None:
        """Declare private temporaries as this group's slot of their memory."""
        for name in names:
            c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
            out.line(f"{elem}* const {c} = self.{c} + slot_ * {self.length(name)};")

    def allocate(self, out: Writer, names: Sequence[str], count: str) -> None:
        """Allocate private temporaries for ``count`` groups."""
        for name in names:
            c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
            out.line(f"polyop_taken {c}_v1({count} * {self.length(name)} * (int64_t)sizeof({elem}), stream);")
            out.line(f"if ({c}_v1.wrong) return {c}_v1.wrong;")
            out.line(f"self.{c} = ({elem}*){c}_v1.data;")

    def longest(self, body: Sequence[Stmt], loops: Sequence[For]) -> str:
        """Return the length of the longest loop that a group shares, in C."""
        variables = frozenset(self.variables)
        trips = longest(body, loops, self.mapper.divisible, lambda e: self.mapper.evaluable(e, variables))
        return self.expressions.scalar(trips, Scope())
