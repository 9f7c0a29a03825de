"""Index-set splitting: move the iterations in which a condition always holds into a separate loop.

    for j in range(n):                     for j in range(0, 1): ...with the condition
        if 0 < j and j < n - 1:       ->   for j in range(1, n - 1): ...without it
            ...                            for j in range(n - 1, n): ...with the condition

The loop in the middle has no conditions, so its iterations can be vector lanes. A clamped index, as in
``x[min(max(j - 1, 0), n - 1)]``, is a condition too: in the middle it is ``x[j - 1]``. A loop that sums is
split where a window slides over its row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..analysis import affine
from ..analysis.dependence import Kind
from ..analysis.ranges import SHORT, compared
from ..analysis.strides import UNIT, stride
from ..ir.grammar import (
    BOOL,
    FALSE,
    INT,
    TRUE,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Size,
    Stmt,
    Var,
    call,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.note import Note
from ..ir.operate import operate
from ..ir.rewriter import rewrite, substitute, with_bodies, with_buffers
from ..ir.uses import accesses_of, assigned_by, loads_of, variables_of
from ..program import Program
from .remove_empty_loops import without_empty

MAX_SPLIT_LOOPS = 3
"""The most loops of a kernel that are split: each becomes three loops."""


def index_set_splitting(program: Program) -> Program:
    """Return the program with the borders of loops split off; each copy has private buffers of its own."""
    kernel = program.kernel
    if not has_conditions(kernel):
        return program
    splitter = _Splitter(kernel, program.kinds, program.owners)
    body = splitter.body(kernel.body)
    if not splitter.notes:
        return program
    kernel = replace(kernel, body=body, buffers=splitter.buffers)
    return program.with_(*splitter.notes, kernel=kernel, owners=splitter.owners)


def has_conditions(kernel: Kernel) -> bool:
    """Whether anything in the kernel depends on a comparison, or an index is clamped."""
    return any(
        isinstance(e, Op) and (e.name in _COMPARISONS or affine.is_clamp(e))
        for s in statements(kernel.body)
        for e in walk(s)
    )


_COMPARISONS = (">=", ">", "<=", "<")
_CHOICES = {"max": ">=", "min": "<="}
"""By clamp, the comparison of its operands with which it is the first of them."""


@dataclass(frozen=True)
class Range:
    """The part of a loop, from ``max(lower)`` to ``min(upper)``, in which all comparisons ``atoms`` hold."""

    lower: tuple[Expr, ...]
    upper: tuple[Expr, ...]
    atoms: frozenset[Expr]


class _Splitter:
    """Splits the loops of a kernel, inner ones first."""

    def __init__(
        self, kernel: Kernel, kinds: Mapping[str, Kind], owners: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.kinds = kinds
        self.buffers = dict(kernel.buffers)
        self.owners = dict(owners)
        self.assigned = _assignments(kernel.body)
        self.notes: list[Note] = []
        self.count = 0
        self.split: set[str] = set()
        self.used_names = names_of(kernel)

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return a body with its loops split, inner ones first."""
        result: list[Stmt] = []
        for node in body:
            inner = with_bodies(node, self.body)
            result += self._loop(inner, _assignments((node,))) if isinstance(inner, For) else [inner]
        return tuple(result)

    def _loop(self, loop: For, assigned: Mapping[str, int]) -> list[Stmt]:
        """Return the parts of a loop; ``assigned``: how often it assigned scalars before any was split."""
        if loop.hint == "serial" or self.count >= MAX_SPLIT_LOOPS or not _contiguous(loop):
            return [loop]
        inside = _range(loop, self.split)
        if inside is None or not (self._is_parallel(loop) or self._is_sum_over_row(loop)):
            return [loop]
        if any(self.assigned[n] > assigned[n] for n in _local_scalars(loop.body)):
            return [loop]  # a scalar that is assigned outside as well cannot have a new name in each part
        self.count += 1
        self.split.add(loop.var)
        text = f"loop {loop.var} split: its inside runs without the conditions at its borders"
        self.notes.append(Note(loop.line, text, "index_set_splitting"))
        first = affine.extreme("min", (affine.extreme("max", (loop.lo, *inside.lower)), loop.hi))
        last = affine.extreme("max", (affine.extreme("min", (loop.hi, *inside.upper)), first))
        bare = without_empty(_flat([_simplified(s, inside.atoms) for s in loop.body]), self.used_names)
        return [
            self._border(replace(loop, hi=first, hint="border"), f"_low{self.count}"),
            *([replace(loop, lo=first, hi=last, body=bare)] if bare else []),
            self._border(replace(loop, lo=last, hint="border"), f"_high{self.count}"),
        ]

    def _is_parallel(self, loop: For) -> bool:
        return loop.var not in self.kinds or self.kinds[loop.var].name == "parallel"

    def _is_sum_over_row(self, loop: For) -> bool:
        """Whether a loop without loops in it sums in scalars, along a row that a window slides over.

        As ``for j in range(n)`` in ``s += g[j] * x[min(j + k, n - 1)]``, where ``x`` has ``n`` elements. The
        loop over ``k``, the window, is short, and meets its condition all over.
        """
        kind = self.kinds[loop.var]
        if kind.name != "reduction" or any(name in self.buffers for name, _ in kind.over):
            return False
        if any(isinstance(s, For) for s in statements(loop.body)):
            return False
        loads = loads_of(*statements(loop.body))
        return any(self._slides_along(load, loop) for load in loads if load.index)

    def _slides_along(self, load: Load, loop: For) -> bool:
        """Whether the last index of a load adds another loop to this one, which ends where that axis does."""
        load = replace(load, index=tuple(map(affine.unclamped, load.index)))
        others = variables_of(load.index[-1]) & self.kinds.keys()
        extent = self.buffers[load.buffer].shape[-1]
        same_end = bool(_sizes_in(extent) & _sizes_in(loop.hi))
        return bool(others - {loop.var}) and same_end and stride(load, loop.var) == UNIT

    def _border(self, loop: For, suffix: str) -> For:
        """Return a copy of a loop with new names for the private buffers of its iterations.

        A buffer has one set of owners. If two copies of the owning loop shared it, one of them could run
        on threads and the other not, and only one of them would get memory.
        """
        names = _renamed(loop, suffix, self.used_names)
        private = [n for n, loops in self.owners.items() if loop.var in loops]
        copies = {n: unused(n + suffix, self.used_names) for n in private}
        for name, copy in copies.items():
            self.buffers[copy] = replace(self.buffers[name], name=copy)
            self.owners[copy] = tuple(names[v].name if v in names else v for v in self.owners[name])
        border: For = with_buffers(_copy(loop, names), copies)
        return border


