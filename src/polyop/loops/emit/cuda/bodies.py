"""Statements and expressions of one GPU thread, and loops whose iterations are distributed over threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ...analysis.bounds import Bounds
from ...ir.grammar import Assign, For, Kernel, Op, Store, Type
from ...ir.stops import stop_flags
from ..common.copies import Copies, Copy
from ..common.ctypes import NARROW, computed, identifier, memory
from ..common.ends import end_of
from ..common.expressions import Expressions, Scope
from ..common.statements import Statements
from ..common.values import Value
from ..common.writer import Writer

OPERATORS = {"+": "polyop_plus", "*": "polyop_times", "max": "polyop_greatest", "min": "polyop_least"}
_TRUTHS = {"+": "polyop_greatest", "max": "polyop_greatest", "*": "polyop_least", "min": "polyop_least"}
_WRAPS = {"+": "wrap_add", "-": "wrap_sub", "*": "wrap_mul", "neg": "wrap_neg"}


def c_type(kind: Type) -> str:
    """Return the C type of a scalar.

    >>> c_type(Type("bool")), c_type(Type("float16"))
    ('int', 'f32')
    """
    elem = computed(kind)
    return "int" if elem == "bool" else elem


def operator_of(op: str, kind: Type) -> str:
    """Return the struct of device_group.h that combines values of a type."""
    return (_TRUTHS if kind.dtype == "bool" else OPERATORS)[op]


class CudaExpressions(Expressions):
    """Expressions for nvcc, which has no -fwrapv: operators of signed integers are functions that wrap."""

    def __init__(self, kernel: Kernel, bounds: Bounds, *, checked: bool = False) -> None:
        super().__init__(kernel, bounds, checked=checked)

    def _operator(self, expr: Op, scope: Scope) -> Value:
        elem = computed(expr.type)
        if expr.name not in _WRAPS or expr.type.weak or elem[0] != "i":
            return super()._operator(expr, scope)
        args = [self.value(a, scope) for a in expr.args]
        if any(a.truth for a in args):
            return super()._operator(expr, scope)
        return Value(f"{_WRAPS[expr.name]}_{elem}({', '.join(a.text for a in args)})", elem)


class Body(Statements):
    """Prints statements for one thread. ``atomic``: buffers that several threads reduce into at once."""

    def __init__(self, kernel: Kernel, expressions: Expressions, out: Writer) -> None:
        super().__init__(kernel, expressions, out)
        self.atomic: frozenset[str] = frozenset()
        self.loop = self.plain_loop

    def plain_loop(self, node: For, copies: Copies) -> None:
        """Print a loop of one thread."""
        scope = copies.items[0].scope
        with self.iterations(node, scope):
            self.body(node.body, copies)

    @contextlib.contextmanager
    def iterations(self, node: For, scope: Scope) -> Iterator[None]:
        """Context that prints a loop around its text, and the flags that end it."""
        lo, hi = self.expressions.scalar(node.lo, scope), end_of(node, self.expressions, scope)
        var = identifier(node.var)
        with self.out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
            for flag in stop_flags(node):
                self.out.line(f"if ({self.expressions.scalar(flag, scope)}) break;")
            yield

    def _assign(self, node: Assign, copies: Copies, copy: Copy) -> None:
        if not node.op:
            super()._assign(node, copies, copy)
            return
        name = copies.text(node.name, copy)
        value = self.expressions.value(node.value, copy.scope).text
        self.out.line(f"{name} = {_merge(node.op, node.type, name, value)};")

    def _merged(self, node: Store, target: str, text: str, dtype: str) -> str:
        if not node.op or dtype in NARROW:
            return super()._merged(node, target, text, dtype)
        return _merge(node.op, Type(dtype), target, text)

    def _store_element(self, node: Store, scope: Scope, value: Value, dtype: str) -> None:
        if node.buffer not in self.atomic or not node.op:
            super()._store_element(node, scope, value, dtype)
            return
        index = [self.expressions.scalar(i, scope) for i in node.index]
        declared, tests, names = self.expressions.checks(node, index)
        place = f"&{self.expressions.tensor(node.buffer)}[{self.expressions.address(node.buffer, names)}]"
        call = f"polyop_atomic<{OPERATORS[node.op]}>({place}, ({memory(dtype)})({value.text}));"
        with self.out.block(""):
            self.out.line(f"{declared}if ({tests}) {call}" if tests else call)


class deal:  # noqa: N801 - used as a statement
    """Write the head of a loop over all iterations of ``loops``, every ``step``-th from ``first``."""

    def __init__(
        self, out: Writer, expressions: Expressions, loops: Sequence[For], scope: Scope, first: str, step: str
    ) -> None:
        self.out, self.expressions, self.loops, self.scope = out, expressions, loops, scope
        self.first, self.step = first, step

    def __enter__(self) -> None:
        """Open the loop, its variables declared."""
        if len(self.loops) == 1:
            (node,) = self.loops
            var = identifier(node.var)
            lo, hi = (self.expressions.scalar(e, self.scope) for e in (node.lo, node.hi))
            start = f"int64_t {var} = {lo} + {self.first}, {var}_end = {hi}"
            self._open(f"for ({start}; {var} < {var}_end; {var} += {self.step})")
            return
        total = spans(self.out, self.expressions, self.loops, self.scope)
        place = f"{identifier(self.loops[-1].var)}_n0"
        self._open(f"for (int64_t {place} = {self.first}; {place} < {total}; {place} += {self.step})")
        split(self.out, self.loops, place)

    def __exit__(self, *problem: object) -> None:
        """Close it."""
        self.out.depth -= 1
        self.out.line("}")

    def _open(self, head: str) -> None:
        self.out.line(head + " {")
        self.out.depth += 1


def spans(out: Writer, expressions: Expressions, loops: Sequence[For], scope: Scope) -> str:
    """Declare the ranges of loops as ``v_lo`` and ``v_n``; return the product of their lengths, in C."""
    for node in loops:
        var = identifier(node.var)
        lo, hi = (expressions.scalar(e, scope) for e in (node.lo, node.hi))
        out.line(f"const int64_t {var}_lo = {lo}, {var}_n1 = max_i64(0, {hi} - {var}_lo);")
    return " * ".join(f"{identifier(f.var)}_n1" for f in loops) or "1"


def split(out: Writer, loops: Sequence[For], place: str) -> None:
    """Declare the variables of loops from the number of an iteration of all of them."""
    if not loops:
        return
    rest = f"{identifier(loops[0].var)}_r0"
    out.line(f"int64_t {rest} = {place};")
    for node in reversed(loops[1:]):
        var = identifier(node.var)
        out.line(f"const int64_t {var} = {var}_lo + polyop_split(&{rest}, {var}_n1);")
    var = identifier(loops[0].var)
    out.line(f"const int64_t {var} = {var}_lo + {rest};")


def _merge(op: str, kind: Type, a: str, b: str) -> str:
    if kind.dtype == "bool":
        return f"({a} {'|' if op in ('+', 'max') else '&'} {b})"
    elem = computed(kind)
    return (
        f"{OPERATORS[op]}::of<{elem}>({a}, {b})"
        if elem[0] != "f" or op in ("max", "min")
        else f"{a} {op} {b}"
    )
