"""The polyhedral model of a kernel: statement instances, and the elements that each instance touches.

    for i in range(n):              instances  S0[i] : 0 <= i < n
        y[i] = x[i + 1]             read       S0[i] -> x[i + 1]
                                    write      S0[i] -> y[i]

An *instance* is one execution of a statement, for one value of each loop variable. What isl cannot express
(a condition or an index that reads a tensor) is left out of the constraints, so a set may have too many
instances, never too few; ``must``, ``definite`` and ``exact`` tell where it is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.locks import cached_property
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
from .delinearised import Pair, product_and_rest, with_pairs
from .session import IslSession

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Access:
    """One read or write of a buffer or scalar by one statement.

    ``index`` has isl's text for each dimension, or None where the index is not affine. ``op`` is the
    reduction's operator. ``guards`` are conditions inside the expression, such as a select's. ``must``: every
    instance of the statement makes the access. ``node`` is the Load, Store or Assign.
    """

    target: str
    index: tuple[str | None, ...]
    write: bool
    op: str
    guards: tuple[str, ...]
    must: bool
    node: Any
    around: tuple[str, ...] | None = None
    """For a read in a condition or a loop's bound: its own constraints; those of the leaf are narrower."""
    sure: bool = True
    """For such a read: whether ``around`` is exact."""
    pairs: Mapping[int, Pair] = field(default_factory=dict)
    """By axis, the index where it is a pair: ``index`` has None there."""

    @property
    def free(self) -> list[int]:
        """The axes along which nothing is known of the touched elements."""
        pairs = self.shared_pairs
        return [k for k, index in enumerate(self.index) if index is None and k not in pairs]

    @property
    def shared_pairs(self) -> dict[int, Pair]:
        """The pairs by which the elements of an axis are told apart."""
        return {k: pair for k, pair in self.pairs.items() if pair.shared}

    @property
    def exact(self) -> bool:
        """Whether the touched elements are known exactly."""
        return self.must and not self.free


@dataclass(frozen=True, eq=False)
class Leaf:
    """A Store or Assign. ``vars`` are its loops, outermost first; their order never changes.

    ``constraints`` say when it runs, and ``definite`` whether they say all of it. ``ranges`` are the
    constraints from loops alone, without conditions but those around all loops.
    """

    id: str
    node: Store | Assign
    vars: tuple[str, ...]
    constraints: tuple[str, ...]
    definite: bool
    accesses: tuple[Access, ...]
    line: int
    ranges: tuple[str, ...] = ()
    arms: frozenset[tuple[int, bool]] = frozenset()
    """The conditions outside all loops that it is under, by number, and whether they hold."""

    def excludes(self, other: Leaf) -> bool:
        """Whether a call that runs one of the two leaves does not run the other."""
        return any((number, not holds) in other.arms for number, holds in self.arms)


@dataclass(frozen=True)
class _Context:
    """The surroundings of a statement: loops, all constraints, those without conditions in loops."""

    loops: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    definite: bool = True
    arms: frozenset[tuple[int, bool]] = frozenset()


