"""``vmap``: the operator's batch rule, or one call per sample, with a warning that is given once."""

from __future__ import annotations

from typing import Any

import torch

from ...call import batching
from ...call.batching import BatchedCall
from ...call.bound import BoundOperator
from ...call.host import specs
from ...call.prepare import normalise
from ...core.arguments import bind
from ...core.errors import GradientError
from ...core.untraced import untraced
from ...rules.dims import DimsBatch
from . import tensors
from .autograd_arguments import Layout


@untraced
def vmap(layout: Layout, overload: Any, info: Any, dims: Any, *flat: Any) -> tuple[Any, Any]:
    """Return (outputs, out_dims) of a batched call; ``flat`` and ``dims`` are laid out flat."""
    schema = layout.bound.schema
    call = BatchedCall(layout.bound.operator, lambda arguments: _outputs(layout, overload, arguments))
    answer = batching.answer(call, layout.unflatten(flat, dims), layout.unflatten(flat))
    if answer is not NotImplemented:
        count = None if schema.returns_list else len(schema.fresh)
        outputs, axes = batching.rule_outputs(layout.bound.operator, answer, count, info.batch_size)
        return _packed(layout, outputs, axes)
    return _packed(layout, *_loop(layout, overload, info.batch_size, dims, flat))


def _outputs(layout: Layout, overload: Any, arguments: Any) -> tuple[Any, ...]:
    """Return the outputs of one call."""
    return tensors.as_outputs(layout.call(overload, layout.flatten(tuple(arguments))))


def _packed(layout: Layout, outputs: list[Any], dims: list[Any]) -> tuple[Any, Any]:
    if len(outputs) == 1 and not layout.bound.schema.returns_list:
        return outputs[0], dims[0]
    return (tuple(outputs), tuple(dims)) if outputs else (None, None)


def register_rule(bound: BoundOperator, overload: Any, library: Any, name: str) -> None:
    """Register the rule of an operator that writes in place, or of another package's: ``dims=``, or a loop.

    ``torch.library.register_vmap`` refuses tensors that are passed by keyword, as ``out=``: its helper looks
    for batches among positional arguments. Here all arguments are bound to their positions first.
    """
    layout = Layout(bound)
    written = _written(bound, overload)

    @untraced
    def rule(info: Any, dims: Any, *arguments: Any) -> tuple[Any, Any]:
        for argument, value, dim in zip(bound.schema.arguments, arguments, dims, strict=True):
            if argument.type.writes and _is_shared(value, dim):
                rule = f"argument {argument.name} is written in place, and has no batch dimension"
                raise GradientError(bound.name, f"vmap: {rule}", hint="batch it, or return a new tensor")
        by_dims = _by_dims(bound, unbatched, dims, arguments)
        if by_dims is not NotImplemented:
            outputs, axes = batching.rule_outputs(bound.operator, by_dims, None, info.batch_size)
            return _packed(layout, outputs, axes)
        flat_dims: list[Any] = []
        for value, dim, is_list in zip(arguments, dims, layout.is_list, strict=True):
            if is_list and value is not None:
                flat_dims.extend((None, *(dim or (None,) * len(value))))
            else:
                flat_dims.append(dim)
        results, where = _loop(layout, overload, info.batch_size, flat_dims, layout.flatten(arguments))
        for number, position in written.items():
            among = slice(number, number + bool(info.batch_size))  # without samples it is not there yet
            results[among], where[among] = [arguments[position]], [dims[position]]
        return (results, where) if bound.schema.returns_list else _packed(layout, results, where)

    def unbatched(*arguments: Any) -> Any:
        positional, keywords = bound.schema.split(arguments)
        return overload(*positional, **keywords)

    def batched(_: Any, *args: Any, **kwargs: Any) -> Any:
        # no public names: a PyTorch without them has no vmap of such operators, and all else works
        from torch._functorch.autograd_function import custom_function_call_vmap_helper
        from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

        arguments = bind(bound.schema, args, kwargs)
        interpreter = retrieve_current_functorch_interpreter()
        return custom_function_call_vmap_helper(interpreter, rule, unbatched, *arguments)

    library.impl(name, batched, "FuncTorchBatched", with_keyset=True)


def _is_shared(value: Any, dim: Any) -> bool:
    """Whether an argument has a tensor without a batch dimension, which all samples share."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_shared, value, dim or (None,) * len(value)))
    return value is not None and dim is None


def _written(bound: BoundOperator, overload: Any) -> dict[int, int]:
    """Return which results of PyTorch's operator are an argument that it writes: the argument's position."""
    schema = bound.schema
    if len(overload._schema.returns) != len(schema.returns):
        return {}  # polyop's own: it returns the new tensors alone
    return {i: schema.alias_of(i) for i in range(len(schema.returns)) if i not in schema.fresh}


def _by_dims(bound: BoundOperator, call: Any, dims: Any, arguments: Any) -> Any:
    """Return what the rule of ``dims=`` answers, ``NotImplemented`` without one."""
    rule = bound.operator.batch
    if bound.schema.mutates or not isinstance(rule, DimsBatch):
        return NotImplemented
    run = BatchedCall(bound.operator, lambda batched: tensors.as_outputs(call(*batched)))
    return rule(dims, arguments, run)


def _loop(
    layout: Layout, overload: Any, size: int, dims: Any, flat: Any
) -> tuple[list[Any], list[int | None]]:
    """Return (outputs, the batch dimension of each), by a call for each sample."""
    batching.warn_of_loop(layout.bound.operator, "torch")
    batched = [isinstance(d, int) and isinstance(x, torch.Tensor) for x, d in zip(flat, dims, strict=True)]
    moved = [x.movedim(d, 0) if b else x for x, d, b in zip(flat, dims, batched, strict=True)]
    samples = []
    for index in range(size):
        chosen = [x[index] if b else x for x, b in zip(moved, batched, strict=True)]
        result = layout.call(overload, chosen)
        samples.append(tensors.as_outputs(result))
    if not samples:
        stacked = _no_samples(layout, moved, batched)
    else:
        stacked = tuple(_stacked(one) for one in zip(*samples, strict=True))
    return list(stacked), [None if one is None else 0 for one in stacked]


def _stacked(parts: tuple[Any, ...]) -> Any:
    """Return one output of all samples; None if PyTorch's operator leaves it undefined."""
    return None if all(part is None for part in parts) else torch.stack(parts)


def _samples(layout: Layout, flat: Any, dims: Any) -> tuple[Any, ...]:
    """Return the specs of the outputs of one sample, by the infer rule."""
    one = [
        x.new_empty((*x.shape[:d], *x.shape[d + 1 :])) if isinstance(d, int) else x
        for x, d in zip(flat, dims, strict=True)
    ]
    operator, arguments = layout.bound.operator, layout.unflatten(one)
    sample_specs: tuple[Any, ...] = operator.infer(normalise(operator, specs(tensors, operator, arguments)))
    return sample_specs


def _no_samples(layout: Layout, moved: Any, batched: Any) -> tuple[Any, ...]:
    sample_specs = _samples(layout, moved, [0 if b else None for b in batched])
    where = tensors.device_of(layout.unflatten(moved))
    return tuple(tensors.empty(spec, where).unsqueeze(0)[:0] for spec in sample_specs)
