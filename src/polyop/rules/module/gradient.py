"""The two pure operators behind a module's gradient, for hosts that trace.

``<name>__saving`` gives the outputs and then the tensors that Forward saved beside inputs and
outputs; ``<name>__backward`` gives the gradients of the wanted inputs. Both make the rest of the
state again by running Forward without data.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Sequence
from typing import Any

from ... import _core
from ...call.bound import BoundOperator
from ...call.host import host_of, transforming_host
from ...call.operator import Operator
from ...call.rule import Rule
from ...call.uses import Uses
from ...core.errors import HostError
from ...core.parse import parse
from ...core.schema import Argument, Return, Schema, Type
from ...core.spec import Spec
from ...kernels.module.kernel import Derived, ModuleKernel
from ...kernels.tensors import TensorKernel
from .recorded import Call, Recorded, failed
from .second import OwnTensors, SecondRule

_LIST = Return(Type("Tensor", ("[]",)))


def make_saving(bound: Any, backward: BoundOperator) -> BoundOperator:
    """Return the operator that also gives what is saved."""
    operator: Operator = bound.operator
    schema, kernel = operator.schema, _kernel(operator)
    wanted = Argument("polyop_wanted", Type("bool", ("[]",)), keyword_only=True)
    shown = dataclasses.replace(
        schema, name=f"{schema.name}__saving", arguments=(*schema.arguments, wanted), returns=(_LIST,)
    )

    def save(*arguments: Any) -> tuple[Any, ...]:
        *given, flags = arguments
        ctx, outputs = record(bound, given, flags)
        derived = _call(schema, given, flags).derive(kernel)
        if derived is None:
            return outputs
        kept = zip(derived.saved, ctx.to_save, strict=True)
        return (*outputs, *(tensor for one, tensor in kept if one.kind == "own"))

    gradient: Any = SavedRule(schema, kernel, backward)
    rule = SavingInfer(bound)
    kernels = (TensorKernel(save, f"{kernel}, saving"),)
    return BoundOperator(
        Operator(
            schema=shown,
            infer=rule,
            kernels=kernels,
            gradient=gradient,
            batch=operator.batch,
            part_of=operator.name,
            origin=operator.origin,
        )
    )


def make_backward(bound: Any) -> BoundOperator:
    """Return the operator from saved tensors and output gradients to input gradients."""
    operator: Operator = bound.operator
    schema, kernel = operator.schema, _kernel(operator)
    text = "(Tensor[] saved, Tensor?[] grads, str call) -> Tensor[]"

    def pull(saved: Any, grads: Any, text: str) -> tuple[Any, ...]:
        call = Call.parse(text)
        derived = call.derive(kernel)
        if derived is not None:
            tape = derived.tape
        else:  # its state depends on data: run Forward again
            ctx, _ = record(bound, _rebuilt(schema, call, saved), call.wanted)
            tape, saved = ctx.tape, ctx.to_save
        found = run_backward(bound.name, kernel, tape, saved, grads)
        return tuple(_own(call, found, (*saved, *grads)))

    return BoundOperator(
        Operator(
            schema=parse(f"{schema.namespace}::{schema.name}__backward{text}"),
            infer=BackwardInfer(),
            kernels=(TensorKernel(pull, f"{kernel}, Backward"),),
            gradient=SecondRule(bound.name, kernel),
            part_of=operator.name,
            origin=operator.origin,
        )
    )


def _kernel(operator: Operator) -> ModuleKernel:
    recorded: Any = operator.gradient
    assert isinstance(recorded, Recorded)
    return recorded.kernel


def record(bound: Any, arguments: Sequence[Any], wanted: Sequence[bool]) -> tuple[Any, tuple[Any, ...]]:
    """Run a function with its gradient recorded; return what holds the tape, and the outputs."""
    ctx = types.SimpleNamespace()
    result = bound.record((ctx, tuple(map(bool, wanted))), *arguments)
    if result is NotImplemented:
        raise HostError(bound.name, "cannot take these tensors as they are; make them dense")
    return ctx, result if isinstance(result, tuple) else () if result is None else (result,)


def run_backward(name: str, kernel: ModuleKernel, tape: Any, saved: Any, grads: Any) -> tuple[Any, ...]:
    """Return one gradient or None per tensor of the call; raises ``GradientError``."""
    try:
        found = _core.backward(tape, tuple(saved), tuple(grads))
    except RuntimeError as problem:
        raise failed(name, problem, kernel.path) from None
    if found is NotImplemented:
        raise HostError(name, "Backward cannot take these tensors as they are; make them dense")
    result: tuple[Any, ...] = found
    return result


def _call(schema: Schema, arguments: Sequence[Any], wanted: Sequence[bool]) -> Call:
    def spec(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(map(spec, value))
        host = host_of(value)
        return None if value is None else host.spec(value) if host is not None else _spec_of(value)

    seen = [
        spec(value) if argument.type.is_tensor else value
        for argument, value in zip(schema.arguments, arguments, strict=True)
    ]
    return Call.of(schema, seen, wanted)


def _spec_of(value: Any) -> Spec:
    found: Spec = value.spec  # a tensor that was not kept: see hosts/torch/layout.py
    return found


def _opened(arguments: Sequence[Any], schema: Schema) -> list[Any]:
    flat: list[Any] = []
    for position in schema.tensor_positions:
        value = arguments[position]
        flat.extend(value if isinstance(value, (list, tuple)) else (value,))
    return flat


def _rebuilt(schema: Schema, call: Call, tensors: Sequence[Any]) -> list[Any]:
    left = iter(tensors)

    def fill(value: Any) -> Any:
        if value is None:
            return None
        return tuple(map(fill, value)) if isinstance(value, tuple) else next(left)

    inputs = iter([fill(value) for value in call.inputs])
    return [next(inputs) if a.type.is_tensor else call.attributes[a.name] for a in schema.arguments]


def _own(call: Call, found: Sequence[Any], given: Sequence[Any]) -> Any:
    """Yield a gradient for each wanted input: zeros where there is none, copies of what was given."""
    seen = [id(tensor) for tensor in given]
    host = next(h for h in map(host_of, (*given, *found)) if h is not None)
    like = next(tensor for tensor in (*given, *found) if tensor is not None)
    for spec, grad, flag in zip(call.specs, found, call.wanted, strict=True):
        if not flag or spec is None:
            continue
        made = host.zeros(spec, like) if grad is None else grad
        if id(made) in seen:
            made = host.copy(made)
        seen.append(id(made))
        yield made


class SavingInfer:
    """Specs of the outputs, then of the saved tensors."""

    repeatable = True

    def __init__(self, bound: Any) -> None:
        self.bound = bound

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output and per tensor saved beside them."""
        operator = self.bound.operator
        *given, wanted = arguments
        outputs: tuple[Spec, ...] = operator.infer(given)
        derived = Call.of(operator.schema, given, wanted).derive(_kernel(operator))
        return outputs if derived is None else (*outputs, *derived.own)


