"""How an operator's arguments are laid out for an ``autograd.Function``, and what is kept of them."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ...call.bound import BoundOperator
from ...call.rule import Rule, apply_rule, check_gradient, list_gradients, no_gradient
from ...call.uses import Uses, used_by_rule
from ...core.dtypes import DTYPES
from ...core.tracebacks import hide_own
from ...core.untraced import untraced
from .tensors import TORCH_DTYPES, as_outputs, for_torch, is_distributed, spec, zeros_of

DIFFERENTIABLE = {TORCH_DTYPES[row.name] for row in DTYPES if row.is_floating and row.name in TORCH_DTYPES}

INHERITED = {
    name: inspect.getattr_static(torch.autograd.Function, name)
    for name in ("setup_context", "clear_saved_tensors_on_access", "boxed_grads_call")
    if hasattr(torch.autograd.Function, name)
}
"""What each call asks its class for, past Python's cache of attributes: found sooner in the class itself."""


class Unread:
    """Stands for a tensor that the gradient rule does not read; only its shape, dtype and spec are kept."""

    def __init__(self, shape: Any, dtype: Any, spec: Any = None) -> None:
        """Keep what the gradient is checked with, and the spec where the rule asks for it."""
        self.shape, self.dtype, self.spec = shape, dtype, spec


SAVED, UNREAD = Unread(None, None), Unread(None, None)
"""A tensor that autograd keeps, and one of which nothing is known."""


