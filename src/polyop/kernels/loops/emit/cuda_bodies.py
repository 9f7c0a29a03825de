"""Statements on a GPU: by one thread, or by a group of threads that share the loops they can."""

from __future__ import annotations

from collections.abc import Sequence

from ..bounds import Bounds
from ..ir import Assign, Expr, For, If, Kernel, Load, Op, Stmt, Store, Type, statements, walk
from ..strides import depends
from .copies import Copies, plain
from .ctypes import HALVES, computed, identifier, identity, memory
from .cuda_shapes import Mapper
from .expressions import Expressions, Scope, Value
from .statements import Statements
from .writer import Writer

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
    """Expressions for nvcc: integers of the author's dtypes wrap by their functions, not by a flag."""

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
        scope = copies.all[0].scope
        lo, hi = self.expressions.scalar(node.lo, scope), self.expressions.scalar(node.hi, scope)
        var = identifier(node.var)
        with self.out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
            self.body(node.body, copies)

    def _assign(self, node: Assign, copies: Copies, copy) -> None:  # type: ignore[no-untyped-def]
        if not node.op:
            super()._assign(node, copies, copy)
            return
        name = copies.text(node.name, copy)
        value = self.expressions.value(node.value, copy.scope).text
        self.out.line(f"{name} = {_merge(node.op, node.type, name, value)};")

    def _merged(self, node: Store, target: str, text: str, dtype: str) -> str:
        if not node.op or dtype in HALVES:
            return super()._merged(node, target, text, dtype)
        return _merge(node.op, Type(dtype), target, text)

    def _store_element(self, node: Store, scope: Scope, value: Value, dtype: str) -> None:
        if node.buffer not in self.atomic or not node.op:
            super()._store_element(node, scope, value, dtype)
            return
        index = [self.expressions.scalar(i, scope) for i in node.index]
        declared, tests, names = self.expressions.checks(node, index)
        place = f"&{identifier(node.buffer)}[{self.expressions.address(node.buffer, names)}]"
        call = f"polyop_atomic<{OPERATORS[node.op]}>({place}, ({memory(dtype)})({value.text}));"
        with self.out.block(""):
            self.out.line(f"{declared}if ({tests}) {call}" if tests else call)


class Shared(Body):
    """Prints statements for a group of threads, ``lane_`` of ``width_``.

    All of them compute the scalars; the first one stores; loops that can be shared are. What is
    stored is seen by all after the next ``polyop_sync``, which stands around every statement that stores.
    """

    def __init__(self, kernel: Kernel, expressions: Expressions, out: Writer, mapper: Mapper) -> None:
        super().__init__(kernel, expressions, out)
        self.mapper = mapper
        self.single = False
        """Whether one thread prints: inside a shared loop, or a part that only the first one runs."""
        self.synced = False

    def group(self, body: Sequence[Stmt], scope: Scope) -> None:
        """Print a body from its start, where other threads may be behind."""
        self.synced = False
        before = self.live
        copies = plain(scope)
        self.declare(body, copies)
        for node in body:
            self._shared(node, copies)
        self.live = before

    def _sync(self) -> None:
        if not self.synced:
            self.out.line("polyop_sync(width_);")
        self.synced = True

    def _shared(self, node: Stmt, copies: Copies) -> None:
        stores = any(isinstance(s, Store) for s in statements((node,)))
        divides = self.mapper.shares((node,))
        if isinstance(node, For) and self.mapper.divisible(node):
            self._around(stores, lambda: self._divided(node, copies.all[0].scope))
        elif divides and isinstance(node, For):
            self._uniform_loop(node, copies.all[0].scope)
        elif divides and isinstance(node, If):
            self._uniform_if(node, copies.all[0].scope)
        elif stores:
            self._around(True, lambda: self._first(node, copies))
        else:
            self.single = True
            self._each((node,), copies)
            self.single = False
            self.synced = False

    def _around(self, stores: bool, printed) -> None:  # type: ignore[no-untyped-def]
        if stores:
            self._sync()
        printed()
        self.synced = False
        if stores:
            self._sync()

    def _first(self, node: Stmt, copies: Copies) -> None:
        """Print what the first thread does for all, and hand on the scalars that it assigns."""
        names = {s.name: s.type for s in statements((node,)) if isinstance(s, Assign) and s.name in self.live}
        self.single = True
        with self.out.block("if (lane_ == 0)"):
            self._each((node,), copies)
        self.single = False
        for name in names:
            c = copies.text(name, copies.all[0])
            self.out.line(f"{c} = polyop_broadcast({c}, width_);")

    def _uniform_loop(self, node: For, scope: Scope) -> None:
        lo, hi = self.expressions.scalar(node.lo, scope), self.expressions.scalar(node.hi, scope)
        var = identifier(node.var)
        with self.out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
            self.group(node.body, scope)
        self.synced = False

    def _uniform_if(self, node: If, scope: Scope) -> None:
        condition = self.expressions.scalar(node.condition, scope)
        self._branches(node, scope, condition)
        self.synced = False

    def _branches(self, node: If, scope: Scope, condition: str) -> None:
        for head, body in ((f"if ({condition})", node.body), ("else", node.orelse)):
            if body or head != "else":
                with self.out.block(head):
                    self.synced = False
                    for inner in body:
                        self._shared(inner, plain(scope))

    def _divided(self, node: For, scope: Scope) -> None:
        """Print a loop whose iterations are dealt out, with those that are its whole body."""
        loops = self._perfect(node)
        over = {name: op for f in loops for name, op in self._over(f)}
        types = {s.name: s.type for s in statements((node,)) if isinstance(s, Assign)}
        over = {name: op for name, op in over.items() if name in types}
        with self.out.block(""):
            inner = scope
            for name, op in over.items():
                own = f"{identifier(name)}_v0"
                self.out.line(f"{c_type(types[name])} {own} = {identity(op, computed(types[name]))};")
                inner = inner.with_names({name: own})
            with deal(self.out, self.expressions, loops, scope, "lane_", "width_"):
                self.single = True
                self.body(loops[-1].body, plain(inner))
                self.single = False
            for name, op in over.items():
                c = scope.names.get(name, identifier(name))
                which = operator_of(op, types[name])
                total = f"polyop_combine<{which}>({identifier(name)}_v0, width_)"
                self.out.line(f"{c} = {which}::of({c}, {total});")

    def _over(self, loop: For) -> tuple[tuple[str, str], ...]:
        return self.mapper.kinds[loop.var].over if loop.var in self.mapper.kinds else ()

    def _perfect(self, node: For) -> tuple[For, ...]:
        loops: tuple[For, ...] = (node,)
        while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], For):
            inner = loops[-1].body[0]
            names = frozenset(f.var for f in loops)
            if not self.mapper.divisible(inner) or depends(inner.lo, names) or depends(inner.hi, names):
                break
            if _loads(inner.lo) or _loads(inner.hi):
                break
            loops = (*loops, inner)
        return loops


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
            head = f"for (int64_t {var} = {lo} + {self.first}, {var}_end = {hi}; {var} < {var}_end; {var} += {self.step})"
            self._open(head)
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


def _loads(expr: Expr) -> bool:
    return any(isinstance(e, Load) for e in walk(expr))
