"""The base classes of all kinds of kernel, and the declaration of what a kernel accepts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.dims.dims import Dims
from ..core.dtypes import DType
from ..core.schema import Schema
from ..core.spec import Spec


@dataclass(frozen=True)
class Accepts:
    """The device and dtypes a kernel takes. ``dtypes`` None means all of them."""

    device: str = "cpu"
    dtypes: tuple[DType, ...] | None = None

    def refuse(self, inputs: tuple[Any, ...]) -> str | None:
        """Return why these inputs are refused, or None."""
        if self.dtypes is None:
            return None
        for spec in flatten(inputs):
            if spec is not None and spec.dtype not in self.dtypes:
                return f"takes {', '.join(map(str, self.dtypes))}, not {spec.dtype}"
        return None


class KernelBase:
    """The base of every kind of kernel, with the usual values; a kind overrides what differs."""

    accepts: Accepts | None = None
    """The device and dtypes declared for it; None where it knows its dtypes itself."""
    allocates: bool = False
    """Whether it makes its outputs itself."""
    for_ascend: bool = False
    """Whether it is an Ascend operator, which finds its device itself."""

    @property
    def declared_dtypes(self) -> tuple[DType, ...]:
        """The dtypes declared for it; none where it takes all, or knows them itself."""
        return () if self.accepts is None else self.accepts.dtypes or ()

    @property
    def kind(self) -> str:
        """The name of its kind in digests. Exported programs hold digests, so it never changes."""
        return type(self).__name__

    def for_schema(self, schema: Schema, where: Any) -> Any:
        """Return the kernel for an operator with this schema; raises ``SchemaError`` if it cannot have it."""
        del schema, where
        return self

    def check_declared(self, subject: str) -> None:
        """Raise ``ArgumentTypeError`` if its source shows that it cannot be called by the contract."""
        del subject

    def for_dims(self, dims: Dims | None, where: Any) -> Any:
        """Return the kernel for an operator with these dimensions; raises ``SchemaError``."""
        del dims, where
        return self

    def registers_in_torch(self, name: str) -> bool:
        """Whether the kernel's library registers the operator of this name in PyTorch itself."""
        del name
        return False

    def failure(self, code: int, text: str, threw: bool) -> str:
        """Return the error for a call that returned ``code`` and set ``text``, or that threw ``text``."""
        if threw:
            return f"the kernel threw {text}"
        rule = f"the kernel returned {code}{f' ({text})' if text else ''}"
        return f"{rule}; any value other than 0 is its author's error code"

    def passed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> frozenset[str]:
        """Return the attributes that are numbers, which each call passes to it, and that decide nothing.

        For other values of them the same launch is right. None, unless a kind knows better: ``Init`` and
        ``InferShape`` see attributes, and so does what a kernel keeps for itself.
        """
        del inputs, attributes
        return frozenset()

    def watched(self) -> tuple[tuple[Any, str, Any], ...]:
        """Return where values are found that it was defined with: a dict or cell, a name, and the value."""
        return ()

    def warn_of_changes(self) -> None:
        """Warn of values that it was defined with, and that have changed; of each name once."""

    def content(self) -> Iterator[bytes]:
        """Yield bytes that identify what the kernel computes; they are the same in every process."""
        yield str(self).encode()


class LoopKernelBase(KernelBase, ABC):
    """A loop kernel, the author's or a derived one; ``isinstance`` works without importing the compiler."""

    @property
    def linear_tensors(self) -> int:
        """In how many of its last tensors, taken together, the kernel is linear by construction.

        A gradient is linear in the gradients of the outputs, and a tangent in the tangents.
        """
        return 0

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """The number of dimensions of each tensor; None where it is unknown, () if all are."""
        return ()

    @abstractmethod
    def on(self, device: str) -> Any:
        """Return the kernel of the same loops for another device."""

    @abstractmethod
    def source(self, inputs: Sequence[Any] = (), attributes: Mapping[str, Any] | None = None) -> str:
        """Return the C that is compiled for these specs; without specs, for those used last."""

    @abstractmethod
    def explain(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[str]:
        """Return a line for each loop: what it becomes for these specs, and why."""

    @abstractmethod
    def explain_dims(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[str]:
        """Return the dimensions of the tensors, what is proved of slices, and why others are whole."""


def flatten(arguments: Sequence[Any]) -> Iterator[Spec | None]:
    """Yield the specs among arguments, also those inside tuples, and None for absent tensors."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from flatten(argument)
        elif argument is None or isinstance(argument, Spec):
            yield argument
