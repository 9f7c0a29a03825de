"""Find the inputs in which a kernel is linear, alone or together.

    y[i, j] += x[i, k] * w[k, j]        the terms of y: {x w}         linear in x, and in w
    y[i, j] += b[j]                     {x w, b}                      linear in x and b, and in w and b
    y[i] = x[i] * x[i] + 1              {x x, 1}                      linear in nothing

Each value is a sum of *terms*, and each term is a product of inputs. It is linear in a set of inputs if each
term has exactly one of them, once. The sum of what a linear kernel makes of addends is what it makes of
their sum. Real numbers count as exact, and int64 as never wrapping.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..ir.grammar import (
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    children,
    statements,
    walk,
)
from ..passes.strip_gradient_marks import strip_gradient_marks
from ..program import Program

Term = frozenset[tuple[str, int]]
"""The inputs of a product: 1 for one that is a factor once, 2 for any other use."""
Terms = frozenset[Term]
ONE: Term = frozenset()
ZERO: Terms = frozenset()
MAX_TERMS = 64
"""A value of more terms counts as not linear in any of their inputs."""
MAX_INPUTS = 10
"""Of more inputs only single ones are tried."""


@dataclass(frozen=True)
class Linear:
    """``inputs`` in which the kernel is linear together, and the ``outputs`` that depend on them.

    An output that is not among these does not depend on the inputs.
    """

    inputs: frozenset[str]
    outputs: frozenset[str]


def find_linear(kernel: Kernel) -> list[Linear]:
    """Return the largest sets of inputs in which a typed kernel is linear."""
    kernel = strip_gradient_marks(Program(kernel)).kernel
    values = _Values(kernel)
    terms = {name: values.terms.get(name, ZERO) for name in kernel.outputs}
    factors = {name for row in terms.values() for term in row for name, count in term if count == 1}
    inputs = [
        name
        for name in kernel.parameters
        if name in factors - values.deciding and kernel.buffers[name].dtype != "bool"
    ]
    rows = [row for names in _sets(inputs) if (row := _linear_in(names, terms)) is not None]
    return [row for row in rows if not any(row.inputs < other.inputs for other in rows)]


def _sets(inputs: list[str]) -> Iterator[frozenset[str]]:
    largest = len(inputs) if len(inputs) <= MAX_INPUTS else 1
    for count in range(1, largest + 1):
        yield from map(frozenset, itertools.combinations(inputs, count))


def _linear_in(inputs: frozenset[str], terms: Mapping[str, Terms]) -> Linear | None:
    """Return the outputs that are linear in a set of inputs; None if one is neither linear nor constant."""
    outputs = []
    for name, row in terms.items():
        degrees = {sum(count for factor, count in term if factor in inputs) for term in row}
        if degrees == {1}:
            outputs.append(name)
        elif degrees - {0}:
            return None
    return Linear(inputs, frozenset(outputs)) if outputs else None


class _Values:
    """The terms of every buffer and scalar, whatever the order in which statements run.

    ``deciding`` are the inputs that decide what runs, or which element is read or written.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.terms: dict[str, Terms] = {
            name: frozenset({frozenset({(name, 1)})}) for name in kernel.parameters if name in kernel.buffers
        }
        self._joined: set[str] = set()  # of too many terms: one term of all inputs, which only grows
        nodes = list(statements(kernel.body))
        self.terms |= {node.name: ZERO for node in nodes if isinstance(node, Assign)}
        changed = True
        while changed:
            changed = False
            for node in nodes:
                if isinstance(node, (Store, Assign)):
                    changed |= self._write(node)
        self.deciding = {name for node in nodes for expr in _deciding(node) for name in self._inputs(expr)}

    def _write(self, node: Store | Assign) -> bool:
        """Add the terms that a statement writes; return whether they are new."""
        name = node.buffer if isinstance(node, Store) else node.name
        before, value = self.terms.get(name, ZERO), self._of(node.value)
        match node.op:
            case "" | "+":
                new = value
            case "*":
                new = _product(before, value)
            case _:
                new = _other_use(before | value)
        after = before | new
        if len(after) > MAX_TERMS or name in self._joined:
            self._joined.add(name)
            after = _other_use(after)
        self.terms[name] = after
        return after != before

    def _of(self, expr: Expr) -> Terms:
        match expr:
            case Const(value=value):
                return ZERO if value == 0 else frozenset({ONE})
            case Load(buffer=name) | Var(name=name):
                return self.terms.get(name, ZERO if isinstance(expr, Load) else frozenset({ONE}))
            case Op(name="+" | "-", args=(a, b)):
                return _limited(self._of(a) | self._of(b))
            case Op(name="neg", args=(a,)):
                return self._of(a)
            case Op(name="*", args=(a, b)):
                return _product(self._of(a), self._of(b))
            case Op(name="/", args=(a, b)) if _keeps_sums(a, expr):
                return _product(self._of(a), _other_use(self._of(b)))
            case Op(name="cast", args=(a,)) if _keeps_sums(a, expr):
                return self._of(a)
            case Op(name="select", args=(condition, a, b)):
                return _product(_limited(self._of(a) | self._of(b)), _other_use(self._of(condition)))
            case Op(args=args):
                return _other_use(frozenset().union(*map(self._of, args)))
        return frozenset({ONE})  # a size

    def _inputs(self, expr: Expr) -> Iterator[str]:
        return (name for term in self._of(expr) for name, _ in term)


def _deciding(node: Stmt) -> Iterator[Expr]:
    """Yield the bounds, the conditions and the indices of one statement."""
    if isinstance(node, (For, If)):
        yield from children(node)
    elif isinstance(node, Store):
        yield from node.index
    yield from (i for e in walk(node) if isinstance(e, Load) for i in e.index)


def _product(one: Terms, other: Terms) -> Terms:
    return _limited(_times(a, b) for a in one for b in other)


def _times(one: Term, other: Term) -> Term:
    counts = dict(one)
    for name, count in other:
        counts[name] = min(2, counts.get(name, 0) + count)
    return frozenset(counts.items())


def _other_use(terms: Terms) -> Terms:
    """Return the terms of a function that is not linear in what it takes."""
    return frozenset({frozenset((name, 2) for term in terms for name, _ in term)})


def _limited(terms: Iterable[Term]) -> Terms:
    result = frozenset(terms)
    return result if len(result) <= MAX_TERMS else _other_use(result)


def _keeps_sums(source: Expr, result: Expr) -> bool:
    """Whether a cast of a sum is the sum of casts: real numbers count as exact, narrow integers wrap."""
    real = [e.type.dtype.startswith(("float", "bfloat")) for e in (source, result)]
    return real[1] and (real[0] or source.type.dtype == "int64")
