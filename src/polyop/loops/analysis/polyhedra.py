"""A kernel as isl sees it: instances of statements, and the elements that each of them touches."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir.grammar import (
    Assign,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Size,
    Stmt,
    Store,
    Var,
    children,
    statements,
    walk,
)
from . import affine
from .session import IslSession

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Access:
    """One read or write of a buffer or scalar by one statement.

    ``must``: every instance of the statement does it. ``op`` is the reduction's. ``node`` is the
    Load, Store or Assign; ``exact`` tells for each dimension whether its index is affine.
    """

    target: str
    index: tuple[str | None, ...]
    write: bool
    op: str
    guards: tuple[str, ...]
    must: bool
    node: Any
    around: tuple[str, ...] | None = None
    """The constraints of a condition's or a bound's own read, where the leaf stands deeper."""
    sure: bool = True

    @property
    def exact(self) -> bool:
        """Whether the touched elements are known exactly."""
        return self.must and None not in self.index


@dataclass(frozen=True, eq=False)
class Leaf:
    """A Store or Assign. ``vars`` are its loops, outermost first; their order never changes.

    ``constraints`` say when it runs; ``ranges`` are those of them that loops set, not conditions.
    """

    id: str
    node: Store | Assign
    vars: tuple[str, ...]
    constraints: tuple[str, ...]
    definite: bool
    accesses: tuple[Access, ...]
    line: int
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Point:
    """Where a statement stands: its loops, all constraints, those of the loops alone."""

    loops: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    definite: bool = True


class Model:
    """The leaves of a kernel in program order, and isl values made from them.

    ``owners`` gives, for a buffer that each iteration of a loop has for itself, the loops (outermost
    first) whose iterations have their own: their variables become further dimensions.
    """

    def __init__(
        self, kernel: Kernel, session: IslSession, owners: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        import islpy

        self.isl = islpy
        self.session = session
        self.kernel = kernel
        self.owners = {**scalar_owners(kernel), **(owners or {})}
        parameters = _parameters(kernel)
        self.parameters = tuple(parameters)
        self.parameter_of_word = {affine.word(name): node for name, node in parameters.items()}
        self.leaves: list[Leaf] = []
        self._natural = self._find_natural()
        self._maps: dict[tuple[str, int], Any] = {}
        self._collect(kernel.body, _Point(), ())

    def map(self, leaf: Leaf, access: Access) -> Any:
        """Return the isl map from instances of the leaf to elements of the target."""
        key = (leaf.id, id(access))  # what a condition reads, all leaves under it read
        if key not in self._maps:
            found = self._touched(leaf, access)
            self._maps[key] = found.set_tuple_name(self.isl.dim_type.in_, leaf.id)
        return self._maps[key]

    def _touched(self, leaf: Leaf, access: Access) -> Any:
        """Return the map of an access; leaves in the same loops share those of the same elements."""
        head = f"{_iteration(leaf.vars)} -> {self._element(access)}"
        somewhere = self._somewhere(access)
        key = (self._prefix, self._natural_sizes, head, somewhere, leaf.constraints, access.guards)
        if key not in self.session.cache:
            whole = self._read("Map", head, somewhere)
            inside = self._set(_iteration(leaf.vars), leaf.constraints, access.guards)
            self.session.cache[key] = whole.intersect_domain(inside)
        return self.session.cache[key]

    def when(self, leaf: Leaf, access: Access, condition: str) -> Any | None:
        """Return for which sizes and attributes an access is ever made with the condition true, or None."""
        around = leaf.constraints if access.around is None else access.around
        return self._ever(leaf, around, (*access.guards, condition))

    def looped(self, leaf: Leaf, condition: str) -> Any | None:
        """Return for which sizes and attributes the condition is ever true in a leaf's loops, or None."""
        return self._ever(leaf, leaf.ranges, (condition,))

    def _ever(self, leaf: Leaf, constraints: tuple[str, ...], more: tuple[str, ...]) -> Any | None:
        known = self.session.cache
        at = (self._prefix, self._natural_sizes, leaf.vars, constraints, more)
        if at not in known:
            found = self._set(_iteration(leaf.vars), constraints, more)
            known[at] = None if found.is_empty() else found.params().coalesce()
        return known[at]

    def box(self, name: str, dims: Sequence[str], constraints: Sequence[str]) -> Any:
        """Return the isl set of elements ``name[dims]`` with these constraints."""
        return self._set(f"{affine.word(name)}[{', '.join(dims)}]", constraints, ())

    def parameter_set(self, constraints: Sequence[str]) -> Any:
        """Return the isl set of sizes and attributes with these constraints."""
        return self._set("", constraints, ())

    def _set(self, head: str, constraints: Sequence[str], more: Sequence[str]) -> Any:
        """Return a set; sizes are not negative. What many sets share is read once."""
        found = self._read("Set", head, (*self._natural_sizes, *constraints))
        if head and self.session.sizes:
            found = self._supposed(found, (self._prefix, self._natural_sizes, head, *constraints))
        return found.intersect(self._read("Set", head, tuple(more))) if more else found

    def _supposed(self, found: Any, key: Any) -> Any:
        """Return the part of a set that sizes allow, as far as it does not fall to pieces."""
        known = self.session.cache
        if key not in known:
            for sizes in self.session.sizes:
                part = found.intersect_params(sizes).coalesce()
                found = part if part.n_basic_set() <= found.n_basic_set() else found
            known[key] = found
        return known[key]

    def _read(self, kind: str, head: str, constraints: tuple[str, ...] = ()) -> Any:
        """Return what a text says. isl reads only the parameters it names: declaring them takes longest."""
        body = f"{head} : {' and '.join(constraints)}" if constraints or not head else head
        body = f"{body}0 = 0" if body == " : " else body
        known = self.session.cache
        at = (kind, self._prefix, body)
        if at not in known:
            words = {*_WORD.findall(body)}
            named = [p for p in map(affine.word, self.parameters) if p in words]
            found = self._isl(kind, f"[{', '.join(named)}] -> {{ {body} }}")
            known[at] = found.align_params(self._space)
        return known[at]

    def _isl(self, kind: str, text: str) -> Any:
        return getattr(self.isl, kind).read_from_str(self.session.context, text)

    @property
    def _space(self) -> Any:
        """Return isl's space of all parameters."""
        known = self.session.cache
        if self._prefix not in known:
            known[self._prefix] = self._isl("Set", f"{self._prefix} -> {{ : }}").get_space()
        return known[self._prefix]

    @functools.cached_property
    def _prefix(self) -> str:
        return f"[{', '.join(map(affine.word, self.parameters))}]"

    @functools.cached_property
    def _natural_sizes(self) -> tuple[str, ...]:
        return tuple(f"{affine.word(p)} >= 0" for p in self.parameters if p in self._sizes)

    @functools.cached_property
    def _sizes(self) -> frozenset[str]:
        return frozenset(
            affine.name_of(Size(name, axis))
            for name in self.kernel.parameters
            if name in self.kernel.buffers
            for axis in range(len(self.kernel.buffers[name].shape))
        )

    def _element(self, access: Access) -> str:
        owner = self.owners.get(access.target, ())
        free = (f"_d{k}" if i is None else i for k, i in enumerate(access.index))
        return f"{affine.word(access.target)}[{', '.join([*map(affine.word, owner), *free])}]"

    def _somewhere(self, access: Access) -> tuple[str, ...]:
        """Return that an index that isl cannot know is inside the buffer: else there is an error before."""
        if None not in access.index or self.session.blind:
            return ()
        sizes = (affine.text(e, self.known(())) for e in self.kernel.buffers[access.target].shape)
        rows = enumerate(zip(access.index, sizes, strict=True))
        return tuple(f"0 <= _d{k} < {size}" for k, (i, size) in rows if i is None and size is not None)

    def known(self, loops: Sequence[str]) -> frozenset[str]:
        """Return the names that may occur in affine expressions inside these loops."""
        return frozenset((*self.parameters, *loops))

    def _collect(self, body: tuple[Stmt, ...], at: _Point, reads: tuple[Access, ...]) -> None:
        for node in body:
            if isinstance(node, For):
                self._collect(node.body, self._inside(at, node), reads + self._head(at, node.lo, node.hi))
            elif isinstance(node, If):
                more = reads + self._head(at, node.condition)
                for part, holds in ((node.body, True), (node.orelse, False)):
                    said, exact = affine.condition(node.condition, self.known(at.loops), holds)
                    added = (*at.constraints, said) if said else at.constraints
                    inner = replace(at, constraints=added, definite=at.definite and exact)
                    self._collect(part, inner, more)
            else:
                found = (*reads, *self._of(node, at))
                self.leaves.append(
                    Leaf(
                        f"S{len(self.leaves)}",
                        node,
                        at.loops,
                        at.constraints,
                        at.definite,
                        found,
                        node.line,
                        at.ranges,
                    )
                )

    def _inside(self, at: _Point, loop: For) -> _Point:
        known = self.known((*at.loops, loop.var))
        ends = (*affine.at_least(loop.var, loop.lo, known), *affine.below(loop.var, loop.hi, known))
        return _Point(
            (*at.loops, loop.var),
            at.constraints + ends,
            at.ranges + ends,
            definite=at.definite and _is_exact(loop, known),
        )

    def _head(self, at: _Point, *exprs: Expr) -> tuple[Access, ...]:
        """Return the reads of a condition or of a loop's bounds: they happen whatever is inside."""
        found = (a for e in exprs for a in self._reads(e, at, ()))
        return tuple(replace(a, around=at.constraints, sure=at.definite) for a in found)

    def _of(self, node: Store | Assign, at: _Point) -> Iterator[Access]:
        for child in children(node):
            yield from self._reads(child, at, ())
        if isinstance(node, Store):
            index, target = self._index(node, at, ()), node.buffer
        else:
            index, target = (), node.name
        if node.op:
            yield Access(target, index, False, node.op, (), at.definite, node)
        yield Access(target, index, True, node.op, (), at.definite, node)

    def _reads(self, expr: Expr, at: _Point, guards: tuple[str, ...]) -> Iterator[Access]:
        if isinstance(expr, Load):
            yield Access(expr.buffer, self._index(expr, at, guards), False, "", guards, True, expr)
        elif isinstance(expr, Var) and expr.name in self.owners:
            yield Access(expr.name, (), False, "", guards, True, expr)
        if isinstance(expr, Op) and expr.name in ("select", "and", "or"):
            first, *rest = expr.args
            yield from self._reads(first, at, guards)
            for place, arg in enumerate(rest):
                holds = expr.name == "and" or (expr.name == "select" and place == 0)
                said, exact = affine.condition(first, self.known(at.loops), holds)
                more = guards if said is None else (*guards, said)
                for access in self._reads(arg, at, more):
                    yield access if exact else replace(access, must=False)
            return
        for child in children(expr):
            yield from self._reads(child, at, guards)

    def _index(self, node: Load | Store, at: _Point, guards: tuple[str, ...]) -> tuple[str | None, ...]:
        """Return the indices that isl can know: affine, and never counting from the end."""
        if self.session.blind:
            return (None,) * len(node.index)
        known = self.known(at.loops)
        found: list[str | None] = []
        for i, extent in zip(node.index, self.kernel.buffers[node.buffer].shape, strict=True):
            index, size = affine.text(i, known), affine.text(extent, self.known(()))
            if index is not None and not self.counts_up(i):
                wraps = f"{index} < 0" + ("" if size is None else f" and {index} + {size} >= 0")
                if not self._set(_iteration(at.loops), at.constraints, [*guards, wraps]).is_empty():
                    index = None
            found.append(index)
        return tuple(found)

    def _find_natural(self) -> set[str]:
        """Return what is never negative: sizes, and loops that all start so, those of one name together."""
        loops = [s for s in statements(self.kernel.body) if isinstance(s, For)]
        natural = {"", *self._sizes, *(loop.var for loop in loops)}
        while below := {s.var for s in loops if s.var in natural and not _counts_up(s.lo, natural)}:
            natural -= below
        return natural

    def counts_up(self, expr: Expr) -> bool:
        """Whether an expression is plainly not negative: made of sizes and loops that start so."""
        return _counts_up(expr, self._natural)


