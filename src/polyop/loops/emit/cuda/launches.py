"""CUDA kernels and their launches: what the printers of all kinds of pieces share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ...ir.grammar import Assign, For, Kernel, Stmt, Type, Var, statements, walk
from ..common.ctypes import identifier, memory
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer
from .bodies import c_type
from .shapes import Mapper
from .sizes import longest

BLOCK = 256
"""Threads of a block, which is also called a group."""
_WORDS = re.compile(r"/\*.*?\*/|(?<!\.)\b([A-Za-z_]\w*)")


class Launches:
    """The CUDA kernels printed so far, and what they need from the host."""

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

    def unpack(
        self, out: Writer, text: str, source: str, *, device: bool, hidden: Sequence[str] = ()
    ) -> None:
        """Declare what a text uses: tensors, sizes, attributes, loops on the host."""
        used = set(_WORDS.findall(text))
        for name, buffer in self.kernel.buffers.items():
            c, elem = identifier(name), memory(buffer.dtype)
            if device and c in used and name not in hidden:
                kind = f"const {elem}* const __restrict__" if buffer.role == "input" else f"{elem}* const"
                out.line(f"{kind} {c} = {source}{c};")
            for axis in range(len(buffer.shape)):
                size = self.expressions.size(name, axis)
                if size in used:
                    out.line(f"const int64_t {size} = {source}{size};")
        for name, kind_ in self.kernel.attributes.items():
            if identifier(name) in used:
                out.line(f"const {c_type(kind_)} {identifier(name)} = {source}{identifier(name)};")
        for name in self.variables if device else ():
            if identifier(name) in used:
                out.line(f"const int64_t {identifier(name)} = {source}at_{name};")

    def function(
        self,
        nodes: Sequence[Stmt],
        printed: Callable[[Writer, frozenset[str]], None],
        bounds: str = "",
        hidden: Sequence[str] = (),
    ) -> str:
        """Write a kernel and return its name.

        ``printed`` gets the scalars that are declared, and declares the tensors that are ``hidden``.
        """
        number = len(self.parts)
        name = f"part{number}"
        self.parts.append("")
        reads = {e.name for s in statements(tuple(nodes)) for e in walk(s) if isinstance(e, Var)}
        reads |= {s.name for s in statements(tuple(nodes)) if isinstance(s, Assign)}
        live = {n: t for n, t in self.outer.items() if n in reads}
        inner = Writer(1)
        printed(inner, frozenset(live))
        out = Writer()
        with out.block(f"__global__ void {bounds}{name}(const kernel self)"):
            out.line("const kernel* const k = &self;")
            out.line("(void)k;")
            text = inner.text()
            self.unpack(out, text, "self.", device=True, hidden=hidden)
            for scalar, kind in live.items():
                if identifier(scalar) not in set(_WORDS.findall(text)):
                    continue
                out.line(f"{c_type(kind)} {identifier(scalar)} = self.state->{identifier(scalar)};")
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

    def slots(self, out: Writer, own: Sequence[str]) -> None:
        """Declare this group's slot of private temporaries."""
        for name in own:
            c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
            out.line(f"{elem}* const {c} = self.{c} + slot_ * {self.length(name)};")

    def take(self, out: Writer, own: Sequence[str], count: str) -> None:
        """Allocate private temporaries for ``count`` groups."""
        for name in own:
            c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
            out.line(f"polyop_taken {c}_v1({count} * {self.length(name)} * (int64_t)sizeof({elem}), stream);")
            out.line(f"if ({c}_v1.wrong) return {c}_v1.wrong;")
            out.line(f"self.{c} = ({elem}*){c}_v1.data;")

    def longest(self, body: Sequence[Stmt], loops: Sequence[For]) -> str:
        """Return the length of the longest loop that a group shares, in C."""
        known = frozenset(self.variables)
        trips = longest(body, loops, self.mapper.divisible, lambda e: self.mapper.evaluable(e, known))
        return self.expressions.scalar(trips, Scope())