def _sizes_in(bound: Expr) -> set[str]:
    """Return the sizes that a bound grows with."""
    found = affine.linear_with_terms(bound)
    if found is None:
        return set()
    form, leaves = found
    return {name for name, leaf in leaves.items() if isinstance(leaf, Size) and form[name] > 0}


def _contiguous(loop: For) -> bool:
    """Whether the loop has an access with stride one, so that it may become the vector loop.

    The short one of two loops that slide over one axis will not: the other is in it.
    """
    accesses = [a for a in accesses_of(loop.body) if stride(a, loop.var) == UNIT]
    used = {name for a in accesses for name in variables_of(a.index[-1])}
    beside = (s for s in statements(loop.body) if isinstance(s, For) and s.var in used)
    return bool(accesses) and not any(compared(loop, other) == SHORT for other in beside)


def _range(loop: For, split: Collection[str]) -> Range | None:
    """Return the range in which the conditions on a loop's variable hold, or None if there are none.

    The loops ``split`` in it are in parts already: their bounds are no conditions.
    """
    lower: list[Expr] = []
    upper: list[Expr] = []
    atoms: set[Expr] = set()
    inner = {s.var: s for s in statements(loop.body) if isinstance(s, For)}
    assigned = assigned_by(loop.body)
    for atom in _atoms(_unsplit(loop.body, split)):
        bound = _bound(atom, loop, inner, assigned)
        if bound is None:
            continue
        (lower if bound[0] else upper).append(bound[1])
        atoms.add(atom)
    return (
        Range(tuple(dict.fromkeys(lower)), tuple(dict.fromkeys(upper)), frozenset(atoms)) if atoms else None
    )


def _unsplit(body: Sequence[Stmt], split: Collection[str]) -> Iterator[Stmt]:
    """Yield the statements of a body without the heads of the loops ``split``, and without their borders."""
    for node in body:
        if isinstance(node, For):
            if node.hint != "border":
                yield from [node] if node.var not in split else []
                yield from _unsplit(node.body, split)
        else:
            yield node
            if isinstance(node, If):
                yield from _unsplit((*node.body, *node.orelse), split)


def _atoms(nodes: Iterable[Stmt]) -> list[Op]:
    """Return the comparisons in statements, and those by which a clamp is one of its operands; each once."""
    atoms: list[Op] = []
    for node in nodes:
        found = [e for e in walk(node) if isinstance(e, Op)]
        atoms += [e for e in found if e.name in _COMPARISONS]
        for clamp in (e for e in found if affine.is_clamp(e)):
            first, second = map(affine.unclamped, clamp.args)
            if affine.varies(first) != affine.varies(second):
                # inside, an index is not clamped; and an inner loop has all its iterations
                is_first = affine.varies(first) != isinstance(node, For)
                atoms.append(_chooses(clamp.name, *((first, second) if is_first else (second, first))))
    return list(dict.fromkeys(atoms))


