"""The contributions of each statement to the adjoints of what it reads, and the values that they need.

Of ``y[i] = x[i] * w[i]`` the contribution to the adjoint of ``x[i]`` is ``d_y[i] * w[i]``: the gradient reads
``w[i]``. A recording requests all such values and decides where each of them comes from; see recorded_values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis.session import IslSession
from ..analysis.tree import StatementNode
from ..ir.grammar import Const, Expr, Kernel, Load, Op, Store, Type
from ..ir.operate import operate
from ..ir.rewriter import rewrite
from ..ir.types import cast
from ..ir.uses import loads_of
from .activity import active
from .names import Names, summed_as
from .order import Order
from .partials import Part, adjoint_parts
from .recorded_values import Read, RecordedValues
from .recover_exp import recovering_division
from .scopes import Scopes, scopes_of

Parts = Sequence[Part]


@dataclass(frozen=True, slots=True)
class StoredResult(Load):
    """A load of what the statement itself has stored, which an output has in the end."""


class Recording:
    """The values that the gradient of one kernel reads. The kernel has no scalars.

    ``inputs`` and ``outputs`` are those that are differentiated, ``scopes`` those of all temporaries.
    """

    def __init__(
        self,
        kernel: Kernel,
        session: IslSession,
        scopes: Scopes,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        self.kernel = kernel
        self.scopes: Scopes = {n: s for n, s in scopes.items() if kernel.buffers[n].role == "local"}
        self.order = Order(kernel, session, self.scopes)
        again = Order(kernel, session, {**self.scopes, **scopes_of(kernel, session, kernel.outputs)})
        self.values = RecordedValues(self.order, again)
        self.active = active(kernel, inputs, outputs)
        self._names = Names(kernel)
        self.output_gradients = {n: self._names.new(f"d_{n}") for n in outputs}
        """By output, the parameter that has its gradient."""
        self.adjoints = {n: self._adjoint(n) for n in sorted(self.active)}
        """By active buffer, the buffer in which its gradient is accumulated."""
        self.stepwise: set[str] = set()
        """The ``max=`` and ``min=`` statements of which each step chooses between the old and the new value.

        Of all others the element that won in the end is searched for.
        """
        self._quotients: dict[str, tuple[str, Expr] | None] = {}
        self._collect()

    def names(self) -> Names:
        """Return names that neither the kernel nor its adjoints have."""
        names = Names(self.kernel)
        names.taken |= {*self.output_gradients.values(), *self.adjoints.values()}
        return names

    def parts(self, node: Store, leaf: str) -> Parts:
        """Return what a store contributes to the adjoint of each element it reads, in the kernel's values."""
        buffer = self.kernel.buffers[node.buffer]
        adjoint = Load(self.adjoints[node.buffer], node.index, Type(summed_as(buffer.dtype)), node.line)
        value = node.value
        if node.op == "*":
            value = node.target * value
        if leaf in self.stepwise:
            wins = operate(">=" if node.op == "max" else "<=", value, node.target)
            value = Op("select", (wins, value, node.target), node.target.type)
        parts = adjoint_parts(value, cast(adjoint, value.type), lambda load: load.buffer in self.active)
        if not isinstance(value, Op) or not (self.values.result_stays(leaf) or self.quotient(leaf)):
            return parts
        result = StoredResult(node.buffer, node.index, value.type, node.line)

        def change(expr: Expr) -> Expr:
            return result if expr == value else expr

        return [part._replace(value=rewrite(part.value, change)) for part in parts]

    def quotient(self, leaf: str) -> tuple[str, Expr] | None:
        """Return the statement that divides the exponential of a leaf, and the divisor; see recover_exp."""
        if leaf not in self._quotients:
            self._quotients[leaf] = recovering_division(self.values, self.order.statements[leaf])
        return self._quotients[leaf]

    def given(self) -> set[str]:
        """Return the inputs and outputs of which the gradient reads elements."""
        results = set()
        for place in self.order.statements.values():
            node, leaf = place.node, place.leaf.id
            assert isinstance(node, Store)
            parts = self.parts(node, leaf) if node.buffer in self.active else ()
            if any(isinstance(e, StoredResult) for part in parts for e in loads_of(part.value)):
                results.add(node.buffer)
        return results | self.values.given()

    def explain(self) -> Iterator[tuple[int, str]]:
        """Yield (line, text) for each value that the gradient reads and no input has: where it is from."""
        yield from self.values.explain()
        for leaf, quotient in self._quotients.items():
            if quotient is not None:
                node, divides = (self.order.statements[x].node for x in (leaf, quotient[0]))
                assert isinstance(node, Store)
                yield node.line, f"{node.buffer} is recovered from the quotient of line {divides.line}"

    def _adjoint(self, name: str) -> str:
        is_output = self.kernel.buffers[name].role == "output"
        return self._names.new(f"d_{name}_now" if is_output else f"d_{name}")

    def _collect(self) -> None:
        """Request what the gradient reads, and settle where it comes from."""
        for place in self.order.statements.values():
            self._request(place)
        self.values.settle()
        while leaves := self.values.forget_overwritten_results():
            for leaf in leaves:
                self._take_stepwise(self.order.statements[leaf])
            self.values.settle()

    def _request(self, place: StatementNode) -> None:
        """Request what the gradient reads because of one statement."""
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        if node.buffer not in self.active:
            return
        self._request_parts(place)
        for load in loads_of(*node.index):
            self.values.request(Read(leaf, load))
        if self.parts(node, leaf) or node.op != "+":
            self.values.request_heads(leaf)
        if node.op in ("max", "min"):
            for load in loads_of(node.value):
                self.values.request(Read(leaf, load))
            is_kept = isinstance(node.value, (Load, Const))  # by keep_argmax_operands
            if not is_kept or not self.values.request_result(leaf, node.target):
                self._take_stepwise(place)

    def _take_stepwise(self, place: StatementNode) -> None:
        self.stepwise.add(place.leaf.id)
        self._request_parts(place)

    def _request_parts(self, place: StatementNode) -> None:
        """Request what the contributions of one statement read."""
        node, leaf = place.node, place.leaf.id
        assert isinstance(node, Store)
        for part in self.parts(node, leaf):
            for load in loads_of(*part.expressions):
                if isinstance(load, StoredResult):
                    if (quotient := self.quotient(leaf)) is not None:
                        for inner in loads_of(quotient[1]):
                            self.values.request(Read(quotient[0], inner))
                elif load.buffer not in self.adjoints.values():
                    self.values.request(Read(leaf, load))
