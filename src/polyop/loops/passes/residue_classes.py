"""Residue classes: a sum over iterations in which an index is a multiple of a step runs over the multiples.

    for i in range(n):                          for i in range(n):
        total = 0.0                                 y[i] = 0.0
        for p in range(3):                      for k in range(m):
            if (i - p) % 2 == 0:          ->        for p in range(3):
                if 0 <= (i - p) // 2 < m:               if 0 <= 2 * k + p < n:
                    total += x[(i - p) // 2]                y[2 * k + p] += x[k]
        y[i] = total

The iterations that the test leaves out are not run any more, and no index is divided: ``scatter_to_gather``
then makes the additions element by element. A transposed convolution is such a sum, if each element of its
output looks for what it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..analysis import affine, ranges
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Op,
    Stmt,
    Store,
    Var,
    call,
    names_of,
    perfect,
    statements,
    unused,
)
from ..ir.rewriter import Place, nested, rewrite, substitute, with_statements
from ..ir.types import NARROW
from ..ir.uses import loads_of, tensors_of, variables_of
from ..program import AnyProgram


def residue_classes(program: AnyProgram) -> AnyProgram:
    """Return the program in which sums under tests for multiples run over the multiples."""
    kernel = program.kernel
    if not any(_multiple(e) for s in statements(kernel.body) if isinstance(s, If) for e in _tests(s)):
        return program
    used_names = names_of(kernel)

    def change(node: Stmt, _: Place) -> list[Stmt] | None:
        changed = [node]
        while (found := _sum(kernel, changed[-1])) and (made := found.over_multiples(used_names)):
            changed[-1:] = made
        return changed if len(changed) > 1 or changed[0] is not node else None

    return program.with_(kernel=replace(kernel, body=with_statements(kernel.body, change)))


@dataclass(frozen=True)
class Sum:
    """Loops that add ``value`` to elements; with a ``start``, each iteration of ``outer`` has its own one."""

    outer: tuple[For, ...]
    inner: tuple[For, ...]
    tests: tuple[Expr, ...]
    target: Store
    """The store of the whole sum, or of each addition."""
    start: Expr | None
    """What the sum starts with, if it does not add to what is there."""
    value: Expr
    element: str
    """The loop of ``outer`` that a test for multiples is about, ``(element + rest) % step == 0``."""
    dividend: Expr
    step: int

    def over_multiples(self, used_names: set[str]) -> list[Stmt] | None:
        """Return the loops over multiples, behind those that start the sums; None without a range."""
        loops = {loop.var: (loop.lo, loop.hi) for loop in (*self.outer, *self.inner)}
        low, high = (ranges.extreme(self.dividend, loops, up=up) for up in (False, True))
        if low is None or high is None or variables_of(low, high) & loops.keys():
            return None
        step, here = Const(self.step, INT), Var(unused(f"{self.element}_class", used_names), INT)
        old = Var(self.element, INT)
        place = affine.simplified(step * here - (self.dividend - old))
        values = _Division(self.dividend, self.step, here)
        added = [
            rewrite(test, values) for test in self.tests if _multiple(test) != (self.dividend, self.step)
        ]
        tests = [_simple(substitute(test, {self.element: place})) for test in added]
        lows, highs = [call("ceil_div", affine.simplified(low), step)], [affine.simplified(high) // step + 1]
        for test in list(tests):
            bound = _bound(test, here.name)
            if bound is not None:
                (lows if bound[0] else highs).append(bound[1])
                tests.remove(test)
        of_element = next(loop for loop in self.outer if loop.var == self.element)
        tests = [place >= of_element.lo, place < of_element.hi, *tests]  # before what reads there
        value = substitute(rewrite(self.value, values), {self.element: place})
        index = tuple(substitute(i, {self.element: place}) for i in self.target.index)
        node: Stmt = replace(self.target, index=index, value=value, op="+")
        node = If(affine.conjunction(tests), (node,), (), node.line)
        lo, hi = affine.extreme("max", lows), affine.extreme("min", highs)
        multiples = replace(of_element, var=here.name, lo=lo, hi=hi)
        heads = [multiples if loop is of_element else loop for loop in (*self.outer, *self.inner)]
        return [*self._starts(used_names), nested(heads, node)]

    def _starts(self, used_names: set[str]) -> list[Stmt]:
        """Return the loops that start the sums, if they do not add to what is there."""
        if self.start is None:
            return []
        renamed = {loop.var: Var(unused(loop.var, used_names), INT) for loop in self.outer}
        node: Stmt = substitute(replace(self.target, value=self.start), renamed)
        for loop in reversed(self.outer):
            lo, hi = substitute(loop.lo, renamed), substitute(loop.hi, renamed)
            node = replace(loop, var=renamed[loop.var].name, lo=lo, hi=hi, body=(node,))
        return [node]


class _Division:
    """Replaces the quotient of a dividend by a variable, however the dividend is written."""

    def __init__(self, dividend: Expr, step: int, quotient: Var) -> None:
        self.form, self.step, self.quotient = affine.linear(dividend), step, quotient

    def __call__(self, expr: Expr) -> Expr:
        match expr:
            case Op(name="//", args=(a, Const(value=self.step))) if affine.linear(a) == self.form:
                return self.quotient
        return expr


def _sum(kernel: Kernel, node: Stmt) -> Sum | None:
    """Return the sum that a nest is, if a test for multiples is about one of its elements."""
    if not isinstance(node, For):
        return None
    found = _scalar_sum(kernel, perfect(node)) or _additions(node)
    return _checked(found) if found is not None else None


def _scalar_sum(kernel: Kernel, outer: list[For]) -> Sum | None:
    """Return the sum of a nest whose body starts a scalar, adds to it in loops, and stores it."""
    match outer[-1].body:
        case (Assign(op="", name=name) as first, For() as nest, Store(op="") as target):
            inner, tests, leaf = _chain(nest)
            if not isinstance(leaf, Assign) or leaf.op != "+" or name in variables_of(leaf.value):
                return None
            if leaf.name != name or target.value != Var(name, first.type):
                return None
            dtype = kernel.buffers[target.buffer].dtype
            if dtype != first.type.dtype or dtype in NARROW or _uses(kernel, name) > len(outer[-1].body):
                return None  # memory of a narrow dtype would round each addition
            loops = tuple(outer), tuple(inner)
            return Sum(*loops, tuple(tests), target, first.value, leaf.value, "", Const(0, INT), 0)
    return None


def _uses(kernel: Kernel, name: str) -> int:
    """Return how many statements assign a scalar or read it."""
    every = statements(kernel.body)
    return sum(name in variables_of(s) or (isinstance(s, Assign) and s.name == name) for s in every)


def _additions(node: For) -> Sum | None:
    """Return the sum of a nest around one addition to a tensor."""
    loops, tests, target = _chain(node)
    if isinstance(target, Store) and target.op == "+":
        return Sum(tuple(loops), (), tuple(tests), target, None, target.value, "", Const(0, INT), 0)
    return None


def _checked(found: Sum) -> Sum | None:
    """Return the sum with its test for multiples, if its additions may run in another order."""
    loops = (*found.outer, *found.inner)
    variables = dict.fromkeys(loop.var for loop in loops)
    bounds = [e for loop in loops for e in (loop.lo, loop.hi)]
    if variables_of(*bounds) & variables.keys() or loads_of(*bounds) or any(loop.hint for loop in loops):
        return None
    read = tensors_of(found.value, *found.target.index, *found.tests, *([found.start] if found.start else []))
    own = {i.name for i in found.target.index if isinstance(i, Var)}
    if found.target.buffer in read:
        return None
    if found.start is not None and not {loop.var for loop in found.outer} <= own:
        return None
    for test in found.tests:
        multiple = _multiple(test)
        form = affine.linear(multiple[0]) if multiple is not None else None
        element = next((n for n in variables if n in own and form is not None and form.get(n) == 1), None)
        if multiple is not None and element is not None:
            return replace(found, element=element, dividend=multiple[0], step=multiple[1])
    return None


def _chain(node: Stmt) -> tuple[list[For], list[Expr], Stmt]:
    """Return the loops and the tests around the only statement of a nest, and what is in them."""
    loops, tests = list[For](), list[Expr]()
    while True:
        if isinstance(node, For):
            loops.append(node)
        elif isinstance(node, If) and not node.orelse:
            tests += _tests(node)
        else:
            return loops, tests, node
        if len(node.body) != 1:
            return loops, tests, node
        node = node.body[0]


def _tests(node: If) -> Sequence[Expr]:
    """Return what must hold, all of it, for a condition to hold."""
    return affine.operands("and", node.condition)


def _multiple(test: Expr) -> tuple[Expr, int] | None:
    """Return (dividend, step) of a test ``dividend % step == 0``."""
    match test:
        case Op(name="==", args=(Op(name="%", args=(dividend, Const(value=int(step)))), Const(value=0))):
            return (dividend, step) if step > 1 and affine.linear(dividend) is not None else None
    return None


def _simple(test: Expr) -> Expr:
    """Return a comparison of a linear form with zero, without a common factor."""
    found = affine.nonnegative(test)
    if found is None:
        return test
    form, leaves = found
    factors = {abs(c) for n, c in form.items() if n and c}
    if len(factors) == 1 and form.get("", 0) % (factor := factors.pop()) == 0:
        form = {n: c // factor for n, c in form.items()}
    return affine.from_linear(form, leaves) >= 0


def _bound(test: Expr, var: str) -> tuple[bool, Expr] | None:
    """Return (whether it is a lower bound, the bound) of a variable, if a test tells one from sizes."""
    found = affine.nonnegative(test)
    if found is None:
        return None
    form, leaves = found
    factor = form.pop(var, 0)
    others = [leaf for name, leaf in leaves.items() if name in form and form[name] and isinstance(leaf, Var)]
    if abs(factor) != 1 or others:
        return None
    rest: Mapping[str, int] = {n: -factor * c for n, c in form.items()}
    bound = affine.from_linear(dict(rest), leaves)
    return factor == 1, affine.simplified(bound if factor == 1 else bound + 1)
