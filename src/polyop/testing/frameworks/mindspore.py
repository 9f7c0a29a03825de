"""MindSpore tensors. Import this file only where MindSpore is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mindspore
import numpy as np

from ...call.bound import BoundOperator
from ...hosts.mindspore import tensors
from ...hosts.mindspore.generated import make_function
from ..case import Array, Case, NotRunError, as_list
from ..difference import is_floating
from .framework import DemoRow, quiet_fallbacks, stacked


def run(case: Case) -> list[Array]:
    """Call the operator in PyNative mode."""
    return _arrays(case, case.call(case.map(lambda _, value: _tensor(value))))


def compiled(case: Case) -> list[Array]:
    """Call it inside ``mindspore.jit``."""
    flat = [_tensor(value) for _, value in case.tensors()]
    returned = mindspore.jit(_program(case))(*flat)
    return _arrays(case, case.results(returned, case.with_tensors(flat)))


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients of ``mindspore.grad``; zeros where no gradient flows."""
    return _gradients(case, cotangents, lambda program: program)


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the same from inside ``mindspore.jit``."""
    with quiet_fallbacks():  # a rule that the compiler cannot read runs on arrays
        return _gradients(case, cotangents, mindspore.jit)


def batched(samples: Sequence[Case]) -> list[Array]:
    """Call it under ``mindspore.vmap``."""
    first = samples[0]
    flat = [_tensor(value) for _, value in stacked(samples).tensors()]
    with quiet_fallbacks():
        returned = mindspore.vmap(_program(first))(*flat)
    return _arrays(first, first.results(returned, first.with_tensors(flat)))


def _tensor(array: Array) -> Any:
    return tensors.tensor(array.copy(order="C"), "a sample")


def _arrays(case: Case, results: Sequence[Any]) -> list[Array]:
    return [tensors.array(case.operator, f"result {i}", tensor).copy() for i, tensor in enumerate(results)]


def _call(case: Case) -> tuple[list[str], str]:
    """Return names for the tensors, and the text of the call; attributes are constants in it."""
    names = [f"t{i}" for i, _ in enumerate(case.tensors())]
    args, keywords = case.operator.schema.split(case.with_tensors(map(_Name, names)))
    parts = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in keywords.items()]
    return names, f"bound{{n}}({', '.join(parts)})"


class _Name(str):
    """A name whose ``repr`` has no quotes, so that a list of names prints as Python text."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the name."""
        return str(self)


def _program(case: Case) -> Any:
    """Return the call as a function with a source text, which MindSpore's compiler reads."""
    names, call = _call(case)
    text = f"def program{{n}}({', '.join(names)}):\n    return {call}"
    return make_function("program", text, bound=case.bound)


def _gradients(case: Case, cotangents: Sequence[Array], wrap: Any) -> dict[str, Array | None]:
    """Return the gradients of the weighted sum of the outputs."""
    if any(value.dtype.kind == "c" for _, value in case.tensors()):
        raise NotRunError("polyop does not know MindSpore's convention for complex gradients")
    names, call = _call(case)
    weights = {f"w{k}": v for k, v in enumerate(cotangents) if is_floating(v)}
    several = len(cotangents) > 1 or case.operator.returns_tuple
    terms = [f"(out{f'[{w[1:]}]' if several else ''} * {w}).sum()" for w in weights]
    head = f"def weighted{{n}}({', '.join([*names, *weights])}):"
    text = f"{head}\n    out = {call}\n    return {' + '.join(terms)}"
    smooth = [i for i, (_, value) in enumerate(case.tensors()) if is_floating(value)]
    weighted = make_function("weighted", text, bound=case.bound)
    pull = wrap(mindspore.grad(weighted, grad_position=tuple(smooth)))
    values = [*(value for _, value in case.tensors()), *map(np.asarray, weights.values())]
    grads = _arrays(case, as_list(pull(*map(_tensor, values))))
    by_position = dict(zip(smooth, grads, strict=True))
    return {name: by_position.get(i) for i, (name, _) in enumerate(case.tensors())}


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
