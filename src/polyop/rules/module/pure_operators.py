"""The two pure operators behind a module's gradient, for hosts that trace.

    <name>__saving(arguments, flags)        -> outputs, then the tensors that Forward computed and saved
    <name>__backward(saved, grads, call)    -> one gradient for each input that needs one

The flags say which inputs need a gradient. Both operators rebuild the rest of the state: they run Forward
without data. If Forward reads data, that is impossible, and ``<name>__backward`` runs it a second time.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Sequence
from typing import Any

from ... import _core
from ...call.batching import BatchedCall
from ...call.bound import BoundOperator
from ...call.flat_tensors import with_absent
from ...call.host import host_of, transforming_host
from ...call.operator import Operator
from ...call.rule import Rule
from ...call.uses import Uses
from ...core.derived_names import derived_from
from ...core.errors import HostError
from ...core.parse import parse
from ...core.schema import Argument, Return, Schema, Type
from ...core.spec import Spec, are_numbers
from ...kernels.module.kernel import Derived, ModuleKernel
from ...kernels.python import TensorKernel
from ..batched_tensors import map_pairs, sample_shape
from ..dims import DimsBatch
from .recorded import Call, Recorded, failed
from .second import OwnTensors, SecondRule

_LIST = Return(Type("Tensor", ("[]",)))


def make_saving(bound: Any, backward: BoundOperator) -> BoundOperator:
    """Return ``<name>__saving``."""
    operator: Operator = bound.operator
    schema, kernel = operator.schema, _kernel(operator)
    flags = Argument("polyop_wanted", Type("bool", ("[]",)), keyword_only=True)
    saving_schema = dataclasses.replace(
        schema, name=f"{schema.name}__saving", arguments=(*schema.arguments, flags), returns=(_LIST,)
    )
    derived_from(schema, "saving", saving_schema)

    def save(*arguments: Any) -> tuple[Any, ...]:
        *inputs, flags = arguments
        ctx, outputs = record(bound, inputs, flags)
        derived = _call(schema, inputs, flags).derive(kernel)
        if derived is None:
            return outputs
        rows = zip(derived.saved, ctx.to_save, strict=True)
        return (*outputs, *(tensor for saved, tensor in rows if saved.kind == "own"))

    gradient: Any = SavedRule(schema, kernel, backward)
    kernels = (TensorKernel(save, f"{kernel}, saving"),)
    saving = Operator(
        schema=saving_schema,
        infer=SavingInfer(bound),
        kernels=kernels,
        gradient=gradient,
        batch=SavingBatch(bound, saving_schema),
        part_of=operator.name,
        origin=operator.origin,
    )
    return BoundOperator(saving)


def make_backward(bound: Any) -> BoundOperator:
    """Return ``<name>__backward``."""
    operator: Operator = bound.operator
    schema, kernel = operator.schema, _kernel(operator)
    signature = "(Tensor[] saved, Tensor?[] grads, str call) -> Tensor[]"

    def backward(saved: Any, grads: Any, text: str) -> tuple[Any, ...]:
        call = Call.parse(text)
        derived = call.derive(kernel)
        if derived is not None:
            tape = derived.tape
        else:  # its state depends on data: run Forward again
            ctx, _ = record(bound, _rebuilt(schema, call, saved), call.needs_gradient)
            tape, saved = ctx.tape, ctx.to_save
        input_grads = run_backward(bound.name, kernel, tape, saved, grads)
        return tuple(_unshared(call, input_grads, (*saved, *grads)))

    return BoundOperator(
        Operator(
            schema=derived_from(
                schema, "backward", parse(f"{schema.namespace}::{schema.name}__backward{signature}")
            ),
            infer=BackwardInfer(),
            kernels=(TensorKernel(backward, f"{kernel}, Backward"),),
            gradient=SecondRule(bound.name, kernel),
            part_of=operator.name,
            origin=operator.origin,
        )
    )


def _kernel(operator: Operator) -> ModuleKernel:
    recorded: Any = operator.gradient
    assert isinstance(recorded, Recorded)
    return recorded.kernel


def record(
    bound: Any, arguments: Sequence[Any], needs_gradient: Sequence[bool]
) -> tuple[Any, tuple[Any, ...]]:
    """Run a function and record its gradient; return what holds ``tape`` and ``to_save``, and the outputs."""
    ctx = types.SimpleNamespace()
    result = bound.record((ctx, tuple(map(bool, needs_gradient))), *arguments)
    if result is NotImplemented:
        raise HostError(bound.name, "cannot take these tensors as they are; make them dense")
    return ctx, result if isinstance(result, tuple) else () if result is None else (result,)


def run_backward(name: str, kernel: ModuleKernel, tape: Any, saved: Any, grads: Any) -> tuple[Any, ...]:
    """Return one gradient or None per tensor of the call; raises ``GradientError``."""
    try:
        input_grads = _core.backward(tape, tuple(saved), tuple(grads))
    except RuntimeError as problem:
        raise failed(name, problem, kernel.path) from None
    if input_grads is NotImplemented:
        raise HostError(name, "Backward cannot take these tensors as they are; make them dense")
    result: tuple[Any, ...] = input_grads
    return result


def _call(schema: Schema, arguments: Sequence[Any], needs_gradient: Sequence[bool]) -> Call:
    return Call.of(schema, _specs(schema, arguments, (None,) * len(arguments)), needs_gradient)


def _specs(schema: Schema, arguments: Sequence[Any], in_dims: Sequence[Any]) -> list[Any]:
    """Return the arguments with a spec for each tensor, without the axis of the samples."""

    def spec(value: Any, axis: int | None) -> Spec:
        host = host_of(value)
        whole = host.spec(value) if host is not None else _spec_of(value)
        return dataclasses.replace(whole, shape=sample_shape(whole, axis))

    rows = zip(schema.arguments, arguments, in_dims, strict=False)
    return [
        map_pairs(spec, value, axis) if argument.type.is_tensor else value for argument, value, axis in rows
    ]


def _spec_of(value: Any) -> Spec:
    spec: Spec = value.spec  # an Unread of the PyTorch host, or a Placeholder of the JAX host
    return spec


def _rebuilt(schema: Schema, call: Call, tensors: Sequence[Any]) -> list[Any]:
    """Return the arguments of a call, with these tensors in place of its specs."""
    remaining = iter(tensors)

    def fill(value: Any) -> Any:
        if value is None:
            return None
        return tuple(map(fill, value)) if isinstance(value, tuple) else next(remaining)

    inputs = iter([fill(value) for value in call.inputs])
    return [next(inputs) if a.type.is_tensor else call.attributes[a.name] for a in schema.arguments]


def _unshared(call: Call, input_grads: Sequence[Any], arguments: Sequence[Any]) -> Any:
    """Yield a gradient for each input that needs one: zeros for None.

    An operator must not return one of its arguments, nor one tensor twice, so these are copied.
    """
    taken_ids = [id(tensor) for tensor in arguments]
    host = next(h for h in map(host_of, (*arguments, *input_grads)) if h is not None)
    like = next(tensor for tensor in (*arguments, *input_grads) if tensor is not None)
    for spec, grad, needed in zip(call.specs, input_grads, call.needs_gradient, strict=True):
        if not needed or spec is None:
            continue
        result = host.zeros(spec, like) if grad is None else grad
        if id(result) in taken_ids:
            result = host.copy(result)
        taken_ids.append(id(result))
        yield result


class SavingTangent:
    """The forward-mode rule of ``<name>__saving``: the author's ``jvp=``, of the outputs alone.

    It returns no tangents of the tensors that Forward saved beside them: those follow from the gradient rule.
    """

    def __init__(self, bound: Any) -> None:
        """Take the operator, whose ``jvp`` is read at each call."""
        self.bound = bound

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Return the tangents of the first outputs."""
        *inputs, flags, outputs, tangents = values
        operator: Operator = self.bound.operator
        assert operator.jvp is not None
        count = len(operator.schema.returns)
        if operator.schema.returns_list:
            derived = _call(operator.schema, inputs, flags).derive(_kernel(operator))
            count = len(outputs) if derived is None else len(derived.outputs)
        own = tuple(outputs[:count])
        pushed = operator.jvp(*inputs, own if operator.several else own[0], tuple(tangents[:-1]))
        return tuple(pushed) if operator.several else (pushed,)


