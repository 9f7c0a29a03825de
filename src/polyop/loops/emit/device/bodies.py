"""Statements and expressions of one GPU thread, and loops whose iterations are distributed over threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ...analysis.bounds import Bounds
from ...ir.failing import rule_of
from ...ir.grammar import Assign, For, Kernel, Load, Op, Store, Type
from ...ir.stops import stop_flags
from ..common.c_text import NARROW, Value, computed, identifier, memory
from ..common.copies import Copies, Copy
from ..common.expressions import Expressions, Scope
from ..common.statements import Statements, end_of
from ..common.writer import Writer
from .dialect import Dialect

_TRUTHS = {"+": "max", "max": "max", "*": "min", "min": "min"}
SCRATCH = "shared_"
"""The memory through which a group combines values, in languages that declare it in the kernel."""
_WRAPS = {"+": "wrap_add", "-": "wrap_sub", "*": "wrap_mul", "neg": "wrap_neg"}


def c_type(kind: Type) -> str:
    """Return the C type of a scalar.

    >>> c_type(Type("bool")), c_type(Type("float16"))
    ('int', 'f32')
    """
    elem = computed(kind)
    return "int" if elem == "bool" else elem


class DeviceExpressions(Expressions):
    """Expressions for compilers without -fwrapv: operators of signed integers are functions that wrap.

    Nothing in them is a statement, which only some of the compilers take in an expression.
    """

    def __init__(self, kernel: Kernel, bounds: Bounds, dialect: Dialect, *, checked: bool = False) -> None:
        super().__init__(kernel, bounds, checked=checked)
        self.dialect = dialect
        self.pointers: dict[str, None] = {}
        """The pointers of the host that the kernel uses which is being printed."""

    def pointer(self, name: str) -> str:
        """Return the text of a pointer that the host gives the kernel."""
        self.pointers[name] = None
        return self.dialect.pointer(name)

    def combined(self, op: str, kind: Type, value: str, width: str) -> str:
        """Return the value that the threads of a group combine."""
        op = _TRUTHS[op] if kind.dtype == "bool" else op
        return self.dialect.combine(op, _element(kind), value, self._in_group(width))

    def broadcast(self, kind: Type, value: str, width: str) -> str:
        """Return the value of the group's first thread."""
        return self.dialect.broadcast(_element(kind), value, self._in_group(width))

    def _in_group(self, width: str) -> str:
        self.used.names.add(SCRATCH)
        return width

    def checks(self, node: Load | Store, index: list[str], scope: Scope) -> tuple[str, str, tuple[str, ...]]:
        """Return no declarations, the condition that all checked indices are inside, and the indices."""
        del scope
        tests, names = [], list(index)
        for axis in sorted(self.axes(node)):
            rule = rule_of(node.index[axis])
            self.places.append((node.line, rule, -1) if rule else (node.line, node.buffer, axis))
            size = self.size(node.buffer, axis)
            tests.append(
                f"polyop_inside({self.pointer('failure')}, {index[axis]}, {size}, {len(self.places)})"
            )
            names[axis] = f"polyop_from_end({index[axis]}, {size})"
        return "", " && ".join(tests), tuple(names)

    def _element(self, node: Load, scope: Scope) -> str:
        index = [self.scalar(i, scope) for i in node.index]
        _, tests, names = self.checks(node, index, scope)
        element = f"{self.tensor(node.buffer)}[{self.address(node.buffer, names)}]"
        return f"({tests} ? {element} : 0)" if tests else element

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

    def __init__(self, kernel: Kernel, expressions: DeviceExpressions, out: Writer) -> None:
        super().__init__(kernel, expressions, out)
        self.device, self.dialect = expressions, expressions.dialect
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
        self.out.line(f"{name} = {merged(node.op, node.type, name, value)};")

    def _merged(self, node: Store, target: str, text: str, dtype: str) -> str:
        if not node.op or dtype in NARROW:
            return super()._merged(node, target, text, dtype)
        return merged(node.op, Type(dtype), target, text)

    def _store_element(self, node: Store, scope: Scope, value: Value, dtype: str) -> None:
        if node.buffer not in self.atomic or not node.op:
            super()._store_element(node, scope, value, dtype)
            return
        index = [self.expressions.scalar(i, scope) for i in node.index]
        _, tests, names = self.expressions.checks(node, index, scope)
        place = f"&{self.expressions.tensor(node.buffer)}[{self.expressions.address(node.buffer, names)}]"
        elem = memory(dtype)
        call = self.dialect.atomic(node.op, elem, place, f"({elem})({value.text})")
        self.out.line(f"if ({tests}) {call}" if tests else call)


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


def merged(op: str, kind: Type, a: str, b: str) -> str:
    """Return ``a op b`` of a reduction in C. Integers wrap.

    >>> merged("+", Type("int32"), "a", "b"), merged("+", Type("bool"), "a", "b")
    ('wrap_add_i32(a, b)', '(a | b)')
    """
    elem = computed(kind)
    if elem == "bool":
        return f"({a} {'|' if op in ('+', 'max') else '&'} {b})"
    if op in ("max", "min"):
        return f"{op}_{elem}({a}, {b})"
    return f"{a} {op} {b}" if elem[0] == "f" else f"{_WRAPS[op]}_{elem}({a}, {b})"


def _element(kind: Type) -> str:
    """Return the element type that a scalar has in functions of the headers."""
    return "i32" if kind.dtype == "bool" else computed(kind)