class Layout:
    """Flat arguments of a ``Function``.

    ``Function`` silently loses the gradients of tensors inside lists, so lists are flattened:
    each becomes its length, then its items.
    """

    def __init__(self, bound: BoundOperator) -> None:
        """Read the schema. The gradient rule is read in each call, because it can be replaced."""
        self.bound = bound
        self.is_list = [a.type.is_tensor and a.type.is_list for a in bound.schema.arguments]
        self.has_lists = any(self.is_list)

    def flatten(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return bound arguments with lists flattened."""
        if not self.has_lists:
            return arguments
        flat: list[Any] = []
        for value, is_list in zip(arguments, self.is_list, strict=True):
            if is_list and value is not None:
                flat.extend((len(value), *value))
            else:
                flat.append(value)
        return tuple(flat)

    def unflatten(self, flat: Any, values: Any = None) -> tuple[Any, ...]:
        """Return one value per argument again; ``values`` in place of ``flat``, whose lengths count."""
        items = flat if values is None else values
        if not self.has_lists:
            return tuple(items)
        grouped: list[Any] = []
        at = 0
        for is_list in self.is_list:
            length = flat[at] if is_list else None
            if length is None:
                grouped.append(items[at])
                at += 1
                continue
            grouped.append(tuple(items[at + 1 : at + 1 + length]))
            at += 1 + length
        return tuple(grouped)

    def call(self, overload: Any, flat: Any) -> Any:
        """Call the overload with flat arguments; a list of outputs comes as a tuple."""
        schema = self.bound.schema
        positional, keywords = schema.split(for_torch(schema, self.unflatten(flat)))
        result = overload(*positional, **keywords)
        return tuple(result) if isinstance(result, list) else result

    def uses(self) -> Uses:
        """Return what the gradient rule and ``jvp`` read."""
        operator = self.bound.operator
        count = len(operator.schema.arguments)
        if operator.jvp is not None:
            return Uses((True,) * count, True)
        return used_by_rule(operator.gradient, count)

    def save(self, ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient rule reads: tensors through autograd, the rest as it is."""
        outputs = as_outputs(output)
        gradient = self.bound.operator.gradient
        rule = gradient if isinstance(gradient, Rule) else None
        ctx.vjp = None if rule is None or self.has_lists else rule.at(inputs)
        if ctx.vjp is not None:
            by_call = ctx.vjp.uses
        else:
            by_call = None if rule is None else rule.reads(self.unflatten(inputs), len(outputs))
        if by_call is not None:
            ctx.set_materialize_grads(False)  # the rule tells absent gradients from zeros
        ctx.distributed_specs = None
        if by_call is None and len(outputs) > 1 and any(map(is_distributed, outputs)):
            ctx.set_materialize_grads(False)  # autograd's zeros are plain tensors
            ctx.distributed_specs = [output._spec for output in outputs]
        uses = by_call or self.uses()
        reads = uses.inputs
        if self.has_lists:
            reads = (True,) * len(inputs)
        kept, plan = [], []
        for value, read in zip(inputs, reads, strict=True):
            if not isinstance(value, torch.Tensor):
                plan.append(value)
            elif read:
                kept.append(value)
                plan.append(SAVED)
            else:
                plan.append(Unread(value.shape, value.dtype, None if by_call is None else spec(value)))
        flags = uses.outputs if isinstance(uses.outputs, tuple) else (uses.outputs,) * len(outputs)
        kept.extend(output for output, flag in zip(outputs, flags, strict=True) if flag)
        ctx.save_for_backward(*kept)
        ctx.plan = plan
        ctx.outputs = [
            None if f else (x.shape, x.dtype, x.device) for x, f in zip(outputs, flags, strict=True)
        ]
        discrete = [x for x in outputs if not (x.is_floating_point() or x.is_complex())]
        if rule is not None and by_call is not None:
            discrete += rule.without_gradient(self.unflatten(inputs), outputs)
        if discrete:
            ctx.mark_non_differentiable(*discrete)

    @untraced
    def save_with_forward(self, ctx: Any, inputs: Any, output: Any) -> None:
        """Do the same, also for forward mode; a given or derived ``jvp`` has all tensors, not some."""
        self.save(ctx, inputs, output)
        every = (*inputs, *as_outputs(output)) if self.bound.operator.jvp is not None else ctx.to_save
        ctx.save_for_forward(*(x for x in every if isinstance(x, torch.Tensor)))

    def saved(self, ctx: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return (flat inputs, outputs); a tensor that nobody reads is ``UNREAD``."""
        kept = iter(ctx.saved_tensors)
        flat = tuple([next(kept) if entry is SAVED else entry for entry in ctx.plan])
        return flat, tuple([next(kept) if entry is None else UNREAD for entry in ctx.outputs])

    def saved_for_jvp(self, ctx: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return (flat inputs, outputs), all of them, as ``save_with_forward`` keeps them for ``jvp``."""
        kept = iter(ctx.saved_tensors)
        flat = tuple([next(kept) if isinstance(x, Unread) else x for x in ctx.plan])
        return flat, tuple(kept)

    def gradients(self, flat: Any, outputs: Any, grads: Any, needs_gradient: Any = None) -> tuple[Any, ...]:
        """Return the flat input gradients that the rule gives, checked against the inputs."""
        operator = self.bound.operator
        if operator.gradient is None:
            raise no_gradient(operator)
        inputs = self.unflatten(flat)
        by_argument = apply_rule(operator, inputs, outputs, grads, needs_gradient)
        flat_grads: list[Any] = []
        arguments = operator.schema.arguments
        for argument, value, grad, is_list in zip(arguments, inputs, by_argument, self.is_list, strict=True):
            if is_list and value is not None:
                flat_grads.extend((None, *self._list_gradients(argument.name, value, grad)))
                continue
            if not argument.type.is_tensor or value is None:
                grad = None  # noqa: PLW2901 - an attribute has a place in the tuple and no gradient
            elif grad is not None and (not isinstance(grad, torch.Tensor) or grad.shape != value.shape):
                check_gradient(operator, argument.name, grad, value.shape, torch.Tensor)
            flat_grads.append(grad)
        return tuple(flat_grads)

    @untraced
    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Return the flat input gradients."""
        try:
            flat, outputs = self.saved(ctx)
            needs_gradient = ctx.needs_input_grad
            if len(needs_gradient) != len(flat):
                needs_gradient = (*needs_gradient, *(False,) * len(flat))[: len(flat)]
            if ctx.distributed_specs is not None:
                rows = zip(grads, ctx.distributed_specs, strict=True)
                grads = tuple(zeros_of(spec) if grad is None else grad for grad, spec in rows)
            if ctx.vjp is not None:  # polyop's own: nothing to check
                input_grads: tuple[Any, ...] = ctx.vjp(flat, outputs, grads, needs_gradient)
                return input_grads
            return self.gradients(flat, outputs, grads, None if self.has_lists else needs_gradient)
        except Exception as problem:
            hide_own(problem)
            raise

    def _list_gradients(self, name: str, values: Any, grads: Any) -> tuple[Any, ...]:
        operator = self.bound.operator
        result = list_gradients(operator, name, values, grads)
        for number, (value, grad) in enumerate(zip(values, result, strict=True)):
            if grad is not None:
                check_gradient(operator, f"{name}[{number}]", grad, value.shape, torch.Tensor)
        return tuple(result)