class Model:
    """The leaves of a kernel in program order, and isl's sets and maps of them.

    ``owners`` maps each private buffer to the loops (outermost first) whose iterations each have a copy: the
    variables of these loops become further dimensions of the buffer.
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
        self._conditions = 0
        self._nonnegative = self._find_nonnegative()
        self._maps: dict[tuple[str, int], Any] = {}
        self._collect(kernel.body, _Context(), ())
        self.leaves = self.leaves if session.blind else with_pairs(self.leaves, self._pair)

    def map(self, leaf: Leaf, access: Access) -> Any:
        """Return the isl map from instances of the leaf to elements of the target."""
        key = (leaf.id, id(access))  # all leaves under a condition share its reads
        if key not in self._maps:
            relation = self._make_map(leaf, access)
            self._maps[key] = relation.set_tuple_name(self.isl.dim_type.in_, leaf.id)
        return self._maps[key]

    def _make_map(self, leaf: Leaf, access: Access) -> Any:
        """Return the map of an access; leaves in the same loops share maps to the same elements."""
        head = f"{_iteration(leaf.vars)} -> {self._element(access)}"
        assumed = self._assumed_inside(access)
        key = (self._prefix, self._size_constraints, head, assumed, leaf.constraints, access.guards)
        if key not in self.session.cache:
            whole = self._read("Map", head, assumed)
            inside = self._set(_iteration(leaf.vars), leaf.constraints, access.guards)
            self.session.cache[key] = whole.intersect_domain(inside)
        return self.session.cache[key]

    def sizes_where(self, leaf: Leaf, access: Access, condition: str) -> Any | None:
        """Return the sizes and attributes for which an instance of an access fulfils a condition, if any."""
        around = leaf.constraints if access.around is None else access.around
        return self._sizes_where(leaf, around, (*access.guards, condition))

    def holds(self, test: Expr) -> bool:
        """Whether a condition is proved for all sizes and attributes that the session assumes."""
        violated, _ = affine.condition(test, self.affine_names(()), holds=False)
        return violated is not None and self._is_impossible(self.parameter_set([violated]))

    def sizes_where_in_loops(
        self, leaf: Leaf, condition: str, loops: Sequence[For] | None = None
    ) -> Any | None:
        """Return the sizes and attributes for which an iteration of loops fulfils a condition, if any.

        ``loops`` are in place of those around the leaf, with the same variables.
        """
        around = leaf.ranges if loops is None else tuple(self._ends(loops))
        return self._sizes_where(leaf, around, (condition,))

    def _ends(self, loops: Sequence[For]) -> Iterator[str]:
        for number, loop in enumerate(loops, 1):
            known = self.affine_names([each.var for each in loops[:number]])
            yield from affine.at_least(loop.var, loop.lo, known)
            yield from affine.below(loop.var, loop.hi, known)

    def _sizes_where(self, leaf: Leaf, constraints: tuple[str, ...], more: tuple[str, ...]) -> Any | None:
        cache = self.session.cache
        key = (self._prefix, self._size_constraints, leaf.vars, constraints, more)
        if key not in cache:
            instances = self._set(_iteration(leaf.vars), constraints, more)
            cache[key] = None if self._is_impossible(instances) else instances.params().coalesce()
        return cache[key]

    def box(self, name: str, dims: Sequence[str], constraints: Sequence[str]) -> Any:
        """Return the isl set of elements ``name[dims]`` with these constraints."""
        return self._set(f"{affine.word(name)}[{', '.join(dims)}]", constraints, ())

    def parameter_set(self, constraints: Sequence[str]) -> Any:
        """Return the isl set of sizes and attributes with these constraints."""
        return self._set("", constraints, ())

    def _set(self, head: str, constraints: Sequence[str], more: Sequence[str]) -> Any:
        """Return the set of ``head`` with constraints. ``more`` are constraints that few other sets share."""
        whole = self._read("Set", head, (*self._size_constraints, *constraints))
        if head and self.session.sizes:
            whole = self._within_assumed_sizes(
                whole, (self._prefix, self._size_constraints, head, *constraints)
            )
        return whole.intersect(self._read("Set", head, tuple(more))) if more else whole

    def _within_assumed_sizes(self, whole: Any, key: Any) -> Any:
        """Return the part of a set for the assumed sizes, unless that splits it into more pieces."""
        cache = self.session.cache
        if key not in cache:
            for sizes in self._assumed_sizes:
                part = whole.intersect_params(sizes).coalesce()
                whole = part if part.n_basic_set() <= whole.n_basic_set() else whole
            cache[key] = whole
        return cache[key]

    def _is_impossible(self, instances: Any) -> bool:
        """Whether a set is empty for the assumed sizes, also for those that would split it into pieces."""
        for sizes in self._assumed_sizes:
            if instances.is_empty():
                break
            # as few pieces as can be: the next sizes multiply them
            instances = instances.intersect_params(sizes).coalesce()
        return bool(instances.is_empty())

    @cached_property
    def _assumed_sizes(self) -> tuple[Any, ...]:
        """The sets of sizes that the session assumes, without the parameters that this kernel has not.

        A pass may drop a tensor after its sizes were assumed: what follows for the others stays true.
        """
        words = {affine.word(p) for p in self.parameters}
        kind = self.isl.dim_type.param
        rows = []
        for sizes in self.session.sizes:
            for k in reversed(range(sizes.dim(kind))):
                if sizes.get_dim_name(kind, k) not in words:
                    sizes = sizes.project_out(kind, k, 1)  # noqa: PLW2901 - one parameter less each time
            rows.append(sizes)
        return tuple(rows)

    def _read(self, kind: str, head: str, constraints: tuple[str, ...] = ()) -> Any:
        """Return the isl value of a text.

        Only the parameters that the text names are declared: declaring all takes most of the time.
        """
        body = f"{head} : {' and '.join(constraints)}" if constraints or not head else head
        body = f"{body}0 = 0" if body == " : " else body
        cache = self.session.cache
        key = (kind, self._prefix, body)
        if key not in cache:
            words = {*_WORD.findall(body)}
            named = [p for p in map(affine.word, self.parameters) if p in words]
            value = self._isl(kind, f"[{', '.join(named)}] -> {{ {body} }}")
            cache[key] = value.align_params(self._space)
        return cache[key]

    def _isl(self, kind: str, text: str) -> Any:
        return getattr(self.isl, kind).read_from_str(self.session.context, text)

    @property
    def _space(self) -> Any:
        """Return isl's space of all parameters."""
        cache = self.session.cache
        if self._prefix not in cache:
            cache[self._prefix] = self._isl("Set", f"{self._prefix} -> {{ : }}").get_space()
        return cache[self._prefix]

    @cached_property
    def _prefix(self) -> str:
        return f"[{', '.join(map(affine.word, self.parameters))}]"

    @cached_property
    def _size_constraints(self) -> tuple[str, ...]:
        return tuple(f"{affine.word(p)} >= 0" for p in self.parameters if p in self._sizes)

    @cached_property
    def _sizes(self) -> frozenset[str]:
        return frozenset(
            affine.name_of(Size(name, axis))
            for name in self.kernel.parameters
            if name in self.kernel.buffers
            for axis in range(len(self.kernel.buffers[name].shape))
        )

    def _element(self, access: Access) -> str:
        owner = self.owners.get(access.target, ())
        places = [f"_d{k}" if i is None else i for k, i in enumerate(access.index)]
        for axis, pair in access.shared_pairs.items():
            places[axis] = f"{pair.quotient}, {pair.remainder}"
        return f"{affine.word(access.target)}[{', '.join([*map(affine.word, owner), *places])}]"

    def _assumed_inside(self, access: Access) -> tuple[str, ...]:
        """Return constraints that a non-affine index is inside its buffer; outside, the kernel has failed."""
        if None not in access.index or self.session.blind:
            return ()
        sizes = [affine.text(e, self.affine_names(())) for e in self.kernel.buffers[access.target].shape]
        return tuple(f"0 <= _d{k} < {sizes[k]}" for k in access.free if sizes[k] is not None)

    def affine_names(self, loops: Sequence[str]) -> frozenset[str]:
        """Return the names that may occur in affine expressions inside these loops."""
        return frozenset((*self.parameters, *loops))

    def _collect(self, body: tuple[Stmt, ...], context: _Context, reads: tuple[Access, ...]) -> None:
        for node in body:
            if isinstance(node, For):
                self._collect(
                    node.body,
                    self._enter(context, node),
                    reads + self._control_reads(context, node.lo, node.hi),
                )
            elif isinstance(node, If):
                more = reads + self._control_reads(context, node.condition)
                self._conditions += 1
                number = self._conditions
                for part, holds in ((node.body, True), (node.orelse, False)):
                    text, exact = affine.condition(node.condition, self.affine_names(context.loops), holds)
                    added = (*context.constraints, text) if text else context.constraints
                    arm = () if context.loops else ((number, holds),)
                    inner = replace(
                        context,
                        constraints=added,
                        definite=context.definite and exact,
                        arms=context.arms.union(arm),
                    )
                    inner = inner if context.loops else replace(inner, ranges=added)
                    self._collect(part, inner, more)
            else:
                accesses = (*reads, *self._own_accesses(node, context))
                self.leaves.append(
                    Leaf(
                        f"S{len(self.leaves)}",
                        node,
                        context.loops,
                        context.constraints,
                        context.definite,
                        accesses,
                        node.line,
                        context.ranges,
                        context.arms,
                    )
                )

    def _enter(self, context: _Context, loop: For) -> _Context:
        known = self.affine_names((*context.loops, loop.var))
        ends = (*affine.at_least(loop.var, loop.lo, known), *affine.below(loop.var, loop.hi, known))
        return _Context(
            (*context.loops, loop.var),
            context.constraints + ends,
            context.ranges + ends,
            definite=context.definite and _is_exact(loop, known),
            arms=context.arms,
        )

    def _control_reads(self, context: _Context, *exprs: Expr) -> tuple[Access, ...]:
        """Return the reads of a condition or of a loop's bounds: they do not depend on what is inside."""
        reads = (a for e in exprs for a in self._reads(e, context, ()))
        return tuple(replace(a, around=context.constraints, sure=context.definite) for a in reads)

    def _own_accesses(self, node: Store | Assign, context: _Context) -> Iterator[Access]:
        for child in children(node):
            yield from self._reads(child, context, ())
        if isinstance(node, Store):
            index, target = self._index(node, context, ()), node.buffer
        else:
            index, target = (), node.name
        if node.op:
            yield Access(target, index, False, node.op, (), context.definite, node)
        yield Access(target, index, True, node.op, (), context.definite, node)

    def _reads(self, expr: Expr, context: _Context, guards: tuple[str, ...]) -> Iterator[Access]:
        if isinstance(expr, Load):
            yield Access(expr.buffer, self._index(expr, context, guards), False, "", guards, True, expr)
        elif isinstance(expr, Var) and expr.name in self.owners:
            yield Access(expr.name, (), False, "", guards, True, expr)
        if isinstance(expr, Op) and expr.name in ("select", "and", "or"):
            first, *rest = expr.args
            yield from self._reads(first, context, guards)
            for place, arg in enumerate(rest):
                holds = expr.name == "and" or (expr.name == "select" and place == 0)
                text, exact = affine.condition(first, self.affine_names(context.loops), holds)
                more = guards if text is None else (*guards, text)
                for access in self._reads(arg, context, more):
                    yield access if exact else replace(access, must=False)
            return
        for child in children(expr):
            yield from self._reads(child, context, guards)

    def _index(
        self, node: Load | Store, context: _Context, guards: tuple[str, ...]
    ) -> tuple[str | None, ...]:
        """Return affine indices as isl's text; None for others and for those that may count from the end."""
        if self.session.blind:
            return (None,) * len(node.index)
        known = self.affine_names(context.loops)
        indices: list[str | None] = []
        for i, extent in zip(node.index, self.kernel.buffers[node.buffer].shape, strict=True):
            index, size = affine.text(i, known), affine.text(extent, self.affine_names(()))
            if index is not None and not self.is_nonnegative(i):
                wraps = f"{index} < 0" + ("" if size is None else f" and {index} + {size} >= 0")
                if not self._is_impossible(
                    self._set(_iteration(context.loops), context.constraints, [*guards, wraps])
                ):
                    index = None
            indices.append(index)
        return tuple(indices)

    def _pair(self, leaf: Leaf, access: Access, axis: int) -> Pair | None:
        """Return an index that is not affine as a pair, if the remainder is proved to be one."""
        found = product_and_rest(access.node.index[axis], leaf.vars) if access.index[axis] is None else None
        parts = [affine.text(part, self.affine_names(leaf.vars)) for part in found or ()]
        quotient, extent, rest = parts or (None, None, None)
        if quotient is None or extent is None or rest is None:
            return None
        outside = f"({quotient} < 0 or {rest} < 0 or {rest} >= {extent})"
        if self.sizes_where(leaf, access, outside) is not None:
            return None
        return Pair(quotient, extent, rest, self._greatest(leaf, access, quotient))

    def _greatest(self, leaf: Leaf, access: Access, value: str) -> int | None:
        """Return the greatest value of an affine expression in an access's instances, None without bound.

        It is -1 where there is no instance.
        """
        around = leaf.constraints if access.around is None else access.around
        head = _iteration(leaf.vars)
        instances = self._set(head, around, access.guards)
        values = self._read("Map", f"{head} -> [{value}]").intersect_domain(instances).range()
        most = None if values.is_empty() else values.dim_max_val(0)
        return -1 if most is None else int(most.to_python()) if most.is_int() else None

    def _find_nonnegative(self) -> set[str]:
        """Return the names of sizes, and of the loops that never start below 0: these are not negative."""
        loops = [s for s in statements(self.kernel.body) if isinstance(s, For)]
        names = {"", *self._sizes, *(loop.var for loop in loops)}
        while below := {s.var for s in loops if s.var in names and not _is_nonnegative(s.lo, names)}:
            names -= below
        return names

    def is_nonnegative(self, expr: Expr) -> bool:
        """Whether an expression is a sum of sizes and loop variables that are not negative."""
        return _is_nonnegative(expr, self._nonnegative)


