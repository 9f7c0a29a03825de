"""Reverse mode: run the loops backwards and propagate adjoints.

    y[i] = x[i] * w[i]     ->     d_x[i] += d_y[i] * w[i]
                                  d_w[i] += d_y[i] * x[i]
                                  d_y[i] = 0.0

The reverse of ``x[f] = e`` adds to the adjoint of each element that ``e`` reads: the adjoint of ``x[f]``
times a partial derivative. Then the adjoint of ``x[f]`` becomes zero, because the statement overwrote the
element. In the reverse of ``x[f] += e`` it keeps its value. Loops whose iterations are independent keep their
order; all others are reversed.

The adjoint of a ``max`` or ``min`` over a loop goes to the last of equal elements.

Griewank and Walther, Evaluating Derivatives (2008), chapters 3 and 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..analysis import affine
from ..analysis.cost import HEAVY
from ..analysis.searches import search
from ..analysis.strides import depends
from ..analysis.tree import Branch, Loop, Node, StatementNode
from ..ir.derivatives import number
from ..ir.grammar import (
    BOOL,
    INT,
    Assign,
    Buffer,
    Const,
    Demand,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Size,
    Stmt,
    Store,
    Type,
    Var,
    children,
    is_lazy,
    own_sizes,
    statements,
)
from ..ir.note import Note
from ..ir.operate import operate
from ..ir.printing import expression
from ..ir.rewriter import loops_over, nested, rewrite, with_bodies
from ..ir.stops import is_unbounded
from ..ir.types import cast
from ..ir.uses import tensors_of
from .derivation import SCALAR_INDEX, SCALAR_SHAPE, Derivation
from .names import summed_as
from .recompute import Values
from .recorded_values import Scope, first_leaf
from .recording import Parts, Recording, StoredResult
from .recover_exp import dividend

SLOW = frozenset(HEAVY) - {"/", "//", "%"}
"""Functions that are computed once if several partial derivatives of a statement need them."""


def reverse(derivation: Derivation) -> Derivation:
    """Return the derivation with the kernel of the gradient, and what clean-up needs to know about it."""
    recording = derivation.recording
    assert recording is not None, "to_be_recorded runs before reverse"
    sweep = _Sweep(derivation, recording)
    kernel = sweep.kernel_of_gradient()
    adjoints = {n: name for n, name in sweep.adjoints.items() if name in kernel.buffers}
    shapes = {n: sweep.kernel.buffers[n].shape for n in sweep.kernel.outputs}
    if len(sweep.kernel.outputs) == 1:  # of several output gradients any may be absent in another call
        shapes |= {sweep.output_gradients[n]: sweep.kernel.buffers[n].shape for n in sweep.outputs}
    return derivation.with_(
        *(Note(line, text, "reverse") for line, text in recording.explain()),
        kernel=kernel,
        owners={},
        recording=None,
        adjoints=tuple(adjoints.values()),
        copies={sweep.adjoints[n]: sweep.output_gradients[n] for n in sweep.outputs if n in sweep.active},
        shapes=shapes,
        # a call of the gradient gets all of them, whichever it reads
        required=derivation.required | {*sweep.output_gradients.values()},
        tapes={n: derivation.origins.get(source, source) for n, source in sweep.values.tapes.items()},
    )


class _Sweep:
    """Builds the gradient's kernel for one recording."""

    def __init__(self, derivation: Derivation, recording: Recording) -> None:
        self.kernel, self.recording = derivation.kernel, recording
        self.inputs, self.outputs = derivation.inputs, derivation.outputs
        self.order, self.scopes, self.active = recording.order, recording.scopes, recording.active
        self.adjoints, self.output_gradients = recording.adjoints, recording.output_gradients
        self.names = recording.names()
        self.values = Values(recording.values, self.names)

    def kernel_of_gradient(self) -> Kernel:
        """Return the gradient before any clean-up: outputs' gradients are copied, all zeros are stored.

        Its parameters are the kernel's own tensors, its outputs, and one gradient for each output.
        """
        return self._kernel(self._sweep(self.order.tree, ()))

    def _sweep(self, body: Sequence[Node], scope: Scope) -> list[Stmt]:
        """Return a loop's body backwards, after the values that its iteration recomputes."""
        backwards = self._backwards(body, scope)
        if not backwards:
            return []
        zeros = [self._zeroed(n) for n in self.adjoints if scope and self.scopes.get(n) == scope]
        copies = [
            self._initial_adjoint(n) for n in self.outputs if n in self.adjoints and self._start(n) == scope
        ]
        return [*self.values.recomputed(body, scope), *zeros, *copies, *backwards]

    def _backwards(self, body: Sequence[Node], loops: Scope) -> list[Stmt]:
        """Return the reverse of each statement of a body, the last one first."""
        stmts: list[Stmt] = []
        for node in reversed(body):
            match node:
                case StatementNode():
                    stmts += self._statement(node)
                case Loop():
                    stmts += self._loop(node, loops)
                case Branch():
                    stmts += self._branch(node, loops)
        return stmts

    def _loop(self, node: Loop, loops: Scope) -> list[Stmt]:
        """Return the reverse of a loop."""
        last = self._last_of_equals(node)
        if last is not None:
            return last
        body = self._sweep(node.body, (*loops, node.var))
        if not body:
            return []
        head, counts = node.node, self.values.open
        body = counts.backwards(head, body)
        is_reversed = node.var not in self.order.independent or node.var in counts.ordered
        if not is_unbounded(head):
            lo, hi = (self._head(e, node) for e in children(head))
            return [self.values.loop(head, (lo, hi), body, reverse=is_reversed)]
        trips = counts.trips(head)
        ends = (Const(0, INT), Var(trips.name, INT))
        return [trips, self.values.loop(head, ends, body, reverse=True)]

    def _branch(self, node: Branch, loops: Scope) -> list[Stmt]:
        """Return the reverse of a condition."""
        then, other = self._backwards(node.body, loops), self._backwards(node.orelse, loops)
        if not then and not other:
            return []
        return [If(self._head(node.node.condition, node), tuple(then), tuple(other), node.node.line)]

    def _head(self, expr: Expr, node: Loop | Branch) -> Expr:
        leaf = first_leaf(node)
        return self.values.at(expr, leaf, depth=self.order.around[leaf].index(node))

    def _statement(self, place: StatementNode) -> list[Stmt]:
        """Return the reverse of a store."""
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        if node.buffer not in self.active:
            return []
        parts = self.recording.parts(node, leaf)
        index = self._index(node.index, leaf)
        adjoint = self.adjoints[node.buffer]
        if node.op in ("max", "min") and leaf not in self.recording.stepwise:
            return [If(self._is_extreme(node, leaf), tuple(self._handed_on(node, leaf, parts)))]
        reads_itself = any(part.load.buffer == node.buffer for part in parts)
        if not reads_itself:
            last = [] if node.op == "+" else [self._zero_adjoint(node, index)]
            return [*self._contributions(node, leaf, parts), *last]
        first, old = self._old_adjoint(node, index)
        contributions = self._contributions(node, leaf, parts, old)
        if node.op == "+":  # the adjoint keeps its value, and grows
            return [first, *contributions]
        for stmt in contributions:  # the element's contribution to itself replaces its adjoint
            if isinstance(stmt, Store) and (stmt.buffer, stmt.index) == (adjoint, index):
                scalars = [s for s in contributions if isinstance(s, Assign)]
                stores = [s for s in contributions if s is not stmt and not isinstance(s, Assign)]
                return [first, *scalars, replace(stmt, op=""), *stores]
        return [first, self._zero_adjoint(node, index), *contributions]

    def _contributions(self, node: Store, leaf: str, parts: Parts, old: Var | None = None) -> list[Stmt]:
        """Return the additions to the adjoints of what a statement reads.

        ``old`` has the adjoint of the statement's own element, if the statement also reads that element.
        """
        own = self.adjoints[node.buffer]
        stmts, parts = self._with_scalars(parts, leaf, own, old, node.line)
        for load, guard, part in parts:
            to = Type(summed_as(self.kernel.buffers[load.buffer].dtype))
            index = self._index(load.index, leaf)
            stmt: Stmt = Store(self.adjoints[load.buffer], index, cast(part, to), "+", node.line)
            if guard is not None:
                stmt = If(self.values.at(guard, leaf), (stmt,), (), node.line)
            stmts.append(stmt)
        return stmts

    def _with_scalars(
        self, parts: Parts, leaf: str, own: str, old: Var | None, line: int
    ) -> tuple[list[Stmt], Parts]:
        """Return scalars for the slow functions that several parts compute, and the parts with them."""
        parts = [part._replace(value=self._available(part.value, leaf, own, old)) for part in parts]
        counts = Counter(e for part in parts if part.guard is None for e in _unconditional(part.value))
        assigns: list[Stmt] = []
        scalars: dict[Expr, Expr] = {}
        for slow in [e for e, count in counts.items() if count > 1]:
            scalar = Var(self.names.new("part"), slow.type)
            assigns.append(Assign(scalar.name, slow, "", line))
            scalars[slow] = scalar
        shared = [part._replace(value=rewrite(part.value, lambda e: scalars.get(e, e))) for part in parts]
        return assigns, shared

    def _available(self, part: Expr, leaf: str, own: str, old: Var | None) -> Expr:
        """Return a partial derivative with loads of the memory that has its values in the adjoint."""
        match part:
            case StoredResult():
                result = Load(part.buffer, self._index(part.index, leaf), part.type, part.line)
                division = self.recording.quotient(leaf)
                if division is None:
                    return result
                divides, divisor = division
                return dividend(result, self.values.at(divisor, divides))
            case Load(buffer=buffer) if buffer == own and buffer not in self.kernel.buffers:
                if old is not None:
                    return old
                return replace(part, index=self._index(part.index, leaf))
            case Load():
                return self.values.at(part, leaf)
            case Op(args=args):
                return replace(part, args=tuple(self._available(a, leaf, own, old) for a in args))
        return part

    def _index(self, index: tuple[Expr, ...], leaf: str) -> tuple[Expr, ...]:
        return tuple(self.values.at(i, leaf) for i in index)

    def _handed_on(self, node: Store, leaf: str, parts: Parts) -> list[Stmt]:
        """Return the statements that hand the adjoint of a max to its operand, perhaps the same element."""
        index = self._index(node.index, leaf)
        zero = self._zero_adjoint(node, index)
        if not any(part.load.buffer == node.buffer for part in parts):
            return [*self._contributions(node, leaf, parts), zero]
        first, old = self._old_adjoint(node, index)
        return [first, zero, *self._contributions(node, leaf, parts, old)]

    def _old_adjoint(self, node: Store, index: tuple[Expr, ...]) -> tuple[Assign, Var]:
        """Return a scalar that keeps the adjoint of the element that is stored."""
        adjoint, of = self.adjoints[node.buffer], Type(summed_as(self.kernel.buffers[node.buffer].dtype))
        old = Var(self.names.new(f"{adjoint}_old"), of)
        return Assign(old.name, Load(adjoint, index, of, node.line), "", node.line), old

    def _zero_adjoint(self, node: Store, index: tuple[Expr, ...]) -> Store:
        of = Type(summed_as(self.kernel.buffers[node.buffer].dtype))
        return Store(self.adjoints[node.buffer], index, number(0.0, of), "", node.line)

    # max and min over a loop

    def _is_extreme(self, node: Store, leaf: str) -> Expr:
        """Return the condition that an operand of a max or min equals the result."""
        return operate("==", self.values.at(node.value, leaf), self.values.result(leaf, node.target))

    def _last_of_equals(self, loop: Loop) -> list[Stmt] | None:
        """Return the search for the element that wins a max over a loop, and its contributions.

        None if the loop does more than the max. The search is itself a max over the loop, of integers, so its
        iterations may run in any order.
        """
        if len(loop.body) != 1 or not isinstance(loop.body[0], StatementNode):
            return None
        place = loop.body[0]
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        fixed = not any(depends(i, frozenset({loop.var})) for i in node.index)
        if (
            node.buffer not in self.active
            or node.op not in ("max", "min")
            or not fixed
            or loop.var in self.values.open.ordered
            or leaf in self.recording.stepwise
        ):
            return None
        last = Var(self.names.new("last"), INT)
        lo, hi = (self._head(e, loop) for e in children(loop.node))
        over = self.values.loop(loop.node, (lo, hi), [])
        contributions = self._handed_on(node, leaf, self.recording.parts(node, leaf))
        return search(loop.var, over, self._is_extreme(node, leaf), contributions, last, node.line)

    # memory

    def _filled(self, name: str, shape: Sequence[Expr], value: Expr, own: Sequence[Var | None] = ()) -> Stmt:
        """Return loops that store a value in every element. A load in the value gets the loops' indices.

        ``own``: for each axis an index to use in place of a loop, or None.
        """
        line = next(iter(self.kernel.buffers.values())).line
        index = tuple(
            (own[k] if own else None) or Var(self.names.new(f"e{k}"), INT) for k in range(len(shape))
        )
        value = rewrite(value, lambda e: replace(e, index=index) if isinstance(e, Load) else e)
        loops = loops_over([var.name for var in index], shape, line)
        free = [loop for axis, loop in enumerate(loops) if not own or own[axis] is None]
        return nested(free, Store(name, index, value, "", line))

    def _zeroed(self, name: str) -> Stmt:
        """Return the statements that set an adjoint to zero."""
        buffer = self.kernel.buffers[name]
        zero = number(0.0, Type(summed_as(buffer.dtype)))
        if buffer.shape == SCALAR_SHAPE:
            return Store(self.adjoints[name], SCALAR_INDEX, zero, "", buffer.line)
        return self._filled(self.adjoints[name], buffer.shape, zero)

    def _start(self, name: str) -> Scope:
        """Return the loops whose iterations each access elements of an output that no other one does."""
        scope = self.recording.values.scope(name)
        return scope if set(scope) <= {v for v in self._fixed(name) if v} else ()

    def _fixed(self, name: str) -> list[str]:
        """Return for each axis the loop variable that every access of a buffer has there, or ""."""
        indices = [a.node.index for x in self.order.model.leaves for a in x.accesses if a.target == name]
        columns = zip(*indices, strict=True)
        return [c[0].name if isinstance(c[0], Var) and len(set(c)) == 1 else "" for c in columns]

    def _initial_adjoint(self, name: str) -> Stmt:
        """Return the copy of an output's gradient into its adjoint: the gradient itself is read-only."""
        buffer = self.kernel.buffers[name]
        scope = self._start(name)
        gradient = Load(self.output_gradients[name], (), Type(buffer.dtype), buffer.line)
        own = [Var(v, INT) if v in scope else None for v in self._fixed(name)]
        return self._filled(
            self.adjoints[name], buffer.shape, cast(gradient, Type(summed_as(buffer.dtype))), own
        )

    def _kernel(self, body: list[Stmt]) -> Kernel:
        """Return the kernel whose statements are the gradient."""
        own = self.kernel.buffers
        buffers: dict[str, Buffer] = {n: own[n] for n in self.kernel.tensor_parameters}
        for name in self.kernel.outputs:
            buffers[name] = _input(own[name], name)
        for name in self.kernel.outputs:
            gradient = self.output_gradients.get(name) or self.names.new(f"d_{name}")
            buffers[gradient] = _input(own[name], gradient)
        parameters = (*buffers, *self.kernel.attributes)
        buffers |= self.values.buffers
        for name in self.adjoints:
            if own[name].role != "input":
                adjoint = Buffer(
                    self.adjoints[name], summed_as(own[name].dtype), own[name].shape, "local", own[name].line
                )
                buffers[adjoint.name] = adjoint
        # the kernel and its adjoint must take the same branches
        for name in _read_by_control(body) & self.values.buffers.keys():
            buffers[name] = replace(buffers[name], exact=True)
        outputs, last = self._results(buffers)
        return replace(
            self.kernel,
            name=f"{self.kernel.name}__backward",
            parameters=parameters,
            buffers=buffers,
            outputs=outputs,
            body=self._with_given_sizes((*body, *last)),
            derived=True,
            demands=(*self.kernel.demands, *self._demanded_sizes()),
        )

    def _with_given_sizes(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return loops over an output's size as loops over that of its gradient, where it is not linear.

        isl knows more of a size than of a quotient of sizes.
        """
        given = {
            size: Size(gradient, axis)
            for name, gradient in self.output_gradients.items()
            for axis, size in enumerate(self.kernel.buffers[name].outer_shape)
            if affine.linear(size) is None and gradient in tensors_of(*statements(body))
        }

        def changed(nodes: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(with_bodies(over_given(node), changed) for node in nodes)

        def over_given(node: Stmt) -> Stmt:
            if isinstance(node, For) and node.lo == Const(0, INT) and node.hi in given:
                return replace(node, hi=given[node.hi])
            return node

        return changed(body) if given else body

    def _demanded_sizes(self) -> Iterator[Demand]:
        """Yield that outputs and their gradients have the outputs' sizes: proofs may rely on it."""
        for name, buffer in ((n, self.kernel.buffers[n]) for n in self.kernel.outputs):
            for axis, size in enumerate(buffer.outer_shape):
                known = isinstance(size, Size) or (isinstance(size, Op) and size.name == "max")
                whole = size if known else operate("max", size, Const(0, INT))
                for tensor in dict.fromkeys((name, self.output_gradients.get(name, name))):
                    equal = Op("==", (Size(tensor, axis), whole), BOOL)
                    yield Demand(equal, f"{tensor}: dimension {axis} must be {expression(whole)}")

    def _results(self, buffers: dict[str, Buffer]) -> tuple[tuple[str, ...], list[Stmt]]:
        """Add an output for each tensor, of one element for a tensor without a gradient.

        Return the outputs, and the statements that fill some of them at the end: a half-precision gradient is
        summed in float32, and rounded once.
        """
        outputs: list[str] = []
        last: list[Stmt] = []
        for name in self.kernel.tensor_parameters:
            buffer = self.kernel.buffers[name]
            adjoint = self.adjoints.get(name) or self.names.new(f"d_{name}")
            wanted = name in self.inputs
            shape = buffer.shape if wanted else SCALAR_SHAPE
            pairs = wanted and buffer.pairs
            output = Buffer(adjoint, buffer.dtype, shape, "output", buffer.line, pairs=pairs)
            if name in self.active and summed_as(buffer.dtype) != buffer.dtype:
                buffers[adjoint] = replace(output, dtype=summed_as(buffer.dtype), role="local")
                output = replace(output, name=self.names.new(f"{adjoint}_rounded"))
                whole = Load(adjoint, (), Type(summed_as(buffer.dtype)), buffer.line)
                last.append(self._filled(output.name, buffer.shape, cast(whole, Type(buffer.dtype))))
            buffers[output.name] = output
            outputs.append(output.name)
        return tuple(outputs), last


def _unconditional(value: Expr) -> Iterator[Op]:
    """Yield the slow functions that a value computes whatever its conditions are."""
    if isinstance(value, Op):
        if value.name in SLOW:
            yield value
            return
        for argument in value.args[:1] if is_lazy(value) else value.args:
            yield from _unconditional(argument)


def _read_by_control(body: Sequence[Stmt]) -> set[str]:
    """Return the buffers that conditions and bounds of loops read."""
    nodes = [s for s in statements(tuple(body)) if isinstance(s, (For, If))]
    return tensors_of(*nodes)


def _input(like: Buffer, name: str) -> Buffer:
    """Return an input of the dtype and the number of dimensions of another buffer."""
    shape = own_sizes(name, like)
    return replace(like, name=name, role="input", shape=shape, zeroed=False, first_read=0)
