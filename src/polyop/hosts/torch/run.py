"""Running a kernel below the dispatcher: what ``torch.ops`` calls for a real device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...call.bound import BoundOperator
from ...call.host import map_tensors, need, spec_of
from ...call.overlap import Layout, check_apart, check_overlap
from ...core.errors import ArgumentTypeError, HostError
from ...core.schema import Argument
from ...core.spec import Spec
from ...core.untraced import untraced
from ...kernels.python import PythonKernel, TensorKernel
from ...kernels.triton.kernel import TritonKernel
from . import tensors

_CPU = torch.device("cpu")


@untraced
def run(bound: BoundOperator, arguments: tuple[Any, ...]) -> Any:
    """Return the fresh outputs of a kernel on real tensors: one, a tuple, or None.

    Dense tensors go to the native core as they are; others are made dense first, and an
    argument that is written in place is copied back. Raises what ``prepare`` and kernels do.
    """
    operator = bound.operator
    where = tensors.device_of(arguments)
    if operator.target not in (None, where.type):
        return _run_elsewhere(bound, arguments, where)
    if where.type == "cpu":
        result = bound.launch(*arguments) if bound.native else NotImplemented
        return _run_other(bound, arguments, where) if result is NotImplemented else result
    guard = torch.cuda.device(where) if where.type == "cuda" else contextlib.nullcontext()
    with guard:
        result = bound.launch(*arguments)
        return _run_other(bound, arguments, where) if result is NotImplemented else result


def _run_other(bound: BoundOperator, arguments: tuple[Any, ...], where: torch.device) -> Any:
    """Make the arguments dense and try again; run a Python kernel."""
    copies: list[tuple[Any, Any]] = []
    written: list[tuple[str, Any]] = []

    def prepare(name: str, value: Any, argument: Any) -> Any:
        if value.device != where:
            rule = f"must be on {where}, as the first tensor is"
            raise ArgumentTypeError(f"{bound.name}: argument {name}", rule, str(value.device))
        spec_of(tensors, bound.operator, name, value)  # refuses what cannot be made dense
        dense = tensors.dense(value)
        if argument.type.writes:
            written.append((name, value))
        if argument.type.writes and dense.data_ptr() != value.data_ptr():
            check_overlap(bound.operator, name, value.shape, value.stride())
            copies.append((value, dense))
        return dense

    dense = map_tensors(bound.operator, arguments, prepare)
    if copies:
        check_apart(bound.operator, [(name, _layout(tensor)) for name, tensor in written])
    result = bound.launch(*dense) if bound.native else NotImplemented
    if result is NotImplemented:
        result = _run_python(bound, dense, where)
    for original, dense in copies:
        original.copy_(dense)
    return result


def _layout(tensor: torch.Tensor) -> Layout:
    size = tensor.element_size()
    return Layout(tensor.data_ptr(), tuple(tensor.shape), [size * step for step in tensor.stride()], size)


def _run_python(bound: BoundOperator, arguments: tuple[Any, ...], where: torch.device) -> Any:
    prepared = bound.prepare(need("torch"), arguments)
    kernel = prepared.kernel
    if isinstance(kernel, TensorKernel):
        results = kernel.function(*arguments)
        if bound.schema.returns_list:
            return list(results)
        return results[0] if len(results) == 1 else results or None
    if not isinstance(kernel, PythonKernel):
        raise ArgumentTypeError(bound.name, f"{kernel} cannot take these tensors", str(where))
    if isinstance(kernel, TritonKernel) and kernel.device == where.type == "cuda":
        results = tuple(tensors.empty(spec, where) for spec in prepared.outputs)
        kernel.launch_on(bound.schema, arguments, results)
    else:
        results = _call_python(bound, kernel, arguments, prepared.outputs, where)
    if bound.schema.returns_list:
        return list(results)
    return results[0] if len(results) == 1 else results or None


def _call_python(
    bound: BoundOperator,
    kernel: PythonKernel,
    arguments: tuple[Any, ...],
    outputs: Sequence[Spec],
    where: torch.device,
) -> tuple[torch.Tensor, ...]:
    """Return the kernel's outputs; it reads and writes the dense tensors' memory through NumPy arrays."""
    loan = tensors.Loan()
    owners: dict[int, torch.Tensor] = {}  # of the outputs' arrays

    def new(spec: Spec) -> Any:
        tensor = tensors.empty(spec, _CPU)
        array = tensors.over_dense(tensor)
        owners[id(array)] = tensor
        return array

    arrays = tensors.map_arguments(loan.array, arguments)
    try:
        results = kernel.call(bound.schema, arrays, outputs, bound.operator.attributes, new)
        if where != _CPU:
            _copy_back(bound, arguments, arrays, lambda array: tensors.copied(array, where))
        return tuple(
            owners[id(array)].to(where) if id(array) in owners else tensors.copied(array, where)
            for array in results
        )
    finally:
        del arrays
        loan.end()


def _copy_back(bound: BoundOperator, originals: Any, results: Any, convert: Callable[[Any], Any]) -> None:
    """Copy what was written into the tensors that the caller gave; lists are opened."""
    for argument, original, new in zip(bound.schema.arguments, originals, results, strict=True):
        if argument.type.writes and original is not None:
            pairs = zip(original, new, strict=True) if argument.type.is_list else ((original, new),)
            for tensor, value in pairs:
                if tensor is not None:
                    tensor.copy_(convert(value))


def _run_elsewhere(bound: BoundOperator, arguments: tuple[Any, ...], where: torch.device) -> Any:
    """Run a kernel of another device (``primitive_target``) and bring the results back."""
    target = torch.device(str(bound.operator.target))
    if target.type == "cuda" and not torch.cuda.is_available():
        rule = "is bound to cuda, and this machine has no CUDA device that PyTorch can use"
        raise HostError(bound.name, rule, where=bound.operator.origin)

    def check(name: str, value: torch.Tensor, argument: Argument) -> torch.Tensor:
        if argument.type.writes:
            check_overlap(bound.operator, name, value.shape, value.stride())
        return value

    map_tensors(bound.operator, arguments, check)
    moved = tensors.map_arguments(lambda tensor: tensors.dense(tensor).to(target), arguments)
    result = run(bound, moved)
    _copy_back(bound, arguments, moved, lambda tensor: tensor)
    if isinstance(result, torch.Tensor):
        return result.to(where)
    return None if result is None else type(result)(tensor.to(where) for tensor in result)
