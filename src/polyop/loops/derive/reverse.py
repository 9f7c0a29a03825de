"""Reverse mode: run the loops backwards and propagate adjoints.

    y[i] = x[i] * w[i]     ->     d_x[i] += d_y[i] * w[i]
                                  d_w[i] += d_y[i] * x[i]
                                  d_y[i] = 0.0

Of ``x[f] = e`` the adjoint of each element that e reads grows by the partial derivative times the adjoint of
``x[f]``, which is zero afterwards, as the statement overwrote it. Of ``x[f] += e`` it keeps its value. Loops
whose iterations are independent keep their order, all others are reversed.

The adjoint of a ``max`` or ``min`` over a loop goes to the last of equal elements.

Griewank and Walther, Evaluating Derivatives (2008), chapters 3 and 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..analysis.cost import HEAVY
from ..analysis.strides import depends
from ..analysis.tree import Branch, Loop, Node, Place
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
    Load,
    Op,
    Size,
    Stmt,
    Store,
    Type,
    Var,
    rewrite,
    statements,
    substitute,
    walk,
)
from ..ir.operate import operate
from ..ir.types import cast
from ..program import Note
from .derivation import Derivation
from .names import summed_as
from .order import heads
from .partials import number
from .recompute import Values
from .recorded_values import Scope, first_leaf
from .recording import RESULT, Parts, Recording
from .recover_exp import undone
from .scalars_to_memory import ZERO

SLOW = frozenset(HEAVY) - {"/", "//", "%"}
"""What is worth a scalar where a statement's partial derivatives repeat it."""