def _chooses(clamp: str, one: Expr, other: Expr) -> Op:
    """Return the comparison with which the "min" or "max" of two integers is ``one``."""
    return Op(_CHOICES[clamp], (one, other), BOOL)


def _bound(atom: Op, loop: For, inner: Mapping[str, For], assigned: set[str]) -> tuple[bool, Expr] | None:
    """Return (whether it bounds the variable from below, the bound) for a comparison, or None.

    The comparison is ``form >= 0``. A variable of an inner loop is replaced by its bound that makes the form
    smallest, so that the comparison holds in all iterations of that loop.
    """
    found = affine.nonnegative(atom)
    if found is None:
        return None
    form, names = found
    step = form.pop(loop.var, 0)
    if not step or form.keys() & assigned:
        return None
    for name, coefficient in form.items():
        if name in inner and coefficient:
            head = inner[name]
            if {loop.var, *inner, *assigned} & variables_of(head):
                return None
            names[name] = head.lo if coefficient > 0 else head.hi - 1
    # step * v + form >= 0 means v >= ceil(-form / step), or, for a step below 0, v < floor(form / -step) + 1
    rest = affine.simplified(affine.from_linear(form if step < 0 else _scaled(form, -1), names))
    if step > 0:
        return True, rest if step == 1 else call("ceil_div", rest, Const(step, INT))
    return False, affine.simplified((rest if step == -1 else operate("//", rest, Const(-step, INT))) + 1)


def _scaled(form: affine.Linear, factor: int) -> affine.Linear:
    return {name: factor * c for name, c in form.items()}


def _simplified(node: Stmt, atoms: frozenset[Expr]) -> Stmt:
    """Return a statement simplified, given that these comparisons hold."""

    def change(expr: Expr) -> Expr:
        if expr in atoms:
            return TRUE
        match expr:
            case Op(name="and", args=args):
                left = [x for x in args if x != TRUE]
                return TRUE if not left else left[0] if len(left) == 1 else replace(expr, args=tuple(left))
            case Op(name="or", args=(first, *_)) if first == TRUE:
                return TRUE  # only the first operand counts: the index of a load in it must be checked
            case Op(name="select", args=(condition, then, _)) if condition == TRUE:
                return then
            case Op(name="not", args=(x,)) if x == TRUE:
                return FALSE
            case Op(name=name, args=(a, b)) if affine.is_clamp(expr):
                return a if _chooses(name, a, b) in atoms else b if _chooses(name, b, a) in atoms else expr
        return expr

    simplified: Stmt = rewrite(node, change)
    return simplified


def _flat(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return a body without conditions that are constant."""
    result: list[Stmt] = []
    for node in body:
        if isinstance(node, If) and isinstance(node.condition, Const):
            result += _flat(node.body if node.condition.value else node.orelse)
        else:
            result.append(with_bodies(node, _flat))
    return tuple(result)


def renamed_copy(loop: For, suffix: str, used_names: set[str], outer: Collection[str] = ()) -> For:
    """Return a loop with new names, not in ``used_names``, for its loop variables and scalars.

    The scalars ``outer`` are read outside the loop, and keep their names.
    """
    return _copy(loop, _renamed(loop, suffix, used_names, outer))


def _renamed(loop: For, suffix: str, used_names: set[str], outer: Collection[str] = ()) -> dict[str, Var]:
    """Return the new names of a loop's variables, and of the scalars that live in it."""
    types = {s.name: s.type for s in statements(loop.body) if isinstance(s, Assign)}
    inner = [loop.var, *(s.var for s in statements(loop.body) if isinstance(s, For))]
    names = {var: Var(unused(var + suffix, used_names), INT) for var in inner}
    return names | {
        n: Var(unused(n + suffix, used_names), types[n]) for n in _local_scalars(loop.body) if n not in outer
    }


def _copy(loop: For, names: Mapping[str, Var]) -> For:
    """Return a loop with its variables and scalars renamed."""

    def rename(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(with_bodies(renamed(node), rename) for node in body)

    def renamed(node: Stmt) -> Stmt:
        match node:
            case For():
                return replace(node, var=names[node.var].name)
            case Assign() if node.name in names:
                return replace(node, name=names[node.name].name)
        return node

    body = rename(tuple(substitute(s, names) for s in loop.body))
    return replace(loop, var=names[loop.var].name, body=body)


def _assignments(body: Sequence[Stmt]) -> Counter[str]:
    """Return how often a body assigns each scalar."""
    return Counter(s.name for s in statements(tuple(body)) if isinstance(s, Assign))


def _local_scalars(body: Sequence[Stmt]) -> list[str]:
    """Return the scalars whose first assignment in a body is not an update."""
    first: dict[str, Assign] = {}
    for node in statements(tuple(body)):
        if isinstance(node, Assign):
            first.setdefault(node.name, node)
    return [name for name, node in first.items() if not node.op]
