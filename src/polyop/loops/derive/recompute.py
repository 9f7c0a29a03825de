"""Recompute temporaries in the original order, and tape the values that change later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.tree import Branch, Loop, Node, StatementNode, statement_nodes
from ..ir.grammar import INT, Buffer, Expr, For, If, Kernel, Load, Op, Stmt, Store, Type, Var, children
from ..ir.rewriter import substitute
from .names import Names
from .open_loops import OpenLoops, is_counted
from .recorded_values import Read, RecordedValues, Scope, first_leaf


class Values:
    """Loads of the kernel's values in a derived kernel, and the buffers of recomputed and taped ones."""

    def __init__(self, recorded: RecordedValues, names: Names) -> None:
        self.recorded, self.names = recorded, names
        self.kernel: Kernel = recorded.order.kernel
        self.buffers: dict[str, Buffer] = {}
        self._again: dict[str, str] = {}
        self.open = OpenLoops(names, self.buffers)
        self._tapes: dict[Read, tuple[str, tuple[Expr, ...]]] = {}
        self.tapes: dict[str, str] = {}
        for scope, reads in recorded.tapes.items():
            for read in reads:
                self._tapes[read] = self._tape(read, scope)

    def at(self, expr: Expr, leaf: str, within: Scope | None = None, depth: int | None = None) -> Expr:
        """Return an expression with the values that the leaf, or its loop or condition ``depth``, read.

        ``within``: the scope, if the expression is part of recomputing one.
        """
        match expr:
            case Load():
                return self._load(expr, leaf, within, depth)
            case Op(args=args):
                return replace(expr, args=tuple(self.at(a, leaf, within, depth) for a in args))
        return expr

    def recomputed(self, body: Sequence[Node], scope: Scope) -> list[Stmt]:
        """Return the statements that recompute a scope's temporaries; ``body`` is the body of its loops."""
        if not self.recorded.slices.get(scope) and scope not in self.recorded.tapes:
            return []
        return [*self.open.start(scope), *self._recomputed(body, scope)]

    def memory(self, buffer: str) -> str:
        """Return the name of the buffer in which a temporary, or an output, is recomputed."""
        if buffer not in self._again:
            old = self.kernel.buffers[buffer]
            name = buffer if old.role == "local" else self.names.new(f"{buffer}_again")
            self._again[buffer] = name
            self.buffers[name] = replace(old, name=name, role="local", zeroed=False, first_read=0)
        return self._again[buffer]

    def result(self, leaf: str, load: Load) -> Expr:
        """Return the element that a leaf updates, as it is after all updates."""
        index = tuple(self.at(i, leaf) for i in load.index)
        if self.recorded.result_is_given(leaf, load):
            return replace(load, index=index)
        return replace(load, buffer=self.memory(load.buffer), index=index)

    def _load(self, load: Load, leaf: str, within: Scope | None, depth: int | None) -> Expr:
        """Return a load of the memory that has the value: a tensor, a tape, or a recomputed buffer."""
        name = load.buffer
        read = Read(leaf, load, depth)
        if not self.recorded.is_given(read):
            if read in self._tapes and (within is None or not self.recorded.in_order(load, within)):
                tape, index = self._tapes[read]
                if within is not None:
                    index = self.open.forwards(index, within)
                return Load(tape, index, Type(load.type.dtype), load.line)
            name = self.memory(name)
        index = tuple(self.at(i, leaf, within, depth) for i in load.index)
        return replace(load, buffer=name, index=index)

    def _recomputed(self, body: Sequence[Node], scope: Scope) -> list[Stmt]:
        """Return the statements of a body that a scope recomputes, with the stores to its tapes."""
        stmts: list[Stmt] = []
        for node in body:
            if not any(True for _ in statement_nodes((node,))):
                continue  # a loop or a condition without statements
            leaf = first_leaf(node)
            around = self.recorded.order.around[leaf]
            where = None if isinstance(node, StatementNode) else around.index(node)
            stmts += self._stores_to_tapes(leaf, scope, where)
            match node:
                case StatementNode(node=Store() as store):
                    if leaf in self.recorded.slices.get(scope, ()):
                        stmts.append(self._store(store, leaf, scope))
                case Loop(head):
                    inner = self._recomputed(node.body, scope)
                    if inner:
                        lo, hi = (self.at(e, leaf, scope, where) for e in children(head))
                        stmts += self.open.recomputed(head, (lo, hi), inner, scope, self.loop)
                case Branch(head_if):
                    then = self._recomputed(node.body, scope)
                    other = self._recomputed(node.orelse, scope)
                    if then or other:
                        test = self.at(head_if.condition, leaf, scope, where)
                        stmts.append(If(test, tuple(then), tuple(other), head_if.line))
        return stmts

    def loop(self, head: For, ends: tuple[Expr, Expr], body: Sequence[Stmt], *, reverse: bool = False) -> For:
        """Return a copy of a loop with a new name and body. ``reverse``: the last iteration runs first."""
        lo, hi = ends
        name = self.names.loop(head.var)
        here: Expr = Var(name, INT)
        if reverse:
            here = lo + (hi - 1) - here
        inner = tuple(substitute(s, {head.var: here}) for s in body)
        return For(name, lo, hi, inner, head.line, "" if head.hint == "border" else head.hint)

    def _store(self, node: Store, leaf: str, scope: Scope) -> Store:
        index = tuple(self.at(i, leaf, scope) for i in node.index)
        value = self.at(node.value, leaf, scope)
        return Store(self.memory(node.buffer), index, value, node.op, node.line)

    def _stores_to_tapes(self, leaf: str, scope: Scope, depth: int | None) -> list[Stmt]:
        """Return the stores to tapes of what a leaf, or the loop or condition around it, reads."""
        stores: list[Stmt] = []
        for read in self.recorded.tapes.get(scope, ()):
            if (read.leaf, read.depth) != (leaf, depth):
                continue
            name, index = self._tapes[read]
            place = tuple(self.at(i, leaf, scope, depth) for i in read.load.index)
            value = replace(read.load, buffer=self.memory(read.load.buffer), index=place)
            line = self.recorded.order.statements[leaf].node.line
            store: Stmt = Store(name, index, value, "", line)
            test = self.recorded.guard(read)
            stores.append(
                store if test is None else If(self.at(test, leaf, scope, depth), (store,), (), line)
            )
        return stores

    def _tape(self, read: Read, scope: Scope) -> tuple[str, tuple[Expr, ...]]:
        """Make the buffer of a tape, and return its name and index.

        It has one element for each iteration of the loops around the read, inside the scope.
        """
        around = self.recorded.order.around[read.leaf][: read.depth]
        loops = [x.node for x in around if isinstance(x, Loop)]
        line = self.recorded.order.statements[read.leaf].node.line
        index, shape = self.open.place(loops, scope)
        name = self.names.new(f"{read.load.buffer}_kept")
        self.tapes[name] = read.load.buffer
        self.buffers[name] = Buffer(
            name, read.load.type.dtype, shape, "local", line, counted=is_counted(index)
        )
        return name, index
