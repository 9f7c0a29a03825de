"""The frameworks that operators are called from: which there are, and what each file here provides."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ...call.bound import BoundOperator
from ...call.host import load as load_host
from ...core import late
from ...core.errors import HostError
from ..case import Array, Case

FRAMEWORKS = {  # a host to the name of its framework
    "numpy": "NumPy",
    "torch": "PyTorch",
    "jax": "JAX",
    "mindspore": "MindSpore",
}


DemoRow = tuple[str, Any, Any, Callable[[], Any]]
"""Where an operator of one tensor is called from, its value, the gradient of its sum, and the call."""


class Framework(Protocol):
    """One framework: the same calls of a case in each, arrays in and out.

    A result is a list of the operator's new outputs, then of the arguments that it writes. A
    gradient is by the tensor's name; None where there is none. What a framework does not have
    raises ``NotRunError`` with the reason.
    """

    def run(self, case: Case) -> list[Array]:
        """Return the results of a call."""

    def gradients(self, case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
        """Return the input gradients for these output gradients."""

    def compiled(self, case: Case) -> list[Array]:
        """Return the results of a call inside a compiled program."""

    def compiled_gradients(self, case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
        """Return the gradients that a compiled program takes."""

    def batched(self, samples: Sequence[Case]) -> list[Array]:
        """Return the results of one batched call of samples alike, the batch first."""

    def demo(self, bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
        """Yield a row for each way of calling an operator of one tensor of float32."""


def absent(name: str) -> str | None:
    """Import a framework, so that its host is present; return why it cannot be used, or None."""
    if importlib.util.find_spec(name) is None:
        return f"{FRAMEWORKS[name]} is not installed"
    try:
        importlib.import_module(name)
        load_host(name)
    except (ImportError, HostError) as problem:
        return f"{FRAMEWORKS[name]} cannot be used: {problem}"
    return None


def load(name: str) -> Any:
    """Return the file of a framework, which must not be absent."""
    return late.load("framework", name)


def stacked(samples: Sequence[Case]) -> Case:
    """Return the first case with each tensor stacked over the samples."""
    import numpy as np

    values = [dict(sample.tensors()) for sample in samples]
    return samples[0].mapped(lambda name, _: np.stack([v[name] for v in values]))


@contextlib.contextmanager
def quiet_fallbacks() -> Any:
    """Ignore that a batched call is made one by one: it is right, and said elsewhere."""
    import warnings

    from ...core.errors import FallbackWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield
