"""Statements that a group of GPU threads runs together, with shared loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...analysis.strides import depends
from ...ir.grammar import Assign, Expr, For, If, Kernel, Stmt, Store, statements
from ...ir.uses import loads_of
from ..common.c_text import computed, identifier, identity
from ..common.copies import Copies, plain
from ..common.expressions import Scope
from ..common.writer import Writer
from .bodies import Body, DeviceExpressions, c_type, deal, merged
from .mapping import Mapper


class Shared(Body):
    """Prints statements for a group of threads, ``lane_`` of ``width_``.

    All threads compute the scalars, and the first one stores. The iterations of a divisible loop are
    distributed over the threads. A ``polyop_sync`` before and after each storing statement makes the
    stores visible to all.
    """

    def __init__(self, kernel: Kernel, expressions: DeviceExpressions, out: Writer, mapper: Mapper) -> None:
        super().__init__(kernel, expressions, out)
        self.mapper = mapper
        self.single = False
        """Whether the text is for one thread: in a distributed loop, or where only the first runs."""
        self.synced = False

    def group(self, body: Sequence[Stmt], scope: Scope) -> None:
        """Print a body at whose start the threads are not synchronised."""
        self.synced = False
        before = self.live
        copies = plain(scope)
        self.declare(body, copies)
        for node in body:
            self._shared(node, copies)
        self.live = before

    def _sync(self) -> None:
        if not self.synced:
            self.out.line("polyop_sync(width_);")
        self.synced = True

    def _shared(self, node: Stmt, copies: Copies) -> None:
        stores = any(isinstance(s, Store) for s in statements((node,)))
        divides = self.mapper.shares((node,))
        if isinstance(node, For) and self.mapper.divisible(node):
            self._synchronised(stores, lambda: self._divided(node, copies.items[0].scope))
        elif divides and isinstance(node, For):
            self._uniform_loop(node, copies.items[0].scope)
        elif divides and isinstance(node, If):
            self._uniform_if(node, copies.items[0].scope)
        elif stores:
            self._synchronised(True, lambda: self._first(node, copies))
        else:
            self.single = True
            self._each((node,), copies)
            self.single = False
            self.synced = False

    def _synchronised(self, stores: bool, print_node: Callable[[], None]) -> None:
        if stores:
            self._sync()
        print_node()
        self.synced = False
        if stores:
            self._sync()

    def _first(self, node: Stmt, copies: Copies) -> None:
        """Print a statement for the first thread alone, and broadcast the scalars that it assigns."""
        names = {s.name: s.type for s in statements((node,)) if isinstance(s, Assign) and s.name in self.live}
        self.single = True
        with self.out.block("if (lane_ == 0)"):
            self._each((node,), copies)
        self.single = False
        for name, kind in names.items():
            c = copies.text(name, copies.items[0])
            self.out.line(f"{c} = {self.device.broadcast(kind, c, 'width_')};")

    def _uniform_loop(self, node: For, scope: Scope) -> None:
        with self.iterations(node, scope):
            self.group(node.body, scope)
        self.synced = False

    def _uniform_if(self, node: If, scope: Scope) -> None:
        condition = self.expressions.scalar(node.condition, scope)
        self._branches(node, scope, condition)
        self.synced = False

    def _branches(self, node: If, scope: Scope, condition: str) -> None:
        for head, body in ((f"if ({condition})", node.body), ("else", node.orelse)):
            if body or head != "else":
                with self.out.block(head):
                    self.synced = False
                    for inner in body:
                        self._shared(inner, plain(scope))

    def _divided(self, node: For, scope: Scope) -> None:
        """Print a perfect nest whose iterations are distributed over the threads."""
        loops = self._perfect(node)
        reductions = {name: op for f in loops for name, op in self._reductions(f)}
        types = {s.name: s.type for s in statements((node,)) if isinstance(s, Assign)}
        reductions = {name: op for name, op in reductions.items() if name in types}
        with self.out.block(""):
            inner_scope = scope
            for name, op in reductions.items():
                partial = f"{identifier(name)}_v0"
                self.out.line(f"{c_type(types[name])} {partial} = {identity(op, computed(types[name]))};")
                inner_scope = inner_scope.with_names({name: partial})
            with deal(self.out, self.expressions, loops, scope, "lane_", "width_"):
                self.single = True
                self.body(loops[-1].body, plain(inner_scope))
                self.single = False
            for name, op in reductions.items():
                target = scope.names.get(name, identifier(name))
                total = self.device.combined(op, types[name], f"{identifier(name)}_v0", "width_")
                self.out.line(f"{target} = {merged(op, types[name], target, total)};")

    def _reductions(self, loop: For) -> tuple[tuple[str, str], ...]:
        return self.mapper.kinds[loop.var].over if loop.var in self.mapper.kinds else ()

    def _perfect(self, node: For) -> tuple[For, ...]:
        loops: tuple[For, ...] = (node,)
        while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], For):
            inner = loops[-1].body[0]
            names = frozenset(f.var for f in loops)
            if not self.mapper.divisible(inner) or depends(inner.lo, names) or depends(inner.hi, names):
                break
            if _loads(inner.lo) or _loads(inner.hi):
                break
            loops = (*loops, inner)
        return loops


def _loads(expr: Expr) -> bool:
    return bool(loads_of(expr))