def reverse(derivation: Derivation) -> Derivation:
    """Return the derivation with the kernel of the gradient, and what clean-up needs to know about it."""
    recording = derivation.recording
    assert recording is not None, "to_be_recorded runs before reverse"
    sweep = _Sweep(derivation, recording)
    kernel = sweep.kernel_of_gradient()
    adjoints = {n: name for n, name in sweep.adjoints.items() if name in kernel.buffers}
    shapes = {n: sweep.kernel.buffers[n].shape for n in sweep.kernel.outputs}
    if len(sweep.kernel.outputs) == 1:  # of several gradients any may be absent in another call
        shapes |= {sweep.output_gradients[n]: sweep.kernel.buffers[n].shape for n in sweep.outputs}
    return derivation.with_(
        *(Note(line, text, "reverse") for line, text in recording.told()),
        kernel=kernel,
        owners={},
        recording=None,
        adjoints=tuple(adjoints.values()),
        copies={sweep.adjoints[n]: sweep.output_gradients[n] for n in sweep.outputs if n in sweep.active},
        shapes=shapes,
        # a backward call has them all, whichever it reads
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
        """Return a loop's body backwards, after what its iteration has to compute again."""
        found = self._backwards(body, scope)
        if not found:
            return []
        zeros = [self._zeroed(n) for n in self.adjoints if scope and self.scopes.get(n) == scope]
        given = [self._copied(n) for n in self.outputs if n in self.adjoints and self._start(n) == scope]
        return [*self.values.replay(body, scope), *zeros, *given, *found]

    def _backwards(self, body: Sequence[Node], loops: Scope) -> list[Stmt]:
        found: list[Stmt] = []
        for node in reversed(body):
            match node:
                case Place():
                    found += self._statement(node)
                case Loop():
                    found += self._loop(node, loops)
                case Branch():
                    found += self._branch(node, loops)
        return found

    def _loop(self, node: Loop, loops: Scope) -> list[Stmt]:
        last = self._last_of_equals(node)
        if last is not None:
            return last
        body = self._sweep(node.body, (*loops, node.var))
        if not body:
            return []
        lo, hi = (self._head(e, node) for e in heads(node))
        turned = node.var not in self.order.independent
        return [self.values.loop(node.node, lo, hi, body, reverse=turned)]

    def _branch(self, node: Branch, loops: Scope) -> list[Stmt]:
        then, other = self._backwards(node.body, loops), self._backwards(node.orelse, loops)
        if not then and not other:
            return []
        return [If(self._head(node.node.condition, node), tuple(then), tuple(other), node.node.line)]

    def _head(self, expr: Expr, node: Loop | Branch) -> Expr:
        leaf = first_leaf(node)
        return self.values.at(expr, leaf, depth=self.order.around[leaf].index(node))

    def _statement(self, place: Place) -> list[Stmt]:
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        if node.buffer not in self.active:
            return []
        parts = self.recording.parts(node, leaf)
        index = self._index(node.index, leaf)
        sums = self.adjoints[node.buffer]
        if node.op in ("max", "min") and leaf not in self.recording.stepwise:
            return [If(self._chosen(node, leaf), (*self._handed(node, leaf, parts), self._none(node, index)))]
        itself = any(part.load.buffer == node.buffer for part in parts)
        if not itself:
            last = [] if node.op == "+" else [self._none(node, index)]
            return [*self._handed(node, leaf, parts), *last]
        of = Type(summed_as(self.kernel.buffers[node.buffer].dtype))
        held = Var(self.names.new(f"{sums}_old"), of)
        first = Assign(held.name, Load(sums, index, of, node.line), "", node.line)
        handed = self._handed(node, leaf, parts, held)
        if node.op == "+":  # it keeps what it was handed, and adds to it
            return [first, *handed]
        for one in handed:  # what the element hands to itself takes the place of what it was handed
            if isinstance(one, Store) and (one.buffer, one.index) == (sums, index):
                scalars = [s for s in handed if isinstance(s, Assign)]
                stores = [s for s in handed if s is not one and not isinstance(s, Assign)]
                return [first, *scalars, replace(one, op=""), *stores]
        return [first, self._none(node, index), *handed]

    def _handed(self, node: Store, leaf: str, parts: Parts, held: Var | None = None) -> list[Stmt]:
        """Return the stores that hand on; ``held`` has what the statement's own element was handed."""
        own = self.adjoints[node.buffer]
        found, parts = self._once(parts, leaf, own, held, node.line)
        for load, guard, part in parts:
            sums = self.adjoints[load.buffer]
            to = Type(summed_as(self.kernel.buffers[load.buffer].dtype))
            value = cast(part, to)
            one: Stmt = Store(sums, self._index(load.index, leaf), value, "+", node.line)
            if guard is not None:
                one = If(self.values.at(guard, leaf), (one,), (), node.line)
            found.append(one)
        return found

    def _once(
        self, parts: Parts, leaf: str, own: str, held: Var | None, line: int
    ) -> tuple[list[Stmt], Parts]:
        """Return parts in values that are there, and scalars for the slow functions that they repeat."""
        now = [part._replace(value=self._now(part.value, leaf, own, held)) for part in parts]
        seen = Counter(e for part in now if part.guard is None for e in _always(part.value))
        found: list[Stmt] = []
        known: dict[Expr, Expr] = {}
        for slow in [e for e, count in seen.items() if count > 1]:
            scalar = Var(self.names.new("part"), slow.type)
            found.append(Assign(scalar.name, slow, "", line))
            known[slow] = scalar
        return found, [part._replace(value=rewrite(part.value, lambda e: known.get(e, e))) for part in now]

    def _now(self, part: Expr, leaf: str, own: str, held: Var | None) -> Expr:
        """Return a partial derivative in values that are there; sums are as they stand."""
        match part:
            case Load(buffer=buffer) if buffer == own and buffer not in self.kernel.buffers:
                if held is not None:
                    return held
                return replace(part, index=self._index(part.index, leaf))
            case Load(buffer=buffer) if buffer.endswith(RESULT):
                name = buffer.removesuffix(RESULT)
                result = replace(part, buffer=name, index=self._index(part.index, leaf))
                by = self.recording.quotient(leaf)
                return undone(result, self.values.at(by[1], by[0])) if by else result
            case Load():
                return self.values.at(part, leaf)
            case Op(args=args):
                return replace(part, args=tuple(self._now(a, leaf, own, held) for a in args))
        return part

    def _index(self, index: tuple[Expr, ...], leaf: str) -> tuple[Expr, ...]:
        return tuple(self.values.at(i, leaf) for i in index)

    def _none(self, node: Store, index: tuple[Expr, ...]) -> Store:
        of = Type(summed_as(self.kernel.buffers[node.buffer].dtype))
        return Store(self.adjoints[node.buffer], index, number(0.0, of), "", node.line)

    # max and min over a loop

    def _chosen(self, node: Store, leaf: str) -> Expr:
        of = Type(self.kernel.buffers[node.buffer].dtype)
        result = self.values.result(leaf, Load(node.buffer, node.index, of, node.line))
        return operate("==", self.values.at(node.value, leaf), result)

    def _last_of_equals(self, loop: Loop) -> list[Stmt] | None:
        """Return the search for the element that a max over the loop is, where that is all it does.

        The search is itself a max over the loop, of whole numbers: it has no order to keep.
        """
        if len(loop.body) != 1 or not isinstance(loop.body[0], Place):
            return None
        place = loop.body[0]
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        fixed = not any(depends(i, frozenset({loop.var})) for i in node.index)
        if (
            node.buffer not in self.active
            or node.op not in ("max", "min")
            or not fixed
            or leaf in self.recording.stepwise
        ):
            return None
        parts = self.recording.parts(node, leaf)
        last = Var(self.names.new("last"), INT)
        none = Const(-1, INT)
        here = Var(loop.var, INT)
        lo, hi = (self._head(e, loop) for e in heads(loop))
        found = Op("select", (self._chosen(node, leaf), operate("-", here, lo), none), INT)
        search = self.values.loop(loop.node, lo, hi, [Assign(last.name, found, "max", node.line)])
        body = [*self._handed(node, leaf, parts), self._none(node, self._index(node.index, leaf))]
        at = operate("+", last, lo)
        moved = tuple(substitute(s, {loop.var: at}) for s in body)
        there = Op("<", (none, last), BOOL)
        return [Assign(last.name, none, "", node.line), search, If(there, moved, (), node.line)]

    # memory

    def _filled(self, name: str, shape: Sequence[Expr], value: Expr, own: Sequence[Var | None] = ()) -> Stmt:
        """Return loops that store a value in every element; a load in it gets the indices of the loops.

        ``own``: indices, by axis, that stand for a loop.
        """
        line = next(iter(self.kernel.buffers.values())).line
        index = tuple(
            (own[k] if own else None) or Var(self.names.new(f"e{k}"), INT) for k in range(len(shape))
        )
        node: Stmt = Store(name, index, rewrite(value, _at(index)), "", line)
        for axis in reversed(range(len(shape))):
            if not own or own[axis] is None:
                node = For(index[axis].name, Const(0, INT), shape[axis], (node,), line)
        return node

    def _zeroed(self, name: str) -> Stmt:
        buffer = self.kernel.buffers[name]
        zero = number(0.0, Type(summed_as(buffer.dtype)))
        if buffer.shape == (Const(1, INT),):
            return Store(self.adjoints[name], ZERO, zero, "", buffer.line)
        return self._filled(self.adjoints[name], buffer.shape, zero)

    def _start(self, name: str) -> Scope:
        """Return the loops whose iterations each have elements of an output that no other one touches."""
        scope = self.recording.values.scope(name)
        return scope if set(scope) <= {v for v in self._fixed(name) if v} else ()

    def _fixed(self, name: str) -> list[str]:
        """Return for each axis the loop variable that every access of a buffer has there, or ""."""
        indices = [a.node.index for x in self.order.model.leaves for a in x.accesses if a.target == name]
        columns = zip(*indices, strict=True)
        return [c[0].name if isinstance(c[0], Var) and len(set(c)) == 1 else "" for c in columns]

    def _copied(self, name: str) -> Stmt:
        """Return what starts an output's sum with its gradient, which cannot be written."""
        buffer = self.kernel.buffers[name]
        scope = self._start(name)
        there = Load(self.output_gradients[name], (), Type(buffer.dtype), buffer.line)
        own = [Var(v, INT) if v in scope else None for v in self._fixed(name)]
        return self._filled(
            self.adjoints[name], buffer.shape, cast(there, Type(summed_as(buffer.dtype))), own
        )

    def _kernel(self, body: list[Stmt]) -> Kernel:
        own = self.kernel.buffers
        tensors = [n for n in self.kernel.parameters if n in own]
        buffers: dict[str, Buffer] = {n: own[n] for n in tensors}
        for name in self.kernel.outputs:
            buffers[name] = _input(own[name], name)
        for name in self.kernel.outputs:
            handed = self.output_gradients.get(name) or self.names.new(f"d_{name}")
            buffers[handed] = _input(own[name], handed)
        parameters = (*buffers, *self.kernel.attributes)
        buffers |= self.values.buffers
        for name in self.adjoints:
            if own[name].role != "input":
                made = Buffer(
                    self.adjoints[name], summed_as(own[name].dtype), own[name].shape, "local", own[name].line
                )
                buffers[made.name] = made
        for name in _asked(body) & self.values.buffers.keys():  # both ways must take the same branch
            buffers[name] = replace(buffers[name], exact=True)
        outputs, last = self._results(buffers, tensors)
        return replace(
            self.kernel,
            name=f"{self.kernel.name}__backward",
            parameters=parameters,
            buffers=buffers,
            outputs=outputs,
            body=(*body, *last),
            derived=True,
        )

    def _results(
        self, buffers: dict[str, Buffer], tensors: Sequence[str]
    ) -> tuple[tuple[str, ...], list[Stmt]]:
        """Add one output for each tensor, of one element where it is no real one; round half types once."""
        outputs: list[str] = []
        last: list[Stmt] = []
        for name in tensors:
            buffer = self.kernel.buffers[name]
            sums = self.adjoints.get(name) or self.names.new(f"d_{name}")
            shape = buffer.shape if name in self.inputs else (Const(1, INT),)
            made = Buffer(sums, buffer.dtype, shape, "output", buffer.line)
            if name in self.active and summed_as(buffer.dtype) != buffer.dtype:
                buffers[sums] = replace(made, dtype=summed_as(buffer.dtype), role="local")
                made = replace(made, name=self.names.new(f"{sums}_rounded"))
                whole = Load(sums, (), Type(summed_as(buffer.dtype)), buffer.line)
                last.append(self._filled(made.name, buffer.shape, cast(whole, Type(buffer.dtype))))
            buffers[made.name] = made
            outputs.append(made.name)
        return tuple(outputs), last


def _at(index: tuple[Expr, ...]) -> Callable[[Expr], Expr]:
    return lambda e: replace(e, index=index) if isinstance(e, Load) else e


def _always(value: Expr) -> Iterator[Op]:
    """Yield the slow functions that are computed whatever the conditions say."""
    if isinstance(value, Op):
        if value.name in SLOW:
            yield value
            return
        for argument in value.args[:1] if value.name in ("select", "and", "or") else value.args:
            yield from _always(argument)


def _asked(body: Sequence[Stmt]) -> set[str]:
    """Return the buffers that conditions and bounds of loops read."""
    nodes = [s for s in statements(tuple(body)) if isinstance(s, (For, If))]
    return {e.buffer for s in nodes for e in walk(s) if isinstance(e, Load)}


def _input(like: Buffer, name: str) -> Buffer:
    """Return an input of the dtype and the number of dimensions of another buffer."""
    shape = tuple(Size(name, k) for k in range(len(like.shape)))
    return replace(like, name=name, role="input", shape=shape, zeroed=False, first_read=0)
