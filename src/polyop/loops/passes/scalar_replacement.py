"""Scalar replacement of accumulators: keep an element that a loop updates again and again in a scalar.

    for k in range(n):                     acc = y[i]
        y[i] += x[i, k]               ->   for k in range(n):
                                               acc += x[i, k]
                                           y[i] = acc

The element is stored once, after its loop. Where an outer loop adds to a float32 or float64 element too, the
scalar starts with zero and is added to the element, so that both loops stay sums. If the loop may have no
iteration, all of this is put under a condition, because the element may then be out of range.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis import affine
from ..analysis.bounds import always_runs
from ..analysis.polyhedra import Access, Leaf
from ..ir.grammar import (
    BOOL,
    Assign,
    Const,
    Expr,
    For,
    If,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    perfect,
    statements,
    walk,
)
from ..ir.rewriter import with_places
from ..ir.uses import loads_of, stores_to, tensors_of, variables_of
from ..program import Program

Index = tuple[Expr, ...]


def scalar_replacement(program: Program) -> Program:
    """Return the program with accumulations such as ``for k: y[i] += e`` in a scalar."""
    kernel = program.kernel
    return program.with_(kernel=replace(kernel, body=_Accumulators(program).body(kernel.body, ())))


class _Accumulators:
    """Puts the elements that loops update again and again into scalars."""

    def __init__(self, program: Program) -> None:
        kernel = program.kernel
        self.program, self.kernel, self.model = program, kernel, program.model
        self.count = 0
        nodes = list(statements(kernel.body))
        self.loops = {s.var: s for s in nodes if isinstance(s, For)}
        self.used_names = {*kernel.buffers, *kernel.attributes, *(s.var for s in nodes if isinstance(s, For))}
        self.used_names |= {s.name for s in nodes if isinstance(s, Assign)}

    def body(self, body: tuple[Stmt, ...], loops: tuple[str, ...]) -> tuple[Stmt, ...]:
        """Return a body with accumulations in scalars; ``loops`` are around it."""
        result: list[Stmt] = []
        for node in body:
            if isinstance(node, For):
                self._loop(node, loops, result)
            elif isinstance(node, If):
                inner, other = self.body(node.body, loops), self.body(node.orelse, loops)
                result.append(replace(node, body=inner, orelse=other))
            else:
                result.append(node)
        return tuple(result)

    def _loop(self, loop: For, loops: tuple[str, ...], result: list[Stmt]) -> None:
        """Append the loop to ``result``, between the loads and the stores of its accumulators.

        If the statement before the loop stores the element, the scalar starts with that value: no load.
        """
        after: list[Stmt] = []
        always: list[Stmt] = []
        guard = False
        start = len(result)
        for buffer, index in self._candidates(loop, loops):
            name = self._new(buffer)
            type_ = Type(self.kernel.buffers[buffer].dtype)
            partial = self._is_partial_sum(loop, buffer, index, loops)
            loop = _with_scalar(loop, buffer, index, Var(name, type_))
            before = result[-1] if result else None
            if isinstance(before, Store) and (before.buffer, before.index) == (buffer, index):
                first = Assign(name, Load(buffer, index, type_, before.line), "", before.line)
                value = Assign(name, before.value, before.op, before.line)
                result[-1:] = [first, value] if before.op else [value]
                start = len(result)
                always.append(Store(buffer, index, Var(name, type_), "", loop.line))
            else:
                start_value = Const(0.0, type_) if partial else Load(buffer, index, type_, loop.line)
                result.append(Assign(name, start_value, "", loop.line))
                guard = guard or bool(self._may_be_empty(loop, loops))
                after.append(Store(buffer, index, Var(name, type_), "+" if partial else "", loop.line))
        inner = replace(loop, body=self.body(loop.body, (*loops, loop.var)))
        result += [inner, *after]
        if guard:  # a loop without iterations must not touch the element, which may not exist
            wrapped = tuple(result[start:])
            tests = [Op("<", (one.lo, one.hi), BOOL) for one in self._may_be_empty(loop, loops)]
            result[start:] = [If(affine.conjunction(tests), wrapped, (), loop.line)]
        result += always

    def _may_be_empty(self, loop: For, loops: tuple[str, ...]) -> list[For]:
        """Return the loops of a perfect nest that may have no iteration in one of the loops around it."""
        leaf = next(leaf for leaf in self.model.leaves if loop.var in leaf.vars)
        around, nest = [self.loops[var] for var in loops], perfect(loop)
        return [
            one for n, one in enumerate(nest, 1) if not always_runs(self.model, leaf, (*around, *nest[:n]))
        ]

    def _is_partial_sum(self, loop: For, buffer: str, index: Index, loops: tuple[str, ...]) -> bool:
        """Whether the loop only adds to an element that an outer loop adds to as well.

        The scalar is then the sum of this loop alone, which is added once: the outer loop stays a reduction,
        of which each thread may have a part.
        """
        if self.kernel.buffers[buffer].dtype not in ("float32", "float64"):
            return False  # others are narrower in memory than the sum, or have sums of no other order
        if buffer in tensors_of(*statements((loop,))) or any(s.op != "+" for s in stores_to(buffer, (loop,))):
            return False
        # where the bounds depend on the outer loop this may be a strip of it: a part of one sum
        fixed = [*index, *(bound for one in perfect(loop) for bound in (one.lo, one.hi))]
        names = variables_of(*fixed)
        outer = [var for var in loops if var not in names]
        return any((buffer, "+") in self.program.kinds[var].over for var in outer)

    def _new(self, buffer: str) -> str:
        """Return a name for the scalar of another element of a buffer."""
        while True:
            self.count += 1
            name = f"{buffer}_acc{self.count}"
            if name not in self.used_names:
                return name

    def _candidates(self, loop: For, loops: tuple[str, ...]) -> list[tuple[str, Index]]:
        """Return the elements that a scalar can replace in a loop: the two parts of a complex sum are two."""
        inside = [s for s in statements((loop,)) if isinstance(s, (Store, Assign))]
        changing = {s.name for s in inside if isinstance(s, Assign)}
        changing |= {s.var for s in statements((loop,)) if isinstance(s, For)}
        chosen: list[tuple[str, Index]] = []
        always = _unconditional(loop.body, changing)  # others may never be touched, and may not exist
        for store in inside:
            if not isinstance(store, Store) or store not in always or (store.buffer, store.index) in chosen:
                continue
            if loop.var in self.model.owners.get(store.buffer, ()):
                continue  # the buffer is private to an iteration: outside the loop there is none
            names = variables_of(*store.index)
            fixed = not names & changing and not bool(loads_of(*store.index))
            if fixed and self._has_no_alias(store.buffer, store.index, loop, loops):
                chosen.append((store.buffer, store.index))
        return chosen

    def _has_no_alias(self, buffer: str, index: Index, loop: For, loops: tuple[str, ...]) -> bool:
        """Whether no other access in the loop can be of the same element."""
        inside = [leaf for leaf in self.model.leaves if loop.var in leaf.vars]
        places = [(leaf, a) for leaf in inside for a in leaf.accesses if a.target == buffer]
        same = [(leaf, a) for leaf, a in places if a.node.index == index]
        others = [(leaf, a) for leaf, a in places if a.node.index != index]
        heads = (s for s in statements((loop,)) if isinstance(s, (For, If)))
        if buffer in tensors_of(*heads):
            return False
        # all accesses with this index are compared: under a condition one has only some iterations
        return all(self._are_disjoint(one, other, len(loops)) for one in same for other in others)

    def _are_disjoint(self, one: tuple[Leaf, Access], other: tuple[Leaf, Access], level: int) -> bool:
        """Whether two accesses touch no common element within one iteration of the outer loops."""
        kind = self.model.isl.dim_type
        pairs = self.model.map(*one).apply_range(self.model.map(*other).reverse())
        for dim in range(level):
            pairs = pairs.equate(kind.in_, dim, kind.out, dim)
        return bool(pairs.is_empty())


def _unconditional(body: tuple[Stmt, ...], changing: set[str]) -> list[Stmt]:
    """Return the innermost statements of a perfect nest, which run if its loops have iterations."""
    while len(body) == 1 and isinstance(body[0], For):
        if any(isinstance(e, Load) or (isinstance(e, Var) and e.name in changing) for e in walk(body[0])):
            return []  # it may have iterations now and none later
        body = body[0].body
    return list(body)


def _with_scalar(loop: For, buffer: str, index: Index, scalar: Var) -> For:
    """Return the loop with the scalar in place of the element."""

    def place(expr: Var | Load) -> Expr:
        same = isinstance(expr, Load) and (expr.buffer, expr.index) == (buffer, index)
        return scalar if same else expr

    changed = with_places((loop,), place)[0]
    assert isinstance(changed, For)
    return changed
