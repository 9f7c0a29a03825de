"""Inline a temporary into its readers if computing it again is cheaper than memory.

    for i in range(n):                     for i in range(1, n):
        t[i] = x[i] * 2.0             ->       y[i] = x[i] * 2.0 - x[i - 1] * 2.0
    for i in range(1, n):
        y[i] = t[i] - t[i - 1]

The temporary must have one plain store, of arithmetic on inputs, and every read must follow a write. For
example, the steps of a stencil become one pass over memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..analysis import affine
from ..analysis.bounds import is_inside_once_checked
from ..analysis.cost import CONTRACTION_LOOPS, HEAVY
from ..analysis.initialisation import Coverage
from ..analysis.loop_names import variables
from ..analysis.polyhedra import Model
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    children,
    is_lazy,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.note import Note
from ..ir.rewriter import map_body, placed, rewrite, substitute
from ..ir.types import NARROW
from ..ir.uses import assigned_by, loads_of, scalars_beside, stored_by, stores_to, tensors_of, variables_of
from ..program import Program

MAX_COPIED_NODES = 240
"""The most operators and loads of all copies together; more would cost more than the memory they save."""


def inline(program: Program) -> Program:
    """Return the program without temporaries that are cheap to compute again."""
    kernel, notes = program.kernel, list[Note]()
    named = program.named_loops() & variables(kernel.body)
    for name in [n for n, b in kernel.buffers.items() if b.role == "local" and not b.zeroed and not b.exact]:
        recipe = _recipe(kernel, name)
        if recipe is None or _feeds_contraction(kernel.body, name):
            continue
        coverage = Coverage(Model(kernel, program.session))
        if coverage.uncovered_read(name) is not None or not _all_inside(coverage.model, recipe.store):
            continue
        written = _Inliner(recipe, names_of(kernel))
        body = map_body(_without_store(kernel.body, recipe.store, kernel), written.statement)
        if not named <= variables(body):
            continue  # the author's schedule names a loop that would be gone
        buffers = {key: b for key, b in kernel.buffers.items() if key != name}
        kernel = replace(kernel, body=body, buffers=buffers)
        text = f"{name} is computed where it is read: it needs no memory"
        notes.append(Note(recipe.store.line, text, "inline"))
    return program.with_(*notes, kernel=kernel)


def _all_inside(model: Model, store: Store) -> bool:
    """Whether no index beside a store can be out of range: that is an error, which must not vanish."""
    leaf = next(leaf for leaf in model.leaves if leaf.node is store)
    beside = [other for other in model.leaves if other.vars == leaf.vars]
    return all(
        is_inside_once_checked(model, one, access, axis)
        for one in beside
        for access in one.accesses
        for axis in range(len(access.index))
    )


@dataclass(frozen=True)
class Recipe:
    """How to compute an element: first ``scalars``, then the value of ``store``.

    The index of the element is ``variables`` plus ``offsets``.
    """

    store: Store
    scalars: tuple[Assign, ...]
    variables: tuple[str, ...]
    offsets: tuple[int, ...]


def _recipe(kernel: Kernel, name: str) -> Recipe | None:
    """Return how to compute the elements of a buffer, or None if it cannot be inlined, or need not."""
    stores = stores_to(name, kernel.body)
    if len(stores) != 1 or stores[0].op:
        return None
    (store,) = stores
    scalars = _before(kernel.body, store)
    assigned = [s.name for s in statements(kernel.body) if isinstance(s, Assign)]
    if scalars is None or any(assigned.count(s.name) != 1 for s in scalars):
        return None
    forms = [affine.linear(i) for i in store.index]
    variables = [[n for n in (form or {}) if n] for form in forms]
    if any(len(v) != 1 or (f or {})[v[0]] != 1 for f, v in zip(forms, variables, strict=True)):
        return None
    names = tuple(v[0] for v in variables)
    nodes: list[Stmt] = [*scalars, store]
    free = variables_of(*nodes)
    defined = {*names, *kernel.attributes, *(s.name for s in scalars)}
    if len(set(names)) != len(names) or free - defined or not _pure(kernel, (*scalars, store)):
        return None
    return (
        Recipe(store, scalars, names, tuple((f or {}).get("", 0) for f in forms))
        if _pays(kernel, name, scalars, store)
        else None
    )


def _pays(kernel: Kernel, name: str, scalars: Sequence[Assign], store: Store) -> bool:
    """Whether the reads are few, unconditional and in plain statements, and the work is small."""
    nodes: list[Stmt] = [*scalars, store]
    size = sum(isinstance(e, (Op, Load)) for s in nodes for e in walk(s))
    copies = 0
    for node in statements(kernel.body):
        reads = {e.index for e in walk(node) if isinstance(e, Load) and e.buffer == name}
        copies += len(reads)
        guarded = any(name in tensors_of(*children(e)[1:]) for e in walk(node) if is_lazy(e))
        if reads and (guarded or not isinstance(node, (Store, Assign))):
            return False
    return copies > 0 and size * copies <= MAX_COPIED_NODES


def _feeds_contraction(body: Sequence[Stmt], name: str) -> bool:
    """Whether a sum of products reads a temporary again in each iteration of a loop that does not index it.

    It would be computed as often, and the sum would not be a plain product any more.
    """
    for node, place in placed(body):
        if not isinstance(node, (Store, Assign)) or node.op != "+" or len(place.loops) < CONTRACTION_LOOPS:
            continue
        loads = loads_of(node.value)
        for load in loads:
            used = variables_of(*load.index)
            if load.buffer == name and len(loads) > 1 and {loop.var for loop in place.loops} - used:
                return True
    return False


def _pure(kernel: Kernel, nodes: Sequence[Assign | Store]) -> bool:
    """Whether no tensor that is read is ever written, and no operator costs more than a load or two."""
    written = stored_by(kernel.body)
    for node in nodes:
        for expr in walk(node):
            if isinstance(expr, Load) and expr.buffer in written:
                return False
            if isinstance(expr, Op) and expr.name in HEAVY and expr.name != "/":
                return False
    return True


def _before(body: Sequence[Stmt], store: Store) -> tuple[Assign, ...] | None:
    """Return the scalars that are assigned beside a store and before it; None if it is under a condition."""
    for place, node in enumerate(body):
        if node is store:
            return tuple(s for s in body[:place] if isinstance(s, Assign))
        if isinstance(node, For) and any(s is store for s in statements(node.body)):
            return _before(node.body, store)
    return None


class _Inliner:
    """Inserts a recipe before each statement that reads an element."""

    def __init__(self, recipe: Recipe, used_names: set[str]) -> None:
        self.recipe, self.count, self.used_names = recipe, 0, used_names

    def statement(self, node: Stmt) -> list[Stmt]:
        """Return a statement that reads scalars, behind the assignments that compute them."""
        name, result = self.recipe.store.buffer, list[Stmt]()
        for expr in dict.fromkeys(e.index for e in walk(node) if isinstance(e, Load) and e.buffer == name):
            before, scalar = self._element(expr)
            result += before
            node = rewrite(node, _replacing(name, expr, scalar))
        return [*result, node]

    def _element(self, index: tuple[Expr, ...]) -> tuple[list[Assign], Var]:
        """Return the assignments that compute one element, and the scalar that then holds it."""
        self.count += 1
        recipe = self.recipe
        values: dict[str, Expr] = {
            var: Op("-", (i, Const(offset, INT)), INT) if offset else i
            for var, i, offset in zip(recipe.variables, index, recipe.offsets, strict=True)
        }
        assignments = []
        for scalar in recipe.scalars:
            name = unused(f"{scalar.name}_{recipe.store.buffer}{self.count}", self.used_names)
            assignments.append(replace(scalar, name=name, value=substitute(scalar.value, values)))
            values[scalar.name] = Var(name, scalar.value.type)
        name = unused(f"{recipe.store.buffer}_{self.count}", self.used_names)
        assignments.append(
            Assign(name, rounded(substitute(recipe.store.value, values)), "", recipe.store.line)
        )
        return assignments, Var(name, recipe.store.value.type)


def rounded(value: Expr) -> Expr:
    """Return a value rounded as a store does it: narrow floats are computed in float32 between stores."""
    if value.type.dtype not in NARROW:
        return value
    return Op("cast", (Op("cast", (value,), Type("float32")),), Type(value.type.dtype))


def _replacing(buffer: str, index: tuple[Expr, ...], scalar: Var) -> Callable[[Expr], Expr]:
    """Return what replaces the loads of an element by a scalar."""

    def change(expr: Expr) -> Expr:
        same = isinstance(expr, Load) and expr.buffer == buffer and expr.index == index
        return scalar if same else expr

    return change


def _without_store(body: Sequence[Stmt], store: Store, kernel: Kernel) -> tuple[Stmt, ...]:
    """Return a body without a store, and without loops that store nothing else and leave no scalar behind."""
    result: list[Stmt] = []
    for node in body:
        if isinstance(node, For) and any(s is store for s in statements(node.body)):
            inner = _without_store(node.body, store, kernel)
            stores = any(isinstance(s, Store) for s in statements(inner))
            if stores or assigned_by(node.body) & scalars_beside(node, kernel.body):
                result.append(replace(node, body=inner))
        elif node is not store:
            result.append(node)
    return tuple(result)
