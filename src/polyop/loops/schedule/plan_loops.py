"""Choose what each loop becomes: threads, vector lanes, register tiles, or a plain loop.

The rules, outermost loops first:

threads   The first parallel loop, with the parallel loops directly in it: they share all iterations. Or a
          reduction whose result has fewer dimensions than its nest: all threads but the first then have a
          copy of the result. Or a sequential loop that threads can partition (thread_partition.py).
vector    In each nest, the loop along which accesses to memory cost least. Not a window: it is taken to be
          short.
tile      A vector loop around sums, inside a parallel loop. The sums of several iterations of both stay in
          registers, and operands that the rows share are packed into a panel.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from ..analysis import affine
from ..analysis.bounds import Bounds, key
from ..analysis.cost import arithmetic, work
from ..analysis.dependence import Kind
from ..analysis.ranges import SHORT, compared
from ..analysis.refused import order
from ..analysis.strides import (
    COSTS,
    IN_ROW,
    OF_COLUMN,
    OF_PAIRS,
    STRIDED,
    UNIT,
    depends,
    is_of_pairs,
    may_be_adjacent,
    stride,
)
from ..analysis.transposes import transposed_loads
from ..ir.grammar import (
    INT,
    Assign,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    perfect,
    statements,
    walk,
)
from ..ir.note import Note
from ..ir.plan import Plan, Tile
from ..ir.stops import stop_flags
from ..ir.types import NARROW
from ..ir.uses import accesses_of, loads_of, stored_by, tensors_of, variables_of
from ..program import Program
from .dots import dots_of
from .roles import Roles, check_plan, check_roles, roles_of
from .thread_partition import ThreadPartition, thread_partition

MAX_COLLAPSED = 3
"""The most loops that are one loop for the threads."""
LANES = 8
"""The number of lanes of a vector, for estimates."""
SHARED, TRANSPOSED = 0.5, 2.0
"""Costs of a load that the rows of a register tile share, and of one that is transposed in registers."""


def plan_loops(program: Program) -> Program:
    """Return the program with the role of each loop."""
    partition = thread_partition(program)
    roles = roles_of(program)
    planner = Planner(program.kernel, program.kinds, program.bounds, program.owners, partition, roles)
    check_roles(program, planner)
    notes = planner.run()
    check_plan(program, planner)
    return program.with_(*notes, plan=planner.plan)


class Planner:
    """Chooses a plan for one kernel."""

    def __init__(
        self,
        kernel: Kernel,
        kinds: Mapping[str, Kind],
        bounds: Bounds,
        owners: Mapping[str, tuple[str, ...]],
        partition: ThreadPartition,
        roles: Roles,
    ) -> None:
        self.kernel, self.kinds, self.bounds, self.owners = kernel, kinds, bounds, owners
        self.partition, self.roles = partition, roles
        self.plan = Plan()
        self.notes: list[Note] = []

    def run(self) -> list[Note]:
        """Fill the plan; return notes that give the reasons."""
        self._threads(self.kernel.body)
        return self.notes

    def kind(self, loop: For) -> str:
        """Return "parallel", "reduction" or "sequential"; ``serial`` makes a loop sequential.

        The author's schedule comes before the hints in the text.
        """
        if loop.hint in ("serial", "border") and not self.roles.names(loop.var):
            return "sequential"
        kind = self.kinds.get(loop.var, Kind("parallel"))
        over = {name for name, _ in kind.over}
        inside = [s for s in statements(loop.body) if isinstance(s, Assign) and s.name not in over]
        # a scalar from outside that only one iteration sets is no conflict, but its value must leave the loop
        outlives = any(self._outlives(s.name, loop) for s in inside)
        return "sequential" if outlives else kind.name

    # threads

    def _has_chosen(self, node: For) -> bool:
        """Whether the schedule puts a loop inside on threads, and not this one."""
        inside = {s.var for s in statements(node.body) if isinstance(s, For)}
        return node.var not in self.roles.parallel and bool(self.roles.parallel.keys() & inside)

    def _threads(self, body: Sequence[Stmt]) -> None:
        for node in body:
            if isinstance(node, If):
                self._threads(node.body)
                self._threads(node.orelse)
            if not isinstance(node, For):
                continue
            kind = self.kind(node)
            if node.var not in self.roles.parallel and self.roles.has_parallel(node.body, self.partition):
                self.note(node, "in order: a loop inside is on threads, as the schedule says")
                self._threads(node.body)
            elif kind == "reduction" and self._has_chosen(node):
                self._threads(node.body)  # the schedule's loop is on threads, not this one
            elif kind == "parallel" or (kind == "reduction" and self.divisible(node)):
                self._on_threads(node, kind)
            elif kind == "reduction" and not any(isinstance(s, For) for s in node.body):
                self._vectors(node)
            elif node.var in self.partition.columns:
                self._columns(node)
            elif node.var in self.partition.rows:
                row = self.plan.rows[node.var] = self.partition.rows[node.var]
                self.note(node, f"on all threads, each for its own part of {row.buffer}, in order")
                self._threads(node.body)
            else:
                self._note_order(node)
                self._threads(node.body)

    def _note_order(self, node: For) -> None:
        """Note why a loop runs in order."""
        conflict = self.kinds[node.var].because if node.var in self.kinds else None
        if node.hint == "serial":
            self.note(node, "in order, as serial() asks")
        elif self.roles.deterministic and self.kind(node) == "reduction":
            self.note(node, "in order: deterministic() keeps each sum in one thread")
        elif conflict is not None:
            self.note(node, f"in order: {order(conflict)}")

    def _on_threads(self, node: For, kind: str) -> None:
        self.plan.threads.add(node.var)
        if kind == "reduction":
            self.plan.private[node.var] = self.kinds[node.var].over
            shared = ", ".join(name for name, _ in self.kinds[node.var].over)
            self.note(node, f"on all threads, each with its own {shared}, added up at the end")
        else:
            self.note(node, "parallel: on all threads")
        self._vectors(node)
        self._collapse(node)
        self._share_lanes(node)

    def _collapse(self, node: For) -> None:
        """Let threads share the iterations of a nest: its outer loop may be too short for them.

        All its loops are parallel, or all of them sum into the same tensors.
        """
        outer, *inner = perfect(node)
        chosen = list[For]()
        for loop in inner[: MAX_COLLAPSED - 1]:
            variables = frozenset({outer.var, *(each.var for each in chosen)})
            lane = loop.body[0] if isinstance(loop.body[0], For) else None
            is_row = lane is not None and lane.var in self.plan.tiles
            if not self._is_alike(loop, node) or loop.var in self.plan.vector or is_row:
                break
            if any(depends(e, variables) or loads_of(e) for e in (loop.lo, loop.hi)) or loop.hint:
                break
            chosen.append(loop)
        if chosen and node.var not in self.plan.vector and not stop_flags(node):
            self.plan.collapsed[node.var] = tuple(loop.var for loop in chosen)
            names = " and ".join(loop.var for loop in chosen)
            self.note(node, f"threads share its iterations together with those of {names}")

    def _is_alike(self, loop: For, other: For) -> bool:
        """Whether two loops are parallel, or sum into the same tensors, both."""
        return self.kind(loop) == self.kind(other) and self._over(loop) == self._over(other)

    def _over(self, loop: For) -> frozenset[tuple[str, str]]:
        """Return what a loop sums into, with the operators."""
        return frozenset(self.kinds[loop.var].over) if loop.var in self.kinds else frozenset()

    def _share_lanes(self, node: For) -> None:
        """Let threads share the lanes of a tile in a loop, too: loops around it are parallel or sum alike."""
        nest = perfect(node)
        for row, lane in itertools.pairwise(nest):
            if lane.var in self.plan.tiles and row is not node and not stop_flags(node):
                around = nest[: nest.index(row)]
                if all(self.kind(loop) == "parallel" or self._is_alike(loop, node) for loop in around):
                    self.plan.blocks[node.var] = lane.var
                    self.note(node, f"where it is short, threads share the lanes of loop {lane.var}, too")

    def _columns(self, node: For) -> None:
        inner = next(
            s for s in statements((node,)) if isinstance(s, For) and s.var == self.partition.columns[node.var]
        )
        self.plan.threads.add(inner.var)
        self.plan.columns[node.var] = inner.var
        self.note(node, f"in order on all threads, each with its own part of loop {inner.var}")
        self._vectors(inner)

    def divisible(self, loop: For) -> bool:
        """Whether each thread can have a copy of the results of a reduction, to be combined in the end."""
        if self.roles.deterministic:
            return False
        inner = [s for s in statements((loop,)) if isinstance(s, For)]
        over = self.kinds[loop.var].over
        if len({name for name, _ in over}) < len(over):
            return False  # two operators on one tensor: a copy starts with the neutral element of one
        for name, op in over:
            buffer = self.kernel.buffers.get(name)
            if buffer is None:
                continue
            stores = [s for s in statements(loop.body) if isinstance(s, Store) and s.buffer == name]
            # a store to another element would go to the thread's copy as well
            if any(s.op != op for s in stores) or self._read(loop, name):
                return False
            if len(buffer.shape) > len(inner) - 1 or buffer.dtype in (*NARROW, "bool"):
                return False
        names = {name for name, _ in self.kinds[loop.var].over}
        return not any(isinstance(e, Var) and e.name in names for s in statements(loop.body) for e in walk(s))

    def _read(self, loop: For, name: str) -> bool:
        return name in tensors_of(*statements((loop,)))

    # vectors

    def _vectors(self, node: For) -> None:
        _, chosen = self._best(node, ())
        for loop, parents in chosen:
            self.plan.vector.add(loop.var)
            tile = self._tile(loop, parents)
            if tile is not None:
                self.plan.tiles[loop.var] = tile
                packed = ", operands packed" if tile.to_pack else ""
                self.note(loop, f"tiled in registers with loop {tile.row}{packed}")
                for dot in tile.dots:
                    terms = "two" if dot.kind == "i16" else "four"
                    self.note(
                        loop, f"{dot.total} is summed {terms} products at a time: their factors are narrow"
                    )
            sums = " (sums are kept per lane)" if self.kind(loop) == "reduction" else ""
            self.note(loop, f"vector lanes{sums}")
        self._note_plain((node,), {loop.var for loop, _ in chosen})

    def _note_plain(self, body: Sequence[Stmt], chosen: set[str]) -> None:
        """Note which innermost loops are not vector loops, and why."""
        for node in body:
            if isinstance(node, If):
                self._note_plain((*node.body, *node.orelse), chosen)
            if not isinstance(node, For) or node.var in chosen or node.hint == "border":
                continue
            if any(isinstance(s, For) for s in statements(node.body)):
                self._note_plain(node.body, chosen)
            else:
                self.note(node, f"no vector: {self.blocked(node) or 'its steps through memory cost more'}")

    def _best(self, node: For, parents: tuple[For, ...]) -> tuple[float, list[tuple[For, tuple[For, ...]]]]:
        """Return the cost of a loop with the cheapest choice of vector loops in it, and these loops.

        Each vector loop comes with the loops around it.
        """
        inner_cost, chosen = self._inner(node.body, (*parents, node))
        if node.var in self.roles.vectorize:
            return inner_cost * 16, [(node, parents)]
        window = any(_is_window(node, loop) for loop, _ in chosen)
        if not window and self.blocked(node) is None and not self.roles.has_vectorize(node.body):
            tile = self._tile(node, parents)
            own = self._cost(node.body, node, 1.0, dict.fromkeys(tile.shared if tile else (), SHARED)) / LANES
            # on a tie, the inner loop, but never a short one
            if own < inner_cost or any(_is_window(loop, node) for loop, _ in chosen):
                return own * _iterations(node), [(node, parents)]
        return inner_cost * _iterations(node), chosen

    def _inner(
        self, body: Sequence[Stmt], parents: tuple[For, ...]
    ) -> tuple[float, list[tuple[For, tuple[For, ...]]]]:
        total, chosen = 0.0, []
        for node in body:
            if isinstance(node, For):
                cost, more = self._best(node, parents)
                chosen += more
            elif isinstance(node, If):
                one, more = self._inner(node.body, parents)
                other, rest = self._inner(node.orelse, parents)
                cost, chosen = one + other, [*chosen, *more, *rest]
            else:
                cost = work(node)
            total += cost
        return total, chosen

    def _cost(self, body: Sequence[Stmt], loop: For, weight: float, known: Mapping[Load, float]) -> float:
        """Return the cost of statements for one vector of iterations; ``known`` has costs of loads."""
        total = 0.0
        for node in body:
            if isinstance(node, For):
                more = {**known, **dict.fromkeys(transposed_loads(node, loop.var), TRANSPOSED)}
                total += self._cost(node.body, loop, weight * _iterations(node), more)
            elif isinstance(node, If):
                total += self._cost(node.body, loop, weight, known)
                total += self._cost(node.orelse, loop, weight, known)
            else:
                accesses = loads_of(node)
                accesses += [node] if isinstance(node, Store) else []  # type: ignore[list-item]
                steps = (known.get(a, COSTS[self._stride(a, loop)]) for a in accesses)
                total += weight * sum(steps)
                total += weight * arithmetic(node)
        return total

    def _stride(self, access: Load | Store, loop: For) -> str:
        """Return the stride of an access; the private elements of the lanes are adjacent."""
        if loop.var in self.owners.get(access.buffer, ()):
            return UNIT
        buffer, kind = self.kernel.buffers[access.buffer], stride(access, loop.var)
        if is_of_pairs(access, loop.var, buffer):
            return OF_PAIRS
        if kind == STRIDED and may_be_adjacent(access, loop.var, buffer):
            return OF_COLUMN
        in_row = kind == STRIDED and not any(depends(i, frozenset({loop.var})) for i in access.index[:-1])
        return IN_ROW if in_row else kind

    def blocked(self, loop: For) -> str | None:
        """Return why the loop's iterations cannot be lanes, or None."""
        kind = self.kind(loop)
        if kind == "sequential":
            return "its iterations depend on each other"
        over = self.kinds[loop.var].over if loop.var in self.kinds else ()
        if kind == "reduction" and any(name in self.kernel.buffers for name, _ in over):
            return "it reduces into a tensor"
        inside = list(statements(loop.body))
        varying = {loop.var} | {s.name for s in inside if isinstance(s, Assign)}
        private = {n for n, owners in self.owners.items() if loop.var in owners}
        names = frozenset(varying | private)
        if any(isinstance(s, For) and (depends(s.lo, names) or depends(s.hi, names)) for s in inside):
            return "an inner loop's bounds differ between its iterations"
        if any(isinstance(s, For) and stop_flags(s) for s in inside):
            return "an inner loop ends at another iteration in each of its iterations"
        for node in inside:
            if isinstance(node, If) and depends(node.condition, names):
                if any(isinstance(s, For) for s in statements((*node.body, *node.orelse))):
                    return "a condition that differs between its iterations holds a loop"
                if any(self._unsafe(s, names) for s in statements((*node.body, *node.orelse))):
                    return "an access under a condition may be outside its tensor without it"
        accesses = accesses_of(loop.body)
        if any(a.buffer in private and any(depends(i, names) for i in a.index) for a in accesses):
            return "its iterations use different elements of tensors of their own"
        return None

    def _outlives(self, name: str, loop: For) -> bool:
        """Whether a scalar that the loop assigns lives outside it."""

        def count(body: Sequence[Stmt]) -> int:
            return sum(isinstance(s, Assign) and s.name == name for s in statements(tuple(body)))

        return count(self.kernel.body) > count(loop.body)

    def _unsafe(self, node: Stmt, lanes: frozenset[str]) -> bool:
        """Whether a statement under a condition has an access that may be out of range without it."""
        loads = loads_of(node)
        accesses: list[Load | Store] = [*loads, *([node] if isinstance(node, Store) else [])]
        shared = [a for a in loads if not any(depends(i, lanes) for i in a.index)]
        return any(key(a) in self.bounds.guarded for a in accesses) or any(map(self.bounds.axes, shared))

    # tiles

    def _tile(self, loop: For, parents: tuple[For, ...]) -> Tile | None:
        """Return the register tile for a vector loop if the rows around it share loads, else None."""
        sums = [s for s in statements(loop.body) if isinstance(s, For)]
        if not parents or not sums or self.kind(loop) != "parallel":
            return None
        row = parents[-1]
        if self.kind(row) != "parallel" or len(row.body) != 1 or row.body[0] is not loop:
            return None
        borders = [s for f in sums if f.hint == "border" for s in statements(f.body) if isinstance(s, If)]
        if any(loads_of(s) or s.orelse for s in borders) or any(
            isinstance(s, If) and not (s in borders or tests_for_iterations(s)) for s in statements(loop.body)
        ):
            return None
        fixed = frozenset({row.var})
        if any(depends(e, fixed) for s in sums for e in (s.lo, s.hi)):
            return None
        if any({row.var, loop.var} & {*owners} for owners in self.owners.values()):
            return None
        if not _rectangular(loop, row):
            return None
        inner = [s for f in sums for s in statements(f.body) if not isinstance(s, For)]
        loads = loads_of(*inner)
        written = stored_by(loop.body)
        shared = [e for e in loads if not _touches(e, row.var)]
        if not shared or not any(not _touches(e, loop.var) for e in loads):
            return None
        indices = [i for e in [*loads, *inner] if isinstance(e, (Load, Store)) for i in e.index]
        # loads in an index give int64, which is wider than the lanes
        addresses = {e for i in indices for e in walk(i) if isinstance(e, Load)}
        of_lanes = tuple(
            dict.fromkeys(
                e
                for e in shared
                if _touches(e, loop.var)
                and e.buffer not in written
                and e.type.dtype != "bool"
                and e not in addresses
                and not self.bounds.axes(e)
                and key(e) not in self.bounds.guarded
                and not _indirect(e)
            )
        )
        inner_loops = {s.var for s in sums}
        packed = tuple(
            e
            for e in of_lanes
            if not self.kernel.buffers[e.buffer].for_lanes
            and not _is_sliding_window(e, loop.var, inner_loops)
        )
        dots = dots_of(row, loop, self.bounds, floats=not self.roles.deterministic)
        return Tile(row.var, of_lanes, packed, dots)

    def note(self, loop: For, text: str) -> None:
        """Add a note on a loop: its role, or why it has none."""
        self.notes.append(Note(loop.line, f"loop {loop.var}: {text}", "plan"))


