"""Export one call of an operator to ONNX, and compare its values with PyTorch's."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..core.texts import first_line
from .corresponding import IGNORED
from .corresponding_expression import TensorArgument, Unknown

Tensors = list[torch.Tensor]
NO_TRANSLATION = "torch.onnx.export has no translation of it"
NOT_TRIED = "torch.onnx.export translates the operator; this call was not tried"
_MOST_ELEMENTS = 1 << 25
"""Of all tensors and results of a call that is tried: larger ones would take gigabytes, and minutes."""
_NARROW = ("float16", "bfloat16")
"""What onnxruntime has no kernels for on the CPU: such calls are compared in float32."""


class Told(NamedTuple):
    """Whether a call can go to ONNX, and a note: why not, or what is not known of it."""

    is_there: bool
    note: str = ""


def of_operator(why: str, *, is_translated: bool) -> Told:
    """Return the answer for a call that is not tried, and ``why``: what the exporter says of the operator."""
    return Told(True, f"{NOT_TRIED}, {why}") if is_translated else Told(False, NO_TRANSLATION)


def tried(operator: Any, arguments: Mapping[str, Any], *, is_translated: bool) -> Told:
    """Return whether a call can go to ONNX. It is exported alone.

    Where onnxruntime is installed its values are compared with PyTorch's, because the exporter drops some
    arguments without a word: the label smoothing of ``cross_entropy``, for one. The tensors have the traced
    shapes, and drawn values. A call with more than ``_MOST_ELEMENTS`` is not tried.
    """
    call = _Call(operator, arguments)
    tensors = [one for one in _leaves([*call.arguments.values()]) if isinstance(one, TensorArgument)]
    if _elements(call, tensors) > _MOST_ELEMENTS:
        return of_operator("as its tensors are large", is_translated=is_translated)
    with warnings.catch_warnings(), quiet(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        try:
            exported = _exported(call, _drawn(tensors, 0))
        except Exception as problem:  # noqa: BLE001 - its errors have no common class
            refused = f"torch.onnx.export refuses this call: {_first_line(problem)}"
            return Told(False, refused if is_translated else NO_TRANSLATION)
        if importlib.util.find_spec("onnxruntime") is None:
            return Told(True)
        if any(one.dtype in _NARROW for one in tensors):
            tensors = [one._replace(dtype="float32") if one.dtype in _NARROW else one for one in tensors]
            try:
                exported = _exported(call, _drawn(tensors, 0))
            except Exception:  # noqa: BLE001 - it takes narrow numbers alone
                return Told(True)
        difference = _difference(call, tensors, exported)
        return Told(not difference, difference)


def _elements(call: _Call, tensors: Sequence[TensorArgument]) -> int:
    """Return how many elements a call has, with those of its results where no data decides their shapes."""
    try:
        given = [torch.empty(one.shape, dtype=getattr(torch, one.dtype), device="meta") for one in tensors]
        results = _tensors(call(*given))
    except Exception:  # noqa: BLE001 - a shape that depends on data, or what has no meta kernel
        results = []
    return sum(math.prod(one.shape) for one in (*tensors, *results))


def _exported(call: _Call, given: list[torch.Tensor]) -> Any:
    program = torch.export.export(call, tuple(given), strict=False)
    return torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)


def _first_line(problem: BaseException) -> str:
    """Return the first line of the error under an error."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return first_line(problem)


def _difference(call: _Call, tensors: Sequence[TensorArgument], exported: Any) -> str:
    """Return how the values of an exported call differ from PyTorch's in onnxruntime, or nothing."""
    given, wanted = _with_values(call, tensors)
    try:
        got = _tensors(exported(*_copies(given))) if wanted else []
    except Exception as problem:  # noqa: BLE001 - its errors have no common class
        return f"onnxruntime refuses what torch.onnx.export makes of this call: {_first_line(problem)}"
    names = [one.name for one in call.operator._schema.returns]  # noqa: SLF001 - PyTorch has no public name
    pairs = [*zip(got, wanted, strict=False)]  # the exporter leaves out last results
    for number, (one, result) in enumerate(pairs):
        want = _real(result)
        if one.shape != want.shape:
            shapes = f"{list(one.shape)}, not {list(want.shape)}"
            return f"torch.onnx.export changes the shape of this call: {shapes}"
        if len(names) == len(pairs) and names[number] == "indices":
            continue  # of equal values each may be chosen
        a, b = one.double(), want.double()
        if not torch.allclose(a, b, rtol=0, atol=_allowed(result), equal_nan=True):
            far = torch.where(a == b, 0.0, (a - b).abs()).max().item()
            told = "in a NaN" if math.isnan(far) else f"by {far:.2g}"
            return f"torch.onnx.export changes the values of this call: {told} in onnxruntime"
    return ""


def _with_values(call: _Call, tensors: Sequence[TensorArgument]) -> tuple[Tensors, Tensors]:
    """Return drawn tensors that PyTorch takes, and its results; no results if they are random or refused."""
    if "empty" in str(call.operator):  # memory that nobody has written
        return [], []
    for draw in range(len(_WHOLE)):
        given = _drawn(tensors, draw)
        try:
            first, second = (_tensors(_seeded(call, given, seed)) for seed in (0, 1))
        except Exception:  # noqa: BLE001, S112 - an index outside, or a value outside of its domain
            continue
        pairs = zip(first, second, strict=True)
        same = all(a.shape == b.shape and torch.equal(_finite(a), _finite(b)) for a, b in pairs)
        return given, first if same else []
    return [], []


def _seeded(call: _Call, given: Sequence[torch.Tensor], seed: int) -> Any:
    torch.default_generator.manual_seed(seed)
    return call(*_copies(given))


def _copies(given: Sequence[torch.Tensor]) -> Tensors:
    """Return copies: an operator may write its arguments."""
    return [one.clone() for one in given]


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as ONNX has it: a complex number is two real ones."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values as float64, with 0 for what is not finite."""
    return _real(tensor).double().nan_to_num(0.0, 0.0, 0.0)


def _allowed(want: torch.Tensor) -> float:
    """Return the error that another order of the sums may have."""
    if not (want.is_floating_point() or want.is_complex()):
        return 0.0
    largest = float(_finite(want).abs().max()) if want.numel() else 0.0
    return max(largest, 1.0) * max(1e-4, 8 * float(torch.finfo(want.dtype).eps))


_WHOLE: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda places: places,
    lambda places: places % 2,
    lambda places: places * 0,
)
"""What integers are made of, from all different ones to zeros: of these the first that PyTorch takes."""


def _drawn(tensors: Sequence[TensorArgument], draw: int) -> Tensors:
    """Return tensors of the traced shapes, each of other values.

    Floats are from 0.1 to 0.9, integers as _WHOLE says.
    """
    generator = torch.Generator().manual_seed(0)
    found = []
    for number, one in enumerate(tensors):
        dtype, count = getattr(torch, one.dtype), math.prod(one.shape)
        places = torch.randperm(count, generator=generator)
        if dtype.is_floating_point or dtype.is_complex:
            values = (places + (number + 1) / (len(tensors) + 1)) / max(count, 1) * 0.8 + 0.1
        else:
            values = (places + number) % 2 if dtype == torch.bool else _WHOLE[draw](places + number)
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
