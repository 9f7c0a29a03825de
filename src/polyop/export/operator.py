"""The data classes of an export: operators, their kernels, and the sources that these need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.schema import Schema


@dataclass(frozen=True)
class SourceFile:
    """A source to compile into the library, with its own flags, and those of the linker that it needs.

    ``instead``: for a loop kernel, what makes its sources if the compiler refuses this one.
    """

    path: str
    language: str
    flags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    instead: Callable[[Exception], Sequence[SourceFile]] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ExportedKernel:
    """One implementation of an operator.

    ``dtypes``    for each tensor argument the names of the dtypes that it may have; None for any.
    ``ranks``     for each tensor argument its number of dimensions; None for any.
    ``infer``     the lines of the C++ function that infers the outputs; see :mod:`polyop.export.shapes`.
    ``function``  the C symbol of the kernel, the function of seven arguments of ``polyop/abi.h``.
    ``init``      the C symbol of its ``Init``, or "".
    ``outputs``   of a loop kernel: dtype and shape of each output, see :func:`polyop.export.shapes.of_loops`.
    """

    dtypes: tuple[tuple[str, ...] | None, ...]
    ranks: tuple[int | None, ...]
    infer: tuple[str, ...]
    function: str
    init: str = ""
    outputs: tuple[Mapping[str, Any], ...] | None = None


@dataclass(frozen=True)
class ExportedOperator:
    """An operator of the library.

    ``kind``      what its kernels are made from: "loop kernel", "C source", "C++ source".
    ``notation``  ``dims=`` and its claims, as keywords of :func:`polyop.operator`; empty without.
    ``backward``  the name of the operator that computes its gradient, or "".
    ``no_backward``  why a gradient that it has, or that of a loop kernel, is not exported; else "".
    ``fixed``     attributes of the definition, which no call passes.
    ``infer``     what :func:`polyop.operator` takes as ``infer=``; None if kernels have ``outputs``.
    """

    name: str
    schema: Schema
    kernels: tuple[ExportedKernel, ...]
    sources: tuple[SourceFile, ...]
    kind: str
    doc: str = ""
    notation: Mapping[str, Any] = field(default_factory=dict)
    backward: str = ""
    no_backward: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    infer: str | Sequence[str | None] | None = None

    @property
    def short_name(self) -> str:
        """The name without its namespace: a C identifier."""
        return self.schema.name

    @property
    def c_name(self) -> str:
        """The name of its C function: ``myops::scale`` is ``myops_scale``.

        >>> from polyop.core.parse import parse
        >>> schema = parse("myops::scale(Tensor x) -> Tensor")
        >>> ExportedOperator("myops::scale", schema, (), (), "loop kernel").c_name
        'myops_scale'
        """
        return self.name.replace("::", "_")

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the new tensors that it returns, different from those of its arguments."""
        returns = [self.schema.returns[i] for i in self.schema.fresh]
        names = [
            one.name or ("out" if len(returns) == 1 else f"out{number}") for number, one in enumerate(returns)
        ]
        taken = {argument.name for argument in self.schema.arguments}
        return tuple(f"{name}_result" if name in taken else name for name in names)