def _is_nonnegative(expr: Expr, nonnegative: set[str]) -> bool:
    if isinstance(expr, Op) and expr.name == "max":
        return any(_is_nonnegative(arg, nonnegative) for arg in expr.args)
    form = affine.linear(expr)
    return form is not None and all(c >= 0 and n in nonnegative for n, c in form.items())


def _iteration(loops: Sequence[str]) -> str:
    return f"I[{', '.join(map(affine.word, loops))}]"


def _is_exact(loop: For, known: frozenset[str]) -> bool:
    return affine.is_exact(loop.lo, known) and affine.is_exact(loop.hi, known)


def _parameters(kernel: Kernel) -> dict[str, Var | Size]:
    """Return the sizes and integer attributes that the kernel reads, by their names in linear forms."""
    result: dict[str, Var | Size] = {}
    nodes = [e for s in statements(kernel.body) for e in walk(s)]
    nodes += [e for b in kernel.buffers.values() for size in b.shape for e in walk(size)]
    nodes += [e for demand in kernel.demands for e in walk(demand.condition)]
    for node in nodes:
        if isinstance(node, Size) or (
            isinstance(node, Var) and node.name in kernel.attributes and affine.is_integer(node.type)
        ):
            result.setdefault(affine.name_of(node), node)
    return result


def scalar_owners(kernel: Kernel) -> dict[str, tuple[str, ...]]:
    """Return the loops around the first assignment of each scalar."""
    owners: dict[str, tuple[str, ...]] = {}

    def visit(body: tuple[Stmt, ...], loops: tuple[str, ...]) -> None:
        for node in body:
            if isinstance(node, For):
                visit(node.body, (*loops, node.var))
            elif isinstance(node, If):
                visit(node.body, loops)
                visit(node.orelse, loops)
            elif isinstance(node, Assign):
                owners.setdefault(node.name, loops)

    visit(kernel.body, ())
    return owners