class SavingInfer:
    """The infer rule of ``<name>__saving``: specs of the outputs, then of the saved tensors."""

    repeatable = True

    def __init__(self, bound: Any) -> None:
        self.bound = bound

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output, then one per tensor that Forward computed and saved."""
        operator = self.bound.operator
        *inputs, flags = arguments
        outputs: tuple[Spec, ...] = operator.infer(inputs)
        derived = Call.of(operator.schema, inputs, flags).derive(_kernel(operator))
        return outputs if derived is None else (*outputs, *derived.own)


class BackwardInfer:
    """The infer rule of ``<name>__backward``: a gradient has the spec of its input."""

    repeatable = True

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per input that needs a gradient."""
        call = Call.parse(arguments[-1])
        rows = zip(call.specs, call.needs_gradient, strict=True)
        return tuple(spec for spec, needed in rows if needed and spec is not None)


class SavingBatch(DimsBatch):
    """One call for the samples of ``<name>__saving``, where Forward saves inputs and outputs alone.

    ``dims=`` says nothing of the other tensors that Forward saves: those of one call for all samples may
    not be those of the samples, as a cumulative sum along the joined dimension. Then there is one call per
    sample.
    """

    def __init__(self, bound: Any, schema: Schema) -> None:
        """Take the operator, whose ``dims`` are read at each call, and the schema of ``<name>__saving``."""
        self.bound, self.schema = bound, schema

    def __call__(self, in_dims: Sequence[Any], inputs: Sequence[Any], call: BatchedCall) -> Any:
        """Return (outputs, axes that count samples), or ``NotImplemented`` for one call per sample."""
        operator: Operator = self.bound.operator
        if operator.dims is None:
            return NotImplemented
        *arguments, flags = inputs
        sample = _specs(operator.schema, arguments, in_dims)
        if not are_numbers(sample):
            return NotImplemented
        derived = Call.of(operator.schema, sample, flags).derive(_kernel(operator))
        if derived is not None and derived.own:
            return NotImplemented
        return DimsBatch(self.schema, operator.dims)(in_dims, inputs, call)


