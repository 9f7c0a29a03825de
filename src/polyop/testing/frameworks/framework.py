"""The frameworks that operators are called from, and the functions that the file of each provides."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ...call.bound import BoundOperator
from ...call.host import load as load_host
from ...core import late
from ...core.errors import HostError
from ..case import Array, Case

FRAMEWORKS = {  # host -> the name of its framework in reports
    "numpy": "NumPy",
    "torch": "PyTorch",
    "jax": "JAX",
    "mindspore": "MindSpore",
    "paddle": "Paddle",
    "pyopencl": "PyOpenCL",
}
ON_REQUEST = ("pyopencl",)
"""Hosts that a check has only by name: they compile each kernel once more, for a device."""
HOSTS = tuple(name for name in FRAMEWORKS if name not in ON_REQUEST)
"""The hosts of a check that names none."""


DemoRow = tuple[str, Any, Any, Callable[[], Any]]
"""For an operator of one tensor: where it is called from, its value, the gradient of its sum, the call."""


class Framework(Protocol):
    """The calls of a case in one framework, with NumPy arrays as inputs and results.

    Results are a list: the operator's new outputs, then the arguments that it writes. Gradients are a
    dictionary by the name of the tensor, with None where there is no gradient. They are computed as a
    user of the framework does it (autograd, ``jax.vjp``, ``mindspore.grad``), not by the host's
    ``vjp``: that path is what is to be checked. Where the framework lacks a feature, its function raises
    ``NotRunError`` with the reason.
    """

    def run(self, case: Case) -> list[Array]:
        """Return the results of a call."""

    def gradients(self, case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
        """Return the input gradients for these output gradients."""

    def compiled(self, case: Case) -> list[Array]:
        """Return the results of a call inside a compiled program."""

    def compiled_gradients(self, case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
        """Return the input gradients, computed inside a compiled program."""

    def batched(self, samples: Sequence[Case]) -> list[Array]:
        """Return the results of one batched call of samples with the same specs; the batch is axis 0."""

    def demo(self, bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
        """Yield a row for each way of calling an operator of one tensor of float32."""


def absent(name: str) -> str | None:
    """Import a framework, so that its host is loaded; return why it cannot be used, or None if it can."""
    if importlib.util.find_spec(name) is None:
        return f"{FRAMEWORKS[name]} is not installed"
    try:
        importlib.import_module(name)
        load_host(name)
    except (ImportError, HostError) as problem:
        return f"{FRAMEWORKS[name]} cannot be used: {problem}"
    return None


def lacking(problem: BaseException | str) -> str | None:
    r"""Return what a framework lacks, in the words of its error; None for an error of another kind.

    >>> lacking("\"add_stub\" not implemented for 'UInt16'")
    'PyTorch: "add_stub" not implemented for \'UInt16\''
    """
    for name, words in _LACKING.items():
        found = re.search(words, str(problem))
        if found:
            return f"{FRAMEWORKS[name]}: {found[0]}"
    return None


_LACKING = {
    "torch": r"\"\w+\" not implemented for '\w+'",
    "paddle": r"Check data type error for op: \w+, dtype: \w+",
    "mindspore": r"\w+ does not support this kernel data type",
}
"""What frameworks say where an operation of theirs does not take a dtype."""


def load(name: str) -> Any:
    """Return the module of a framework, which must not be :func:`absent`."""
    return late.load("framework", name)


def stacked(samples: Sequence[Case]) -> Case:
    """Return the first case with each tensor stacked over the samples."""
    import numpy as np

    values = [dict(sample.tensors()) for sample in samples]
    return samples[0].mapped(lambda name, _: np.stack([v[name] for v in values]))


@contextlib.contextmanager
def quiet_fallbacks() -> Any:
    """Ignore the warning that a batched call is run sample by sample: its result is right all the same."""
    import warnings

    from ...core.errors import FallbackWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield
