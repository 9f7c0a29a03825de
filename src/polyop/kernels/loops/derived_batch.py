"""A loop kernel over many samples, as a loop kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.spec import Spec
from ..base import Accepts, flatten
from .derived import own_attribute
from .ir import Kernel
from .kernel import LoopKernel

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
class BatchedKernel(LoopKernel):
    """The loop kernel ``base`` over samples; see :func:`.derive.batch.batched`.

    Its tensors are those of ``base``, with one more axis where the attribute ``where_samples`` says so.
    """

    base: Any = None
    _batches: dict[Any, Kernel] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, base: LoopKernel) -> BatchedKernel:
        """Return a kernel over samples, for the same device."""
        return cls(
            base.function, base.attributes, base.precise, base.debug, base.device, tape="none", base=base
        )

    def __post_init__(self) -> None:
        self.outline = self.base.outline
        self.accepts = Accepts(self.device, self.base.accepts.dtypes)

    def __str__(self) -> str:
        """Return ``batch of loop kernel name``."""
        return f"batch of {self.base}"

    def on(self, device: str) -> BatchedKernel:
        """Return the same batch for another device."""
        found = BatchedKernel.of(self.base.on(device))
        found._batches, found._typed, found._lock = self._batches, self._typed, self._lock
        return found

    @property
    def name(self) -> str:
        """The function's name and ``__batched``."""
        return f"{self.base.name}__batched"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return int(self.base.tensors)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return int(self.base.results)

    @property
    def where_samples(self) -> str:
        """The attribute that tells which axis of each tensor counts samples, as :func:`written` does."""
        return own_attribute("polyop_samples", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises what the checks of ``base`` raise."""
        from .derive.batch import batched

        dims = dims_of(attributes[self.where_samples])
        given = list(flatten(tuple(inputs)))
        kernel = self.base.typed([_sample(s, d) for s, d in zip(given, dims, strict=True)], attributes)
        key = (id(kernel), dims)
        with self._lock:
            if key not in self._batches:
                self._batches[key] = self._typed[key] = batched(kernel, dims)
            return self._batches[key]


def _sample(spec: Spec | None, dim: int | None) -> Spec | None:
    """Return the spec of one sample."""
    if spec is None or dim is None:
        return spec
    return Spec((*spec.shape[:dim], *spec.shape[dim + 1 :]), spec.dtype)
