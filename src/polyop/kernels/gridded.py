"""The base of kernels that are launched with a grid: functions of Triton, and of OpenCL C."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.dims.dims import Dims
from ..core.errors import ArgumentTypeError, KernelError
from ..core.limits import shown
from ..core.schema import Schema
from ..core.takes import check_takes
from .base import KernelBase
from .parameters import Call, Read


class Values(NamedTuple):
    """The parameters of a call and its constants, by name, and all that ``grid=`` gets."""

    parameters: dict[str, Any]
    constants: dict[str, Any]
    meta: dict[str, Any]


class GriddedKernel(KernelBase):
    """A kernel with ``grid=`` and ``constants=``, whose parameters get their values by :mod:`.parameters`."""

    GRID = ""
    """What a grid says, in words; an example of one is ``EXAMPLE``."""
    EXAMPLE = ""
    _grid: Any
    _constants: dict[str, Any]
    _where: Any
    _schema: Schema | None = None
    _dims: Dims | None = None
    _reads: dict[str, Read]

    def for_schema(self, schema: Schema, where: Any) -> Any:
        """Return the kernel for an operator with this schema; raises ``ArgumentTypeError``."""
        for name, rule in {"grid": self._grid, **self._constants}.items():
            if callable(rule):
                check_takes(name, rule, ("meta",), schema, where)
        bound = copy.copy(self)
        bound._schema, bound._where = schema, where  # noqa: SLF001
        return bound

    def values(self, schema: Schema, arguments: Sequence[Any], outputs: Sequence[Any]) -> Values:
        """Return what a call passes to the kernel: its tensors, numbers and constants."""
        attributes = {argument.name: arguments[i] for i, argument in schema.attributes()}
        sizes: dict[str, int] = {}
        if self._dims is not None:
            shapes = [getattr(arguments[i], "shape", None) for i in schema.tensor_positions]
            sizes = self._dims.match(shapes, attributes)
        call = Call(tuple(arguments), tuple(outputs), sizes)
        parameters = {name: read(call) for name, read in self._reads.items()}
        numbers = {name: value for name, value in parameters.items() if not hasattr(value, "shape")}
        meta = {**sizes, **attributes, **numbers}
        meta |= {name: value for name, value in self._constants.items() if not callable(value)}
        constants = {k: self._of(k, v, meta) if callable(v) else v for k, v in self._constants.items()}
        return Values(parameters, constants, {**meta, **constants})

    def grid_of(self, meta: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the grid of a call; raises ``KernelError`` unless it is one to three integers."""
        grid = self._of("grid=", self._grid, meta) if callable(self._grid) else self._grid
        return self.checked_sizes("grid=", grid)

    def checked_sizes(self, name: str, sizes: Any) -> tuple[int, ...]:
        """Return a grid; raises ``KernelError`` unless it is a tuple of one to three integers."""
        if not (isinstance(sizes, tuple) and 0 < len(sizes) < 4 and all(isinstance(n, int) for n in sizes)):
            rule = f"{name} must give a tuple of one to three integers"
            raise KernelError(self, rule, shown(sizes), where=self._where)
        return sizes

    def _of(self, name: str, rule: Callable[..., Any], meta: Mapping[str, Any]) -> Any:
        try:
            return rule(dict(meta))
        except KeyError as problem:
            seen = f"{problem.args[0]!r}, and there are {', '.join(sorted(meta)) or 'none'}"
            raise KernelError(self, f"{name} asks for a value", seen, where=self._where) from None

    def check_grid(self) -> None:
        """Raise ``ArgumentTypeError`` if there is no grid, or one of another type."""
        if self._grid is None:
            rule = f"needs grid=: {self.GRID}, a tuple or a function of the sizes"
            raise ArgumentTypeError(self, rule, where=self._where, hint=f"as in grid={self.EXAMPLE}")
        if not callable(self._grid) and not isinstance(self._grid, tuple):
            rule = "grid= must be a tuple or a function"
            raise ArgumentTypeError(self, rule, shown(self._grid), where=self._where)
