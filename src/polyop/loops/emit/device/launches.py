"""Kernels and their launches: what the printers of all kinds of pieces share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ...analysis.cost import Ranges, middle
from ...analysis.strides import depends
from ...ir.grammar import INT, Assign, Const, Expr, For, If, Kernel, Op, Stmt, Type, statements
from ...ir.uses import assigned_by, variables_of
from ..common.c_text import identifier, memory, size_name
from ..common.expressions import Scope
from ..common.writer import Writer
from .bodies import SCRATCH, DeviceExpressions, c_type
from .mapping import Mapper

BLOCK = 256
"""Threads of a block, which is also called a group."""


class Launches:
    """The kernels printed so far, and what they need from the host."""

    def __init__(
        self,
        kernel: Kernel,
        expressions: DeviceExpressions,
        mapper: Mapper,
        owners: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.kernel, self.expressions, self.mapper, self.owners = kernel, expressions, mapper, owners
        self.dialect = expressions.dialect
        self.parts: list[str] = []
        self.parameters: list[list[str]] = []
        """The pointers that each kernel uses."""
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
            if device and identifier(name) in names and name not in declared:
                self._tensor(out, name)
            for axis in range(len(buffer.shape)):
                if (size := size_name(name, axis)) in names:
                    out.line(f"const int64_t {size} = self.{size};")
        for name, kind in self.kernel.attributes.items():
            if (c := identifier(name)) in names:
                out.line(f"const {c_type(kind)} {c} = self.{c};")
        for name in self.variables if device else ():
            if (c := identifier(name)) in names:
                out.line(f"const int64_t {c} = self.at_{name};")

    def _tensor(self, out: Writer, name: str) -> None:
        """Declare a tensor of the host in a function of the device."""
        buffer, c = self.kernel.buffers[name], identifier(name)
        reads = buffer.role == "input"
        kind = self.dialect.declared(memory(buffer.dtype), constant=reads)
        first = "" if self.dialect.has_pointers or buffer.role == "local" else f" + self.first_{c}"
        restrict = f" {self.dialect.restrict}" if reads else ""
        out.line(f"{kind} const{restrict} {c} = {self.expressions.pointer(c)}{first};")

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
        self.parameters.append([])
        reads = variables_of(*statements(tuple(nodes)))
        reads |= assigned_by(nodes) | variables_of(*self.guards)
        live = {n: t for n, t in self.outer.items() if n in reads}
        inner, before = Writer(1), Writer(1)
        self.expressions.pointers = {}
        with self.expressions.names_of_function() as names:
            tests = [self.expressions.scalar(guard, Scope()) for guard in self.guards]
            print_body(inner, frozenset(live))
        if SCRATCH in names and not self.dialect.has_pointers:
            before.line(f"{self.dialect.shared} u64 {SCRATCH}[{BLOCK}];")
        self.unpack(before, names, device=True, declared=declared)
        for scalar, kind in live.items():
            if scalar not in declared:
                c = identifier(scalar)
                before.line(f"{c_type(kind)} {c} = {self.expressions.pointer('state')}->{c};")
        for test in tests:
            before.line(f"if (!({test})) return;")
        self.parameters[number] = list(self.expressions.pointers)
        parameters = ", ".join([self.dialect.numbers, *self._pointers(number)])
        out = Writer()
        with out.block(self.dialect.kernel.format(bounds=bounds, name=name, parameters=parameters)):
            out.lines += [*before.lines, *inner.lines]
        self.parts[number] = out.text()
        return name

    def _pointers(self, number: int) -> list[str]:
        """Return the declarations of a kernel's pointers, where each is a parameter."""
        if self.dialect.has_pointers:
            return []
        return [f"{self.type_of(name)} {self.dialect.pointer(name)}" for name in self.parameters[number]]

    def type_of(self, pointer: str) -> str:
        """Return the type of a pointer that the host gives."""
        for name, buffer in self.kernel.buffers.items():
            if identifier(name) == pointer:
                return self.dialect.declared(memory(buffer.dtype), constant=buffer.role == "input")
        of_struct = {"state": "struct scalars", "failure": "struct polyop_failure"}
        return self.dialect.declared(of_struct.get(pointer, "void"))

    def launch(self, out: Writer, name: str, grid: str, block: str) -> None:
        """Print a launch and the check of its error."""
        given = "self"
        if not self.dialect.has_pointers:
            name = name.removeprefix("part")
            pointers = ", ".join(f"self.{pointer}" for pointer in self.parameters[int(name)])
            given = f"numbers(self), {{{pointers}}}"
        out.line(f"POLYOP_LAUNCH({name}, {grid}, {block}, stream, {given});")

    def place(self, axis: int) -> str:
        """Return the number of a thread among all of a launch along an axis."""
        words = self.dialect
        return f"(int64_t){words.block[axis]} * {words.threads[axis]} + {words.thread[axis]}"

    def everywhere(self, axis: int) -> str:
        """Return the number of threads of a launch along an axis."""
        return f"(int64_t){self.dialect.blocks[axis]} * {self.dialect.threads[axis]}"

    def length(self, name: str) -> str:
        """Return the number of a buffer's elements, in C."""
        axes = range(len(self.kernel.buffers[name].shape))
        return "(" + (" * ".join(self.expressions.size(name, a) for a in axes) or "1") + ")"

    def slots(self, out: Writer, names: Sequence[str]) -> None:
        """Declare private temporaries as this group's slot of their memory."""
        for name in names:
            c = identifier(name)
            kind = self.dialect.declared(memory(self.kernel.buffers[name].dtype))
            out.line(f"{kind} const {c} = {self.expressions.pointer(c)} + slot_ * {self.length(name)};")

    def allocate(self, out: Writer, names: Sequence[str], count: str) -> None:
        """Allocate private temporaries for ``count`` groups."""
        for name in names:
            c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
            out.line(f"polyop_taken {c}_v1({count} * {self.length(name)} * (int64_t)sizeof({elem}), stream);")
            out.line(f"if ({c}_v1.wrong) return {c}_v1.wrong;")
            out.line(f"self.{c} = {self.given(elem, f'{c}_v1.data')};")

    def given(self, elem: str, data: str) -> str:
        """Return memory that the host took, as the field of its struct."""
        return f"({elem}*){data}" if self.dialect.has_pointers else data

    def longest(self, body: Sequence[Stmt], loops: Sequence[For]) -> str:
        """Return the length of the longest loop that a group shares, in C."""
        variables = frozenset(self.variables)
        trips = longest(body, loops, self.mapper.divisible, lambda e: self.mapper.evaluable(e, variables))
        return self.expressions.scalar(trips, Scope())


