"""Kernels that are Python functions: over NumPy arrays (pyfunc), or over the caller's own tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..core.errors import KernelError
from ..core.origin import of_function
from ..core.schema import Schema
from ..core.sizes import DataSize, data_sizes_of, shape_text
from ..core.spec import Spec
from . import described
from .base import Accepts, KernelBase


def empty(spec: Spec) -> np.ndarray[Any, Any]:
    """Return a new array of a spec, for an output."""
    return np.empty(spec.shape, spec.dtype.numpy)


@dataclass(eq=False)
class PythonKernel(KernelBase):
    """A Python function, called with read-only arrays and the attributes, in schema order.

    With ``scalars`` a 0-d array is passed as a Python scalar, which is MindSpore's rule for pyfunc.
    The number, dtypes and shapes of the results are checked against the infer rule.
    """

    function: Callable[..., Any]
    device: str = "cpu"
    scalars: bool = False
    native: bool = False
    accepts: Accepts = field(default_factory=Accepts)
    fills: ClassVar[bool] = False
    """Whether a kind fills outputs of the inferred specs, so that ``function`` alone returns nothing."""

    def __str__(self) -> str:
        """Return ``pyfunc name``."""
        return f"pyfunc {getattr(self.function, '__qualname__', self.function)}"

    def content(self) -> Iterator[bytes]:
        """Yield the function's code, defaults and closure."""
        yield from described.value(self.function)

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why these specs are refused, or None: NumPy takes every dtype."""
        del outputs
        return self.accepts.refuse(inputs)

    def call(
        self,
        schema: Schema,
        arguments: Sequence[Any],
        outputs: Sequence[Spec],
        fixed: Mapping[str, Any],
        new: Callable[[Spec], Any] = empty,
    ) -> list[Any]:
        """Return the new outputs: arrays of exactly the inferred specs, allocated by ``new``.

        ``fixed`` are attributes of the operator that are no arguments; the function gets them as
        keywords. Arrays that the schema writes are passed writeable. Raises ``KernelError`` for
        results of another number, shape or dtype, and whatever the function itself raises.
        """
        views = [
            value if argument.type.writes else self._view(value)
            for argument, value in zip(schema.arguments, arguments, strict=True)
        ]
        result = self.function(*views, **fixed)
        if schema.mutates and not outputs:
            return []  # the result does not count: it may be the array that was written
        return self.results(result, outputs, new)

    def _view(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value):
            return type(value)(map(self._view, value))
        if not isinstance(value, np.ndarray):
            return value
        if self.scalars and value.ndim == 0:
            return value.item() if value.dtype.kind in "biufc" else value[()]
        view = value.view()
        view.flags.writeable = False  # writing an input would change the caller's tensor
        return view

    def results(self, result: Any, outputs: Sequence[Spec], new: Callable[[Spec], Any] = empty) -> list[Any]:
        """Check a result against the inferred specs and return a copy of it in new arrays."""
        where = of_function(self.function)
        if not outputs:
            if result is not None and not (isinstance(result, tuple) and not result):
                raise KernelError(
                    self, "must return None, as it has no outputs", type(result).__name__, where=where
                )
            return []
        items = list(result) if isinstance(result, tuple) else [result]
        if len(items) != len(outputs):
            seen = f"{len(items)}" if result is not None else "None"
            rule = f"must return {len(outputs)} outputs (a tuple when more than one)"
            raise KernelError(self, rule, seen, where=where, hint=None if result is not None else RETURN_HINT)
        arrays = []
        for i, (item, spec) in enumerate(zip(items, outputs, strict=True)):
            value = self._result(item, spec, i, nothing=result is None)
            array = new(spec if value.shape == spec.shape else replace(spec, shape=value.shape))
            array[...] = value  # copied, because the function may keep its array
            arrays.append(array)
        if len(arrays) > 1:
            self._check_data_sizes(arrays, outputs)
        return arrays

    def _check_data_sizes(self, arrays: Sequence[Any], outputs: Sequence[Spec]) -> None:
        """Raise ``KernelError`` where two outputs have one size that depends on data, and it differs."""
        sizes: dict[str, tuple[int, int]] = {}  # by name: the first output that has it, and the size
        for i, (array, spec) in enumerate(zip(arrays, outputs, strict=True)):
            for name, size in (data_sizes_of(spec.shape, array.shape) or {}).items():
                first, other = sizes.setdefault(name, (i, size))
                if other != size:
                    rule = f"the size {name} must be {other}, as in output {first}"
                    where = of_function(self.function)
                    raise KernelError(f"{self}: output {i}", rule, array.shape, where=where)

    def _result(self, value: Any, spec: Spec, index: int, *, nothing: bool) -> Any:
        subject, where = f"{self}: output {index}", of_function(self.function)
        if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
            value = _scalar(value, spec, subject, where)
        if not isinstance(value, (np.ndarray, np.generic)):
            hint = "several outputs are returned as a tuple" if isinstance(value, list) else None
            hint = RETURN_HINT if nothing else hint
            raise KernelError(subject, "must be a NumPy array", type(value).__name__, where=where, hint=hint)
        array = np.asarray(value)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        if array.dtype != spec.dtype.numpy:
            raise KernelError(
                subject, f"must be {spec.dtype}, as the operator infers it", array.dtype.name, where=where
            )
        if array.shape != spec.shape and data_sizes_of(spec.shape, array.shape) is None:
            rules = [size.rule for size in spec.shape if isinstance(size, DataSize)]
            reason = f"{rules[0]} says" if rules else "the operator infers it"
            rule = f"must have shape {shape_text(spec.shape)}, as {reason}"
            raise KernelError(subject, rule, array.shape, where=where)
        return array


RETURN_HINT = "the function returns nothing: end it with return"
_RANKS = {"bool": 0, "int": 1, "float": 2, "complex": 3}


def _scalar(value: Any, spec: Spec, subject: str, where: Any) -> Any:
    """Return a Python scalar as the declared dtype; raises ``KernelError`` if it does not fit."""
    kind = next(i for i, t in enumerate((bool, int, float, complex)) if isinstance(value, t))
    if kind > _RANKS[spec.dtype.kind]:
        raise KernelError(
            subject, f"must be {spec.dtype}, as the operator infers it", repr(value), where=where
        )
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(value, spec.dtype.numpy)
    except OverflowError:
        array = None
    if array is None or (kind >= _RANKS["float"] and math.isfinite(abs(value)) and not np.isfinite(array)):
        raise KernelError(
            subject, f"must fit {spec.dtype}, as the operator infers it", repr(value), where=where
        )
    return array


@dataclass(eq=False)
class TensorKernel(KernelBase):
    """A function of the bound arguments that returns the new outputs.

    Hosts call it with gradients switched off: the operator's gradient rule is recorded instead.
    """

    function: Callable[..., tuple[Any, ...]]
    label: str
    device: str = "any"
    native: bool = False

    def __str__(self) -> str:
        """Return the label."""
        return self.label

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return None: the function itself raises for specs that it cannot take."""
        del inputs, outputs
        return None
