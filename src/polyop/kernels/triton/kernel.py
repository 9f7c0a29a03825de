"""Functions of ``@triton.jit`` as kernels, and how a call launches them."""

from __future__ import annotations

import copy
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...core.dims.dims import Dims
from ...core.errors import ArgumentTypeError, ArgumentValueError, FallbackWarning, KernelError
from ...core.limits import shown
from ...core.origin import caller, of_function
from ...core.schema import Schema
from ...core.spec import Spec
from .. import described
from ..base import Accepts, flatten
from ..gridded import GriddedKernel, Owner, bind
from ..python import PythonKernel, empty
from . import interpreter

LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")
"""What Triton takes beside the parameters of a kernel, on a GPU."""
_NO_TYPE = ("complex", "fnuz", "e8m0")  # in names of dtypes that a Triton pointer cannot have
_warned: set[str] = set()


def is_triton(value: Any) -> bool:
    """Whether ``value`` is a function of ``@triton.jit``; where Triton is not imported, nothing is."""
    jit = sys.modules.get("triton.runtime.jit")
    return jit is not None and isinstance(value, jit.KernelInterface)


class TritonKernel(GriddedKernel, PythonKernel):
    """A function of ``@triton.jit``, perhaps with ``@triton.autotune`` or ``@triton.heuristics`` around it.

    On ``"cpu"`` Triton's interpreter runs it on arrays, with a ``FallbackWarning`` the first time. On
    ``"cuda"`` Triton launches it on tensors of PyTorch, on the current stream.
    """

    fills = True
    GRID = "how many programs Triton runs"
    EXAMPLE = 'lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)'

    def __init__(self, launcher: Any, grid: Any, constants: Mapping[str, Any], where: Any) -> None:
        """Take what a Triton author launches; raises ``ArgumentTypeError`` or ``ArgumentValueError``."""
        self._jit, self._chosen = _unwrapped(launcher)
        super().__init__(self._jit.fn)
        self._launcher, self._grid, self._constants = launcher, grid, dict(constants)
        self._reads = {}
        self._where = where
        self._check()

    def __str__(self) -> str:
        """Return ``triton name``, and that it is interpreted."""
        return f"triton {self.function.__name__}" + (" (interpreted)" if self.device == "cpu" else "")

    def on(self, device: str) -> TritonKernel:
        """Return the kernel of the same function for another device."""
        other = copy.copy(self)
        other.device, other.accepts = device, Accepts(device, self.accepts.dtypes)
        return other

    def for_dims(self, dims: Dims | None, where: Any) -> TritonKernel:
        """Return the kernel for an operator with these dimensions; raises ``SchemaError``."""
        assert self._schema is not None
        bound = copy.copy(self)
        given = {*self._constants, *self._chosen}
        subject = f"{self._schema.qualified_name}: triton {self.function.__name__}"
        bound._dims = dims  # noqa: SLF001
        parameters = inspect.signature(self.function).parameters
        owner = Owner(subject, "a Triton kernel", where)
        bound._reads = bind(parameters, given, self._schema, dims, owner).reads  # noqa: SLF001
        return bound

    def content(self) -> Iterator[bytes]:
        """Yield the function, the ``@triton.jit`` functions that it calls, the grid and the constants."""
        yield from _function(self.function, set())
        yield from described.value(self._grid)
        yield from described.value(dict(sorted(self._constants.items())))

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why these specs are refused, or None."""
        for spec in (*flatten(inputs), *outputs):
            if spec is not None and any(part in spec.dtype.name for part in _NO_TYPE):
                return f"takes no {spec.dtype}, because Triton has no such pointers"
        return super().refuse(inputs, outputs)

    def call(
        self,
        schema: Schema,
        arguments: Sequence[Any],
        outputs: Sequence[Spec],
        fixed: Mapping[str, Any],
        new: Callable[[Spec], Any] = empty,
    ) -> list[Any]:
        """Return the new outputs, which the interpreter filled. Raises ``KernelError``."""
        del fixed
        results = [new(spec) for spec in outputs]
        self._warn_once()
        values = self.values(schema, arguments, results)
        chosen = {k: v(values.meta) if callable(v) else v for k, v in self._chosen.items()}
        grid = self.grid_of({**values.meta, **chosen})
        try:
            interpreter.run(self._jit, grid, {**values.parameters, **values.constants, **chosen})
        except Exception as problem:
            rule = f"Triton's interpreter raised {type(problem).__name__}: {problem}"
            raise KernelError(self, rule, where=of_function(self.function)) from problem
        return results

    def launch_on(self, schema: Schema, arguments: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Launch it on tensors of PyTorch, which are written; Triton takes PyTorch's current stream."""
        values = self.values(schema, arguments, outputs)

        def grid(launched: Mapping[str, Any]) -> tuple[int, ...]:
            return self.grid_of({**values.meta, **{k: launched[k] for k in self._chosen if k in launched}})

        launched = grid if self._chosen else self.grid_of(values.meta)
        self._launcher[launched](**values.parameters, **values.constants)

    def _check(self) -> None:
        self.check_grid()
        known = self._jit.arg_names
        for name in self._constants:
            if name not in (*known, *LAUNCH_OPTIONS):
                rule = f"constants= names {name}, which is no parameter"
                raise ArgumentValueError(self, rule, where=self._where, hint=f"it has {', '.join(known)}")

    def _warn_once(self) -> None:
        if self.function.__qualname__ not in _warned:
            _warned.add(self.function.__qualname__)
            text = f"triton {self.function.__name__}: its tensors are on no GPU: run by Triton's interpreter"
            place = caller()
            warnings.warn_explicit(text, FallbackWarning, place.file, place.line)


def refuse_triton(kernel: Any, taker: str, subject: str, where: Any) -> None:
    """Raise ``ArgumentTypeError`` for a function of ``@triton.jit``: ``taker`` has no ``grid=``."""
    if is_triton(kernel):
        rule = f"{taker} takes no function of @triton.jit, because it has no grid="
        hint = "polyop.operator takes it, with grid= and constants="
        raise ArgumentTypeError(subject, rule, shown(kernel), where=where, hint=hint)


def _unwrapped(launcher: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function of ``@triton.jit``, and the constants that decorators around it choose.

    Those of ``autotune`` are of its first configuration, those of ``heuristics`` are functions.
    """
    chosen: dict[str, Any] = {}
    while is_triton(launcher.fn):
        configurations = getattr(launcher, "configs", None)
        chosen = {**(configurations[0].kwargs if configurations else launcher.values), **chosen}
        launcher = launcher.fn
    return launcher, chosen


def _function(function: Any, visited: set[int]) -> Iterator[bytes]:
    """Yield a function, the constants of its module that it reads, and the Triton functions that it calls."""
    visited.add(id(function))
    yield from described.value(function)
    yield from described.globals_of(function)
    for name in function.__code__.co_names:
        item = function.__globals__.get(name)
        if is_triton(item) and id(item.fn) not in visited and hasattr(item.fn, "__code__"):
            yield from _function(item.fn, visited)
        elif type(item).__name__ == "constexpr":
            yield from described.value(getattr(item, "value", None))
