"""The whole C file of a kernel: what it includes, its struct, its functions, its entry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...analysis.bounds import Bounds
from ...ir.grammar import Kernel
from ...ir.plan import Plan
from ...targets.target import Target
from ..common.ctypes import computed, identifier, memory
from ..common.entry import Entry, warnings_text
from ..common.expressions import Expressions
from ..common.writer import Writer
from .regions import PARAMETERS, Functions
from .tile import Shape

LONG = 20_000
"""Characters that a compiler takes about half a second for."""


@dataclass(frozen=True)
class CFile:
    """The C text of a kernel: what it includes, its struct, a function for each loop of threads, the rest."""

    function: str
    head: str
    struct: str
    parts: tuple[str, ...]
    rest: str

    def text(self) -> str:
        """Return it as one file."""
        return "\n".join((self.head, self.struct, *self.parts, self.rest))

    def files(self) -> list[str]:
        """Return it as one file, or as two that take about as long to compile, where that is long."""
        lengths, rest = [len(part) for part in self.parts], len(self.rest)
        if sum(lengths) + rest < LONG or (len(lengths) < 2 and rest < LONG // 4):
            return [self.text()]
        groups: tuple[list[int], list[int]] = ([], [])
        taken = [rest, 0]
        for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
            least = taken.index(min(taken))
            groups[least].append(number)
            taken[least] += lengths[number]
        names = [f"#define part{n} {self.function}_part{n}" for n in range(len(self.parts))]
        shown = [f"void part{n}({PARAMETERS});" for n in range(len(self.parts))]
        hidden = ["#pragma GCC visibility push(hidden)", *names, *shown, "#pragma GCC visibility pop\n"]
        above = "\n".join((self.head, self.struct, "\n".join(hidden)))
        own = [
            "\n".join(self.parts[n].replace(f"static void part{n}(", f"void part{n}(", 1) for n in sorted(g))
            for g in groups
        ]
        return ["\n".join((above, own[0], self.rest)), "\n".join((above, own[1]))]


def print_program(
    kernel: Kernel,
    plan: Plan,
    bounds: Bounds,
    owners: Mapping[str, tuple[str, ...]],
    *,
    target: Target,
    function: str,
    precise: bool = False,
    checked: bool = False,
) -> CFile:
    """Return the C text; ``function`` is the exported name, with the signature of a kernel."""
    expressions = Expressions(kernel, bounds, precise=precise, checked=checked)
    functions = Functions(kernel, plan, expressions, owners, Shape(*target.tile))
    run = functions.print()
    entry = Entry(kernel, bounds, expressions, function, functions.owned)
    return CFile(
        function,
        _head(kernel, plan, target, function, expressions, "\n".join((*functions.parts, run))),
        _struct(kernel, plan, functions, expressions),
        tuple(functions.parts),
        "\n".join((run, entry.print() + warnings_text(kernel, function))),
    )


def _head(
    kernel: Kernel, plan: Plan, target: Target, function: str, expressions: Expressions, body: str
) -> str:
    out = Writer()
    file = kernel.file.rsplit("/", 1)[-1]
    out.line(f"/* {function}: the loop kernel {kernel.name} of {file}, for {target.name} */")
    if target.pragmas:
        out.line("#if defined(__GNUC__) && !defined(__clang__)")
        for pragma in target.pragmas:
            out.line(f'#pragma GCC target("{pragma}")')
        out.line("#endif")
    found = re.findall(r"[iuf]\d+v([1248])|POLYOP_LANES\(([1248])\)", body)
    widths = {f"W{width}" for pair in found for width in pair if width}
    for name in sorted({name.upper() for name in expressions.used} | (widths or {"W1"})):
        out.line(f"#define POLYOP_WANT_{name}")
    out.line('#include "polyop/loops/vector.h"')
    if expressions.used:
        out.line('#include "polyop/loops/math.h"')
    if re.search(r"\bpolyop_(un)?strip_", body):
        out.line('#include "polyop/loops/strip.h"')
    if "polyop_passed(" in body:
        out.line('#include "polyop/loops/past.h"')
    out.line('#include "polyop/loops/run.h"')
    if plan.bands:
        out.line('#include "polyop/loops/bands.h"')
    return out.text()


def _struct(kernel: Kernel, plan: Plan, functions: Functions, expressions: Expressions) -> str:
    """Print what the functions of the kernel share."""
    out = Writer()
    with out.block("struct kernel"):
        out.line("struct polyop_failure failure;")
        for name, buffer in kernel.buffers.items():
            constant = "const " if buffer.role == "input" else ""
            out.line(f"{constant}{memory(buffer.dtype)}* {identifier(name)};")
        for name, buffer in kernel.buffers.items():
            for axis in range(len(buffer.shape)):
                out.line(f"int64_t {expressions.size(name, axis)};")
        for name, kind in kernel.attributes.items():
            elem = computed(kind)
            out.line(f"{'int' if elem == 'bool' else elem} {identifier(name)};")
        for name, text in functions.fields.items():
            out.line(f"{text} at_{name};")
        for name in dict.fromkeys(n for private in plan.private.values() for n, _ in private):
            out.line(f"void* own_{name};")
    out.lines[-1] += ";"
    return out.text()