def trips(loop: For, around: Ranges) -> Expr:
    """Return the trip count of a loop; if it varies, at the middle of the loops around it, and at least 1."""
    varies = any(depends(e, frozenset(around)) for e in (loop.lo, loop.hi))
    lo, hi = (middle(e, around) for e in (loop.lo, loop.hi))
    return Op("max", (Const(int(varies), INT), Op("-", (hi, lo), INT)), INT)


def longest(
    body: Sequence[Stmt],
    loops: Sequence[For],
    selected: Callable[[For], bool],
    evaluable: Callable[[Expr], bool],
) -> Expr:
    """Return the longest ``evaluable`` trip count of the ``selected`` loops, or 512 if there is none."""
    lengths: list[Expr] = []

    def visit(nodes: Sequence[Stmt], around: Ranges) -> None:
        for node in nodes:
            if isinstance(node, If):
                visit((*node.body, *node.orelse), around)
            if not isinstance(node, For):
                continue
            count = trips(node, around)
            if selected(node) and evaluable(count) and count not in lengths:
                lengths.append(count)
            lo, hi = (middle(e, around) for e in (node.lo, node.hi))
            visit(node.body, {**around, node.var: (lo, hi)})

    visit(body, {f.var: (f.lo, f.hi) for f in loops})
    result: Expr = lengths[0] if lengths else Const(512, INT)
    for other in lengths[1:]:
        result = Op("max", (result, other), INT)
    return result
