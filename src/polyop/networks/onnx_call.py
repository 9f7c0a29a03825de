"""Export one call of an operator to ONNX, and compare its values with PyTorch's."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .corresponding import IGNORED
from .corresponding_expression import TensorArgument


def problem_of(operator: Any, arguments: Mapping[str, Any]) -> str:
    """Return why ``torch.onnx.export`` refuses a call, or what is wrong with its model, or nothing.

    The tensors have the traced shapes. Where onnxruntime is installed the values are compared, because the
    exporter drops some arguments without a word: the label smoothing of ``cross_entropy``, for one.
    """
    tensors = [one for one in leaves(list(arguments.values())) if isinstance(one, TensorArgument)]
    call, given = _Call(operator, arguments), tuple(_sample(one) for one in tensors)
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(call, given, strict=False)
            exported = torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)
        except Exception as problem:  # noqa: BLE001 - its errors have no common class
            return f"torch.onnx.export refuses this call: {_first_line(problem)}"
        return _difference(call, given, exported)


def _first_line(problem: BaseException) -> str:
    """Return the first line of the error under an error."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def _difference(call: _Call, given: tuple[torch.Tensor, ...], exported: Any) -> str:
    """Return how the values of an exported call differ from PyTorch's in onnxruntime, or nothing."""
    random = torch.Tag.nondeterministic_seeded in call.operator.tags or "empty" in str(call.operator)
    if random or importlib.util.find_spec("onnxruntime") is None:
        return ""
    try:
        wanted = _tensors(call(*given))
    except Exception:  # noqa: BLE001 - the drawn values may be outside its domain
        return ""
    try:
        got = _tensors(exported(*given))
    except Exception as problem:  # noqa: BLE001 - its errors have no common class
        return f"onnxruntime refuses what torch.onnx.export makes of this call: {_first_line(problem)}"
    for one, want in zip(got, map(_real, wanted), strict=False):  # what nobody reads may be left out
        if one.shape != want.shape:
            shapes = f"{list(one.shape)}, not {list(want.shape)}"
            return f"torch.onnx.export changes the shape of this call: {shapes}"
        if not torch.allclose(one.double(), want.double(), rtol=0, atol=_allowed(want), equal_nan=True):
            far = (one.double() - want.double()).abs().max().item()
            return f"torch.onnx.export changes the values of this call: by {far:.2g} in onnxruntime"
    return ""


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as ONNX has it: a complex number is two real ones."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _allowed(want: torch.Tensor) -> float:
    """Return the error that another order of the sums may have."""
    if not want.is_floating_point():
        return 0.0
    largest = float(want.nan_to_num(0.0, 0.0, 0.0).abs().max()) if want.numel() else 0.0
    return max(largest, 1.0) * max(1e-4, 8 * float(torch.finfo(want.dtype).eps))


def _sample(argument: TensorArgument) -> torch.Tensor:
    """Return a tensor of the traced shape: numbers from 0.1 to 0.9, and integers that are 0."""
    dtype, draw = getattr(torch, argument.dtype), torch.Generator().manual_seed(0)
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.zeros(argument.shape, dtype=dtype)
    return (torch.rand(argument.shape, generator=draw) * 0.8 + 0.1).to(dtype)


def _tensors(value: Any) -> list[torch.Tensor]:
    found = [value] if isinstance(value, torch.Tensor) else value
    return [one for one in found if isinstance(one, torch.Tensor)]


class _Call(torch.nn.Module):  # type: ignore[misc] # PyTorch's classes are untyped here
    """A network that is one call of an operator."""

    def __init__(self, operator: Any, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self.operator, self.arguments = operator, arguments

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Return what the operator returns for tensors in the order of its arguments."""
        left = iter(tensors)
        declared = self.operator._schema.arguments  # noqa: SLF001 - PyTorch has no public name
        given = {}
        for argument, (name, value) in zip(declared, self.arguments.items(), strict=True):
            if name not in IGNORED or not argument.has_default_value():
                is_dtype = "ScalarType" in str(argument.real_type) and isinstance(value, str)
                given[argument.name] = getattr(torch, value) if is_dtype else _with_tensors(value, left)
        return self.operator(**given)


def _with_tensors(value: Any, left: Iterator[torch.Tensor]) -> Any:
    if isinstance(value, TensorArgument):
        return next(left)
    return [_with_tensors(one, left) for one in value] if isinstance(value, list) else value


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values in lists, and the sizes of tensors after each tensor."""
    if isinstance(value, list):
        for one in value:
            yield from leaves(one)
        return
    yield value
    if isinstance(value, TensorArgument):
        yield from value.shape


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let the exporter not tell of packages that are not installed."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
