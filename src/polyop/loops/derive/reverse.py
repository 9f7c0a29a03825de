"""Reverse mode: a kernel that goes through the loops backwards and hands on what each value is handed.

Of ``x[f] = e`` each element that e reads is handed the partial derivative times what ``x[f]`` is handed,
which is nothing afterwards: it was overwritten. Of ``x[f] += e`` the same, and ``x[f]`` keeps it. Loops
whose iterations are independent stay in their order, all others are turned round.

A ``max`` or ``min`` over a loop hands everything to the last of equal elements.

Griewank and Walther, Evaluating Derivatives (2008), chapters 3 and 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...core.errors import GradientError
from ..analysis.cost import HEAVY
from ..analysis.session import IslSession
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
from ..ir.types import cast, is_real
from .activity import active
from .checkpointing import Segmented, recurrences, segmented
from .keep_argmax_operands import compared_in_memory
from .memory import ZERO, Scopes, in_memory, scopes_of
from .names import Names, summed_as
from .order import Order, heads
from .partials import Part, number, pull
from .recompute import Values
from .recover_exp import divided, undone
from .shifts import without_shifts
from .to_be_recorded import Needs, Read, Scope, first_leaf, loads

Parts = Sequence[Part]
SLOW = frozenset(HEAVY) - {"/", "//", "%"}
"""What is worth a scalar where a statement's partial derivatives repeat it."""
RESULT = "'"
"""Marks the load of what a statement has just stored, where an output has it in the end."""


