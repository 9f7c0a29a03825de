"""A loop kernel over a batch of samples, which is itself a loop kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.spec import Spec
from ...loops.ir.grammar import Kernel
from ...loops.library.derivations import derivation
from ..base import flatten
from .derived import DerivedKernel, own_attribute

Axes = tuple[int | None, ...]


def axes_text(axes: Sequence[int | None]) -> str:
    """Return the sample axis of each tensor as text; ``-`` is a tensor without samples.

    >>> axes_text([0, None])
    '0 -'
    """
    return " ".join("-" if axis is None else str(axis) for axis in axes)


def parse_axes(text: str) -> Axes:
    """Return the axes of a text by :func:`axes_text`.

    >>> parse_axes("0 -")
    (0, None)
    """
    return tuple(None if word == "-" else int(word) for word in text.split())


@dataclass(eq=False)
class BatchedKernel(DerivedKernel):
    """The loop kernel ``base`` over a batch of samples; see :func:`.derive.batch.batched`.

    Its tensors are those of ``base``, with one more axis where the attribute ``key_attribute`` says so.
    """

    SUFFIX: ClassVar[str] = "batched"
    WHAT: ClassVar[str] = "batch"

    @property
    def linear_tensors(self) -> int:
        """Those in which one sample is linear."""
        return int(self.base.linear_tensors)

    @property
    def key_attribute(self) -> str:
        """The name of an attribute whose value is the sample axis of each tensor, by :func:`axes_text`."""
        return own_attribute("polyop_samples", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises what the checks of ``base`` raise."""
        axes = parse_axes(attributes[self.key_attribute])
        kernel = self.base.typed(
            _samples(inputs, axes), attributes
        )  # the sizes of one sample decide on checkpointing
        return self.derived((id(kernel), axes), lambda: derivation("batched", kernel, axes))

    def check_tapes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        """Raise ``GradientError`` if the tapes of one sample take more than ``tape_bytes``."""
        if isinstance(self.base, DerivedKernel):
            axes = parse_axes(attributes[self.key_attribute])
            self.base.check_tapes(_samples(inputs, axes), attributes)


def _samples(inputs: Sequence[Any], axes: Axes) -> list[Spec | None]:
    """Return the specs of one sample's tensors."""
    specs = list(flatten(tuple(inputs)))
    return [_sample(spec, axis) for spec, axis in zip(specs, axes, strict=True)]


def _sample(spec: Spec | None, axis: int | None) -> Spec | None:
    if spec is None or axis is None:
        return spec
    return Spec((*spec.shape[:axis], *spec.shape[axis + 1 :]), spec.dtype)
