"""Turn additions into shifted elements into loops over the elements.

Backwards through a stencil each iteration adds to its neighbours. Here each element collects its own
adjoint instead: the statement that adds to ``d_x[i + 1]`` runs in iteration ``e`` for ``i = e - 1``,
so that all additions to one element are made in one iteration, which owns it. Where a sum runs along the
shift (a convolution) the element's loop goes first and the sum keeps its range: ``max(0, e - n + 1) <= k``.

Hückelheim et al., Automatic differentiation of stencil loops with threading, arXiv 1907.02818 (2019).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..analysis import affine
from ..analysis.polyhedra import Model
from ..analysis.session import IslSession
from ..analysis.strides import depends
from ..ir.derivatives import number
from ..ir.grammar import (
    BOOL,
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    perfect,
)
from ..ir.operate import operate
from ..ir.rewriter import Place, rewrite, substitute, with_statements
from ..ir.uses import loads_of, tensors_of, variables_of
from .derivation import Derivation
from .loop_fission import are_shifted
from .names import Names
from .pad import Padded, factor, padded, sizes_of


@dataclass(frozen=True)
class Addition:
    """``target[index] += value`` where ``guard`` holds."""

    store: Store
    guard: Expr | None


def scatter_to_gather(derivation: Derivation) -> Derivation:
    """Return the derivation in which loops over an adjoint's elements make the additions to it.

    A nest stays as it is if its additions are not shifted ones.
    """
    kernel = derivation.kernel
    gatherer = _Gatherer(kernel, derivation.session, frozenset(derivation.adjoints_left()))
    body = with_statements(kernel.body, gatherer.change)
    return derivation.with_(kernel=replace(kernel, body=body, buffers={**kernel.buffers, **gatherer.buffers}))


# a nest by element


class _Gatherer:
    """Rewrites a kernel's body; ``buffers`` are the new ones, and ``sums`` the adjoints."""

    def __init__(self, kernel: Kernel, session: IslSession, sums: frozenset[str]) -> None:
        self.kernel, self.sums = kernel, sums
        self.names = Names(kernel)
        self.buffers: dict[str, Buffer] = {}
        leaves = Model(kernel, session).leaves
        self.inside = {id(x.node) for x in leaves if all(None not in a.index for a in x.accesses if a.write)}
        """The stores that never count from the end of an axis."""

    def change(self, node: Stmt, _place: Place) -> list[Stmt] | None:
        return self._by_element(node) if isinstance(node, For) else None

    def _by_element(self, nest: For) -> list[Stmt] | None:
        """Return the loops over elements for a nest, or None if it is not one of shifted additions."""
        loops = perfect(nest)
        candidates = [_addition(s, self.sums) for s in loops[-1].body]
        additions = [a for a in candidates if a is not None]
        if len(additions) < len(candidates) or not _is_box(loops):
            return None
        variables = [loop.var for loop in loops]
        target = additions[0].store.buffer
        if any(a.store.buffer != target for a in additions):
            return None
        if not are_shifted([a.store for a in additions], variables) or _reads(additions, target):
            return None
        owners = _owners(additions, variables)
        if owners is None:
            return None
        guarded = any(a.guard is not None for a in additions)
        if guarded and not all(id(a.store) in self.inside for a in additions):
            return None
        shape = self.kernel.buffers[target].shape if guarded else ()
        element = _Element(loops, additions, owners, self.names, shape)
        wide = element.widened(self.kernel)
        if wide is not None:
            self.buffers[wide.buffer.name] = wide.buffer
        return [*([] if wide is None else [wide.copy]), element.nest()]


def _reads(additions: Sequence[Addition], target: str) -> bool:
    values = [e for a in additions for e in (a.store.value, *a.store.index, *([a.guard] if a.guard else []))]
    return target in tensors_of(*values)


def _addition(node: Stmt, sums: frozenset[str]) -> Addition | None:
    match node:
        case Store(op="+", buffer=buffer) if buffer in sums:
            return Addition(node, None)
        case If(condition=guard, body=(Store(op="+", buffer=buffer) as store,), orelse=()) if buffer in sums:
            return Addition(store, guard)
    return None


def _is_box(loops: Sequence[For]) -> bool:
    """Whether no bound depends on another loop of the nest, or on data."""
    inside = frozenset(loop.var for loop in loops)
    return not any(depends(e, inside) or _loads(e) for loop in loops for e in (loop.lo, loop.hi))


