"""Export one call of an operator to ONNX, and compare its values with PyTorch's."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from .corresponding import IGNORED
from .corresponding_expression import TensorArgument, Unknown

Tensors = list[torch.Tensor]
NO_TRANSLATION = "torch.onnx.export has no translation of it"
_MOST_ELEMENTS = 1 << 24
"""Of all tensors of a call that is tried: larger ones would take gigabytes, and minutes."""
_NARROW = ("float16", "bfloat16")
"""What onnxruntime has no kernels for on the CPU: such calls are compared in float32."""


def problem_of(operator: Any, arguments: Mapping[str, Any], *, is_translated: bool) -> str:
    """Return what is wrong with a call in ONNX, or an empty text.

    ``torch.onnx.export`` may refuse it. Where onnxruntime is installed the values are compared, because the
    exporter drops some arguments without a word: the label smoothing of ``cross_entropy``, for one. The
    tensors have the traced shapes, and drawn values. ``is_translated`` is what the exporter says of the
    operator, whatever the arguments. Nothing more is known of calls with very large tensors.
    """
    call = _Call(operator, arguments)
    tensors = [one for one in _leaves([*call.arguments.values()]) if isinstance(one, TensorArgument)]
    if sum(math.prod(one.shape) for one in tensors) > _MOST_ELEMENTS:
        return "" if is_translated else NO_TRANSLATION
    with warnings.catch_warnings(), quiet(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        try:
            exported = _exported(call, _drawn(tensors, 0))
        except Exception as problem:  # noqa: BLE001 - its errors have no common class
            refused = f"torch.onnx.export refuses this call: {_first_line(problem)}"
            return refused if is_translated else NO_TRANSLATION
        if importlib.util.find_spec("onnxruntime") is None:
            return ""
        if any(one.dtype in _NARROW for one in tensors):
            tensors = [one._replace(dtype="float32") if one.dtype in _NARROW else one for one in tensors]
            exported = _exported(call, _drawn(tensors, 0))
        return _difference(call, tensors, exported)


def _exported(call: _Call, given: list[torch.Tensor]) -> Any:
    program = torch.export.export(call, tuple(given), strict=False)
    return torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)


def _first_line(problem: BaseException) -> str:
    """Return the first line of the error under an error."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def _difference(call: _Call, tensors: Sequence[TensorArgument], exported: Any) -> str:
    """Return how the values of an exported call differ from PyTorch's in onnxruntime, or nothing."""
    given, wanted = _with_values(call, tensors)
    try:
        got = _tensors(exported(*_copies(given))) if wanted else []
    except Exception as problem:  # noqa: BLE001 - its errors have no common class
        return f"onnxruntime refuses what torch.onnx.export makes of this call: {_first_line(problem)}"
    pairs = [*zip(got, map(_real, wanted), strict=False)]  # the exporter leaves out last results
    places = len(pairs) > 1  # beside values, as those of sort: they differ for equal values
    for one, want in pairs:
        if one.shape != want.shape:
            shapes = f"{list(one.shape)}, not {list(want.shape)}"
            return f"torch.onnx.export changes the shape of this call: {shapes}"
        if places and not want.is_floating_point():
            continue
        if not torch.allclose(one.double(), want.double(), rtol=0, atol=_allowed(want), equal_nan=True):
            far = (one.double() - want.double()).abs().max().item()
            told = "in a NaN" if math.isnan(far) else f"by {far:.2g}"
            return f"torch.onnx.export changes the values of this call: {told} in onnxruntime"
    return ""


def _with_values(
    call: _Call, tensors: Sequence[TensorArgument]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return drawn tensors that PyTorch takes, and its results; no results if they are random or refused."""
    if "empty" in str(call.operator):  # memory that nobody has written
        return [], []
    for draw in range(len(_WHOLE)):
        given = _drawn(tensors, draw)
        try:
            first, second = (_tensors(_seeded(call, given, seed)) for seed in (0, 1))
        except Exception:  # noqa: BLE001, S112 - an index outside, or a value outside of its domain
            continue
        same = all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True))
        return given, first if same else []
    return [], []


def _seeded(call: _Call, given: Sequence[torch.Tensor], seed: int) -> Any:
    torch.manual_seed(seed)
    return call(*_copies(given))


def _copies(given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return copies: an operator may write its arguments."""
    return [one.clone() for one in given]


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as ONNX has it: a complex number is two real ones."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _allowed(want: torch.Tensor) -> float:
    """Return the error that another order of the sums may have."""
    if not want.is_floating_point():
        return 0.0
    largest = float(want.nan_to_num(0.0, 0.0, 0.0).abs().max()) if want.numel() else 0.0
    return max(largest, 1.0) * max(1e-4, 8 * float(torch.finfo(want.dtype).eps))


_WHOLE: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda places: places,
    lambda places: places % 2,
    lambda places: places * 0,
)
"""What integers are made of, from all different ones to zeros: of these the first that PyTorch takes."""


def _drawn(tensors: Sequence[TensorArgument], draw: int) -> list[torch.Tensor]:
    """Return tensors of the traced shapes: numbers from 0.1 to 0.9, bools, integers as _WHOLE says."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for one in tensors:
        dtype, count = getattr(torch, one.dtype), math.prod(one.shape)
        places = torch.randperm(count, generator=generator)
        if dtype.is_floating_point or dtype.is_complex:
            values = (places + 0.5) / max(count, 1) * 0.8 + 0.1
        else:
            values = places % 2 if dtype == torch.bool else _WHOLE[draw](places)
        found.append(values.reshape(one.shape).to(dtype))
    return found


def _tensors(value: Any) -> list[torch.Tensor]:
    found = [value] if isinstance(value, torch.Tensor) else value
    return [one for one in found if isinstance(one, torch.Tensor)]


class _Call(torch.nn.Module):  # type: ignore[misc] # PyTorch's classes are untyped here
    """A network that is one call of an operator."""

    def __init__(self, operator: Any, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self.operator, self.arguments = operator, _passed(operator, arguments)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Return what the operator returns for tensors in the order of its arguments."""
        left = iter(tensors)
        return self.operator(**{name: _with_tensors(value, left) for name, value in self.arguments.items()})


def _passed(operator: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by PyTorch's names, without those about where a result lies."""
    found = {}
    declared = operator._schema.arguments  # noqa: SLF001 - PyTorch has no public name
    for argument, value in zip(declared, arguments.values(), strict=True):
        if argument.name not in IGNORED or not argument.has_default_value():
            is_dtype = "ScalarType" in str(argument.real_type) and isinstance(value, str)
            found[argument.name] = getattr(torch, value) if is_dtype else value
    return found


def _with_tensors(value: Any, left: Iterator[torch.Tensor]) -> Any:
    if isinstance(value, TensorArgument):
        return next(left)
    return [_with_tensors(one, left) for one in value] if isinstance(value, list) else value


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the values in lists."""
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    else:
        yield value


def is_known(operator: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether the trace tells all numbers and sizes of a call; some only the run tells."""
    read = [*_leaves([*_passed(operator, arguments).values()])]
    sizes = [size for one in read if isinstance(one, TensorArgument) for size in one.shape]
    return not any(isinstance(one, Unknown) for one in (*read, *sizes))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence what the exporter logs of packages that are not installed."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