@dataclasses.dataclass(frozen=True, eq=False)
class SavedRule(Rule):
    """The gradient rule of ``<name>__saving``: it reads only what Forward saved."""

    calls_operators = True
    schema: Schema
    kernel: ModuleKernel
    backward: BoundOperator

    def reads(self, arguments: Sequence[Any], outputs: int, tangents: Sequence[Any] | None = None) -> Uses:
        """Return which of the arguments and of the outputs the rule reads."""
        del tangents
        *inputs, flags = arguments
        derived = _call(self.schema, inputs, flags).derive(self.kernel)
        if derived is None:
            return Uses((True,) * len(arguments), (False,) * outputs)
        saved_inputs = {one.index for one in derived.saved if one.kind == "input"}
        saved_outputs = {one.index for one in derived.saved if one.kind == "output"}
        first_own = len(derived.outputs)
        reads, first = [], 0
        for argument, value in zip(self.schema.arguments, inputs, strict=True):
            if not argument.type.is_tensor:
                reads.append(True)
                continue
            size = len(value) if isinstance(value, (list, tuple)) else 1
            reads.append(any(first + k in saved_inputs for k in range(size)))
            first += size
        return Uses((*reads, True), tuple(k in saved_outputs or k >= first_own for k in range(outputs)))

    def without_gradient(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs that Forward marked, and those that no input which needs a gradient reaches."""
        *inputs, flags = arguments
        derived = _call(self.schema, inputs, flags).derive(self.kernel)
        if derived is None:
            return []
        rows = zip(outputs, derived.sources, strict=False)
        return [output for output, (reached, settled) in rows if settled and not reached]

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return one gradient per argument."""
        *inputs, flags, outputs, grads = arguments
        call = _call(self.schema, inputs, flags)
        derived = call.derive(self.kernel)
        flat = with_absent(self.schema, inputs)
        if derived is None:
            saved, count = [tensor for tensor in flat if tensor is not None], len(outputs)
        else:
            count = len(derived.outputs)
            own = iter(outputs[count:])
            saved = [
                flat[one.index]
                if one.kind == "input"
                else outputs[one.index]
                if one.kind == "output"
                else next(own)
                for one in derived.saved
            ]
        input_grads = list(self.backward(saved, list(grads[:count]), str(call)))
        if derived is not None:
            self._add_own(input_grads, call, derived, flat, grads[count:])
        remaining, needed = iter(input_grads), iter(flags)
        by_argument: list[Any] = []
        for argument, value in zip(self.schema.arguments, inputs, strict=True):
            if not argument.type.is_tensor:
                by_argument.append(None)
            elif isinstance(value, (list, tuple)):
                by_argument.append(tuple(next(remaining) if next(needed) else None for _ in value))
            else:
                by_argument.append(next(remaining) if next(needed) else None)
        return (*by_argument, None)

    def _add_own(
        self, input_grads: list[Any], call: Call, derived: Derived, flat: Sequence[Any], grads: Sequence[Any]
    ) -> None:
        """Add the gradients that flow through the tensors that Forward computed and saved.

        Only a second derivative has them. They need Forward again, as a function of its inputs.
        """
        own = OwnTensors(self.schema.qualified_name, self.kernel, call, derived)
        numbers = [k for k, one in enumerate(derived.saved) if one.kind == "own"]
        own_grads = {k: grad for k, grad in zip(numbers, grads, strict=True) if grad is not None}
        which = [k for k in own.active if k in own_grads]
        if not which:
            return
        available = {i: tensor for i, tensor in enumerate(flat) if host_of(tensor) is not None}
        active = [i for i in available if call.needs_gradient[i]]
        if not active:
            raise own.refusal("no input that it is computed from is saved")
        host = transforming_host([available[active[0]]])
        assert host is not None
        available = dict(zip(available, host.alive(available.values()), strict=True))

        def again(*tensors: Any) -> tuple[Any, ...]:
            return own.again({**available, **dict(zip(active, tensors, strict=True))}, {}, which)

        more = host.pull_back(
            again, [available[i] for i in active], host.alive([own_grads[k] for k in which])
        )
        positions = [i for i, needed in enumerate(call.needs_gradient) if needed]
        for i, grad in zip(active, more, strict=True):
            input_grads[positions.index(i)] = input_grads[positions.index(i)] + grad