def _loads(expr: Expr) -> bool:
    return bool(loads_of(expr))


def _owners(additions: Sequence[Addition], variables: Sequence[str]) -> list[str | None] | None:
    """Return for each axis the loop variable that all additions have there with the factor 1, or None."""
    owners: list[str | None] = []
    for axis in range(len(additions[0].store.index)):
        indices = [affine.linear_with_terms(a.store.index[axis]) for a in additions]
        forms = [found[0] for found in indices if found is not None]
        if len(forms) < len(indices):
            return None
        candidates = [v for v in variables if v not in owners and all(form.get(v) == 1 for form in forms)]
        if candidates:
            owners.append(candidates[0])
        elif any(set(form) & set(variables) for form in forms) or any(form != forms[0] for form in forms):
            return None
        else:
            owners.append(None)
    rests = [_rest(a, axis, owner) for a in additions for axis, owner in enumerate(owners)]
    owned = {v for v in owners if v is not None}
    if any(set(rest) & owned for rest in rests):
        return None
    along = [v for rest in rests for v in rest if v in variables]
    plain = all(rest[v] == 1 for rest in rests for v in rest if v in variables)
    alone = all(sum(v in variables for v in rest) <= 1 for rest in rests)
    return owners if plain and alone and (len(additions) == 1 or not along) else None


def _rest(addition: Addition, axis: int, owner: str | None) -> affine.Linear:
    """Return an axis' index without the loop variable that owns the axis: the shift."""
    found = affine.linear_with_terms(addition.store.index[axis])
    return {} if found is None else {n: c for n, c in found[0].items() if n != owner}


def conjuncts(test: Expr) -> list[Expr]:
    """Return the conditions that hold together if ``test`` holds."""
    if isinstance(test, Op) and test.name == "and":
        return [part for argument in test.args for part in conjuncts(argument)]
    return [test]


def _with_simple_sides(test: Expr) -> Expr:
    """Return a comparison whose sides have like terms collected."""
    if not isinstance(test, Op) or test.type != BOOL:
        return test
    sides = []
    for side in test.args:
        found = affine.linear_with_terms(side)
        sides.append(side if found is None else affine.from_linear(*found))
    return replace(test, args=tuple(sides))