class BackwardInfer:
    """Specs of the wanted inputs: a gradient is like its input."""

    repeatable = True

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per wanted input."""
        call = Call.parse(arguments[-1])
        flags = zip(call.specs, call.wanted, strict=True)
        return tuple(spec for spec, flag in flags if flag and spec is not None)


@dataclasses.dataclass(frozen=True, eq=False)
class SavedRule(Rule):
    """The gradient rule of ``<name>__saving``: it reads just what Forward has saved."""

    schema: Schema
    kernel: ModuleKernel
    backward: BoundOperator

    def reads(self, arguments: Sequence[Any], outputs: int, tangents: Sequence[Any] | None = None) -> Uses:
        """Return which of the arguments and of the outputs the rule reads."""
        del tangents
        *given, wanted = arguments
        derived = _call(self.schema, given, wanted).derive(self.kernel)
        if derived is None:
            return Uses((True,) * len(arguments), (False,) * outputs)
        inputs = {one.index for one in derived.saved if one.kind == "input"}
        read = {one.index for one in derived.saved if one.kind == "output"}
        first = len(derived.outputs)
        flags, flat = [], 0
        for argument, value in zip(self.schema.arguments, given, strict=True):
            if not argument.type.is_tensor:
                flags.append(True)
                continue
            size = len(value) if isinstance(value, (list, tuple)) else 1
            flags.append(any(flat + k in inputs for k in range(size)))
            flat += size
        return Uses((*flags, True), tuple(k in read or k >= first for k in range(outputs)))

    def without_gradient(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs that Forward has marked, or that no argument with a gradient leads to."""
        *given, wanted = arguments
        derived = _call(self.schema, given, wanted).derive(self.kernel)
        if derived is None:
            return []
        rows = zip(outputs, derived.sources, strict=False)
        return [output for output, (reached, settled) in rows if settled and not reached]

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return one gradient per argument."""
        *given, wanted, outputs, grads = arguments
        call = _call(self.schema, given, wanted)
        derived = call.derive(self.kernel)
        flat = _opened(given, self.schema)
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
        pulled = list(self.backward(saved, list(grads[:count]), str(call)))
        if derived is not None:
            self._add_own(pulled, call, derived, flat, grads[count:])
        found, flags = iter(pulled), iter(wanted)
        made: list[Any] = []
        for argument, value in zip(self.schema.arguments, given, strict=True):
            if not argument.type.is_tensor:
                made.append(None)
            elif isinstance(value, (list, tuple)):
                made.append(tuple(next(found) if next(flags) else None for _ in value))
            else:
                made.append(next(found) if next(flags) else None)
        return (*made, None)

    def _add_own(
        self, pulled: list[Any], call: Call, derived: Derived, flat: Sequence[Any], grads: Sequence[Any]
    ) -> None:
        """Add the gradients that come through what Forward saved beside inputs and outputs."""
        own = OwnTensors(self.schema.qualified_name, self.kernel, call, derived)
        numbers = [k for k, one in enumerate(derived.saved) if one.kind == "own"]
        given = {k: grad for k, grad in zip(numbers, grads, strict=True) if grad is not None}
        which = [k for k in own.moving if k in given]
        if not which:
            return
        there = {i: tensor for i, tensor in enumerate(flat) if host_of(tensor) is not None}
        smooth = [i for i in there if call.wanted[i]]
        if not smooth:
            raise own.refusal("no input that it is computed from is saved")
        host = transforming_host([there[smooth[0]]])
        assert host is not None
        there = dict(zip(there, host.alive(there.values()), strict=True))

        def again(*tensors: Any) -> tuple[Any, ...]:
            return own.again({**there, **dict(zip(smooth, tensors, strict=True))}, {}, which)

        more = host.pull_back(again, [there[i] for i in smooth], host.alive([given[k] for k in which]))
        places = [i for i, flag in enumerate(call.wanted) if flag]
        for i, grad in zip(smooth, more, strict=True):
            pulled[places.index(i)] = pulled[places.index(i)] + grad
