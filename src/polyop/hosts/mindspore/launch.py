"""One call of an operator as MindSpore's ``ops.Custom``: its function, and what it gives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import mindspore
from mindspore import ops
from mindspore.ops.signature import make_sig, sig_rw

from ... import _core
from ...call.foreign import call_text, flatten, written
from ...call.prepare import prepare
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, HostError, PolyopError, UnsupportedError
from ...core.schema import Schema
from ...core.spec import Spec
from . import bprop
from .places import filled
from .tensors import MS_DTYPES

_kept: dict[str, Any] = {}  # by the name of its function, the operator: a graph may run it at any time


class Launch(ops.Custom):  # type: ignore[misc]
    """A call with fixed attributes. It gives a tuple: the new outputs, then what it wrote."""

    @classmethod
    def of(cls, bound: Any, arguments: tuple[Any, ...]) -> Launch:
        """Return the launch of a call with bound arguments, each tensor any object.

        Raises ``UnsupportedError`` when all functions are taken or the operator has no outputs.
        """
        tensors = list(flatten(bound.schema, arguments))
        text = call_text(bound, arguments)
        name = _core.mindspore_slot(text, len(tensors))
        if name is None:
            rule = "cannot be compiled: a process can have 1024 different calls in MindSpore's graphs"
            hint = "pass what varies as a tensor, not as an attribute"
            raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint=hint)
        _kept[name] = bound
        made = cls._named(name)
        made.fill(name, bound, arguments, len(tensors))
        if made.written:
            made.by_reference()
        return made

    @classmethod
    def _named(cls, slot: str) -> Launch:
        return cls(f"{_core.__file__}:{slot}", out_shape=(), out_dtype=(), func_type="aot")

    def by_value(self) -> Launch:
        """Return the same launch without a side effect, as ``ms.vmap`` wants it: what it wrote it gives."""
        made = self._named(self.slot)
        made.fill(self.slot, self.bound, self.arguments, self.inputs)
        return made

    def fill(self, slot: str, bound: Any, arguments: tuple[Any, ...], inputs: int) -> None:
        """Keep what the call is."""
        schema: Schema = bound.schema
        self.slot, self.bound, self.arguments, self.inputs = slot, bound, arguments, inputs
        self.bprop: Any = None
        self.ordered = False  # whether MindSpore keeps it in its place, as what has a side effect
        numbers = filled(schema, arguments, itertools.count())
        rows = written(schema, numbers)
        fresh = [] if schema.returns_list else list(schema.fresh)
        if not rows and not schema.returns:
            rule = "has no outputs, and MindSpore's graphs leave out what gives nothing"
            raise UnsupportedError(bound.name, rule, where=bound.operator.origin)
        self.written = [(number, len(fresh) + k) for k, number in enumerate(rows)]
        self.places: list[int] = []  # of each return among what the launch gives; none: all of it, a list
        at = dict(self.written)
        for i in [] if schema.returns_list and not schema.mutates else range(len(schema.returns)):
            place = fresh.index(i) if i in fresh else at.get(_one(numbers[schema.alias_of(i)]))
            if place is None:
                rule = "returns a list of tensors that it writes, which MindSpore's graphs cannot have"
                raise UnsupportedError(bound.name, rule, where=bound.operator.origin)
            self.places.append(place)

    def by_reference(self) -> None:
        """Take these tensors as they are, in the order of what writes them.

        MindSpore copies what is read and written later, and those of float64 by way of float32.
        """
        self.ordered = True
        self.add_prim_attr("side_effect_mem", True)
        numbers = {number for number, _ in self.written}
        ways = (sig_rw.RW_WRITE if i in numbers else sig_rw.RW_READ for i in range(self.inputs))
        self.set_signatures(tuple(make_sig(f"a{i}", way) for i, way in enumerate(ways)))

    def get_bprop(self) -> Any:
        """Return the gradient, made when MindSpore first asks for it."""
        if self.bprop is None:
            self.bprop = bprop.of(self)
        return self.bprop

    def __infer__(self, *given: Any) -> dict[str, Any]:
        """Return shapes and dtypes of the outputs, as MindSpore asks for them."""
        for number, _ in self.written:
            if given[number]["value"] is not None:
                rule = "is written and is a constant of the graph, where what reads it sees the old values"
                hint = (
                    "a tensor of the program: pass it as an argument of its own (or in ms.mutable(list)), "
                    "or make it a Parameter with requires_grad=False; one of the graph: make it of an input, "
                    "as ops.zeros_like(x) does"
                )
                subject = f"{self.bound.name}: tensor {number}"
                raise UnsupportedError(subject, rule, where=self.bound.operator.origin, hint=hint)
        specs = self._outputs([self._spec(i, one) for i, one in enumerate(given)])
        for spec in specs:
            if spec.dtype.name not in MS_DTYPES:
                rule = f"gives a dtype that MindSpore's tensors do not have: {', '.join(MS_DTYPES)}"
                raise ArgumentTypeError(self.bound.name, rule, spec.dtype.name)
        return {
            "shape": tuple(list(spec.shape) for spec in specs),
            "dtype": tuple(mindspore.TensorType(MS_DTYPES[spec.dtype.name]) for spec in specs),
            "value": None,
        }

    def _outputs(self, specs: Sequence[Spec]) -> list[Spec]:
        bound = self.bound
        arguments = filled(bound.schema, self.arguments, specs)
        operator = bound.operator
        if hasattr(bound, "settle"):
            bound.settle(arguments)
        if bound.operator.schema != operator.schema:
            rule = "writes an argument in place, which was not known before this call"
            hint = "call it once on tensors before the graph is compiled"
            raise HostError(bound.name, rule, where=operator.origin, hint=hint)
        prepared = prepare(bound.operator, arguments, infer=True)
        return [*prepared.outputs, *written(bound.schema, arguments)]

    def _spec(self, number: int, given: Any) -> Spec:
        subject = f"{self.bound.name}: tensor {number}"
        kind = given["dtype"]
        element = kind.element_type() if hasattr(kind, "element_type") else kind
        shape = tuple(given["shape"])
        if any(size < 0 for size in shape):
            rule = "must have sizes that are known when the graph is compiled"
            hint = "MindSpore asks Python for shapes only then; call the operator outside the graph"
            raise UnsupportedError(subject, rule, str(shape), where=self.bound.operator.origin, hint=hint)
        try:
            return Spec(shape, dtype(element), "cpu")
        except PolyopError:
            rule = f"must be one of {', '.join(MS_DTYPES)}"
            raise ArgumentTypeError(f"{subject}: dtype", rule, str(element)) from None


def _one(number: Any) -> int:
    return -1 if isinstance(number, tuple) else int(number)