def _iterations(loop: For) -> float:
    """Return how many iterations a loop is taken to have."""
    return 0.5 if loop.hint == "border" else 16


def _is_sliding_window(load: Load, lane: str, inner: AbstractSet[str]) -> bool:
    """Whether a panel would hold the same rows several times, once for each position of a window."""
    used = [variables_of(i) for i in load.index]
    return load.index[-1] == Var(lane, INT) and any(len(names & inner) > 1 for names in used[:-1])


def _is_window(loop: For, row: For) -> bool:
    """Whether a loop is a short window that slides along the row of another one, too short for lanes.

    ``k`` is one in ``x[2 * j + k]`` for ``k in range(t)`` and ``j in range((n - t) // 2 + 1)``.
    """
    loads = loads_of(*statements((loop, row)))
    along = any(stride(e, loop.var) == UNIT and affine.step(e.index[-1], row.var) for e in loads if e.index)
    return along and compared(loop, row) == SHORT


def tests_for_iterations(node: If) -> bool:
    """Whether a condition only tests that loops have iterations, as those of scalar_replacement do."""
    ranges = {(s.lo, s.hi) for s in statements(node.body) if isinstance(s, For)}

    def is_range_test(test: Expr) -> bool:
        if isinstance(test, Op) and test.name == "and":
            return all(map(is_range_test, test.args))
        return isinstance(test, Op) and test.name == "<" and test.args in ranges

    return not node.orelse and is_range_test(node.condition)


def _rectangular(lane: For, row: For) -> bool:
    """Whether the rows of a tile can run over one common range of lanes.

    The bounds of the lanes may depend on the row if they move in one direction from row to row, and no index
    depends on both loops.
    """
    both = frozenset({row.var}), frozenset({lane.var})
    ends = [e for e in (lane.lo, lane.hi) if depends(e, both[0])]
    if not all(affine.moves_one_way(e, row.var) for e in ends):
        return False
    accesses = accesses_of(lane.body)
    return not ends or not any(depends(i, both[0]) and depends(i, both[1]) for a in accesses for i in a.index)


def _touches(load: Load, var: str) -> bool:
    return any(depends(i, frozenset({var})) for i in load.index)


def _indirect(load: Load) -> bool:
    return bool(loads_of(*load.index))
