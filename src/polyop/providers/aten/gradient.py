"""Gradients of PyTorch's operators, recorded by its autograd."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...call import registry
from ...core.derived_names import derived_from
from ...core.errors import ArgumentValueError, GradientError, KernelError
from ...core.schema import MISSING, Argument, Return, Schema, Type
from ...core.texts import first_line
from .forward_mode import is_differentiable
from .function import TorchFunction, flat_flags, flatten_tensors, to_torch
from .overloads import derived_namespace

NEEDS_KEY = "pass generator= a key, as jax.random.key(0)"

Pull = Callable[[Sequence[Any]], list[Any]]


def record(
    function: TorchFunction, arguments: Sequence[Any], wanted: Sequence[bool] | None = None
) -> tuple[list[Any], Pull]:
    """Return the outputs of a call, and the function from output gradients to input gradients.

    The function returns one gradient or None per tensor, in the order of ``flatten_tensors``. If a
    tensor requires a gradient already, outputs and gradients stay differentiable; other tensors are
    copied. ``wanted`` has a flag for each argument: the gradient of the others is None; by default all are
    wanted. Raises ``GradientError`` if PyTorch has no derivative.
    """
    schema = function.schema
    tensors = flatten_tensors(schema, arguments)
    flags = flat_flags(schema, arguments, wanted)
    has_history = any(value is not None and value.requires_grad for value in tensors)
    with torch.inference_mode(mode=False), torch.enable_grad():
        leaves, outputs = _recorded(function, arguments, wanted)
    inputs = [
        value if flag and value is not None and value.requires_grad else None
        for value, flag in zip(leaves, flags, strict=True)
    ]
    differentiable = [value for value in inputs if value is not None]
    if differentiable:
        _check_registered(function)
    _check_recorded(schema.qualified_name, differentiable, outputs)

    def pull(grads: Sequence[Any]) -> list[Any]:
        ends, end_grads = _pairs(schema.qualified_name, outputs, grads)
        create_graph = torch.is_grad_enabled() and (has_history or any(g.requires_grad for g in end_grads))
        computed = iter(_differentiate(schema.qualified_name, ends, differentiable, end_grads, create_graph))
        return [None if value is None else next(computed) for value in inputs]

    return (outputs if has_history else [_detached(output) for output in outputs]), pull


def _check_registered(function: TorchFunction) -> None:
    """Raise if an extension registers no gradient: PyTorch only warns, and what it returns is wrong."""
    overload = function.function
    if not isinstance(overload, torch._ops.OpOverload) or overload.namespace == "aten":  # noqa: SLF001
        return
    if not is_differentiable(overload.name()):
        rule = "has no gradient: its author registers none in PyTorch"
        hint = "torch.library.register_autograd adds one; the package's Python may have one of its own"
        raise GradientError(function.schema.qualified_name, rule, hint=hint)


def _recorded(
    function: TorchFunction, arguments: Sequence[Any], wanted: Sequence[bool] | None
) -> tuple[list[Any], list[Any]]:
    """Return the tensors from which the outputs were computed, and the outputs."""
    schema = function.schema
    unwanted = [i for i in schema.tensor_positions if wanted is not None and not wanted[i]]
    names = [argument.name for argument in schema.arguments]
    detached: set[str] = set()  # arguments whose gradient PyTorch refuses, as batch_norm's statistics
    while True:
        leaves = list(to_torch(schema, arguments, _leaf))
        for i in unwanted:
            leaves[i] = _constant(leaves[i], arguments[i])
        for name in detached:
            leaves[names.index(name)] = leaves[names.index(name)].detach()
        try:
            outputs = function(leaves)
        except KernelError as problem:
            match = re.search(r"not differentiable with respect to argument '(\w+)'", str(problem))
            if match is None or match[1] not in names or match[1] in detached:
                raise
            detached.add(match[1])
        else:
            return flatten_tensors(schema, leaves), outputs


def _differentiate(
    name: str, outputs: list[Any], inputs: list[Any], grads: list[Any], create_graph: bool
) -> Any:
    if not outputs:
        return [torch.zeros_like(value) for value in inputs]
    try:
        return torch.autograd.grad(
            outputs, inputs, grads, retain_graph=True, create_graph=create_graph, materialize_grads=True
        )
    except RuntimeError as problem:
        message = first_line(problem)
        hint = None
        if len(inputs) > 1 and "the derivative for" in message:
            hint = "ask for the gradient by its other inputs alone, as jax.grad with argnums= does"
        raise GradientError(name, f"PyTorch cannot differentiate it: {message}", hint=hint) from problem


def _is_floating(value: torch.Tensor) -> bool:
    return bool(value.is_floating_point() or value.is_complex())


def _leaf(value: torch.Tensor) -> torch.Tensor:
    if value.requires_grad:
        return value.view_as(value)  # stays connected to its history
    copy = value.detach().clone()  # the caller may change the original later
    return copy.requires_grad_() if _is_floating(value) else copy


def _constant(leaf: Any, original: Any) -> Any:
    """Return a leaf, or a list of them, as a constant; one with a history keeps it."""
    if isinstance(leaf, (list, tuple)):
        return [_constant(*pair) for pair in zip(leaf, original, strict=True)]
    return leaf if leaf is None or original.requires_grad else leaf.detach()


def _detached(value: Any) -> Any:
    return None if value is None else value.detach()


def _check_recorded(name: str, inputs: list[Any], outputs: list[Any]) -> None:
    if not inputs:
        raise GradientError(name, "has no floating-point tensor among its inputs to differentiate by")
    ends = [value for value in outputs if value is not None and value.requires_grad]
    if not ends:
        raise GradientError(name, "PyTorch cannot differentiate it: no output has a derivative")
    # an operator without an autograd kernel: PyTorch warns in backward, and gives no gradients
    if any(_node_name(end).endswith("WarnNotImplemented") for end in ends):
        hint = "its author gives one with torch.library.register_autograd"
        raise GradientError(name, "PyTorch cannot differentiate it: it has no autograd kernel", hint=hint)


def _node_name(output: Any) -> str:
    """Return the name of the step that gave an output, "" for an input itself, as of ``positive``."""
    return "" if output.grad_fn is None else str(output.grad_fn.name())


def _pairs(name: str, outputs: list[Any], grads: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    if len(grads) != len(outputs):
        raise ArgumentValueError(name, f"vjp needs {len(outputs)} output gradients", f"{len(grads)}")
    ends, end_grads = [], []
    for number, (output, grad) in enumerate(zip(outputs, grads, strict=True)):
        if output is None or grad is None or not output.requires_grad:
            continue  # integers, such as the indices of max, have no gradient
        if grad.shape != output.shape:
            rule = f"must have the output's shape {tuple(output.shape)}"
            raise GradientError(f"{name}: gradient of output {number}", rule, tuple(grad.shape))
        ends.append(output)
        end_grads.append(grad.to(output.dtype))
    return ends, end_grads


def check_draws(function: TorchFunction, arguments: Sequence[Any]) -> None:
    """Raise ``GradientError`` if the call draws random numbers: the gradient would compute it with others."""
    if function.draws(arguments):
        rule = "draws random numbers, and its gradient would draw others"
        hint = f"{NEEDS_KEY}; PyTorch's tensors need none; with train=False it draws none"
        raise GradientError(function.schema.qualified_name, rule, hint=hint)


def differentiated(first: TorchFunction) -> TorchFunction:
    """Return the function of output gradients and all arguments that computes the input gradients."""
    schema = backward_schema(first.schema)
    flags_name = schema.arguments[-1].name

    def differentiate(grads: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop(flags_name, None)
        arguments = (*args, *(kwargs[a.name] for a in first.schema.arguments[len(args) :]))
        _, pull = record(first, arguments, wanted)
        flags = flat_flags(first.schema, arguments, wanted)
        rows = zip(flatten_tensors(first.schema, arguments), flags, strict=True)
        input_grads = tuple(map(_or_zero, (x if flag else None for x, flag in rows), pull(grads)))
        return list(input_grads) if schema.returns_list else input_grads

    return TorchFunction(schema, differentiate, differentiates=True)


def _or_zero(value: Any, grad: Any) -> Any:
    """Return a gradient as ``LikeInputs`` declares it: a tensor without elements for no gradient."""
    if grad is not None:
        return grad
    return torch.empty(0) if value is None or not _is_floating(value) else torch.zeros_like(value)


def backward_schema(schema: Schema) -> Schema:
    """Return the schema of the gradient: the output gradients, all arguments, and which gradients are wanted.

    It returns one tensor per tensor argument; one list of them, if any argument is a list.
    """
    namespace = derived_namespace(schema)
    argument_names = {argument.name for argument in schema.arguments}
    name, flags_name = _free("grads", argument_names), _free("wanted", argument_names)
    inputs = schema.tensor_arguments
    tensor = Return(Type("Tensor"))
    listed = any(argument.type.is_list for argument in inputs)
    backward = Schema(
        namespace,
        registry.unique(namespace, f"{schema.name}_backward_of"),
        (
            Argument(name, Type("Tensor", ("?", "[]"))),
            *(dataclasses.replace(argument, default=MISSING) for argument in schema.arguments),
            Argument(flags_name, Type("bool", ("[]", "?")), default=None, keyword_only=True),
        ),
        (Return(Type("Tensor", ("[]",))),) if listed else (tensor,) * len(inputs),
        schema.overload,
    )
    return derived_from(schema, "backward", backward)


def _free(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    return name
