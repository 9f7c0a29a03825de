"""The gradient of a plain eager call of a loop operator: planned once for each key, then native both ways.

``planned_forward`` and ``planned_backward_method`` of the native core (csrc/planned.cc) read the named tuples
below. What has no plan, or no step, goes through the functions here, which make one for the next call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ... import _core
from ...call.bound import BoundOperator
from ...call.prepare import normalise
from ...core.arguments import bind
from ...core.schema import Schema
from ...core.untraced import untraced
from ...rules.loops.vjp import LoopVJP, Step
from .autograd_arguments import INHERITED, SAVED, Layout
from .run import run
from .tensors import as_outputs, is_distributed


class State(NamedTuple):
    """What a node of the graph has, beside the tensors that autograd keeps.

    ``steps`` are the steps of backward by :func:`_step_key`; the others are attributes that ``Layout.save``
    sets.
    """

    steps: dict[tuple[Any, ...], Step]
    vjp: LoopVJP
    plan: list[Any]
    outputs: list[Any]


class Plan(NamedTuple):
    """What a call with one key does if a gradient is wanted.

    ``function`` is called with the arguments. ``inputs`` and ``outputs`` are the positions of the tensors
    that autograd keeps. ``attributes`` are the positions of the attributes: where the plan serves several
    values of one, the context of a call has them all as ``numbers``.
    """

    function: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: tuple[int, ...]
    state: State


def make(bound: BoundOperator, layout: Layout) -> Any:
    """Return the function for calls that need gradients: it applies one ``autograd.Function``."""
    schema, launch, operator = bound.schema, bound.launch, bound.operator
    count, as_tuple = len(schema.arguments), operator.returns_tuple

    @untraced
    def forward(ctx: Any, *args: Any) -> Any:
        full = normalise(operator, args if len(args) == count else bind(schema, args, {}))
        output = launch(*args)
        if output is NotImplemented:
            output = run(bound, full)
        layout.save(ctx, full, output)
        plan = _plan(ctx, apply, schema, full, as_outputs(output))
        if plan is not None:
            ctx.planned = plan.state
            bound.plan_gradient(plan, bound.differentiate, *args)
        return (output,) if as_tuple and not isinstance(output, tuple) else output

    @untraced
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        state, needs = ctx.planned, ctx.needs_input_grad
        if state is not None:
            ctx.vjp, ctx.plan, ctx.outputs = state.vjp, _with_numbers(schema, state, ctx), state.outputs
            ctx.distributed_specs = None
            key = _step_key(needs, grads)
            if key not in state.steps and all(grad is None or type(grad) is torch.Tensor for grad in grads):
                step = _step(state, layout, needs, grads)
                if step is not None:
                    state.steps[key] = step
        return layout.backward(ctx, *grads)[: len(needs)]

    body = {
        **INHERITED,
        "forward": staticmethod(bound.planned_forward),
        "backward": staticmethod(backward),
    }
    kind: Any = type(f"Polyop_{schema.name}", (torch.autograd.Function,), body)
    node = kind._backward_cls
    node.apply = _core.planned_backward_method  # the engine calls it
    node.forward_slowly, node.backward_slowly = staticmethod(forward), staticmethod(backward)
    node.planned = node.numbers = None
    apply = super(torch.autograd.Function, kind).apply
    return apply


def _with_numbers(schema: Schema, state: State, ctx: Any) -> list[Any]:
    """Return the plan of the arguments of a call, with the call's own attributes."""
    if ctx.numbers is None:
        return state.plan
    plan = list(state.plan)
    for (position, _), value in zip(schema.attributes(), ctx.numbers, strict=True):
        plan[position] = value
    return plan


def _plan(ctx: Any, apply: Any, schema: Schema, inputs: Sequence[Any], outputs: Sequence[Any]) -> Plan | None:
    """Return the plan of a call for which ``Layout.save`` has set ``ctx``, or None if it is unusual."""
    tensors = [x for x in (*inputs, *outputs) if isinstance(x, torch.Tensor)]
    smooth = all(x.is_floating_point() for x in outputs)
    if not smooth or not isinstance(ctx.vjp, LoopVJP) or any(map(is_distributed, tensors)):
        return None
    kept_inputs = tuple(i for i, entry in enumerate(ctx.plan) if entry is SAVED)
    kept_outputs = tuple(k for k, entry in enumerate(ctx.outputs) if entry is None)
    attributes = tuple(position for position, _ in schema.attributes())
    return Plan(apply, kept_inputs, kept_outputs, attributes, State({}, ctx.vjp, ctx.plan, ctx.outputs))


def _step_key(needs: tuple[bool, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
    """Return the key of a step, as csrc/planned.cc makes it: with the absent gradients, if there are any."""
    absent = sum(1 << k for k, grad in enumerate(grads) if grad is None)
    return (needs, absent) if absent else needs


def _step(state: State, layout: Layout, needs: tuple[bool, ...], grads: Sequence[Any]) -> Step | None:
    """Return the step of backward, with numbers of saved tensors in place of those of the call."""
    every = (*needs, *(False,) * len(state.plan))[: len(state.plan)]
    step = state.vjp.step(grads, every)
    if step is None:
        return None
    entries = [state.plan[i] is SAVED for i in layout.bound.schema.tensor_positions]
    entries += [entry is None for entry in state.outputs]
    numbers, kept = [], 0
    for is_saved in entries:
        numbers.append(kept if is_saved else -1)
        kept += is_saved
    numbers += [kept + k for k in range(len(grads))]
    sources = tuple(numbers[source] if source >= 0 else source for source in step.sources)
    return step._replace(sources=sources, results=step.results[: len(needs)])
