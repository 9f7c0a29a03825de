"""MindSpore tensors. Import this file only where MindSpore is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mindspore
import numpy as np

from ...call.bound import BoundOperator
from ...call.host import map_tensors
from ...core.dtypes import dtype
from ...hosts.mindspore.written import function
from ..case import Array, Case, NotRunError
from ..difference import is_floating
from .base import DemoRow, quiet_fallbacks


def run(case: Case) -> list[Array]:
    """Call the operator in PyNative mode."""
    given = case.map(lambda _, value: _tensor(value))
    args, keywords = case.positional(given)
    return [_array(x) for x in _results(case, given, case.bound(*args, **keywords))]


def compiled(case: Case) -> list[Array]:
    """Call it inside ``mindspore.jit``."""
    flat = [_tensor(value) for _, value in case.tensors()]
    left = iter(flat)
    given = map_tensors(case.operator, case.arguments, lambda name, value, argument: next(left))
    result = mindspore.jit(_program(case))(*flat)
    return [_array(x) for x in _results(case, given, result)]


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients of ``mindspore.grad``; zeros where no gradient flows."""
    return _gradients(case, cotangents, lambda program: program)


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the same from inside ``mindspore.jit``."""
    with quiet_fallbacks():  # a rule that the compiler cannot read runs on arrays
        return _gradients(case, cotangents, mindspore.jit)


def batched(samples: Sequence[Case]) -> list[Array]:
    """Raise ``NotRunError``."""
    del samples
    raise NotRunError("operators have no batching in MindSpore")


def _tensor(array: Array) -> Any:
    if array.dtype == dtype("bfloat16").numpy:  # MindSpore does not take NumPy's
        return mindspore.Tensor(array.astype(np.float32)).astype(mindspore.bfloat16)
    return mindspore.Tensor(array.copy(order="C"))


def _array(tensor: Any) -> Array:
    if tensor.dtype == mindspore.bfloat16:
        return np.array(tensor.astype(mindspore.float32).asnumpy()).astype(dtype("bfloat16").numpy)
    return np.array(tensor.asnumpy())


def _results(case: Case, arguments: Any, result: Any) -> list[Any]:
    outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    schema = case.operator.schema
    fresh = outputs if schema.returns_list else [outputs[i] for i in schema.fresh]
    return [*fresh, *case.written(arguments)]


def _call(case: Case) -> tuple[list[str], str]:
    """Return names for the tensors, and the text of the call: attributes are constants in it."""
    names = [f"t{i}" for i, _ in enumerate(case.tensors())]
    left = iter(names)
    filled = map_tensors(case.operator, case.arguments, lambda name, value, argument: _Name(next(left)))
    args, keywords = case.positional(filled)
    parts = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in keywords.items()]
    return names, f"bound{{n}}({', '.join(parts)})"


class _Name(str):
    """A name that is written without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the name."""
        return str(self)


def _program(case: Case) -> Any:
    """Return the call as a function whose text MindSpore's compiler can read."""
    names, call = _call(case)
    text = f"def program{{n}}({', '.join(names)}):\n    return {call}"
    return function("program", text, bound=case.bound)


def _gradients(case: Case, cotangents: Sequence[Array], wrap: Any) -> dict[str, Array | None]:
    """Return the gradients of the outputs, weighted and summed."""
    if any(value.dtype.kind == "c" for _, value in case.tensors()):
        raise NotRunError("MindSpore's convention for complex gradients is not known here")
    names, call = _call(case)
    weights = {f"w{k}": v for k, v in enumerate(cotangents) if is_floating(v)}
    several = len(cotangents) > 1 or case.operator.returns_tuple
    terms = [f"(out{f'[{w[1:]}]' if several else ''} * {w}).sum()" for w in weights]
    head = f"def weighted{{n}}({', '.join([*names, *weights])}):"
    text = f"{head}\n    out = {call}\n    return {' + '.join(terms)}"
    smooth = [i for i, (_, value) in enumerate(case.tensors()) if is_floating(value)]
    pull = wrap(mindspore.grad(function("weighted", text, bound=case.bound), grad_position=tuple(smooth)))
    found = pull(
        *(_tensor(value) for _, value in case.tensors()), *(_tensor(np.asarray(v)) for v in weights.values())
    )
    by_place = dict(zip(smooth, found if isinstance(found, tuple) else (found,), strict=True))
    return {
        name: _array(by_place[i]) if i in by_place else None for i, (name, _) in enumerate(case.tensors())
    }


def demo(bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
    """Yield the calls of an operator of one tensor, with values and gradients."""

    def loss(x: Any) -> Any:
        return bound(x).sum()

    @mindspore.jit  # type: ignore[untyped-decorator]  # MindSpore has no types here
    def compiled(x: Any) -> Any:
        return bound(x)

    tensor = mindspore.Tensor(x)
    yield "MindSpore", bound(tensor), mindspore.grad(loss)(tensor), lambda: bound(tensor)
    yield (
        "mindspore.jit",
        compiled(tensor),
        mindspore.jit(mindspore.grad(loss))(tensor),
        lambda: compiled(tensor),
    )