class _Element:
    """Builds the nest that goes through the elements of one target."""

    def __init__(
        self,
        loops: Sequence[For],
        additions: Sequence[Addition],
        owners: Sequence[str | None],
        names: Names,
        shape: Sequence[Expr] = (),
    ) -> None:
        """``shape``: the target's, where conditions keep additions inside it."""
        self.shape = shape
        self.loops = {loop.var: loop for loop in loops}
        self.additions, self.owners, self.names = additions, owners, names
        self.owned = [v for v in owners if v is not None]
        self.moving: set[str] = set()  # the loops that the widened factor depends on
        self.element = {v: Var(names.loop(v), INT) for v in self.owned}
        self.leaves: dict[str, Expr] = {}
        for addition in additions:
            for index in addition.store.index:
                found = affine.linear_with_terms(index)
                self.leaves |= {} if found is None else found[1]

    def widened(self, kernel: Kernel) -> Padded | None:
        """Put zeros around the one factor that depends on the shifts; None if there is not exactly one."""
        shifts: dict[str, tuple[For, For]] = {}
        for axis, owner in enumerate(self.owners):
            along = [v for v in _rest(self.additions[0], axis, owner) if v in self.loops] if owner else []
            if owner is not None and along:
                shifts[owner] = (self.loops[owner], self.loops[along[0]])
        (addition, *more) = self.additions
        if not shifts or more or addition.guard is not None:
            return None
        shifted = factor(addition.store.value, list(shifts))
        if shifted is None:
            return None
        wide = padded(shifted, shifts, sizes_of(kernel, shifted.buffer), self.names)
        value = rewrite(addition.store.value, lambda e: wide.load if e == shifted else e)
        self.additions = [Addition(replace(addition.store, value=value), None)]
        self.moving = variables_of(*shifted.index)
        return wide

    def nest(self) -> Stmt:
        """Return the loops."""
        first = self.additions[0].store
        of = Type(first.value.type.dtype)
        total = Var(self.names.new(f"{first.buffer}_all"), of)
        index = tuple(
            first.index[axis] if owner is None else self.element[owner]
            for axis, owner in enumerate(self.owners)
        )
        body: tuple[Stmt, ...] = (
            Assign(total.name, number(0.0, of), "", first.line),
            *(self._added(addition, total) for addition in self.additions),
            Store(first.buffer, index, total, "+", first.line),
        )
        for axis in reversed(self._axes()):
            owner = self.owners[axis]
            if owner is not None:
                lo, hi = self._range(axis, owner)
                loop = self.loops[owner]
                body = (For(self.element[owner].name, lo, hi, body, loop.line, loop.hint),)
        return body[0]

    def _axes(self) -> list[int]:
        """Return the axes in loop order.

        The axes along which a widened factor is reused go inside, before the last.
        """
        axes = list(range(len(self.owners)))
        if not self.moving:
            return axes
        reused = [k for k in axes[:-1] if self.owners[k] not in self.moving]
        return [*(k for k in axes[:-1] if k not in reused), *reused, axes[-1]]

    def _range(self, axis: int, owner: str) -> tuple[Expr, Expr]:
        """Return the elements that any addition reaches along an axis."""
        loop = self.loops[owner]
        lows, highs = [], []
        for addition in self.additions:
            rest = _rest(addition, axis, owner)
            inner = next((self.loops[v] for v in rest if v in self.loops), None)
            known = self._written({n: c for n, c in rest.items() if n not in self.loops})
            low = known if inner is None else known + inner.lo
            high = known if inner is None else known + (inner.hi - 1)
            lows.append(loop.lo + low)
            highs.append(loop.hi + high)
        lo = affine.extreme("min", map(affine.simplified, lows))
        hi = affine.extreme("max", map(affine.simplified, highs))
        if self.shape:
            return operate("max", lo, Const(0, INT)), operate("min", hi, self.shape[axis])
        return lo, hi

    def _added(self, addition: Addition, total: Var) -> Stmt:
        values: dict[str, Expr] = {}
        tests: list[Expr] = []
        bounds = {v: (loop.lo, loop.hi) for v, loop in self.loops.items() if v not in self.owned}
        whole = len(self.additions) == 1
        for axis, owner in enumerate(self.owners):
            if owner is None:
                continue
            rest = _rest(addition, axis, owner)
            values[owner] = self.element[owner] - self._written(rest)
            self._limit(owner, rest, bounds, tests, whole)
        node: Stmt = Assign(total.name, substitute(addition.store.value, values), "+", addition.store.line)
        for test in self._open_tests(addition, values):
            node = If(test, (node,), (), addition.store.line)
        for var, loop in reversed(self.loops.items()):
            if var in self.owned:
                continue
            name = self.names.loop(var)
            node = For(name, *bounds[var], (substitute(node, {var: Var(name, INT)}),), loop.line, loop.hint)
        if tests:
            both = functools.reduce(lambda a, b: Op("and", (a, b), BOOL), tests)
            node = If(both, (node,), (), addition.store.line)
        return node

    def _open_tests(self, addition: Addition, values: Mapping[str, Expr]) -> list[Expr]:
        """Return the parts of an addition's guard that do not follow from the range of the elements."""
        parts = [] if addition.guard is None else conjuncts(substitute(addition.guard, values))
        inside: list[Expr] = []
        for axis, owner in enumerate(self.owners):
            if owner is not None and self.shape:
                last = self.shape[axis] - 1
                inside += [Op(">=", (self.element[owner], Const(0, INT)), BOOL)]
                inside += [Op("<=", (self.element[owner], last), BOOL)]
        return [part for part in parts if _with_simple_sides(part) not in inside]

    def _limit(
        self,
        owner: str,
        rest: affine.Linear,
        bounds: dict[str, tuple[Expr, Expr]],
        tests: list[Expr],
        whole: bool,
    ) -> None:
        """Limit an addition to its original iterations: by the range of a sum, or by a condition."""
        loop, element = self.loops[owner], self.element[owner]
        along = next((v for v in rest if v in self.loops), None)
        known = self._written({n: c for n, c in rest.items() if n != along})
        if self.moving:
            return
        if along is not None:
            lo, hi = bounds[along]
            past = element - (known + (loop.hi - 1))
            last = element - (known + loop.lo - 1)
            bounds[along] = operate("max", lo, past), operate("min", hi, last)
        elif not whole:
            tests.append(Op(">=", (element, loop.lo + known), BOOL))
            tests.append(Op("<", (element, loop.hi + known), BOOL))

    def _written(self, form: affine.Linear) -> Expr:
        return affine.from_linear(form, self.leaves)