def _counts_up(expr: Expr, natural: set[str]) -> bool:
    if isinstance(expr, Op) and expr.name == "max":
        return any(_counts_up(arg, natural) for arg in expr.args)
    form = affine.linear(expr)
    return form is not None and all(c >= 0 and n in natural for n, c in form.items())


def _iteration(loops: Sequence[str]) -> str:
    return f"I[{', '.join(map(affine.word, loops))}]"


def _is_exact(loop: For, known: frozenset[str]) -> bool:
    return affine.is_exact(loop.lo, known) and affine.is_exact(loop.hi, known)


def _parameters(kernel: Kernel) -> dict[str, Var | Size]:
    """Return the sizes and integer attributes that the kernel reads, by their names in linear forms."""
    found: dict[str, Var | Size] = {}
    nodes = [e for s in statements(kernel.body) for e in walk(s)]
    nodes += [e for b in kernel.buffers.values() for size in b.shape for e in walk(size)]
    for node in nodes:
        if isinstance(node, Size) or (
            isinstance(node, Var) and node.name in kernel.attributes and affine.is_integer(node.type)
        ):
            found.setdefault(affine.name_of(node), node)
    return found


def scalar_owners(kernel: Kernel) -> dict[str, tuple[str, ...]]:
    """Return the loops around the first assignment of each scalar."""
    found: dict[str, tuple[str, ...]] = {}

    def visit(body: tuple[Stmt, ...], loops: tuple[str, ...]) -> None:
        for node in body:
            if isinstance(node, For):
                visit(node.body, (*loops, node.var))
            elif isinstance(node, If):
                visit(node.body, loops)
                visit(node.orelse, loops)
            elif isinstance(node, Assign):
                found.setdefault(node.name, loops)

    visit(kernel.body, ())
    return found