class Reverse:
    """Derives the gradient of one kernel."""

    def __init__(
        self, kernel: Kernel, session: IslSession, present: Sequence[bool] = (), wanted: Sequence[bool] = ()
    ) -> None:
        """``present``: which outputs have gradients; ``wanted``: which tensors get one; all where empty."""
        for name in kernel.outputs:
            if (buffer := kernel.buffers[name]).role == "inplace":
                rule = f"it writes its input {name} in place, and the gradient needs what was there before"
                hint = "return a new tensor, made with output_tensor"
                raise GradientError(kernel.name, rule, where=kernel.where(buffer.line), hint=hint)
        flags = present or (True,) * len(kernel.outputs)
        rows = zip(kernel.outputs, flags, strict=True)
        self.outputs = [n for n, there in rows if there and is_real(kernel, n)]
        plain, scopes, self.session = in_memory(kernel, session)
        plain, self.shifts = without_shifts(plain, self.session, scopes, self.outputs)
        self.kernel, scopes = compared_in_memory(plain, scopes)
        tensors = [n for n in self.kernel.parameters if n in self.kernel.buffers]
        left_out = {n for n, flag in zip(tensors, wanted, strict=False) if not flag}
        self.inputs = [
            b.name
            for b in self.kernel.buffers.values()
            if b.role == "input" and is_real(self.kernel, b.name) and b.name not in left_out
        ]
        self.values: Values
        self._begin(Segmented(self.kernel, scopes))

    def _begin(self, segments: Segmented) -> None:
        """Look at the kernel as it is now."""
        self.kernel, self.segments = segments.kernel, segments
        buffers = self.kernel.buffers
        self.scopes: Scopes = {n: s for n, s in segments.scopes.items() if buffers[n].role == "local"}
        self.order = Order(self.kernel, self.session, self.scopes)
        outputs = scopes_of(self.kernel, self.session, self.kernel.outputs)
        again = Order(self.kernel, self.session, {**self.scopes, **outputs})
        self.needs = Needs(self.order, again)
        self.names = Names(self.kernel)
        self.active = active(self.kernel, self.inputs, self.outputs)
        self.given = {n: self.names.new(f"d_{n}") for n in self.outputs}
        self.sums = {n: self._sum(n) for n in sorted(self.active)}
        self.undone: dict[str, tuple[str, Expr] | None] = {}
        self.steps: set[str] = set()  # leaves of max and min that are taken step by step

    def in_segments(self) -> None:
        """Take the loops for whose iterations something is taped in segments."""
        self.collect()
        carried = recurrences(self.needs)
        if carried:
            self._begin(segmented(self.kernel, self.segments.scopes, carried))

    def tapes(self) -> dict[str, str]:
        """Return of what each tape keeps values."""
        return {n: self.segments.origin.get(of, of) for n, of in self.values.tapes.items()}

    def run(self) -> Kernel:
        """Return the kernel before anything is tidied: outputs' sums are copied in, all zeros are stored.

        Its parameters are the kernel's own tensors, its outputs, and one gradient for each output.
        """
        self.collect()
        self.values = Values(self.needs, self.names)
        body = self._sweep(self.order.tree, ())
        return self._kernel(body)

    def collect(self) -> None:
        """Find out which values going backwards needs, and where they are from."""
        for place in self.order.places.values():
            self._ask(place)
        self.needs.settle()
        while lost := self.needs.lost():
            for leaf in lost:
                self._ask_step_by_step(self.order.places[leaf])
            self.needs.settle()

    def told(self) -> list[tuple[int, str]]:
        """Return where the values that going backwards reads come from: (line, text)."""
        found = {*self.needs.told(), *self._told_of_shifts(), *self.segments.told}
        for leaf, by in self.undone.items():
            if by is not None:
                node, divides = (self.order.places[x].node for x in (leaf, by[0]))
                assert isinstance(node, Store)
                found.add((node.line, f"{node.buffer} is had back from the quotient of line {divides.line}"))
        return sorted(found)

    def _told_of_shifts(self) -> Iterator[tuple[int, str]]:
        for name in self.shifts:
            yield self.kernel.buffers[name].line, f"no output depends on {name}: nothing is handed to it"

    def _sum(self, name: str) -> str:
        if self.kernel.buffers[name].role == "output":
            return self.names.new(f"d_{name}_now")
        return self.names.new(f"d_{name}")

    # what is asked for

    def _ask(self, place: Place) -> None:
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        if node.buffer not in self.active:
            return
        own = Load(node.buffer, node.index, Type(self.kernel.buffers[node.buffer].dtype), node.line)
        self._ask_parts(place)
        for read in loads(node.index):
            self.needs.want(Read(leaf, read))
        if self._parts(node, leaf) or node.op != "+":
            self.needs.want_heads(leaf)
        if node.op in ("max", "min"):
            for read in loads((node.value,)):
                self.needs.want(Read(leaf, read))
            if not self.needs.want_result(leaf, own):
                self._ask_step_by_step(place)

    def _ask_step_by_step(self, place: Place) -> None:
        """Take a maximum for what each step does: the old element or the new one is chosen."""
        self.steps.add(place.leaf.id)
        self._ask_parts(place)

    def _ask_parts(self, place: Place) -> None:
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        for part in self._parts(node, leaf):
            for read in loads((*part.load.index, part.value, *([part.guard] if part.guard else []))):
                if read.buffer.endswith(RESULT) and (by := self._divided(leaf)):
                    for inner in loads((by[1],)):
                        self.needs.want(Read(by[0], inner))
                elif read.buffer not in self.sums.values() and not read.buffer.endswith(RESULT):
                    self.needs.want(Read(leaf, read))

    def _parts(self, node: Store, leaf: str) -> Parts:
        """Return what each element that a store reads is handed, in the kernel's own values."""
        buffer = self.kernel.buffers[node.buffer]
        handed = Load(self.sums[node.buffer], node.index, Type(summed_as(buffer.dtype)), node.line)
        value = node.value
        old = Load(node.buffer, node.index, Type(buffer.dtype), node.line)
        if node.op == "*":
            value = operate("*", old, value)
        if leaf in self.steps:
            wins = operate(">=" if node.op == "max" else "<=", value, old)
            value = Op("select", (wins, value, old), old.type)
        parts = pull(value, cast(handed, value.type), lambda load: load.buffer in self.active)
        if not isinstance(value, Op) or not (self.needs.result_stays(leaf) or self._divided(leaf)):
            return parts
        made = Load(node.buffer + RESULT, node.index, value.type, node.line)

        def change(expr: Expr) -> Expr:
            return made if expr == value else expr

        return [part._replace(value=rewrite(part.value, change)) for part in parts]

    def _divided(self, leaf: str) -> tuple[str, Expr] | None:
        """Return what divides an exponential, where the quotient stays; see ``undone``."""
        if leaf not in self.undone:
            self.undone[leaf] = divided(self.needs, self.order.places[leaf])
        return self.undone[leaf]

    # going backwards

    def _sweep(self, body: Sequence[Node], scope: Scope) -> list[Stmt]:
        """Return a loop's body backwards, after what its iteration has to compute again."""
        found = self._backwards(body, scope)
        if not found:
            return []
        zeros = [self._zeroed(n) for n in self.sums if scope and self.scopes.get(n) == scope]
        given = [self._copied(n) for n in self.outputs if n in self.sums and self._start(n) == scope]
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
        parts = self._parts(node, leaf)
        index = self._index(node.index, leaf)
        sums = self.sums[node.buffer]
        if node.op in ("max", "min") and leaf not in self.steps:
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
        own = self.sums[node.buffer]
        found, parts = self._once(parts, leaf, own, held, node.line)
        for load, guard, part in parts:
            sums = self.sums[load.buffer]
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
                by = self._divided(leaf)
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
        return Store(self.sums[node.buffer], index, number(0.0, of), "", node.line)

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
        if node.buffer not in self.active or node.op not in ("max", "min") or not fixed or leaf in self.steps:
            return None
        parts = self._parts(node, leaf)
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
            return Store(self.sums[name], ZERO, zero, "", buffer.line)
        return self._filled(self.sums[name], buffer.shape, zero)

    def _start(self, name: str) -> Scope:
        """Return the loops whose iterations each have elements of an output that no other one touches."""
        scope = self.needs.scope(name)
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
        there = Load(self.given[name], (), Type(buffer.dtype), buffer.line)
        own = [Var(v, INT) if v in scope else None for v in self._fixed(name)]
        return self._filled(self.sums[name], buffer.shape, cast(there, Type(summed_as(buffer.dtype))), own)

    def _kernel(self, body: list[Stmt]) -> Kernel:
        own = self.kernel.buffers
        tensors = [n for n in self.kernel.parameters if n in own]
        buffers: dict[str, Buffer] = {n: own[n] for n in tensors}
        for name in self.kernel.outputs:
            buffers[name] = _input(own[name], name)
        for name in self.kernel.outputs:
            handed = self.given.get(name) or self.names.new(f"d_{name}")
            buffers[handed] = _input(own[name], handed)
        parameters = (*buffers, *self.kernel.attributes)
        buffers |= self.values.buffers
        for name in self.sums:
            if own[name].role != "input":
                made = Buffer(
                    self.sums[name], summed_as(own[name].dtype), own[name].shape, "local", own[name].line
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
            sums = self.sums.get(name) or self.names.new(f"d_{name}")
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
