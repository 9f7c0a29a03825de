"""Replace complex numbers by pairs of real ones, so that nothing behind the front end meets a complex number.

    y[i] += x[i] * w          y[i, 0] += x[i, 0] * w_re - x[i, 1] * w_im
                              y[i, 1] += x[i, 0] * w_im + x[i, 1] * w_re

A complex tensor has its numbers as pairs in memory: it is a real tensor with a last dimension of size 2. The
gradient by such a pair is the pair (dL/dre, dL/dim), which PyTorch calls the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...core.errors import UnsupportedError
from ..ir.complex_numbers import part_of
from ..ir.grammar import (
    INT,
    PARTS,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.uses import loads_of, tensors_of
from .complex_functions import FUNCTIONS, Pair, chosen, op, product, quotient

RE, IM = Const(0, INT), Const(1, INT)
LAZY_POWER = 8
"""The largest power where products cannot be kept in variables: each doubles the size of the code."""


def as_pairs(kernel: Kernel) -> Kernel:
    """Return the kernel without complex numbers; a complex parameter or output is marked as ``pairs``."""
    found = any(b.dtype in PARTS for b in kernel.buffers.values()) or any(
        e.type.dtype in PARTS for s in statements(kernel.body) for e in walk(s)
    )
    if not found:
        return kernel
    buffers = {name: _pairs(buffer) for name, buffer in kernel.buffers.items()}
    return replace(kernel, buffers=buffers, body=_Lowering(kernel).block(kernel.body))


def _pairs(buffer: Buffer) -> Buffer:
    if buffer.dtype not in PARTS:
        return buffer
    shape = (*buffer.shape, Const(2, INT))
    return replace(buffer, dtype=PARTS[buffer.dtype], shape=shape, pairs=buffer.role != "local")


class _Lowering:
    """Rewrites the statements of one kernel; ``before`` are those that the current one needs first."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.taken = kernel, names_of(kernel)
        self.names: dict[str, tuple[str, str]] = {}
        self.before: list[Stmt] = []
        self.line = 0
        self.is_lazy = False
        """Whether what is evaluated is not always computed: then nothing is computed before it."""

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return the statements of a body."""
        return tuple(stmt for node in body for stmt in self.statement(node))

    def statement(self, node: Stmt) -> list[Stmt]:
        """Return the statements for one."""
        outside, self.before, self.line = self.before, [], node.line
        made = self._statement(node)
        before, self.before = self.before, outside
        return [*before, *made]

    def _statement(self, node: Stmt) -> list[Stmt]:
        match node:
            case For():
                lo, hi = self.real(node.lo), self.real(node.hi)
                return [replace(node, lo=lo, hi=hi, body=self.block(node.body))]
            case If():
                condition = self.real(node.condition)
                return [
                    replace(
                        node,
                        condition=condition,
                        body=self.block(node.body),
                        orelse=self.block(node.orelse),
                    )
                ]
            case Store():
                index = tuple(map(self.real, node.index))
                if node.value.type.dtype not in PARTS:
                    return [replace(node, index=index, value=self.real(node.value))]
                index = tuple(self.bound(i) if _reads(i, node.buffer) else i for i in index)
                part = part_of(node.value.type)
                target = Pair(*(Load(node.buffer, (*index, k), part, node.line) for k in (RE, IM)))
                op_, value = self._updated(node.op, target, node.value)
                return [
                    Store(node.buffer, (*index, k), one, op_, node.line)
                    for k, one in zip((RE, IM), value, strict=True)
                ]
            case Assign() if node.value.type.dtype in PARTS:
                names, part = self._names(node.name), part_of(node.value.type)
                op_, value = self._updated(node.op, Pair(*(Var(name, part) for name in names)), node.value)
                return [Assign(name, one, op_, node.line) for name, one in zip(names, value, strict=True)]
            case Assign():
                return [replace(node, value=self.real(node.value))]

    def _updated(self, operator: str, target: Pair, new: Expr) -> tuple[str, Pair]:
        """Return the reduction and the pair to store: the second part must not read the first one's store."""
        value = self.pair(new)
        if operator == "*":
            operator, value = "", product(target, value, self.shared)
        reads = {
            (e.buffer if isinstance(e, Load) else e.name)
            for e in walk(value.im)
            if isinstance(e, (Load, Var))
        }
        if (target.re.buffer if isinstance(target.re, Load) else target.re.name) in reads:  # type: ignore[union-attr]
            value = Pair(value.re, self.bound(value.im))
        return operator, value

    def _names(self, name: str) -> tuple[str, str]:
        if name not in self.names:
            self.names[name] = (unused(f"{name}_re", self.taken), unused(f"{name}_im", self.taken))
        return self.names[name]

    def bound(self, value: Expr) -> Expr:
        """Return a variable that has the value, assigned before the current statement."""
        name = unused("part", self.taken)
        self.before.append(Assign(name, value, line=self.line))
        return Var(name, value.type)

    def shared(self, value: Expr) -> Expr:
        """Return a value that is read several times: a variable for one that takes computing.

        Where it is not always computed, only if it reads no tensor: an index may be outside then.
        """
        is_free = not self.is_lazy or not bool(loads_of(value))
        return self.bound(value) if isinstance(value, Op) and is_free else value

    def pair(self, node: Expr) -> Pair:
        """Return the two parts of a complex number."""
        part = part_of(node.type)
        match node:
            case Const(value=value):
                return Pair(*(Const(float(one), part) for one in (complex(value).real, complex(value).imag)))
            case Var(name=name):
                return Pair(*(Var(one, part) for one in self._names(name)))
            case Load():
                index = tuple(map(self.real, node.index))
                return Pair(*(Load(node.buffer, (*index, k), part, node.line) for k in (RE, IM)))
            case Op(name="cast", args=(inner,)) if inner.type.dtype not in PARTS:
                return Pair(_cast(self.real(inner), part), Const(0.0, part))
            case Op(name="cast", args=(inner,)):
                return Pair(*(_cast(one, part) for one in self.pair(inner)))
            case Op(name="complex", args=args):
                return Pair(*map(self.real, args))
            case Op(name="select", args=(condition, then, otherwise)):
                return self._select(self.real(condition), then, otherwise)
            case Op(name="pow", args=(base, Const(value=exponent))):
                return self._power(self.pair(base), int(exponent), part)
            case Op(name="*" | "/" as name, args=args):
                left, right = map(self.pair, args)
                return (product if name == "*" else quotient)(left, right, self.shared)
            case Op(name=name, args=args):
                return FUNCTIONS[name](*map(self.pair, args), self.shared)
        raise TypeError(type(node).__name__)

    def _power(self, base: Pair, exponent: int, part: Type) -> Pair:
        if self.is_lazy and abs(exponent) > LAZY_POWER:
            rule = f"a complex power after 'and', 'or' or 'if' in an expression is at most {LAZY_POWER}"
            where = self.kernel.where(self.line)
            hint = "assign the power to a name in a line of its own"
            raise UnsupportedError(
                f"loop kernel {self.kernel.name}", rule, str(exponent), where=where, hint=hint
            )
        one = Pair(Const(1.0, part), Const(0.0, part))
        base = Pair(*map(self.shared, base))
        result, left = one, abs(exponent)
        while left:
            if left % 2:
                result = (
                    base if result is one else Pair(*map(self.shared, product(result, base, self.shared)))
                )
            left //= 2
            base = Pair(*map(self.shared, product(base, base, self.shared))) if left else base
        return quotient(one, result, self.shared) if exponent < 0 else result

    def _select(self, condition: Expr, then: Expr, otherwise: Expr) -> Pair:
        """Return one of two numbers; where they need statements of their own, an ``if`` has these."""
        first, one = self._apart(then)
        second, other = self._apart(otherwise)
        if not first and not second:
            condition = self.shared(condition)
            return Pair(*(chosen(condition, a, b) for a, b in zip(one, other, strict=True)))
        names = [unused(f"chosen_{part}", self.taken) for part in ("re", "im")]
        bodies = [
            (*before, *(Assign(n, v, line=self.line) for n, v in zip(names, value, strict=True)))
            for before, value in ((first, one), (second, other))
        ]
        self.before.append(If(condition, bodies[0], bodies[1], self.line))
        return Pair(*(Var(name, one.re.type) for name in names))

    def _apart(self, node: Expr) -> tuple[list[Stmt], Pair]:
        outside, self.before = self.before, []
        value = self.pair(node)
        before, self.before = self.before, outside
        return before, value

    def real(self, node: Expr) -> Expr:
        """Return an expression of a real type, with no complex number inside."""
        match node:
            case Load(index=index):
                return replace(node, index=tuple(map(self.real, index)))
            case Op(name="and" | "or" | "select", args=(first, *others)):
                return replace(node, args=(self.real(first), *(self._lazy(self.real, one) for one in others)))
            case Op(args=args) if any(a.type.dtype in PARTS for a in args):
                return FUNCTIONS[node.name](*map(self.pair, args), self.shared).re
            case Op(args=args):
                return replace(node, args=tuple(map(self.real, args)))
        return node

    def _lazy(self, lower: Callable[[Expr], Expr], node: Expr) -> Expr:
        outside, self.is_lazy = self.is_lazy, True
        value = lower(node)
        self.is_lazy = outside
        return value


def _reads(expr: Expr, buffer: str) -> bool:
    return buffer in tensors_of(expr)


def _cast(value: Expr, to: Type) -> Expr:
    if isinstance(value, Const):
        return Const(float(value.value), to)
    return value if value.type == to else op("cast", value, to=to)
