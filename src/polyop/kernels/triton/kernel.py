"""Functions of ``@triton.jit`` as kernels, and how a call launches them."""

from __future__ import annotations

import copy
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
from ...core.takes import check_takes
from .. import described
from ..base import Accepts, flatten
from ..python import PythonKernel, empty
from . import interpreter
from .parameters import Call, Read, bind

LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")
"""What Triton takes beside the parameters of a kernel, on a GPU."""
_NO_TYPE = ("complex", "fnuz", "e8m0")  # in names of dtypes that a Triton pointer cannot have
_warned: set[str] = set()


def is_triton(value: Any) -> bool:
    """Whether ``value`` is a function of ``@triton.jit``; where Triton is not imported, nothing is."""
    jit = sys.modules.get("triton.runtime.jit")
    return jit is not None and isinstance(value, jit.KernelInterface)


class TritonKernel(PythonKernel):
    """A function of ``@triton.jit``, perhaps with ``@triton.autotune`` or ``@triton.heuristics`` around it.

    On ``"cpu"`` Triton's interpreter runs it on arrays, with a ``FallbackWarning`` the first time. On
    ``"cuda"`` Triton launches it on tensors of PyTorch, on the current stream.
    """

    fills = True

    def __init__(self, launcher: Any, grid: Any, constants: Mapping[str, Any], where: Any) -> None:
        """Take what a Triton author launches; raises ``ArgumentTypeError`` or ``ArgumentValueError``."""
        self._jit, self._chosen = _unwrapped(launcher)
        super().__init__(self._jit.fn)
        self._launcher, self._grid, self._constants = launcher, grid, dict(constants)
        self._schema: Schema | None = None
        self._dims: Dims | None = None
        self._reads: dict[str, Read] = {}
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

    def for_schema(self, schema: Schema, where: Any) -> TritonKernel:
        """Return the kernel for an operator with this schema; raises ``ArgumentTypeError``."""
        for name, rule in {"grid": self._grid, **self._constants}.items():
            if callable(rule):
                check_takes(name, rule, ("meta",), schema, where)
        bound = copy.copy(self)
        bound._schema, bound._where = schema, where  # noqa: SLF001
        return bound

    def for_dims(self, dims: Dims | None, where: Any) -> TritonKernel:
        """Return the kernel for an operator with these dimensions; raises ``SchemaError``."""
        assert self._schema is not None
        bound = copy.copy(self)
        given = {*self._constants, *self._chosen}
        subject = f"{self._schema.qualified_name}: triton {self.function.__name__}"
        bound._dims = dims  # noqa: SLF001
        bound._reads = bind(self.function, given, self._schema, dims, where, subject)  # noqa: SLF001
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
        values, meta = self._values(schema, arguments, results)
        chosen = {k: v(meta) if callable(v) else v for k, v in self._chosen.items()}
        grid = self._grid_of({**meta, **chosen})
        try:
            interpreter.run(self._jit, grid, {**values, **chosen})
        except Exception as problem:
            rule = f"Triton's interpreter raised {type(problem).__name__}: {problem}"
            raise KernelError(self, rule, where=of_function(self.function)) from problem
        return results

    def launch_on(self, schema: Schema, arguments: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Launch it on tensors of PyTorch, which are written; Triton takes PyTorch's current stream."""
        values, meta = self._values(schema, arguments, outputs)

        def grid(launched: Mapping[str, Any]) -> tuple[int, ...]:
            return self._grid_of({**meta, **{k: launched[k] for k in self._chosen if k in launched}})

        self._launcher[grid if self._chosen else self._grid_of(meta)](**values)

    def _values(
        self, schema: Schema, arguments: Sequence[Any], outputs: Sequence[Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters by name, and what ``grid`` gets: sizes, numbers and constants."""
        attributes = {argument.name: arguments[i] for i, argument in schema.attributes()}
        sizes: dict[str, int] = {}
        if self._dims is not None:
            shapes = [getattr(arguments[i], "shape", None) for i in schema.tensor_positions]
            sizes = self._dims.match(shapes, attributes)
        call = Call(tuple(arguments), tuple(outputs), sizes)
        values = {name: read(call) for name, read in self._reads.items()}
        numbers = {name: value for name, value in values.items() if not hasattr(value, "shape")}
        meta = {**sizes, **attributes, **numbers}
        meta |= {name: value for name, value in self._constants.items() if not callable(value)}
        constants = {k: self._of(k, v, meta) if callable(v) else v for k, v in self._constants.items()}
        return {**values, **constants}, {**meta, **constants}

    def _of(self, name: str, rule: Callable[..., Any], meta: Mapping[str, Any]) -> Any:
        try:
            return rule(dict(meta))
        except KeyError as problem:
            seen = f"{problem.args[0]!r}, and there are {', '.join(sorted(meta)) or 'none'}"
            raise KernelError(self, f"{name} asks for a value", seen, where=self._where) from None

    def _grid_of(self, meta: Mapping[str, Any]) -> tuple[int, ...]:
        grid = self._of("grid=", self._grid, meta) if callable(self._grid) else self._grid
        if not (isinstance(grid, tuple) and 0 < len(grid) < 4 and all(isinstance(n, int) for n in grid)):
            rule = "grid= must give a tuple of one to three integers"
            raise KernelError(self, rule, shown(grid), where=self._where)
        return grid

    def _check(self) -> None:
        if self._grid is None:
            hint = 'as in grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)'
            rule = "needs grid=: how many programs Triton runs, a tuple or a function of the sizes"
            raise ArgumentTypeError(self, rule, where=self._where, hint=hint)
        if not callable(self._grid) and not isinstance(self._grid, tuple):
            rule = "grid= must be a tuple or a function"
            raise ArgumentTypeError(self, rule, shown(self._grid), where=self._where)
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


def require_grid(grid: Any, constants: Any, kernels: Sequence[Any], subject: str, where: Any) -> None:
    """Raise ``ArgumentTypeError`` if ``grid=`` or ``constants=`` are given without a kernel of Triton."""
    if (grid is None and constants is None) or any(map(is_triton, kernels)):
        return
    import importlib.util

    installed = importlib.util.find_spec("triton") is not None
    rule = "grid= and constants= are for a function of @triton.jit"
    rule += "" if installed else ", and triton is not installed"
    hint = "decorate the kernel with @triton.jit" if installed else "pip install triton"
    seen = ", ".join(shown(kernel) for kernel in kernels)
    raise ArgumentTypeError(subject, rule, seen, where=where, hint=hint)
