"""The whole C file of a kernel: includes, struct, functions, entry; and an entry that chooses among files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...analysis.bounds import Bounds
from ...ir.grammar import Kernel
from ...ir.plan import Plan
from ...targets.table import TARGETS, Target
from ..common.c_text import computed, identifier, memory
from ..common.entry import Entry, warnings_text
from ..common.expressions import Expressions
from ..common.writer import Writer
from .panels import Shape
from .regions import PARAMETERS, Functions
from .shares import BLOCKS

_SIGNATURE = "int {}(int n, void** p, int* d, int64_t** s, const char** t, void* stream, void* extra)"
HEADERS = (
    "vector.h",
    "fused.h",
    "math.h",
    "philox.h",
    "transpose.h",
    "dot.h",
    "streaming_store.h",
    "run.h",
    "bands.h",
)
"""Of include/polyop/loops, in the order in which they are included."""
PART_SIZE = 20_000
"""A text of fewer characters is one file: a compiler takes about half a second for so many."""


@dataclass(frozen=True)
class CFile:
    """The C text of a kernel: what it includes, its struct, a function for each loop of threads, the rest.

    The functions are printed without ``static``: where the text becomes two files, they are global.
    """

    function: str
    head: str
    struct: str
    parts: tuple[str, ...]
    rest: str

    def text(self) -> str:
        """Return it as one file."""
        return "\n".join((self.head, self.struct, *(f"static {part}" for part in self.parts), self.rest))

    def files(self) -> list[str]:
        """Return it as one file, or as two that take about as long to compile, where that is long."""
        lengths, rest = [len(part) for part in self.parts], len(self.rest)
        if sum(lengths) + rest < PART_SIZE or (len(lengths) < 2 and rest < PART_SIZE // 4):
            return [self.text()]
        groups: tuple[list[int], list[int]] = ([], [])
        totals = [rest, 0]
        for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
            shorter = totals.index(min(totals))
            groups[shorter].append(number)
            totals[shorter] += lengths[number]
        names = [f"#define part{n} {self.function}_part{n}" for n in range(len(self.parts))]
        shown = [f"void part{n}({PARAMETERS});" for n in range(len(self.parts))]
        hidden = ["#pragma GCC visibility push(hidden)", *names, *shown, "#pragma GCC visibility pop\n"]
        above = "\n".join((self.head, self.struct, "\n".join(hidden)))
        own = ["\n".join(self.parts[n] for n in sorted(group)) for group in groups]
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
    unfused: bool = False,
) -> CFile:
    """Return the C text; ``function`` is the exported name, with the signature of a kernel.

    ``unfused``: the compiler is told to fuse nothing.
    """
    expressions = Expressions(kernel, bounds, precise=precise, checked=checked)
    expressions.unfused = unfused
    functions = Functions(kernel, plan, expressions, owners, Shape(*target.tile))
    run = functions.print()
    entry = Entry(kernel, bounds, expressions, function, functions.owned)
    return CFile(
        function,
        _head(kernel, target, function, expressions),
        _struct(kernel, plan, functions, expressions),
        tuple(functions.parts),
        "\n".join((run, entry.print() + warnings_text(kernel, function))),
    )


def _head(kernel: Kernel, target: Target, function: str, expressions: Expressions) -> str:
    """Print what the file includes, from what its text uses."""
    out = Writer()
    file = kernel.file.rsplit("/", 1)[-1]
    out.line(f"/* {function}: the loop kernel {kernel.name} of {file}, for {target.name} */")
    if target.pragmas:
        out.line("#if defined(__GNUC__) && !defined(__clang__)")
        for pragma in target.pragmas:
            out.line(f'#pragma GCC target("{pragma}")')
        out.line("#endif")
    if expressions.unfused:
        out.line("#define POLYOP_UNFUSED 1")
    used = expressions.used
    widths = {f"W{width}" for width in used.widths or {1}}
    for name in sorted({name.upper() for name in used.functions} | widths):
        out.line(f"#define POLYOP_WANT_{name}")
    headers = {"vector.h", "run.h", *used.headers, *(["math.h"] if used.functions else [])}
    for header in HEADERS:
        if header in headers:
            out.line(f'#include "polyop/loops/{header}"')
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
        if plan.blocks:
            out.line(f"int64_t {BLOCKS};")
        for name in dict.fromkeys(n for private in plan.private.values() for n, _ in private):
            out.line(f"void* own_{name};")
    out.lines[-1] += ";"
    return out.text()


def choosing(function: str, names: Sequence[str]) -> str:
    """Return the C of a function that calls the best of ``function__<name>`` that the processor has.

    >>> print(choosing("f", ["avx2", "baseline"]).splitlines()[1])
    int f__avx2(int n, void** p, int* d, int64_t** s, const char** t, void* stream, void* extra);
    """
    lines = ["#include <stdint.h>"]
    lines += [_SIGNATURE.format(f"{function}__{name}") + ";" for name in names]
    lines.append(_SIGNATURE.format(function) + " {")
    for name in names[:-1]:
        test = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in TARGETS[name].supports)
        lines.append(f"  if ({test}) return {function}__{name}(n, p, d, s, t, stream, extra);")
    lines += [f"  return {function}__{names[-1]}(n, p, d, s, t, stream, extra);", "}", ""]
    return "\n".join(lines)
