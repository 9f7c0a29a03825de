"""A loop kernel over many samples, as a loop kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.spec import Spec
from ...loops.ir.grammar import Kernel
from ..base import flatten
from .derived import DerivedKernel, own_attribute

Dims = tuple[int | None, ...]


def written(dims: Sequence[int | None]) -> str:
    """Return axes, one for each tensor, as a text.

    >>> written([0, None])
    '0 -'
    """
    return " ".join("-" if d is None else str(d) for d in dims)


def dims_of(text: str) -> Dims:
    """Return what :func:`written` wrote.

    >>> dims_of("0 -")
    (0, None)
    """
    return tuple(None if row == "-" else int(row) for row in text.split())


@dataclass(eq=False)
class BatchedKernel(DerivedKernel):
    """The loop kernel ``base`` over samples; see :func:`.derive.batch.batched`.

    Its tensors are those of ``base``, with one more axis where the attribute ``where_samples`` says so.
    """

    SUFFIX: ClassVar[str] = "batched"
    WHAT: ClassVar[str] = "batch"

    @property
    def where_samples(self) -> str:
        """The attribute that tells which axis of each tensor counts samples, as :func:`written` does."""
        return own_attribute("polyop_samples", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises what the checks of ``base`` raise."""
        from ...loops.derive.batch import batched

        dims = dims_of(attributes[self.where_samples])
        kernel = self.base.typed(_samples(inputs, dims), attributes)  # sizes of a sample decide on segments
        return self.derived((id(kernel), dims), lambda: batched(kernel, dims))

    def check_tapes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        """Raise ``GradientError`` where what is taped for one sample is beyond the limit."""
        if isinstance(self.base, DerivedKernel):
            self.base.check_tapes(_samples(inputs, dims_of(attributes[self.where_samples])), attributes)


def _samples(inputs: Sequence[Any], dims: Dims) -> list[Spec | None]:
    given = list(flatten(tuple(inputs)))
    return [_sample(s, d) for s, d in zip(given, dims, strict=True)]


def _sample(spec: Spec | None, dim: int | None) -> Spec | None:
    """Return the spec of one sample."""
    if spec is None or dim is None:
        return spec
    return Spec((*spec.shape[:dim], *spec.shape[dim + 1 :]), spec.dtype)
